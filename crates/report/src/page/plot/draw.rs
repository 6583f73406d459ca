use super::labels::Labels;
use super::{Plot, Scale, Ticks, marks};
use crate::page::html::Html;

/// One drawing of a plot: its size, its frame, the values at the frame's edges. Pixels of the SVG's own.
pub(super) struct Canvas {
    pub(super) class: &'static str,
    pub(super) size: (f64, f64),
    pub(super) x: Edge,
    pub(super) y: Edge,
    ticks: (usize, usize),
}

/// One direction: from where to where in pixels, and in values.
pub(super) struct Edge {
    pub(super) pixels: (f64, f64),
    pub(super) values: (f64, f64),
}

/// About the width of a letter of a label.
pub(super) const LETTER: f64 = 7.0;

impl Canvas {
    /// Beside another, or alone on a tablet.
    pub(super) fn wide(plot: &Plot, x: (f64, f64), y: (f64, f64)) -> Canvas {
        Canvas::new("wide", (640.0, 300.0), plot, (x, y), (8, 6))
    }

    /// On a phone.
    pub(super) fn narrow(plot: &Plot, x: (f64, f64), y: (f64, f64)) -> Canvas {
        Canvas::new("narrow", (340.0, 260.0), plot, (x, y), (5, 5))
    }

    fn new(
        class: &'static str,
        (width, height): (f64, f64),
        plot: &Plot,
        (x, y): ((f64, f64), (f64, f64)),
        ticks: (usize, usize),
    ) -> Canvas {
        let mut canvas =
            Canvas { class, size: (width, height), x: edge(64.0, width - 14.0, x), y: edge(0.0, 0.0, y), ticks };
        // 99.999 % is long.
        if plot.y.scale == Scale::Nines {
            canvas.x.pixels.0 = 80.0;
        }
        // Named rows are as high, and their names as wide, as they need.
        if let Ticks::Named(rows) = &plot.y.ticks {
            let longest = rows.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0) as f64;
            canvas.x.pixels.0 = (longest * LETTER + 16.0).clamp(64.0, width * 0.42);
            canvas.size.1 = 84.0 + 30.0 * rows.len() as f64;
            canvas.ticks.1 = rows.len();
        }
        canvas.y.pixels = (canvas.size.1 - 42.0, 26.0);
        canvas
    }
}

fn edge(from: f64, to: f64, values: (f64, f64)) -> Edge {
    Edge { pixels: (from, to), values }
}

impl Edge {
    pub(super) fn place(&self, part: f64) -> f64 {
        self.pixels.0 + part.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }
}

/// The drawing.
pub(super) fn svg(plot: &Plot, canvas: &Canvas, html: &mut Html) {
    let (width, height) = canvas.size;
    html.raw(&format!("<svg class=\"{}\" viewBox=\"0 0 {width} {height}\" role=\"img\" tabindex=\"0\" ", canvas.class));
    html.raw(&format!("data-left=\"{}\" data-right=\"{}\" ", canvas.x.pixels.0, canvas.x.pixels.1));
    html.raw("aria-label=\"").attribute(&plot.title).raw(": ").attribute(&plot.finding).raw("\">\n");
    inside(plot, canvas, html);
    let (top, bottom) = (canvas.y.pixels.1, canvas.y.pixels.0);
    html.raw(&format!("<line class=\"cursor\" y1=\"{top}\" y2=\"{bottom}\" visibility=\"hidden\"/></svg>\n"));
}

/// Everything but the element around it.
pub(super) fn inside(plot: &Plot, canvas: &Canvas, html: &mut Html) {
    frame(plot, canvas, html);
    let mut labels = Labels::new(canvas);
    for (i, series) in plot.series.iter().enumerate() {
        marks::series(plot, canvas, series, series.colour.unwrap_or(i), &mut labels, html);
    }
    labels.write(html);
}

/// Rules, ticks and labels.
fn frame(plot: &Plot, canvas: &Canvas, html: &mut Html) {
    let ((left, right), (bottom, top)) = (canvas.x.pixels, canvas.y.pixels);
    let room = ((left - 8.0) / LETTER) as usize;
    for (value, label) in plot.y.ticks.within(plot.y.scale, canvas.y.values, canvas.ticks.1) {
        let y = canvas.y.place(plot.y.scale.part(value, canvas.y.values));
        line(html, "rule", (left, y), (right, y));
        text(html, "end", (left - 7.0, y + 4.0), &cut(&label, room));
    }
    for (value, label) in plot.x.ticks.within(plot.x.scale, canvas.x.values, canvas.ticks.0) {
        let x = canvas.x.place(plot.x.scale.part(value, canvas.x.values));
        line(html, "tick", (x, bottom), (x, bottom + 5.0));
        text(html, "middle", (x, bottom + 18.0), &label);
    }
    line(html, "axis", (left, bottom), (right, bottom));
    let across = (right / LETTER) as usize;
    text(html, "end", (right, bottom + 36.0), &cut(&plot.x.label, across));
    text(html, "start", (4.0, top - 13.0), &cut(&plot.y.label, across));
}

/// As much of a label as there is room for.
pub(super) fn cut(label: &str, letters: usize) -> String {
    if label.chars().count() <= letters.max(3) {
        return label.to_owned();
    }
    label.chars().take(letters.max(3) - 1).chain(['…']).collect()
}

pub(super) fn line(html: &mut Html, class: &str, from: (f64, f64), to: (f64, f64)) {
    html.raw("<line class=\"").raw(class).raw("\" x1=\"").number(from.0).raw("\" y1=\"").number(from.1);
    html.raw("\" x2=\"").number(to.0).raw("\" y2=\"").number(to.1).raw("\"/>");
}

pub(super) fn text(html: &mut Html, anchor: &str, at: (f64, f64), label: &str) {
    if label.is_empty() {
        return;
    }
    html.raw("<text text-anchor=\"").raw(anchor).raw("\" x=\"").number(at.0).raw("\" y=\"").number(at.1).raw("\">");
    html.text(label).raw("</text>\n");
}
