//! Frontiers whose truth is known.

use tailbound_clock::Seed;
use tailbound_stats::pareto::{Frontier, Setting, frontier};

fn around(x: f64, y: f64, spread: f64, runs: usize, seed: u64) -> Setting {
    let mut rng = Seed(seed).stream("runs");
    let runs = (0..runs).map(|_| (x + spread * rng.normal(), y + spread * rng.normal())).collect();
    Setting { runs, valid: true }
}

fn of(settings: &[Setting]) -> Frontier {
    frontier(settings, 0.05, 1000, Seed(1))
}

#[test]
fn what_is_beaten_at_both_is_not_on_it_and_what_is_not_is() {
    let settings = [
        around(10.0, 90.0, 0.1, 4, 1),
        around(50.0, 50.0, 0.1, 4, 2),
        around(40.0, 40.0, 0.1, 4, 3),
        around(90.0, 10.0, 0.1, 4, 4),
    ];
    let front = of(&settings);
    let on: Vec<bool> = front.settings.iter().map(|p| p.on_frontier).collect();
    assert_eq!(on, [true, true, false, true]);
    let sure: Vec<f64> = front.settings.iter().map(|p| p.confidence.unwrap()).collect();
    assert!(sure[0] > 0.98 && sure[1] > 0.98 && sure[2] < 0.02 && sure[3] > 0.98, "{sure:?}");
    assert_eq!(front.steps.len(), 3);
    assert!(front.steps.windows(2).all(|w| w[0].x < w[1].x && w[0].y.value > w[1].y.value));
    assert!(front.steps.iter().all(|s| s.y.low <= s.y.value && s.y.value <= s.y.high));
}

/// Two settings that are the same: neither can be said to beat the other.
#[test]
fn a_tie_is_no_certainty() {
    let front = of(&[around(50.0, 50.0, 1.0, 5, 1), around(50.0, 50.0, 1.0, 5, 2)]);
    for placed in &front.settings {
        assert!((0.05..0.999).contains(&placed.confidence.unwrap()), "{placed:?}");
    }
}

#[test]
fn single_runs_have_a_place_and_no_confidence_and_invalid_ones_no_place() {
    let single = Setting { runs: vec![(50.0, 50.0)], valid: true };
    let invalid = Setting { valid: false, ..around(99.0, 99.0, 0.1, 3, 2) };
    let nothing = Setting { runs: Vec::new(), valid: true };
    let front = of(&[single, invalid, nothing]);
    assert!(front.settings[0].on_frontier && front.settings[0].confidence.is_none());
    assert!(front.settings[0].x.unwrap().high.is_infinite());
    assert!(!front.settings[1].on_frontier && front.settings[1].x.is_some() && front.settings[1].confidence.is_none());
    assert!(!front.settings[2].on_frontier && front.settings[2].x.is_none());
    assert_eq!((front.unrepeated, front.steps.len()), (1, 1));
}

/// Means of three runs each, 400 times: the interval holds the truth about as often as it says.
#[test]
fn intervals_of_means_hold_the_truth() {
    let held = (0..400)
        .filter(|seed| {
            let front = frontier(&[around(50.0, 50.0, 3.0, 3, *seed)], 0.05, 200, Seed(*seed));
            let x = front.settings[0].x.unwrap();
            x.low <= 50.0 && 50.0 <= x.high
        })
        .count();
    assert!((365..=395).contains(&held), "{held} of 400");
}
