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
fn what_somebody_stopped_or_what_was_never_due_is_nobodys_miss() {
    let mut stopped = never_sent(1, 5);
    stopped.end = End::NeverSent(Why::Interrupted);
    let mut never_due = never_sent(2, 5);
    never_due.at.clear(tailbound_record::Moment::Scheduled);
    let mut orphaned = never_due.clone();
    orphaned.end = End::NeverSent(Why::Session);
    let rows = [row(0, 0, &[(10, 1)]), stopped, never_due, orphaned, never_sent(4, 5)];
    let f = RunFacts { objectives: objectives(&["ttft:500"]), ..facts(1000) };
    let g = goodput(&rows, f.clone());
    assert_eq!((g.judged, g.good, g.excused), (3, 1, 2));
    let s = summarize(&rows, &f);
    assert_eq!((s.requests.never_sent, s.requests.never_due, s.misses()), (4, 2, 2));
}

#[test]
fn groups_are_counted_and_judged_apart() {
    let mut slow = row(1, 0, &[(600, 1), (700, 3)]);
    slow.class = 1;
    let mut lost = failed(2, 0, 10, Cause::Reset);
    lost.class = 1;
    let rows = [row(0, 0, &[(10, 1), (20, 2)]), slow, lost];
    let by_class = vec![(1, objectives(&["ttft:650"]).all)];
    let f = RunFacts { objectives: Objectives { by_class, ..objectives(&["ttft:500"]) }, ..facts(1000) };
    let groups = tailbound_stats::by_group(&rows, &f, 3, |row| Some(usize::from(row.class)));
    let counts: Vec<_> = groups.iter().map(|g| (g.requests.planned, g.requests.completed, g.judged, g.good)).collect();
    assert_eq!(counts, [(1, 1, 1, 1), (2, 1, 2, 1), (0, 0, 0, 0)]);
    assert_eq!(groups[1].ttft.max(), Some(600e6));
    assert_eq!((groups[1].output_tokens, groups[1].input_tokens), (4, 10));
    let all = summarize(&rows, &f).goodput.unwrap();
    assert_eq!(all.good, groups.iter().map(|g| g.good).sum::<usize>());
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
