use super::draw::{Canvas, inside, text};
use super::{Plot, marks};
use crate::page::html::Html;
use crate::page::palette;

/// What the page's style says of plots, for a plot that stands alone.
const STYLE: &str = include_str!("../plot.css");

impl Plot {
    /// The plot alone, as an SVG file for a paper: on white, in the light colours, with its legend under it.
    pub fn svg(&self) -> String {
        let (x, y) = self.ranges();
        let canvas = Canvas::wide(self, x, y);
        let entries: &[_] = if self.series.len() > 1 { &self.series } else { &[] };
        let height = canvas.size.1 + 20.0 * entries.len() as f64;
        let mut svg = Html::default();
        svg.raw(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" ",
        );
        svg.raw(&format!(
            "viewBox=\"0 0 {0} {height}\" width=\"{0}\" height=\"{height}\" role=\"img\">\n<title>",
            canvas.size.0
        ));
        svg.text(&self.title).raw("</title>\n<desc>").text(&self.finding).raw("</desc>\n<style>");
        svg.raw(&resolved(&format!("{STYLE}.plot text{{font-family:sans-serif}}")));
        svg.raw("</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        inside(self, &canvas, &mut svg);
        for (i, series) in entries.iter().enumerate() {
            let top = canvas.size.1 + 20.0 * i as f64;
            svg.raw(&format!("<g transform=\"translate(64 {top})\">"));
            marks::sample(series.colour.unwrap_or(i), series.mark, &mut svg);
            text(&mut svg, "start", (36.0, 11.0), &series.name);
            svg.raw("</g>\n");
        }
        svg.raw("</svg>\n");
        svg.done()
    }
}

/// The style with the light colours in place of their names: not every reader of SVG knows variables.
fn resolved(style: &str) -> String {
    palette::light()
        .into_iter()
        .fold(style.to_owned(), |style, (name, colour)| style.replace(&format!("var(--{name})"), colour))
}
