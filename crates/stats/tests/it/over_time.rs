//! A run cut into slices: nothing is lost at their edges, and what is drawn adds up to what happened.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use proptest::prelude::*;
use tailbound_clock::{Dur, Time};
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row};
use tailbound_stats::{OverTime, RunFacts, Slice, over_time};

const MS: u64 = 1_000_000;

/// Due, sent, first and last token in ms; tokens evenly between the last two.
fn row(id: u64, [due, sent, first, last]: [u64; 4], tokens: u64) -> Row {
    let mut row = Row::new(id);
    row.at.set(Moment::Scheduled, Time(due * MS));
    for moment in [Moment::Released, Moment::WriteStart, Moment::Written] {
        row.at.set(moment, Time(sent * MS));
    }
    for k in 0..tokens {
        let at = Time((first + (last - first) * k / (tokens - 1).max(1)) * MS);
        row.chunks.push(at, k as u32, 1, true);
        row.at.set_first(Moment::FirstToken, at);
        row.at.set(Moment::LastToken, at);
        row.at.set(Moment::StreamEnd, at);
    }
    row.tokens.prompt_server = Some(10);
    row.end = End::Done(Finish::Length);
    row
}

fn facts(until_ms: u64, objective: Option<&str>) -> RunFacts {
    let mut facts = RunFacts { request_rate: Some(1.0), ..RunFacts::new(Time::ZERO, Time(until_ms * MS)) };
    facts.objectives.all = objective.iter().map(|text| text.parse().unwrap()).collect();
    facts
}

fn of(slices: &[Slice], count: fn(&Slice) -> u32) -> Vec<u32> {
    slices.iter().map(count).collect()
}

