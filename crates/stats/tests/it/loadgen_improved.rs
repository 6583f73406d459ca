use tailbound_clock::{Dur, Time};
use tailbound_stats::loadgen::improved::{Bounds, Reason, judge};
use tailbound_stats::loadgen::round::{Outcome, Stop};
use tailbound_stats::loadgen::samples::Ending;
use tailbound_stats::loadgen::scenario::{Options, Test};
use tailbound_stats::loadgen::{Library, Mode, Scenario, Settings};

use super::data;
use super::drive::{drive, fifo};
use super::runs::{captured, score};

fn outcome(samples: &[tailbound_stats::loadgen::samples::Sample], stop: Stop) -> Outcome {
    Outcome {
        samples: samples.to_vec(),
        ending: Ending::of(samples),
        stop,
        lost: vec![],
        skips: vec![],
        errors: vec![],
        start: Time::ZERO,
        last_done: Time::ZERO,
    }
}

#[test]
fn whatever_is_invalid_for_loadgen_has_a_reason_and_nothing_it_calls_valid_gains_one_but_lateness() {
    let mut judged = 0;
    for dir in data::runs() {
        let c = captured(&dir);
        if c.effective.requested.mode != Mode::PerformanceOnly {
            continue;
        }
        let score = score(&c).unwrap_or_else(|| panic!("{} has no run.json", c.name));
        let report = judge(&score, &outcome(&c.samples, Stop::Naturally), Bounds::default());
        let others: Vec<_> = report.reasons.iter().filter(|r| !matches!(r, Reason::IssueLateness { .. })).collect();
        assert_eq!(others.is_empty(), score.decision.valid(), "{}: {others:?}", c.name);
        assert!(report.reasons.iter().all(|r| r.to_string().len() > 20));
        judged += 1;
    }
    assert!(judged == 0 || judged >= 24);
}

#[test]
fn both_token_limits_are_judged_and_the_missing_queries_counted() {
    let Some(folder) = data::folder() else { return };
    // LoadGen says nothing about TTFT here: TPOT failed first.
    let c = captured(&folder.join("runs/16_server_token_both_invalid"));
    let report = judge(&score(&c).unwrap(), &outcome(&c.samples, Stop::AllIssued), Bounds::default());
    let needs = |which: &str| {
        report.reasons.iter().find_map(|r| match r {
            Reason::EarlyStopping { what, more_needed, .. } if *what == which => Some(*more_needed),
            _ => None,
        })
    };
    assert_eq!(needs("TPOT"), Some(74_847)); // LoadGen's own figure
    assert!(needs("TTFT").is_some_and(|n| n > 0));
}

#[test]
fn one_token_answers_are_counted_and_never_give_a_negative_time() {
    let Some(folder) = data::folder() else { return };
    let c = captured(&folder.join("runs/17_server_token_ntokens1_errors"));
    let score = score(&c).unwrap();
    assert!(score.tokens.as_ref().unwrap().tpot.as_ref().unwrap().min < 0); // parity
    let report = judge(&score, &outcome(&c.samples, Stop::AllIssued), Bounds::default());
    assert_eq!(report.without_tpot, 39);
    assert!(report.tpot_ns.unwrap() > 0);
}

#[test]
fn lateness_and_lost_answers_invalidate_a_run_loadgen_would_accept() {
    let settings = Settings {
        scenario: Scenario::Server,
        server_target_qps: 500.0,
        min_duration_ms: 2000,
        server_target_latency_ns: 20_000_000,
        ..Settings::default()
    };
    let library = Library { total: 64, performance: 64 };
    let mut test = Test::new(&settings, library, Options::default()).unwrap();
    drive(&mut test, fifo(Dur::from_us(50)), |t| t);
    let run = test.result().unwrap();
    let report = judge(run.score.as_ref().unwrap(), &run.outcome, Bounds::default());
    assert!(report.valid() && report.lateness_ns == Some([0, 0, 0]), "{report:?}");

    let mut late = Test::new(&settings, library, Options::default()).unwrap();
    drive(&mut late, fifo(Dur::from_us(50)), |t| t + Dur::from_ms(5));
    let run = late.result().unwrap();
    assert!(run.score.as_ref().unwrap().decision.valid());
    let report = judge(run.score.as_ref().unwrap(), &run.outcome, Bounds::default());
    assert!(matches!(report.reasons[..], [Reason::IssueLateness { .. }]), "{:?}", report.reasons);

    let options = Options { lost_after: Some(Dur::from_ms(100)), ..Options::default() };
    let mut lossy = Test::new(&settings, library, options).unwrap();
    let mut served = fifo(Dur::from_us(50));
    drive(&mut lossy, |now, i, s| if s % 300 == 299 { None } else { served(now, i, s) }, |t| t);
    let run = lossy.result().unwrap();
    let report = judge(run.score.as_ref().unwrap(), &run.outcome, Bounds::default());
    assert!(report.reasons.iter().any(|r| matches!(r, Reason::LostResponses { lost: 3, .. })), "{:?}", report.reasons);
}

#[test]
fn multistream_is_judged_by_queries_in_token_mode_too() {
    let settings = Settings {
        scenario: Scenario::MultiStream,
        multi_stream_samples_per_query: 4,
        use_token_latencies: true,
        min_query_count: 300,
        min_duration_ms: 0,
        ..Settings::default()
    };
    let library = Library { total: 64, performance: 64 };
    let mut test = Test::new(&settings, library, Options::default()).unwrap();
    let answer = |now, _: &tailbound_stats::loadgen::round::Issue, _| {
        Some((Some(now + Dur::from_ms(1)), now + Dur::from_ms(3), Some(3)))
    };
    drive(&mut test, answer, |t| t);
    let run = test.result().unwrap();
    assert_eq!(run.outcome.samples.len(), 1200, "more samples than the 662 queries that P99 needs");
    let report = judge(run.score.as_ref().unwrap(), &run.outcome, Bounds::default());
    let needs: Vec<(u64, u64)> = report
        .reasons
        .iter()
        .filter_map(|r| match r {
            Reason::EarlyStopping { queries, more_needed, .. } => Some((*queries, *more_needed)),
            _ => None,
        })
        .collect();
    assert_eq!(needs, [(300, 362), (300, 362)], "TTFT and TPOT: {:?}", report.reasons);
}

#[test]
fn a_multistream_query_without_one_of_its_answers_is_unanswered() {
    let settings = Settings {
        scenario: Scenario::MultiStream,
        multi_stream_samples_per_query: 4,
        multi_stream_target_latency_percentile: 0.5,
        multi_stream_expected_latency_ns: 1e6,
        min_query_count: 300,
        min_duration_ms: 400,
        ..Settings::default()
    };
    let library = Library { total: 64, performance: 64 };
    let options = Options { lost_after: Some(Dur::from_ms(50)), ..Options::default() };
    let mut test = Test::new(&settings, library, options).unwrap();
    // Two samples of one query.
    drive(&mut test, |now, _, s| (s != 41 && s != 42).then(|| (None, now + Dur::from_ms(1), None)), |t| t);
    let run = test.result().unwrap();
    assert_eq!(run.outcome.lost, [41, 42]);
    let score = run.score.as_ref().unwrap();
    let all = Bounds { lost_share: 1.0, ..Bounds::default() };
    assert!(judge(score, &run.outcome, all).valid());
    let none = judge(score, &run.outcome, Bounds::default());
    assert!(matches!(none.reasons[..], [Reason::LostResponses { lost: 2, allowed: 1, .. }]), "{none:?}");
}
