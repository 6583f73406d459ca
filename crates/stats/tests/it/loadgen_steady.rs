use tailbound_clock::Seed;
use tailbound_stats::loadgen::endpoints::passes::{Seen, super_passes};
use tailbound_stats::loadgen::endpoints::plan::{CannotPlan, CurveSpec, Offline, plan};
use tailbound_stats::loadgen::endpoints::regions::Region;
use tailbound_stats::loadgen::endpoints::steady::{Detection, Trend, detect};

const SIZE: usize = 50;

/// A run of super-passes: each issues 50 samples over `span_s`, with TPOT at that level (ms) and 1 % of noise.
fn run(levels: &[f64], span_s: f64) -> Vec<Seen> {
    let mut rng = Seed(5).stream("noise");
    let mut seen = Vec::new();
    for (pass, level) in levels.iter().enumerate() {
        for i in 0..SIZE {
            let at = (pass as f64 + i as f64 / SIZE as f64) * span_s * 1e9;
            let tpot = level * 1e6 * (1.0 + 0.01 * rng.normal());
            let (issued, first) = (at as i64, at as i64 + 80_000_000);
            seen.push(Seen {
                issued_ns: issued,
                first_ns: Some(first),
                done_ns: Some(first + (tpot * 100.0) as i64),
                tokens_after_first: 100,
            });
        }
    }
    seen
}

fn detection(levels: &[f64], span_s: f64) -> Detection {
    detect(&super_passes(&run(levels, span_s), SIZE))
}

#[test]
fn a_flat_run_is_steady_and_its_figures_are_those_of_the_window() {
    let d = detection(&[20.0; 9], 120.0);
    let w = d.window.as_ref().unwrap();
    assert!(d.found && d.anomaly.is_none(), "{d:?}");
    assert_eq!((d.warmup, w.first, w.end), (1, 0, 8));
    assert!((w.per_user_tps - 50.0).abs() < 0.5, "{}", w.per_user_tps);
    // 100 tokens × 50 samples a pass, over the issue span of eight passes.
    let span = (7.0 + 49.0 / 50.0) * 120.0;
    assert!((w.system_tps - 8.0 * 5000.0 / span).abs() < 1e-6, "{}", w.system_tps);
    assert!(w.per_user_ci[0] < w.per_user_tps && w.per_user_tps < w.per_user_ci[1]);
    let block = d.block(SIZE);
    assert_eq!((block.status, block.verdict), ("windowable", "STEADY STATE"));
    assert_eq!(block.window.map(|w| (w.super_pass_start, w.super_pass_end)), Some((1, 8)));
}

#[test]
fn warm_up_is_cropped_by_the_level_of_the_back_half() {
    let d = detection(&[12.0, 15.0, 18.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0], 150.0);
    assert!(d.found);
    assert_eq!(d.warmup, 3);
}

#[test]
fn a_short_run_is_not_certified_and_says_what_is_missing() {
    let d = detection(&[20.0; 9], 20.0);
    assert!(!d.found);
    let w = d.window.as_ref().unwrap();
    assert!(w.required.short() && w.required.min_s == 600.0);
    assert!(d.reason.as_ref().unwrap().contains("of the 600 s required"), "{:?}", d.reason);
    assert_eq!(d.block(SIZE).status, "insufficient_duration");
}

#[test]
fn a_climb_is_drift_and_a_step_is_an_anomaly() {
    let climb: Vec<f64> = (0..12).map(|i| 20.0 * 1.12f64.powi(i)).collect();
    let d = detection(&climb, 200.0);
    assert!(!d.found, "{d:?}");
    assert!(d.trend.contains(&("tpot_p50", Trend::Up)));
    assert_eq!(d.block(SIZE).verdict, "drifting_up");
    // A step early on would be cropped as warm-up, which goes by the level of the back half.
    let d = detection(&[vec![20.0; 16], vec![26.0; 5]].concat(), 200.0);
    let a = d.anomaly.unwrap_or_else(|| panic!("{d:?}"));
    // The first plateau tolerates one pass of the new level before it ends, which takes from the difference.
    assert!((20.0..31.0).contains(&a.delta_pct) && (8..=15).contains(&a.change_point), "{a:?}");
    assert_eq!(d.block(SIZE).verdict, "anomaly");
}