#[test]
fn each_thing_is_counted_in_the_slice_in_which_it_happened() {
    // Eighty slices of 100 ms: one request waits here from 50 to 150, there until 250, and its three tokens come at 250, 300, 350.
    let mut failed = row(1, [7_900, 7_950, 0, 0], 0);
    failed.at.set(Moment::StreamEnd, Time(7_999 * MS));
    failed.end =
        End::Failed { phase: Phase::Headers, blame: Blame::Server, cause: Cause::Status(503), detail: "busy".into() };
    let rows = [row(0, [50, 150, 250, 350], 3), failed];
    let o = over_time(&rows, &facts(8_000, Some("ttft:300")));
    assert_eq!((o.slices.len(), o.slices[0].length), (80, Dur::from_ms(100)));
    let first = &o.slices[..4];
    assert_eq!(of(first, |s| s.scheduled), [1, 0, 0, 0]);
    assert_eq!(of(first, |s| s.sent), [0, 1, 0, 0]);
    assert_eq!(of(first, |s| s.completed), [0, 0, 0, 1]);
    assert_eq!(of(first, |s| s.good), [0, 0, 0, 1], "200 ms from its arrival");
    assert_eq!(first.iter().map(|s| s.input_tokens).collect::<Vec<_>>(), [0, 0, 10, 0]);
    assert_eq!(first.iter().map(|s| s.output_tokens).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert_eq!(first.iter().map(|s| s.waiting_here).collect::<Vec<_>>(), [0.5, 0.5, 0.0, 0.0]);
    assert_eq!(first.iter().map(|s| s.waiting_there).collect::<Vec<_>>(), [0.0, 0.5, 0.5, 0.0]);
    assert_eq!(first.iter().map(|s| s.decoding).collect::<Vec<_>>(), [0.0, 0.0, 0.5, 0.5]);
    let last = &o.slices[79];
    assert_eq!((last.scheduled, last.sent, last.failed, last.completed), (1, 1, 1, 0));
    assert!((last.waiting_there - 0.49).abs() < 1e-9, "{}", last.waiting_there);
}

#[test]
fn a_percentile_stands_only_where_enough_requests_carry_it() {
    // 1,000 requests over 10 s: by slices of a second, 100 in each but the last two, with 9 and one.
    let at = |i: u64| match i {
        0..800 => i * 10,
        800..809 => 8_000 + i - 800,
        _ => 9_999,
    };
    let rows: Vec<Row> = (0..810).map(|i| row(i, [at(i), at(i), at(i) + 1 + i % 100, at(i) + 200], 2)).collect();
    let o = over_time(&rows, &facts(10_300, None));
    assert_eq!(o.ttft.len(), 5, "slices of 2 s, the round length above 10 s / 8");
    let (full, thin) = (&o.ttft[0], &o.ttft[4]);
    assert_eq!((full.n, full.at, full.p50), (200, Dur::from_secs(1), Some(50.0 * MS as f64)));
    assert_eq!(
        (full.p90, full.p99, full.max),
        (Some(90.0 * MS as f64), Some(99.0 * MS as f64), Some(100.0 * MS as f64))
    );
    assert_eq!((thin.n, thin.p90.is_some(), thin.p99), (10, true, None));
    assert_eq!(over_time(&rows[..9], &facts(10_300, None)).ttft[0].p90, None);
    assert_eq!(over_time(&[], &facts(10, None)), OverTime::default());
}

/// 10 requests a second for a minute; completions' tokens and latencies by third.
fn thirds(tokens: [u64; 3], ttft: [u64; 3]) -> Vec<Row> {
    let one = |id: u64| {
        let (third, at) = ((id / 200) as usize, id * 100);
        row(id, [at, at, at + ttft[third], at + ttft[third] + 10], tokens[third])
    };
    (0..600).map(one).collect()
}

#[test]
fn throughput_and_goodput_part_only_if_one_rises_and_the_other_falls_for_good() {
    let apart = |tokens, ttft| over_time(&thirds(tokens, ttft), &facts(60_300, Some("ttft:100"))).drift.unwrap();
    let drift = apart([10, 15, 20], [50, 50, 150]);
    assert!(drift.apart, "{drift:?}");
    assert!((drift.good_per_s.0 - 10.0).abs() < 0.2 && drift.good_per_s.1 < 0.1, "{drift:?}");
    assert!(drift.output_tokens_per_s.1 > 1.9 * drift.output_tokens_per_s.0, "{drift:?}");
    // Both fall, both rise, throughput stays.
    assert!(!apart([20, 15, 10], [50, 50, 150]).apart);
    assert!(!apart([10, 15, 20], [150, 150, 50]).apart);
    assert!(!apart([10, 10, 10], [50, 50, 150]).apart);
    assert_eq!(
        over_time(&thirds([10; 3], [50; 3]), &facts(60_300, None)).drift,
        None,
        "without objectives nothing is good"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slices_add_up_to_the_run(
        times in prop::collection::vec((0u64..5_000, 0u64..500, 0u64..2_000, 0u64..3_000, 1u64..30), 1..60),
        spare in 1u64..5_000,
    ) {
        let rows: Vec<Row> = (0..).zip(&times).map(|(id, &(due, wait, ttft, decode, tokens))| {
            let (sent, first) = (due + wait, due + wait + ttft);
            row(id, [due, sent, first, first + if tokens > 1 { decode } else { 0 }], tokens)
        }).collect();
        let over = times.iter().map(|t| t.0 + t.1 + t.2 + t.3).max().unwrap_or(0) + spare;
        let o = over_time(&rows, &facts(over, Some("ttft:1000")));
        prop_assert!(o.slices.len() <= 80);
        let sum = |count: fn(&Slice) -> u32| o.slices.iter().map(count).sum::<u32>() as usize;
        prop_assert_eq!((sum(|s| s.scheduled), sum(|s| s.sent), sum(|s| s.completed)), (rows.len(), rows.len(), rows.len()));
        let good = rows.iter().filter(|r| r.ttft_scheduled().is_some_and(|d| d <= Dur::from_ms(1000))).count();
        prop_assert_eq!(sum(|s| s.good), good);
        let tokens: u64 = times.iter().map(|t| t.4).sum();
        prop_assert_eq!(o.slices.iter().map(|s| s.output_tokens).sum::<u64>(), tokens);
        prop_assert_eq!(o.slices.iter().map(|s| s.input_tokens).sum::<u64>(), 10 * rows.len() as u64);
        // Little's law, exactly: the mean number in a state is the time spent in it.
        let spent = |state: fn(&Slice) -> f64| o.slices.iter().map(|s| state(s) * s.length.ms()).sum::<f64>();
        let ms = |pick: fn(&(u64, u64, u64, u64, u64)) -> u64| times.iter().map(pick).sum::<u64>() as f64;
        for (got, truth) in [
            (spent(|s| s.waiting_here), ms(|t| t.1)),
            (spent(|s| s.waiting_there), ms(|t| t.2)),
            (spent(|s| s.decoding), ms(|t| if t.4 > 1 { t.3 } else { 0 })),
        ] {
            prop_assert!((got - truth).abs() < 1e-3, "{} {}", got, truth);
        }
        let n: usize = o.ttft.iter().map(|p| p.n).sum();
        prop_assert_eq!(n, rows.len());
    }
}
