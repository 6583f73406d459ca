//! The explorer against servers whose curve is known in closed form.

use proptest::prelude::*;
use tailbound_sweep::explore::{Point, Variable, end_level, knee, next};

/// A single server with exponential service times of mean `s`, M/M/1: latency s/(1 − λs), and power λ/latency is greatest at λ = 1/(2s).
fn queue(rate: f64, s: f64) -> Point {
    Point { level: rate, throughput: rate, latency: s / (1.0 - rate * s) }
}

fn explored(s: f64, budget: usize) -> Vec<Point> {
    // One after another takes s each; all at once is as fast, at whatever latency.
    let mut points = vec![
        Point { level: 0.02 / s, throughput: 0.02 / s, latency: s },
        Point { level: 0.999 / s, throughput: 0.999 / s, latency: 1000.0 * s },
    ];
    while let Some(level) = next(Variable::RequestRate, budget, &points) {
        points.push(queue(level, s));
    }
    points
}

#[test]
fn the_knee_is_found_at_any_speed() {
    for s in [1e-3, 0.07, 2.0, 90.0] {
        let points = explored(s, 14);
        assert_eq!(points.len(), 14);
        let knee = knee(&points).unwrap();
        assert!((knee.level * s / 0.5 - 1.0).abs() < 0.06, "{} requests/s at {s} s", knee.level);
        let beside = points.iter().filter(|p| (0.25..1.0).contains(&(p.level * s))).count();
        assert!(beside >= 7, "levels are dense around the knee: {beside}");
    }
}

#[test]
fn the_first_levels_are_a_factor_apart() {
    let mut points = vec![queue(0.01, 1.0), queue(0.81, 1.0)];
    let mut levels = Vec::new();
    for _ in 0..3 {
        let level = next(Variable::RequestRate, 8, &points).unwrap();
        levels.push(level);
        points.push(queue(level, 1.0));
    }
    assert_eq!(levels, [0.03, 0.09, 0.27]);
}

#[test]
fn clients_are_whole_and_never_measured_twice() {
    let point = |level: f64| Point { level, throughput: level.min(3.0), latency: level / level.min(3.0) };
    let mut points = vec![point(1.0), point(9.0)];
    while let Some(level) = next(Variable::MaxConcurrency, 100, &points) {
        points.push(point(level));
    }
    let mut levels: Vec<f64> = points.iter().map(|p| p.level).collect();
    levels.sort_by(f64::total_cmp);
    assert_eq!(levels, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
}

#[test]
fn the_ends_stand_where_they_came_to() {
    assert_eq!(end_level(Variable::RequestRate, 0.25, 4.0), 0.25);
    assert_eq!(end_level(Variable::MaxConcurrency, 0.25, 40.0), 10.0);
}

proptest! {
    /// Whatever was measured: no more levels than asked for, all between the ends, and the same again on the same figures.
    #[test]
    fn levels_stay_within_range_and_budget(
        low in 1e-3..10.0f64, factor in 1.0..1e4f64, budget in 2usize..16,
        seen in prop::collection::vec((0.01..1e3f64, 0.001..1e3f64), 16),
    ) {
        let high = low * factor;
        let mut points = vec![
            Point { level: low, throughput: low, latency: 1.0 },
            Point { level: high, throughput: high, latency: 2.0 },
        ];
        while let Some(level) = next(Variable::RequestRate, budget, &points) {
            prop_assert_eq!(next(Variable::RequestRate, budget, &points), Some(level));
            prop_assert!(level > low && level < high);
            let (throughput, latency) = seen[points.len()];
            points.push(Point { level, throughput, latency });
            prop_assert!(points.len() <= budget);
        }
    }
}