/// Over many super-passes a trend is found that is none to anybody: the block speaks of it only from 5 % on.
#[test]
fn a_trend_of_ttft_that_does_not_matter_is_no_drift() {
    let block = |end_to_end: f64| {
        let mut seen = run(&[20.0; 40], 120.0);
        let n = seen.len() as f64;
        for (i, s) in seen.iter_mut().enumerate() {
            let more = (80e6 * end_to_end * i as f64 / n) as i64;
            s.first_ns = s.first_ns.map(|t| t + more);
            s.done_ns = s.done_ns.map(|t| t + more);
        }
        let d = detect(&super_passes(&seen, SIZE));
        assert!(d.found && d.trend.contains(&("ttft_p50", Trend::Up)), "{d:?}");
        d.block(SIZE).state
    };
    assert!(block(0.01).iter().all(|(_, word)| *word == "Plateau"));
    assert!(block(0.2).contains(&("ttft_p50", "Drifting Up")));
}

#[test]
fn too_few_passes_and_no_tokens_find_nothing() {
    assert!(!detection(&[20.0; 4], 600.0).found);
    let mut mute = run(&[20.0; 9], 120.0);
    mute.iter_mut().for_each(|s| s.tokens_after_first = 0);
    let d = detect(&super_passes(&mute, SIZE));
    assert!(!d.found && d.window.is_none());
    assert!(!detect(&[]).found);
}

#[test]
fn a_planned_curve_satisfies_the_rules_it_was_planned_by() {
    let spec = CurveSpec {
        c_min: 4,
        c_max: 256,
        points: 7,
        dataset: 13_368,
        dedicated_offline: false,
        request_s: Some([1.0, 0.01]),
        passes: None,
        min_window_s: None,
    };
    for (c_min, c_max) in [(1, 33), (4, 256), (16, 1024), (32, 64), (1, 8192)] {
        for dedicated_offline in [false, true] {
            let p = plan(CurveSpec { c_min, c_max, dedicated_offline, ..spec }).unwrap();
            let fixed: Vec<_> = p.points.iter().filter(|x| x.offline != Offline::Dedicated).collect();
            assert_eq!(fixed.len(), 7, "{c_min} {c_max}: {p:?}");
            for band in Region::MANDATORY {
                assert!(fixed.iter().any(|x| x.region == Some(band)), "{band:?} of {c_min}–{c_max}: {p:?}");
            }
            assert!(fixed.windows(2).all(|w| w[0].concurrency < w[1].concurrency));
            assert!(p.points.iter().all(|x| x.samples % 13_368 == 0 && x.samples >= 5 * 13_368));
            assert_eq!(p.points.iter().filter(|x| x.offline != Offline::None).count(), 1);
            assert!(p.expected_s().is_some_and(|s| s > 0.0));
            // Issued at the expected rate, the passes after the one that warms up outlast the window the rules ask for.
            assert!(
                p.points
                    .iter()
                    .all(|x| x.expected_s.unwrap() * (x.passes - 1) as f64 / x.passes as f64 > x.min_window_s)
            );
        }
    }
    assert_eq!(plan(CurveSpec { points: 6, ..spec }).unwrap_err(), CannotPlan::Points { points: 6, most: 32 });
    let fixed = plan(CurveSpec { passes: Some(6), min_window_s: Some(3.0), request_s: None, ..spec }).unwrap();
    assert!(fixed.points.iter().all(|p| (p.passes, p.min_window_s, p.expected_s) == (6, 3.0, None)));
    assert_eq!(plan(CurveSpec { passes: Some(4), ..spec }).unwrap_err(), CannotPlan::Passes(4));
    assert_eq!(plan(CurveSpec { request_s: None, ..spec }).unwrap_err(), CannotPlan::NoLength);
    assert!(plan(CurveSpec { dataset: 0, ..spec }).is_err());
    assert!(plan(CurveSpec { dataset: 100, dedicated_offline: true, ..spec }).is_err());
}
