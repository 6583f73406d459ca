//! What plots show of a trace: series of a few hundred points, whatever the trace's length.

use crate::describe::arrivals::{gap_cvs, seconds};
use crate::describe::lengths::Histogram;

const SECOND: i64 = 1_000_000_000;
/// No series is longer.
const MOST: i64 = 300;
/// Widths that people read, in seconds.
const WIDTHS: [i64; 16] =
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400];

/// Series over time and over length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plots {
    /// Arrivals over time, if there are any with a time.
    pub arrivals: Option<Counts>,
    /// The gap CV inside successive windows: their length in seconds, and (start in seconds since the first arrival, CV).
    pub gap_cv: Option<(f64, Vec<(f64, f64)>)>,
    /// Distribution of prompt tokens: (tokens, share of requests with at most so many), the last with share 1.
    pub input: Vec<(f64, f64)>,
    /// Distribution of output tokens.
    pub output: Vec<(f64, f64)>,
    /// Requests by weekday (Monday 0) and hour of day, for wall clocks.
    pub week: Option<[[u64; 24]; 7]>,
}

/// Arrivals in successive bins, from the first arrival on.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Length of a bin in seconds; the last one is as long as what is left.
    pub bin_s: f64,
    /// Length of the trace in seconds.
    pub span_s: f64,
    /// Arrivals per bin.
    pub counts: Vec<u64>,
}

pub(crate) fn counts(sorted: &[i64]) -> Option<Counts> {
    let (&first, &last) = (sorted.first()?, sorted.last()?);
    let span = last - first;
    let bin = width(span, &WIDTHS).max(1);
    let mut counts = vec![0; (span / bin + 1) as usize];
    for group in sorted.chunk_by(|a, b| (a - first) / bin == (b - first) / bin) {
        counts[((group[0] - first) / bin) as usize] = group.len() as u64;
    }
    Some(Counts { bin_s: seconds(bin), span_s: seconds(span), counts })
}

/// In windows of a minute or more, where they hold ten arrivals.
pub(crate) fn gap_cv(sorted: &[i64]) -> Option<(f64, Vec<(f64, f64)>)> {
    let span = sorted.last()? - sorted.first()?;
    let window = width(span, &WIDTHS[5..]);
    let cvs = gap_cvs(sorted, window, sorted[0]);
    (!cvs.is_empty()).then(|| (seconds(window), cvs))
}

/// The least width that gives no more than [`MOST`] of it.
fn width(span: i64, widths: &[i64]) -> i64 {
    let fits = |w: &i64| span / w < MOST;
    widths.iter().map(|s| s * SECOND).find(fits).unwrap_or(span / MOST + 1)
}

/// The distribution, thinned out where more than a few hundred values occurred: every step that reaches another 200th, and in
/// the tail every step that leaves another tenth less.
pub(crate) fn distribution(lengths: &Histogram) -> Vec<(f64, f64)> {
    let n = lengths.n() as f64;
    let (mut out, mut upto, mut shown) = (Vec::new(), 0, 0.0);
    for (value, k) in lengths.values() {
        upto += k;
        let share = upto as f64 / n;
        let is_new = share - shown >= 0.005 || (1.0 - share) <= 0.9 * (1.0 - shown);
        if out.is_empty() || is_new || upto == lengths.n() {
            out.push((value as f64, share));
            shown = share;
        }
    }
    out
}

/// By weekday and hour (UTC) of wall-clock times.
pub(crate) fn week(sorted: &[i64]) -> [[u64; 24]; 7] {
    let hour = |at: &i64| at.div_euclid(3600 * SECOND);
    let mut week = [[0; 24]; 7];
    for group in sorted.chunk_by(|a, b| hour(a) == hour(b)) {
        let hour = hour(&group[0]);
        // 1970-01-01 was a Thursday.
        week[(hour.div_euclid(24) + 3).rem_euclid(7) as usize][hour.rem_euclid(24) as usize] += group.len() as u64;
    }
    week
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_arrival_and_are_few() {
        for span_s in [0i64, 7, 299, 4000, 86_400 * 121, 86_400 * 20_000] {
            let times: Vec<i64> = (0..=500).map(|i| span_s * SECOND / 500 * i).collect();
            let plot = counts(&times).unwrap();
            assert_eq!(plot.counts.iter().sum::<u64>(), 501, "{span_s}");
            assert!(plot.counts.len() <= MOST as usize, "{span_s}: {}", plot.counts.len());
        }
        assert_eq!(counts(&[]), None);
    }

    #[test]
    fn a_long_distribution_keeps_its_ends_and_its_tail() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|v| histogram.add(v));
        let points = distribution(&histogram);
        assert!(points.len() < 350, "{}", points.len());
        assert_eq!((points[0], points[points.len() - 1]), ((1.0, 1e-5), (100_000.0, 1.0)));
        assert!(points.iter().filter(|p| p.1 > 0.999).count() > 20);
        assert!(points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
    }

    #[test]
    fn weekdays_begin_on_monday() {
        // 2023-11-16 18:15:46 UTC was a Thursday.
        let week = week(&[1_700_158_546 * SECOND]);
        assert_eq!(week[3][18], 1);
    }
}
