//! Plots as inline SVG, coloured by the page's variables. Each is drawn twice, wide and narrow, and the page shows the one
//! that fits, so that letters keep their size.

mod data;
mod draw;
mod export;
mod labels;
mod marks;
mod scale;
mod series;
mod ticks;

use super::html::Html;
use draw::Canvas;
pub use scale::Scale;
pub use series::{Mark, Point, Series};
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
    /// Whether it is the time of a run: the cursors of all plots over the same time go together.
    pub timed: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, ticks: Ticks::Auto, range: None, timed: false }
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
        Axis { label: format!("{label} ({unit})"), scale: Scale::Linear, ticks, range: Some(range), timed: false }
    }

    /// Seconds since a run's start.
    pub fn run_time(range: (f64, f64)) -> Axis {
        Axis { timed: true, ..Axis::seconds("since the start", range) }
    }

    /// Named rows, from the top: a forest plot's, a list of classes.
    pub fn rows(label: impl Into<String>, names: impl IntoIterator<Item = String>) -> Axis {
        let names: Vec<String> = names.into_iter().collect();
        let n = names.len() as f64;
        let ticks = Ticks::Named(names.into_iter().enumerate().map(|(i, name)| (n - i as f64, name)).collect());
        Axis { ticks, range: Some((0.4, n + 0.6)), ..Axis::linear(label) }
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
    /// What the axes go from and to.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let x = self.x.range(self.series.iter().flat_map(Series::xs), false);
        let y = self.y.range(self.series.iter().flat_map(Series::ys), true);
        (x, y)
    }

    pub(super) fn html(&self, html: &mut Html) {
        let (x, y) = self.ranges();
        html.raw("<figure class=\"plot\"")
            .raw(if self.x.timed { " data-timed=\"\"" } else { "" })
            .raw(">\n<figcaption><h3>")
            .text(&self.title)
            .raw("</h3><p>")
            .text(&self.finding);
        html.raw("</p></figcaption>\n");
        self.legend(html);
        for canvas in [Canvas::wide(self, x, y), Canvas::narrow(self, x, y)] {
            draw::svg(self, &canvas, html);
        }
        html.raw("<output class=\"reading\" aria-live=\"polite\"></output>\n");
        self.data(x, html);
        html.raw("</figure>\n");
    }

    fn legend(&self, html: &mut Html) {
        let hollow = self.series.iter().flat_map(|s| &s.points).any(|p| p.hollow);
        if self.series.len() < 2 && !hollow {
            return;
        }
        html.raw("<ul class=\"legend\">");
        for (i, series) in self.series.iter().enumerate() {
            html.raw("<li><svg width=\"28\" height=\"12\" aria-hidden=\"true\">");
            marks::sample(series.colour.unwrap_or(i), series.mark, html);
            html.raw("</svg> ").text(&series.name).raw("</li>");
        }
        if hollow {
            html.raw("<li class=\"hollow\">hollow: INVALID, does not count</li>");
        }
        html.raw("</ul>\n");
    }

    /// Whether a point has a place in the plot.
    fn shows(&self, mark: Mark, p: &Point) -> bool {
        let (x, y) = (&self.x.scale, &self.y.scale);
        let both =
            |scale: &Scale, range: Option<(f64, f64)>| range.is_some_and(|r| scale.shows(r.0) && scale.shows(r.1));
        match mark {
            Mark::Level => y.shows(p.y),
            Mark::Upright => x.shows(p.x),
            Mark::Band | Mark::Haze => x.shows(p.x) && both(y, p.y_range),
            Mark::Zone => both(x, p.x_range),
            _ => x.shows(p.x) && y.shows(p.y),
        }
    }
}
