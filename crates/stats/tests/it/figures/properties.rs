//! What holds whatever the rows.

use super::make::facts;
use proptest::collection::vec;
use proptest::prelude::*;
use tailbound_clock::Time;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row, Why};
use tailbound_stats::{Bounds, ClientHealth, Dist, Metric, Objectives, RunFacts, judge, summarize};

/// Any row a client could write, and some it should not: moments in any order, counts that disagree.
fn any_row() -> impl Strategy<Value = Row> {
    let moments = vec(proptest::option::weighted(0.8, 0u64..5_000_000_000), Moment::COUNT);
    let events = vec((0u64..300_000_000, 0u16..4, any::<bool>()), 0..12);
    let counts = (proptest::option::of(0u32..40), proptest::option::of(0u32..40), proptest::option::of(0u32..900));
    (moments, events, counts, 0u8..6, 0u16..3).prop_map(|(moments, events, counts, end, class)| {
        let mut row = Row::new(0);
        for (moment, at) in Moment::ALL.into_iter().zip(moments) {
            if let Some(at) = at {
                row.at.set(moment, Time(at));
            }
        }
        let (mut at, mut read) = (Time(0), 0);
        for (gap, tokens, shared) in events {
            if !shared {
                at = Time(at.ns() + gap);
                read += 1;
            }
            row.chunks.push(at, read, tokens, true);
        }
        (row.tokens.output_server, row.tokens.output_tokenized, row.tokens.prompt_server) = counts;
        row.class = class;
        row.end = match end {
            0 => End::Failed { phase: Phase::Stream, blame: Blame::Network, cause: Cause::Reset, detail: "".into() },
            1 => End::Cancelled(Why::Duration),
            2 => End::NeverSent(Why::Interrupted),
            _ => End::Done(Finish::Stop),
        };
        row
    })
}

fn any_facts() -> impl Strategy<Value = RunFacts> {
    (0u64..6_000, any::<bool>(), proptest::option::of(1u32..20), any::<bool>()).prop_map(|(end, open, cap, judged)| {
        RunFacts {
            request_rate: open.then_some(10.0),
            max_concurrency: cap,
            objectives: match judged {
                true => Objectives {
                    all: vec!["ttft:100".parse().unwrap(), "tpot:20".parse().unwrap()],
                    ..Objectives::default()
                },
                false => Objectives::default(),
            },
            ..facts(end)
        }
    })
}

proptest! {
    #[test]
    fn any_rows_have_a_summary_and_a_verdict(rows in vec(any_row(), 0..40), facts in any_facts()) {
        let s = summarize(&rows, &facts);
        let r = s.requests;
        prop_assert_eq!(r.completed + r.failed + r.cancelled + r.never_sent, r.planned);
        for metric in Metric::ALL {
            let d = s.latency.get(metric);
            prop_assert!(d.sorted().is_sorted());
            prop_assert!(d.is_empty() == d.mean().is_none());
        }
        prop_assert!(s.latency.itl.n() >= s.latency.icl.n());
        prop_assert!(s.concurrency.peak as usize <= rows.len());
        if let Some(g) = &s.goodput {
            prop_assert!(g.good <= r.completed);
            prop_assert_eq!(g.judged + g.excused, r.planned);
            prop_assert!(g.by_metric.iter().all(|m| m.within <= m.judged && g.good <= m.within));
        }
        if let Some(w) = &s.steady {
            prop_assert!(w.from < w.until);
            prop_assert!(w.requests_per_s * w.length().secs() <= r.completed as f64 + 1e-6);
        }
        let v = judge(&s, &facts, &ClientHealth::default(), &Bounds::default());
        prop_assert!(r.completed > 0 || !v.valid());
    }

    #[test]
    fn the_order_of_rows_changes_nothing(rows in vec(any_row(), 0..30), facts in any_facts()) {
        let forward = summarize(&rows, &facts);
        let mut reversed = rows;
        reversed.reverse();
        let backward = summarize(&reversed, &facts);
        prop_assert_eq!(forward.latency, backward.latency);
        prop_assert_eq!(forward.concurrency, backward.concurrency);
        prop_assert_eq!(forward.throughput, backward.throughput);
        prop_assert_eq!(forward.goodput, backward.goodput);
        prop_assert_eq!(forward.vllm, backward.vllm);
    }

    #[test]
    fn the_sweep_line_counts_as_a_slow_count_does(spans in vec((0u64..200, 1u64..50), 1..40)) {
        let rows: Vec<Row> = spans.iter().enumerate().map(|(i, (from, life))| super::make::row(i as u64, *from, &[(from + life, 1)])).collect();
        let s = summarize(&rows, &facts(250));
        let counts: Vec<u32> = (0..250).map(|t| spans.iter().filter(|(from, life)| *from <= t && t < from + life).count() as u32).collect();
        prop_assert_eq!(s.concurrency.peak, counts.iter().copied().max().unwrap_or(0));
        let mean = counts.iter().sum::<u32>() as f64 / 250.0;
        prop_assert!((s.concurrency.mean.unwrap_or(0.0) - mean).abs() < 1e-9);
    }

    #[test]
    fn the_peak_second_is_the_fullest_of_all_seconds(events in vec((0u64..4_000, 1u16..9), 1..40)) {
        let mut events = events;
        events.sort_unstable();
        let s = summarize(&[super::make::row(0, 0, &events)], &facts(4_000));
        let best = events.iter().map(|(from, _)| {
            events.iter().filter(|(at, _)| at >= from && *at < from + 1000).map(|e| u64::from(e.1)).sum::<u64>()
        }).max();
        prop_assert_eq!(s.throughput.peak_output_tokens_per_s, best.map(|n| n as f64));
    }

    #[test]
    fn the_plateau_is_the_longest_that_holds_its_mean(spans in vec((0u64..100, 1u64..40), 1..25), cap in 1u32..6) {
        let rows: Vec<Row> = spans.iter().enumerate().map(|(i, (from, life))| super::make::row(i as u64, *from, &[(from + life, 1)])).collect();
        let f = RunFacts { max_concurrency: Some(cap), ..facts(150) };
        let s = summarize(&rows, &f);
        let counts: Vec<u32> = (0..=150).map(|t| spans.iter().filter(|(from, life)| *from <= t && t < from + life).count() as u32).collect();
        let level = f64::from(cap.min(s.concurrency.peak)) * 0.95;
        let high = |t: usize| f64::from(counts[t]) >= level;
        let mut longest = 0;
        for from in (0..150).filter(|t| high(*t) && (*t == 0 || !high(*t - 1))) {
            for until in (from + 1..=150).filter(|t| !high(*t) && high(*t - 1)) {
                let mean = f64::from(counts[from..until].iter().sum::<u32>()) / (until - from) as f64;
                if mean >= level - 1e-9 {
                    longest = longest.max(until - from);
                }
            }
        }
        prop_assert_eq!(s.steady.map_or(0, |w| w.length().ns() / 1_000_000), longest as u64);
    }

    #[test]
    fn an_interval_encloses_its_percentile_and_narrows_with_confidence(n in 400usize..900, p in prop::sample::select(vec![50.0, 90.0, 99.0])) {
        let d = Dist::new((0..n).map(|i| i as f64).collect());
        let (low, high) = d.interval(p, 0.95).expect("enough values");
        let (tight_low, tight_high) = d.interval(p, 0.5).expect("enough values");
        let at = d.percentile(p).expect("not empty");
        prop_assert!(low <= at && at <= high);
        prop_assert!(low <= tight_low && tight_high <= high);
    }
}
