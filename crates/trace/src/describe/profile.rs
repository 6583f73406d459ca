//! Hours, days, weeks, and the cycles found in them.

use crate::row::Clock;
use serde::Serialize;
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;

/// When in the day and week requests arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileFigures {
    /// Requests by hour of day (0 to 23): UTC for wall clocks, the file's own midnight otherwise. Hours without requests are left out.
    pub hour_of_day_counts: BTreeMap<i64, u64>,
    /// Requests by day of the file's clock, for clocks that count from day 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_index_counts: Option<BTreeMap<i64, u64>>,
    /// Requests by weekday, Monday 0, for wall clocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_of_week_counts: Option<BTreeMap<i64, u64>>,
}

/// A cycle in the hourly counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cycle {
    /// Its length: 24 or 168 hours.
    pub period_h: u32,
    /// When within the period its fundamental peaks, in hours after the file clock's midnight (daily), or after Monday 00:00 UTC
    /// (weekly, wall clocks) or day 0 (weekly, other clocks).
    pub peak_at_h: f64,
    /// Amplitude of the fundamental, as a share of the mean rate.
    pub amplitude: f64,
    /// Its power over that of its neighbours in the spectrum; chance alone gives more than x with probability exp(-x).
    pub strength: f64,
}

pub(crate) fn profile(sorted: &[i64], clock: Clock) -> Option<ProfileFigures> {
    if sorted.is_empty() || !matches!(clock, Clock::Wall | Clock::Day) {
        return None;
    }
    let mut hours = BTreeMap::new();
    let mut days = BTreeMap::new();
    for group in sorted.chunk_by(|a, b| a.div_euclid(HOUR) == b.div_euclid(HOUR)) {
        let hour = group[0].div_euclid(HOUR);
        *hours.entry(hour.rem_euclid(24)).or_default() += group.len() as u64;
        *days.entry(hour.div_euclid(24)).or_default() += group.len() as u64;
    }
    let is_wall = clock == Clock::Wall;
    let mut weekdays = BTreeMap::new();
    for (day, n) in &days {
        // 1970-01-01 was a Thursday.
        *weekdays.entry((day + 3).rem_euclid(7)).or_default() += n;
    }
    Some(ProfileFigures {
        hour_of_day_counts: hours,
        day_index_counts: (!is_wall).then_some(days),
        day_of_week_counts: is_wall.then_some(weekdays),
    })
}

/// Strength above which a cycle is reported; chance alone does that once in three million spectra.
const CERTAIN: f64 = 15.0;

/// The daily and weekly cycles of a trace that spans at least three of each. Hourly counts; the power at the period, over the
/// median power of the neighbouring frequencies that belong to neither cycle.
pub(crate) fn cycles(sorted: &[i64], clock: Clock) -> Vec<Cycle> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    // Whole hours only: a partial one at either end would look like a dip.
    let start = first.div_euclid(HOUR) + i64::from(first.rem_euclid(HOUR) != 0);
    let end = last.div_euclid(HOUR);
    if end - start < 72 {
        return Vec::new();
    }
    let mut counts = vec![0.0; (end - start) as usize];
    for group in sorted.chunk_by(|a, b| a.div_euclid(HOUR) == b.div_euclid(HOUR)) {
        if let Some(count) = usize::try_from(group[0].div_euclid(HOUR) - start).ok().and_then(|i| counts.get_mut(i)) {
            *count = group.len() as f64;
        }
    }
    let zero = if clock == Clock::Wall { -3 * DAY / HOUR } else { 0 };
    [24, 168].into_iter().filter_map(|period| cycle(&counts, period, start - zero)).collect()
}

/// `start`: the first count's hour since the origin of phases.
fn cycle(counts: &[f64], period: usize, start: i64) -> Option<Cycle> {
    let cycles = counts.len() / period;
    if cycles < 3 {
        return None;
    }
    let counts = &counts[..cycles * period];
    let n = counts.len();
    let mean = counts.iter().sum::<f64>() / n as f64;
    let (re, im) = dft(counts, mean, cycles);
    let power = re * re + im * im;
    let is_cyclic = |k: usize| {
        let period_h = n as f64 / k as f64;
        let near = |base: f64| {
            let harmonic = libm::round(base / period_h).max(1.0);
            (k as f64 - harmonic * n as f64 / base).abs() <= 1.5
        };
        near(24.0) || (near(168.0) && n >= 3 * 168)
    };
    let (low, high) = ((cycles / 2).max(1), (cycles * 3).min(n / 2));
    let mut around: Vec<f64> = (low..=high)
        .filter(|&k| !is_cyclic(k) && k.abs_diff(cycles) > 1)
        .map(|k| {
            let (re, im) = dft(counts, mean, k);
            re * re + im * im
        })
        .collect();
    if around.len() < 3 {
        return None;
    }
    around.sort_unstable_by(f64::total_cmp);
    // The power of noise is exponential: its mean is its median over ln 2.
    let noise = around[around.len() / 2] / std::f64::consts::LN_2;
    let strength = if noise > 0.0 { power / noise } else { f64::INFINITY };
    if mean <= 0.0 || power <= 0.0 || strength < CERTAIN {
        return None;
    }
    let hour = period as f64;
    // counts[t] ≈ mean + A cos(2π(t − peak)/period), t at the middle of the hour.
    let peak = libm::atan2(-im, re) / (2.0 * std::f64::consts::PI) * hour + 0.5 + start as f64;
    Some(Cycle {
        period_h: period as u32,
        peak_at_h: peak - hour * libm::floor(peak / hour),
        amplitude: 2.0 * libm::sqrt(power) / n as f64 / mean,
        strength: strength.min(1e12),
    })
}

fn dft(counts: &[f64], mean: f64, k: usize) -> (f64, f64) {
    let n = counts.len();
    let (mut re, mut im) = (0.0, 0.0);
    for (t, c) in counts.iter().enumerate() {
        let angle = 2.0 * std::f64::consts::PI * ((t * k) % n) as f64 / n as f64;
        re += (c - mean) * libm::cos(angle);
        im -= (c - mean) * libm::sin(angle);
    }
    (re, im)
}
