//! Plots that several pages share, from figures to a finished [`Plot`]. Whatever was INVALID goes in like everything else, with
//! `hollow` set on its [`Point`]: it is drawn hollow, named so in the legend and the table, and never part of a frontier or a line.

use super::number::brief;
use super::plot::{Axis, Mark, Plot, Point, Series};

/// A named line with its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// Ascending in x.
    pub points: Vec<Point>,
}

impl Point {
    /// A point with an interval of its y.
    pub fn within(x: f64, y: f64, interval: Option<(f64, f64)>) -> Point {
        Point { x, y, y_range: interval, ..Point::default() }
    }

    /// The same with a name.
    pub fn named(self, label: impl Into<String>) -> Point {
        Point { label: label.into(), ..self }
    }

    /// The same, not counting if `invalid`.
    pub fn counting_unless(self, invalid: bool) -> Point {
        Point { hollow: invalid, ..self }
    }
}

/// Lines, each with the band of its points' `y_range`s behind it in its own colour; for percentiles over time, a fitted curve with its
/// confidence band. `finding` is a sentence for those who can't see the plot.
pub fn lines(title: &str, finding: &str, x: Axis, y: Axis, curves: &[Curve]) -> Plot {
    let mut series = Vec::new();
    for (i, curve) in curves.iter().enumerate().filter(|(_, c)| c.points.iter().any(|p| p.y_range.is_some())) {
        let band = Series::new(format!("{}, interval", curve.name), Mark::Band, curve.points.iter().cloned());
        series.push(band.coloured(i));
    }
    for (i, curve) in curves.iter().enumerate() {
        // The band shows the intervals; a line's own points need none.
        let points = curve.points.iter().map(|p| Point { y_range: None, ..p.clone() });
        series.push(Series::new(curve.name.clone(), Mark::Line, points).coloured(i));
    }
    Plot { title: title.into(), finding: finding.into(), x, y, series }
}

/// What [`attainment`] shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attainment {
    /// What was measured: load against the share of requests that met all objectives (0–1), with its interval, hollow if INVALID.
    pub probes: Vec<Point>,
    /// The fitted curve and its band, if there is one.
    pub fitted: Vec<Point>,
    /// The share asked for (0–1).
    pub required: f64,
    /// The capacity found, as an interval of the load.
    pub capacity: Option<(f64, f64)>,
}

/// Attainment over load: probes with intervals, the fitted curve with its band, the share asked for, and the capacity as an interval.
pub fn attainment(finding: &str, load: Axis, shown: &Attainment) -> Plot {
    let percent = |p: &Point| {
        let range = p.y_range.map(|(low, high)| (100.0 * low, 100.0 * high));
        Point { y: 100.0 * p.y, y_range: range, ..p.clone() }
    };
    let mut series = Vec::new();
    if let Some((low, high)) = shown.capacity {
        series.push(Series::zone("capacity, interval", low, high).coloured(1));
    }
    if shown.fitted.iter().any(|p| p.y_range.is_some()) {
        series.push(Series::new("fitted, interval", Mark::Band, shown.fitted.iter().map(percent)).coloured(0));
    }
    if !shown.fitted.is_empty() {
        let line = shown.fitted.iter().map(|p| Point { y_range: None, ..percent(p) });
        series.push(Series::new("fitted", Mark::Line, line).coloured(0));
    }
    series.push(Series::new("measured", Mark::Dots, shown.probes.iter().map(percent)).coloured(0));
    series.push(
        Series::level(format!("{}\u{202f}% asked for", brief(100.0 * shown.required)), 100.0 * shown.required)
            .coloured(2),
    );
    Plot {
        title: "Attainment over load".into(),
        finding: finding.into(),
        x: load,
        y: Axis { range: Some((0.0, 100.0)), ..Axis::linear("% of requests within all objectives") },
        series,
    }
}

/// Points of one or more set-ups in two figures of which more is better, and for each set-up the staircase of the points that no other
/// valid one of it dominates.
pub fn pareto(title: &str, finding: &str, x: Axis, y: Axis, sets: &[Curve]) -> Plot {
    let mut series = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        let steps = staircase(&set.points).into_iter().map(|p| (p.x, p.y));
        series.push(Series::new(format!("{}, frontier", set.name), Mark::Frontier, steps).coloured(i));
    }
    for (i, set) in sets.iter().enumerate() {
        series.push(Series::new(set.name.clone(), Mark::Dots, set.points.iter().cloned()).coloured(i));
    }
    Plot { title: title.into(), finding: finding.into(), x, y, series }
}

/// The valid points that no other valid one dominates (at least as good in both, better in one), ascending in x.
fn staircase(points: &[Point]) -> Vec<&Point> {
    let mut sorted: Vec<&Point> = points.iter().filter(|p| !p.hollow && p.x.is_finite() && p.y.is_finite()).collect();
    sorted.sort_by(|a, b| b.x.total_cmp(&a.x).then(b.y.total_cmp(&a.y)));
    let mut best = f64::NEG_INFINITY;
    sorted.retain(|p| {
        let kept = p.y > best;
        best = best.max(p.y);
        kept
    });
    sorted.reverse();
    sorted
}

/// One line of a [`forest`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Of what.
    pub name: String,
    /// The estimate; `None` where there is none.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// It does not count.
    pub invalid: bool,
}

/// A forest plot: an estimate with its interval a row, an upright line at `neutral` (no difference: 0, or a ratio of 1), and the range
/// that does not matter around it, if there is one.
pub fn forest(
    title: &str,
    finding: &str,
    x: Axis,
    rows: &[Estimate],
    neutral: f64,
    tolerance: Option<(f64, f64)>,
) -> Plot {
    let names = rows.iter().map(|row| row.name.clone());
    let y = Axis::rows("", names);
    let point = |(i, row): (usize, &Estimate)| Point {
        x: row.value.unwrap_or(f64::NAN),
        y: (rows.len() - i) as f64,
        x_range: row.interval,
        hollow: row.invalid,
        ..Point::default()
    };
    let ends = rows.iter().flat_map(|r| [r.value, r.interval.map(|i| i.0), r.interval.map(|i| i.1)]).flatten();
    let ends = ends.chain(tolerance.map_or([neutral; 2], |(low, high)| [low, high])).filter(|v| v.is_finite());
    let (low, high) = ends.fold((neutral, neutral), |(low, high), v| (low.min(v), high.max(v)));
    // No whisker ends on the frame.
    let room = (high - low) / 25.0;
    let x = Axis { range: x.range.or((room > 0.0).then_some((low - room, high + room))), ..x };
    let mut series = Vec::new();
    if let Some((low, high)) = tolerance {
        series.push(Series::zone("does not matter", low, high).coloured(1));
    }
    series.push(Series::upright("no difference", neutral, "").coloured(2));
    series.push(Series::new("estimate and interval", Mark::Dots, rows.iter().enumerate().map(point)).coloured(0));
    Plot { title: title.into(), finding: finding.into(), x, y, series }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frontier_leaves_out_what_is_dominated_and_what_does_not_count() {
        let p = |x: f64, y: f64| Point::from((x, y));
        let points =
            [p(1.0, 9.0), p(2.0, 9.0), p(3.0, 4.0), p(2.5, 3.0), p(4.0, 4.0), p(5.0, 50.0).counting_unless(true)];
        let kept: Vec<(f64, f64)> = staircase(&points).into_iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(kept, [(2.0, 9.0), (4.0, 4.0)]);
    }
}
