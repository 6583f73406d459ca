use super::make::{MS, facts, failed, row, scheduled};
use tailbound_record::{Blame, Cause, End, Phase, Row, StampSource};
use tailbound_stats::{Bounds, ClientHealth, Code, RunFacts, Verdict, judge, summarize};

/// `n` answers, 10 ms apart, all in good order, kernel stamps.
fn good_rows(n: u64) -> Vec<Row> {
    (0..n)
        .map(|i| {
            let mut r = row(i, i * 10, &[(i * 10 + 50, 1), (i * 10 + 70, 1), (i * 10 + 90, 1)]);
            r.stamps = StampSource::Kernel;
            r
        })
        .collect()
}

fn open_loop(n: u64) -> RunFacts {
    RunFacts { request_rate: Some(100.0), ..facts(n * 10 + 200) }
}

fn verdict(rows: &[Row], facts: &RunFacts, health: &ClientHealth) -> Verdict {
    judge(&summarize(rows, facts), facts, health, &Bounds::default())
}

fn codes(v: &Verdict) -> Vec<Code> {
    v.reasons.iter().map(|r| r.code).collect()
}

fn cautions(v: &Verdict) -> Vec<Code> {
    v.cautions.iter().map(|r| r.code).collect()
}

#[test]
fn a_run_as_asked_for_is_valid_without_a_word() {
    let v = verdict(&good_rows(1000), &open_loop(1000), &ClientHealth::default());
    assert!(v.valid() && v.cautions.is_empty(), "{v:?}");
    assert_eq!(v.word(), "VALID");
}

#[test]
fn late_sends_are_the_clients_fault() {
    let mut rows = good_rows(1000);
    for r in rows.iter_mut().step_by(50) {
        *r = scheduled(row(r.id, r.id * 10 + 3, &[(r.id * 10 + 90, 1)]), r.id * 10, r.id * 10);
        r.stamps = StampSource::Kernel;
    }
    let v = verdict(&rows, &open_loop(1000), &ClientHealth::default());
    assert_eq!(codes(&v), [Code::SendsLate]);
    assert!(v.reasons[0].sentence.contains("3.0 ms late"), "{}", v.reasons[0].sentence);
    // The pacer's own samples, where given, count instead.
    let health = ClientHealth { lateness_ns: Some(vec![1000; 1000]), ..ClientHealth::default() };
    assert!(verdict(&rows, &open_loop(1000), &health).valid());
    // One per cent of a long TTFT allows more.
    let slow: Vec<Row> =
        (0..1000).map(|i| scheduled(row(i, i * 10 + 3, &[(i * 10 + 900, 1)]), i * 10, i * 10)).collect();
    assert!(!codes(&verdict(&slow, &open_loop(1000), &ClientHealth::default())).contains(&Code::SendsLate));
}

#[test]
fn a_rate_not_reached_is_short() {
    // Asked 10 ms apart, sent 12 ms apart with the release already late: nothing else shows it.
    let rows: Vec<Row> = (0..1000).map(|i| scheduled(row(i, i * 12, &[(i * 12 + 50, 1)]), i * 10, i * 12)).collect();
    let v = verdict(&rows, &open_loop(1200), &ClientHealth::default());
    assert_eq!(codes(&v), [Code::RateShort]);
    let figures = &v.reasons[0].figures;
    assert!((figures[0].1 - 100.0).abs() < 1e-9 && (figures[1].1 - 1000.0 / 12.0).abs() < 1e-9, "{figures:?}");
}

#[test]
fn a_cap_that_shapes_an_open_loop_is_named_with_its_queue() {
    // Asked 100/s under a cap of 20 from a server with capacity for 10/s.
    let rows: Vec<Row> = (0..200)
        .map(|i| {
            let release = if i < 20 { i * 10 } else { (i - 20) * 100 + 2000 };
            let mut r = scheduled(row(i, release, &[(release + 50, 1), (release + 2000, 1)]), i * 10, release);
            r.stamps = StampSource::Kernel;
            r
        })
        .collect();
    let f = RunFacts { max_concurrency: Some(20), ..open_loop(2200) };
    let v = verdict(&rows, &f, &ClientHealth::default());
    assert_eq!(codes(&v), [Code::CapShaped]);
    let sentence = &v.reasons[0].sentence;
    assert!(sentence.contains("cap of 20") && sentence.contains("90 %") && sentence.contains("17.9 s"), "{sentence}");
    // The same queue in a closed loop is what was asked for.
    let closed = RunFacts { request_rate: None, ..f };
    assert!(verdict(&rows, &closed, &ClientHealth::default()).valid());
}

