//! Planted cycles are found with their phase; where none is planted, none is found.

use tailbound_clock::{Rng, Seed};
use tailbound_trace::describe::{Cycle, describe_rows};
use tailbound_trace::{Clock, Names, Row};

const DAY: f64 = 86_400.0;

/// 121 days at about 120 requests an hour, by thinning; `rate(t)` is between 0 and 1.
fn cycles(rng: &mut Rng, clock: Clock, rate: impl Fn(f64) -> f64) -> Vec<Cycle> {
    let mut rows = Vec::new();
    let mut t = 0.0;
    while t < 121.0 * DAY {
        t += rng.exponential() * 15.0;
        if rng.unit() < rate(t) {
            rows.push(Row { at: Some((t * 1e9) as i64), ..Row::default() });
        }
    }
    describe_rows(&rows, &Names::default(), None, clock).periodicity.unwrap()
}

#[test]
fn daily_and_weekly_cycles_are_found_with_their_phase() {
    let mut rng = Seed(1).stream("cycles");
    let wave = |t: f64, period: f64, peak: f64| (std::f64::consts::TAU * (t - peak) / period).cos();
    // Peaks at 15:00 and, within the week, on day 2 at 06:00.
    let rate =
        |t: f64| 0.45 * (1.0 + 0.5 * wave(t, DAY, 15.0 * 3600.0)) * (1.0 + 0.3 * wave(t, 7.0 * DAY, 54.0 * 3600.0));
    let found = cycles(&mut rng, Clock::Day, rate);
    assert_eq!(found.iter().map(|c| c.period_h).collect::<Vec<_>>(), [24, 168]);
    assert!((found[0].peak_at_h - 15.0).abs() < 0.3 && (found[0].amplitude - 0.5).abs() < 0.03, "{found:?}");
    assert!((found[1].peak_at_h - 54.0).abs() < 3.0 && (found[1].amplitude - 0.3).abs() < 0.03, "{found:?}");
    // On a wall clock the week begins on Monday; 1970-01-01 was a Thursday.
    let found = cycles(&mut rng, Clock::Wall, rate);
    assert!((found[1].peak_at_h - (54.0 + 72.0)).abs() < 3.0, "{found:?}");
}

#[test]
fn aperiodic_traffic_has_none() {
    let mut rng = Seed(2).stream("cycles");
    assert_eq!(cycles(&mut rng, Clock::Day, |_| 0.5), []);
    // Bursty at every scale up to days: a rate that jumps at random moments.
    let mut level = Vec::new();
    let mut noise = Seed(3).stream("levels");
    while level.len() < 121 * 24 {
        let (stay, rate) = (noise.between(1, 60) as usize, noise.unit());
        level.extend(std::iter::repeat_n(rate, stay));
    }
    assert_eq!(cycles(&mut rng, Clock::Day, |t| level[((t / 3600.0) as usize).min(121 * 24 - 1)]), []);
}
