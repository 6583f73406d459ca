use super::make::{facts, failed, never_sent, row, scheduled};
use tailbound_record::{Cause, End, Row, Why};
use tailbound_stats::{Goodput, Objective, ObjectiveMetric, Objectives, RunFacts, summarize};

fn objectives(all: &[&str]) -> Objectives {
    Objectives { all: all.iter().map(|o| o.parse().unwrap()).collect(), ..Objectives::default() }
}

fn goodput(rows: &[Row], facts: RunFacts) -> Goodput {
    summarize(rows, &facts).goodput.expect("there are objectives")
}

#[test]
fn an_objective_is_met_at_its_limit() {
    let rows = [row(0, 0, &[(500, 1), (600, 2)]), row(1, 0, &[(501, 1), (600, 2)])];
    let g = goodput(&rows, RunFacts { objectives: objectives(&["ttft:500", "tpot:50"]), ..facts(1000) });
    assert_eq!((g.judged, g.good, g.attainment), (2, 1, Some(0.5)));
    assert_eq!((g.requests_per_s, g.tokens_per_s), (1.0, 3.0));
    assert!(!g.met());
    assert_eq!(g.by_metric[0].missed_by_ms().map(|ms| (ms * 1e6).round() / 1e6), Some(1.0));
    assert_eq!(g.by_metric[1].share(), Some(1.0));
}

#[test]
fn everything_scheduled_is_judged_but_what_we_cancelled() {
    let mut cancelled = failed(3, 0, 10, Cause::Reset);
    cancelled.end = End::Cancelled(Why::Duration);
    let rows = [row(0, 0, &[(10, 1)]), failed(1, 0, 10, Cause::Status(503)), never_sent(2, 5), cancelled];
    let g = goodput(&rows, RunFacts { objectives: objectives(&["ttft:500"]), ..facts(1000) });
    assert_eq!((g.judged, g.good, g.excused), (3, 1, 1));
    assert_eq!(g.by_metric[0].at_required_ns, Some(f64::INFINITY));
}

#[test]
fn one_token_answers_meet_a_tpot_vacuously() {
    let rows = [row(0, 0, &[(10, 1)]), row(1, 0, &[(10, 1), (110, 1)])];
    let f = RunFacts { objectives: objectives(&["tpot:50"]), ..facts(1000) };
    let s = summarize(&rows, &f);
    let g = s.goodput.expect("there are objectives");
    assert_eq!((g.good, g.by_metric[0].vacuous, g.by_metric[0].within), (1, 1, 1));
    assert_eq!(s.vllm.request_goodput, Some(1.0));
}

#[test]
fn an_open_loop_counts_from_the_schedule_and_vllms_key_from_the_write() {
    let rows = [scheduled(row(0, 400, &[(600, 1)]), 0, 400)];
    let f = RunFacts { objectives: objectives(&["ttft:300"]), request_rate: Some(1.0), ..facts(1000) };
    let s = summarize(&rows, &f);
    assert_eq!(s.goodput.as_ref().map(|g| g.good), Some(0));
    assert_eq!(s.vllm.request_goodput, Some(1.0));
    let closed = RunFacts { request_rate: None, ..f };
    assert_eq!(summarize(&rows, &closed).goodput.map(|g| g.good), Some(1));
}

#[test]
fn a_class_may_have_objectives_of_its_own() {
    let mut patient = row(1, 0, &[(900, 1)]);
    patient.class = 7;
    let rows = [row(0, 0, &[(900, 1)]), patient];
    let own = vec![Objective { metric: ObjectiveMetric::Ttft, limit_ms: 1000.0 }];
    let o = Objectives { by_class: vec![(7, own)], ..objectives(&["ttft:500"]) };
    let g = goodput(&rows, RunFacts { objectives: o, ..facts(1000) });
    assert_eq!(g.by_class, [(0, 1, 0), (7, 1, 1)]);
    assert_eq!(g.by_metric[0].limit_ms, None);
}

#[test]
fn objectives_are_read_as_vllm_writes_them_and_refused_with_a_reason() {
    let o: Objective = "e2el:10000".parse().unwrap();
    assert_eq!((o.metric, o.limit_ms), (ObjectiveMetric::E2el, 10_000.0));
    for (bad, named) in [
        ("ttft", "KEY:MILLISECONDS"),
        ("foo:1", "`foo`"),
        ("ttft:-1", "`-1`"),
        ("tpot:x", "`x`"),
        ("ttft:nan", "`nan`"),
    ] {
        let error = bad.parse::<Objective>().unwrap_err().to_string();
        assert!(error.contains(named), "{bad}: {error}");
    }
}
