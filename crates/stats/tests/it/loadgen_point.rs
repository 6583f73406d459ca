use proptest::prelude::*;
use tailbound_clock::Time;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row};
use tailbound_stats::loadgen::endpoints::plan::{CurvePlan, CurveSpec, Offline, plan};
use tailbound_stats::loadgen::endpoints::point::{Measured, Point, answered};

const DATASET: u64 = 5;

fn curve() -> CurvePlan {
    let spec = CurveSpec {
        c_min: 4,
        c_max: 36,
        points: 7,
        dataset: DATASET,
        dedicated_offline: false,
        request_s: None,
        passes: Some(8),
        min_window_s: Some(0.001),
    };
    plan(spec).unwrap()
}

/// A request: issued at, TTFT, tokens each `step` apart; failed if `ok` is false.
fn row(id: u64, issued: u64, ttft: u64, step: u64, tokens: u16, ok: bool) -> Row {
    let mut row = Row::new(id);
    row.at.set(Moment::Released, Time(issued));
    row.at.set(Moment::FirstToken, Time(issued + ttft));
    for i in 0..u64::from(tokens) {
        row.chunks.push(Time(issued + ttft + i * step), i as u32, 1, true);
    }
    row.at.set(Moment::StreamEnd, Time(issued + ttft + u64::from(tokens - 1) * step));
    row.tokens.output_server = Some(u32::from(tokens));
    row.end = if ok {
        End::Done(Finish::Length)
    } else {
        let detail = "".into();
        End::Failed { phase: Phase::Stream, blame: Blame::Server, cause: Cause::Reset, detail }
    };
    row
}

fn point(rows: &[Row]) -> Point {
    let plan = curve().points[0];
    Point::of(Measured { plan, dataset: DATASET, rows, version: "test", started_at_ms: 7 })
}

/// As many rows as a point has, a millisecond apart.
fn steady() -> Vec<Row> {
    let n = curve().points[0].samples;
    (0..n).map(|i| row(i, 1_000_000 * (i + 1), 50_000, 10_000, 11, true)).collect()
}

#[test]
fn figures_are_those_of_the_rows() {
    let p = point(&steady());
    let f = p.figures;
    assert!(p.valid(), "{:?}", p.reasons);
    assert_eq!((f.issued, f.completed, f.failed), (40, 40, 0));
    assert_eq!((f.ttft_p90_ms, f.tpot_p90_ms, f.latency_p90_ms), (Some(0.05), Some(0.01), Some(0.15)));
    assert_eq!(f.tps_per_user, Some(100_000.0));
    // From the first issue to the last end, drain included.
    assert_eq!(f.duration_s, Some(0.03915));
    assert!((f.system_tps.unwrap() - 440.0 / 0.03915).abs() < 1e-6);
    // 40 samples are too few for an early-stopping estimate of P90.
    assert_eq!(f.ttft_p90_early_stopping_ms, None);
    assert_eq!(p.summary.unwrap()["test_started_at"], 7);
}

#[test]
fn every_way_of_not_counting_has_its_reason() {
    let codes = |rows: &[Row]| point(rows).reasons.into_iter().map(|r| r.code).collect::<Vec<_>>();
    let all = steady();
    assert_eq!(codes(&all), Vec::<String>::new());
    assert_eq!(codes(&all[..39]), ["samples_missing"]);
    assert_eq!(codes(&[]), ["samples_missing", "nothing_completed"]);
    let one_token: Vec<Row> = (0..40).map(|i| row(i, 1_000_000 * i, 50_000, 1, 1, true)).collect();
    assert_eq!(codes(&one_token), ["no_tpot", "no_steady_state"]);
    let climbing: Vec<Row> = (0..40).map(|i| row(i, 1_000_000 * i, 50_000, 10_000 * (1 + i / 3), 11, true)).collect();
    assert_eq!(codes(&climbing), ["no_steady_state"]);
    let mut plan = curve().points[0];
    plan.min_window_s = 600.0;
    let p = Point::of(Measured { plan, dataset: DATASET, rows: &all, version: "test", started_at_ms: 0 });
    assert_eq!(p.reasons[0].code, "window_too_short");
    assert!(p.reasons[0].sentence.contains("of the 600 s it needs"), "{}", p.reasons[0].sentence);
    assert!(matches!(plan.offline, Offline::None));
}

#[test]
fn a_request_that_never_left_is_no_sample() {
    let mut rows = steady();
    rows[3] = Row::new(3);
    assert_eq!(answered(&rows).len(), 39);
}

proptest! {
    #[test]
    fn accounting_order_and_bounds_hold_for_any_rows(
        requests in prop::collection::vec((0..1_000_000u64, 1..1_000_000u64, 1..100_000u64, 1..20u16, any::<bool>()), 1..80),
        shift in 0..80usize,
    ) {
        let mut rows: Vec<Row> = requests
            .iter()
            .enumerate()
            .map(|(i, &(at, ttft, step, tokens, ok))| row(i as u64, at, ttft, step, tokens, ok))
            .collect();
        let p = point(&rows);
        let f = p.figures;
        prop_assert_eq!(f.issued as usize, requests.len());
        prop_assert_eq!(f.completed + f.failed, f.issued);
        prop_assert_eq!(f.completed as usize, requests.iter().filter(|r| r.4).count());
        // The order in which rows are kept changes nothing.
        let n = rows.len();
        rows.rotate_left(shift % n);
        prop_assert_eq!(point(&rows).figures, f);
        let issued: Vec<i64> = answered(&rows).iter().map(|a| a.seen.issued_ns).collect();
        prop_assert!(issued.is_sorted());
        if f.completed == 0 {
            prop_assert_eq!(f.system_tps, None);
            return Ok(());
        }
        let tokens: u64 = requests.iter().filter(|r| r.4).map(|r| u64::from(r.3)).sum();
        prop_assert!((f.system_tps.unwrap() * f.duration_s.unwrap() - tokens as f64).abs() < 1e-6 * tokens as f64);
        prop_assert!(f.ttft_p90_ms <= f.ttft_p95_ms);
        let estimate = f.ttft_p90_early_stopping_ms;
        prop_assert!(estimate.is_none() || estimate >= f.ttft_p90_ms);
        if let Some(tpot) = f.tpot_p90_ms {
            prop_assert_eq!(f.tps_per_user, Some(1000.0 / tpot));
        }
    }
}