#[test]
fn a_server_that_falls_behind_is_valid_with_a_caution() {
    // 100/s sent, answered at 25/s one after the other.
    let rows: Vec<Row> = (0..1000)
        .map(|i| {
            let mut r = row(i, i * 10, &[(i * 40 + 20, 1), (i * 40 + 40, 1)]);
            r.stamps = StampSource::Kernel;
            r
        })
        .collect();
    let facts_of = |end_ms| RunFacts { request_rate: Some(100.0), ..facts(end_ms) };
    let v = verdict(&rows, &facts_of(40_100), &ClientHealth::default());
    assert_eq!((v.valid(), cautions(&v)), (true, vec![Code::Backlog]), "{v:?}");
    assert!(v.cautions[0].sentence.contains("24.94 req/s of 100.00 sent"), "{v:?}");
    // Answers that are long, each in its own time, are no backlog.
    let long: Vec<Row> = (0..1000)
        .map(|i| {
            let mut r = row(i, i * 10, &[(i * 10 + 20, 1), (i * 10 + 30_020, 1)]);
            r.stamps = StampSource::Kernel;
            r
        })
        .collect();
    assert_eq!(cautions(&verdict(&long, &facts_of(40_100), &ClientHealth::default())), []);
    // A handful of requests of 20 ms, irregularly spaced: a low rate in a short window, and no queue.
    let few: Vec<Row> =
        [60, 140, 280, 300].iter().enumerate().map(|(i, &t)| row(i as u64, t, &[(t + 5, 1), (t + 25, 1)])).collect();
    assert!(!cautions(&verdict(&few, &facts_of(325), &ClientHealth::default())).contains(&Code::Backlog));
    // With latencies in the window (every 5th request quick) there is a window to judge by.
    let rows: Vec<Row> = (0..1000)
        .map(|i| {
            let first = if i % 5 < 3 { i * 10 + 20 } else { 10_000 + i * 30 };
            let mut r = row(i, i * 10, &[(first, 1), (first + 20, 1)]);
            r.stamps = StampSource::Kernel;
            r
        })
        .collect();
    let v = verdict(&rows, &RunFacts { request_rate: Some(100.0), ..facts(40_100) }, &ClientHealth::default());
    assert_eq!((v.valid(), cautions(&v)), (true, vec![Code::Backlog]), "{v:?}");
}

#[test]
fn a_busy_client_is_saturated_and_a_late_reader_worse() {
    let (rows, f) = (good_rows(1000), open_loop(1000));
    let busy = |share| verdict(&rows, &f, &ClientHealth { cpu_share: Some(share), ..ClientHealth::default() });
    assert_eq!(codes(&busy(0.97)), [Code::ClientSaturated]);
    assert_eq!(cautions(&busy(0.85)), [Code::ClientSaturated]);
    assert!(busy(0.5).cautions.is_empty());
    // The median gap is 20 ms.
    let late = |ms: f64| ClientHealth { reader_late_p99_ns: Some(ms * 1e6), ..ClientHealth::default() };
    assert_eq!(codes(&verdict(&rows, &f, &late(21.0))), [Code::ReaderLate]);
    assert!(verdict(&rows, &f, &late(19.0)).valid());
}

#[test]
fn shared_reads_count_against_the_run_unless_the_reader_was_prompt() {
    let (rows, f) = (good_rows(1000), open_loop(1000));
    let health = |late: Option<f64>| ClientHealth {
        coalesced_share: Some(0.05),
        reader_late_p99_ns: late,
        ..ClientHealth::default()
    };
    assert_eq!(codes(&verdict(&rows, &f, &health(None))), [Code::ReadsShared]);
    assert_eq!(codes(&verdict(&rows, &f, &health(Some(5e6)))), [Code::ReadsShared]);
    let prompt = verdict(&rows, &f, &health(Some(0.1e6)));
    assert_eq!((prompt.valid(), cautions(&prompt)), (true, vec![Code::ReadsShared]));
}

