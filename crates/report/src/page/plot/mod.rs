//! Plots as inline SVG, coloured by the page's variables. Each is drawn twice, wide and narrow, and the page shows the one
//! that fits, so that letters keep their size.

mod draw;
mod scale;
mod ticks;

use super::html::Html;
use draw::Canvas;
pub use scale::Scale;
pub use ticks::Ticks;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Its heading: what against what.
    pub title: String,
    /// What it shows in a sentence, for those who don't see it and for those in a hurry.
    pub finding: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn, from back to front.
    pub series: Vec<Series>,
}

/// An axis. Its range is that of the data unless given.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How values become lengths.
    pub scale: Scale,
    /// Where the ticks are.
    pub ticks: Ticks,
    /// First and last value; `None`: the data's own, from zero where a linear axis measures up.
    pub range: Option<(f64, f64)>,
}

/// One line, set of bars or of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is. Shown where a plot has several.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// (x, y), ascending in x. Pairs an axis cannot show (a logarithm's zero) are left out.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Straight lines from point to point.
    Line,
    /// y holds until the next x: distributions, counts per window.
    Step,
    /// A bar of this width (in units of x), centred on x, from zero.
    Bars(f64),
    /// A dot each.
    Dots,
    /// A level line across at each y: an objective, a mean.
    Level,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, ticks: Ticks::Auto, range: None }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }

    /// Shares from 0 up to, not including, 1, in nines: 0, 90, 99, 99.9 % … stand at equal distances.
    pub fn nines(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Nines, ..Axis::linear(label) }
    }

    /// Seconds, in the largest unit that suits the range; the label is completed with it.
    pub fn seconds(label: impl Into<String>, range: (f64, f64)) -> Axis {
        let label = label.into();
        let (ticks, unit) = Ticks::seconds(range);
        Axis { label: format!("{label} ({unit})"), scale: Scale::Linear, ticks, range: Some(range) }
    }

    fn range(&self, values: impl Iterator<Item = f64> + Clone, from_zero: bool) -> (f64, f64) {
        if let Some(range) = self.range {
            return range;
        }
        let shown = values.filter(|v| self.scale.shows(*v));
        let low = shown.clone().fold(f64::INFINITY, f64::min);
        let high = shown.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return self.scale.default_range();
        }
        self.scale.round_out(low, high, from_zero)
    }
}

impl Plot {
    pub(super) fn html(&self, html: &mut Html) {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let edges = self.series.iter().flat_map(|s| {
            let half = if let Mark::Bars(width) = s.mark { width / 2.0 } else { 0.0 };
            s.points.iter().flat_map(move |p| [p.0 - half, p.0 + half])
        });
        let x = self.x.range(edges, false);
        let y = self.y.range(points().map(|p| p.1), true);
        html.raw("<figure class=\"plot\">\n<figcaption><h3>").text(&self.title).raw("</h3><p>").text(&self.finding);
        html.raw("</p></figcaption>\n");
        self.legend(html);
        for canvas in [Canvas::wide(x, y), Canvas::narrow(x, y)] {
            draw::svg(self, &canvas, html);
        }
        html.raw("<output class=\"reading\" aria-live=\"polite\"></output>\n");
        self.data(x, html);
        html.raw("</figure>\n");
    }

    fn legend(&self, html: &mut Html) {
        if self.series.len() < 2 {
            return;
        }
        html.raw("<ul class=\"legend\">");
        for (i, series) in self.series.iter().enumerate() {
            html.raw("<li><svg width=\"28\" height=\"12\" aria-hidden=\"true\">");
            draw::sample(i, series.mark, html);
            html.raw("</svg> ").text(&series.name).raw("</li>");
        }
        html.raw("</ul>\n");
    }

    /// The data behind the plot. `data-f` is the place across the plot, 0 to 1: what the script needs to read under the pointer.
    fn data(&self, x_range: (f64, f64), html: &mut Html) {
        let several = self.series.len() > 1;
        html.raw("<details><summary>The data</summary>\n<div class=\"scroll\"><table>\n<thead><tr>");
        html.raw(if several { "<th scope=\"col\">series</th>" } else { "" });
        html.raw("<th scope=\"col\" class=\"n\">").text(&self.x.label).raw("</th><th scope=\"col\" class=\"n\">");
        html.text(&self.y.label).raw("</th></tr></thead>\n<tbody>\n");
        for series in &self.series {
            for &(x, y) in series.points.iter().filter(|p| self.shows(**p)) {
                html.raw("<tr data-f=\"").raw(&format!("{:.4}", self.x.scale.part(x, x_range))).raw("\">");
                if several {
                    html.raw("<td>").text(&series.name).raw("</td>");
                }
                html.raw("<td class=\"n\">").text(&self.x.ticks.reading(x));
                html.raw("</td><td class=\"n\">").text(&self.y.scale.reading(y)).raw("</td></tr>\n");
            }
        }
        html.raw("</tbody>\n</table></div></details>\n");
    }

    fn shows(&self, (x, y): (f64, f64)) -> bool {
        self.x.scale.shows(x) && self.y.scale.shows(y)
    }
}