#[test]
fn a_noisy_machine_moves_only_times_taken_by_the_process() {
    let f = open_loop(1000);
    let health = ClientHealth { probe_noise_ns: Some(vec![3 * MS; 100]), ..ClientHealth::default() };
    let kernel = verdict(&good_rows(1000), &f, &health);
    assert_eq!((kernel.valid(), cautions(&kernel)), (true, vec![Code::NoisyMachine]));
    let mut rows = good_rows(1000);
    rows.iter_mut().for_each(|r| r.stamps = StampSource::User);
    let user = verdict(&rows, &f, &health);
    assert_eq!((codes(&user), cautions(&user)), (vec![Code::NoisyMachine], vec![Code::UserStamps]));
}

#[test]
fn limits_of_this_machine_and_errors_of_the_server_are_told_apart() {
    let f = open_loop(1000);
    let mut rows = good_rows(1000);
    rows[7].end = End::Failed {
        phase: Phase::Connect,
        blame: Blame::Client,
        cause: Cause::LocalLimit,
        detail: "too many open files".into(),
    };
    assert_eq!(codes(&verdict(&rows, &f, &ClientHealth::default())), [Code::LocalLimit]);

    let mut rows = good_rows(1000);
    for i in 0..11 {
        rows[i * 3] = failed(i as u64 * 3, i as u64 * 30, i as u64 * 30 + 5, Cause::Status(503));
    }
    let v = verdict(&rows, &f, &ClientHealth::default());
    assert_eq!(codes(&v), [Code::ServerErrors]);
    assert!(v.reasons[0].sentence.contains("11 of 1000") && v.reasons[0].sentence.contains("503"), "{v:?}");
    let one = [failed(0, 0, 5, Cause::Refused)];
    assert_eq!(codes(&verdict(&one, &facts(10), &ClientHealth::default())), [Code::NothingCompleted]);
}

#[test]
fn lengths_off_what_was_asked_are_named() {
    let mut rows = good_rows(1000);
    for r in &mut rows {
        r.tokens.output_asked = Some(4);
        r.tokens.prompt_asked = Some(10);
        r.tokens.output_tokenized = Some(3);
    }
    let mut f = open_loop(1000);
    assert!(verdict(&rows, &f, &ClientHealth::default()).valid(), "an answer may end before its limit");
    f.output_forced = true;
    assert_eq!(codes(&verdict(&rows, &f, &ClientHealth::default())), [Code::OutputLengths]);

    f.output_forced = false;
    rows.iter_mut().for_each(|r| r.tokens.prompt_server = Some(20));
    assert_eq!(cautions(&verdict(&rows, &f, &ClientHealth::default())), [Code::PromptLengths]);
    f.prompt_lengths_exact = true;
    assert_eq!(codes(&verdict(&rows, &f, &ClientHealth::default())), [Code::PromptLengths]);
    f.prompt_overhead = 10;
    assert!(verdict(&rows, &f, &ClientHealth::default()).valid(), "a chat template may add that much");

    rows.iter_mut().for_each(|r| r.tokens.output_tokenized = Some(4));
    assert_eq!(codes(&verdict(&rows, &f, &ClientHealth::default())), [Code::TokenCounts]);
}

#[test]
fn a_small_sample_is_a_caution_unless_the_scenario_demands_more() {
    let (rows, f) = (good_rows(20), open_loop(20));
    let s = summarize(&rows, &f);
    let v = judge(&s, &f, &ClientHealth::default(), &Bounds::default());
    assert_eq!((v.valid(), cautions(&v)), (true, vec![Code::FewSamples]));
    let demanding = Bounds { demanding: true, ..Bounds::default() };
    assert_eq!(codes(&judge(&s, &f, &ClientHealth::default(), &demanding)), [Code::FewSamples]);
    let median = Bounds { percentiles: vec![50.0], ..Bounds::default() };
    assert!(judge(&s, &f, &ClientHealth::default(), &median).cautions.is_empty());
}

#[test]
fn an_interrupted_run_says_so() {
    let f = RunFacts { interrupted: true, ..open_loop(1000) };
    assert_eq!(cautions(&verdict(&good_rows(1000), &f, &ClientHealth::default())), [Code::Interrupted]);
}
