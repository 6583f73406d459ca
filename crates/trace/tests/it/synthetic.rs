//! Workloads from laws alone, against what the laws say.

use std::collections::BTreeMap;
use tailbound_clock::Seed;
use tailbound_trace::describe::{Description, describe_rows};
use tailbound_trace::generate::{Agents, Extent, Law, Popularity, Prefixes, Sessions, Shape, Synthetic, synthesize};
use tailbound_trace::{Clock, MediaKind, More, Name, Row, Trace};

fn law(text: &str) -> Law {
    text.parse().unwrap()
}

fn spec() -> Synthetic {
    Synthetic {
        arrivals: "10/s".parse().unwrap(),
        extent: Extent::Requests(5000),
        input: law("100..300"),
        output: law("lognormal:mean=80,cv=1"),
        rank_correlation: 0.0,
        prefixes: None,
        shape: Shape::Single,
        media: Vec::new(),
        reason_ratio: None,
        block_tokens: None,
        token_s: 0.0,
    }
}

fn drawn(spec: &Synthetic) -> Trace {
    synthesize(spec, Seed(1)).unwrap()
}

fn described(trace: &Trace) -> Description {
    describe_rows(&trace.rows, &trace.names, trace.block_tokens, Clock::Offset)
}

fn more(row: &Row) -> &More {
    row.more.as_ref().unwrap()
}

fn near(what: &str, got: f64, want: f64, share: f64) {
    assert!((got - want).abs() <= share * want.abs(), "{what}: {got}, not {want}");
}

#[test]
fn requests_are_as_many_and_as_long_as_asked() {
    let d = described(&drawn(&spec()));
    assert_eq!(d.rows, 5000);
    let (input, output) = (d.input_length.unwrap(), d.output_length.unwrap());
    near("input", input.mean, 200.0, 0.02);
    assert_eq!((input.min, input.max), (100.0, 300.0));
    near("output", output.mean, 80.0, 0.05);
    near("output cv", output.std_pop / output.mean, 1.0, 0.15);
    near("rate", d.arrivals.unwrap().mean_rate_nminus1_over_span.unwrap(), 10.0, 0.05);
    assert!(d.spearman_in_out.unwrap().abs() < 0.05);
    let timed = Synthetic { extent: Extent::Seconds(100.0), ..spec() };
    let rows = drawn(&timed).rows.len();
    assert!((880..1120).contains(&rows), "{rows}");
}

#[test]
fn one_law_changed_moves_nothing_else() {
    let (a, b) = (drawn(&spec()), drawn(&Synthetic { reason_ratio: Some(law("0.5")), ..spec() }));
    let plain = |t: &Trace| t.rows.iter().map(|r| (r.at, r.input, r.output)).collect::<Vec<_>>();
    assert_eq!(plain(&a), plain(&b));
    assert_ne!(plain(&a), plain(&synthesize(&spec(), Seed(2)).unwrap()));
}

#[test]
fn lengths_correlate_as_asked() {
    let spec = Synthetic {
        input: law("zipf:s=0.5,min=10,max=2000"),
        output: law("zipf:s=0.8,min=1,max=500"),
        rank_correlation: 0.6,
        ..spec()
    };
    let r = described(&drawn(&spec)).spearman_in_out.unwrap();
    assert!((r - 0.6).abs() < 0.04, "{r}");
    assert!(synthesize(&Synthetic { input: law("5"), ..spec }, Seed(1)).is_err());
}

#[test]
fn heads_are_shared_to_the_block() {
    let prefixes = Prefixes { groups: 4, tokens: law("1024"), popularity: Popularity::InTurn, share: 1.0 };
    let spec = Synthetic { prefixes: Some(prefixes), input: law("100"), block_tokens: Some(16), ..spec() };
    let d = described(&drawn(&spec));
    let prefix = d.prefix.unwrap();
    // 1124 tokens are 71 blocks, the last of them part full; all but the first of each group hit 64.
    assert_eq!((prefix.hash_ids.total, prefix.hash_ids.rows_len_ne_ceil), (5000 * 71, 0));
    let infinite = prefix.prefix_cache[0];
    assert_eq!((infinite.block_hits, infinite.token_hits), ((5000 - 4) * 64, (5000 - 4) * 1024));
    assert_eq!(prefix.partial_block_conflicts, 0);
}

#[test]
fn popular_heads_are_as_popular_as_zipf_says() {
    let prefixes = Prefixes { groups: 10, tokens: law("16"), popularity: Popularity::Zipf(1.0), share: 0.8 };
    let spec = Synthetic { prefixes: Some(prefixes), block_tokens: Some(16), ..spec() };
    let trace = drawn(&spec);
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    trace.rows.iter().for_each(|r| *counts.entry(r.blocks().unwrap()[0]).or_default() += 1.0);
    let harmonic: f64 = (1..=10).map(|k| 1.0 / f64::from(k)).sum();
    let mut chi = 0.0;
    for k in 1..=10u32 {
        let want = 5000.0 * 0.8 / f64::from(k) / harmonic;
        chi += (counts[&u64::from(k - 1)] - want).powi(2) / want;
    }
    let without = counts.values().filter(|n| **n == 1.0).count() as f64;
    chi += (without - 1000.0).powi(2) / 1000.0;
    // The 99.99th percentile of χ² with ten degrees of freedom.
    assert!(chi < 35.6, "{chi}");
}

#[test]
fn conversations_grow_by_what_was_said() {
    let sessions = Sessions { turns: law("5"), think_s: law("exponential:mean=30") };
    let spec = Synthetic {
        arrivals: "1/s".parse().unwrap(),
        extent: Extent::Seconds(400.0),
        shape: Shape::Sessions(sessions),
        block_tokens: Some(16),
        token_s: 0.02,
        ..spec()
    };
    let trace = drawn(&spec);
    let mut by_session: BTreeMap<Name, Vec<&Row>> = BTreeMap::new();
    trace.rows.iter().for_each(|r| by_session.entry(r.session.unwrap()).or_default().push(r));
    let mut hits = 0;
    for turns in by_session.values() {
        assert_eq!(turns.iter().map(|r| more(r).turn.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for pair in turns.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let added = after.input.unwrap() - before.input.unwrap() - before.output.unwrap();
            assert!((100..=300).contains(&added));
            let shared = before.input.unwrap() as usize / 16;
            assert_eq!(before.blocks().unwrap()[..shared], after.blocks().unwrap()[..shared]);
            hits += shared as u64;
            let answered = f64::from(before.output.unwrap()) * 0.02;
            let waited = (after.at.unwrap() - before.at.unwrap()) as f64 / 1e9 - answered;
            assert!((waited - more(after).think.unwrap().secs()).abs() < 1e-6);
        }
    }
    let d = described(&trace);
    assert_eq!(d.prefix.unwrap().prefix_cache[0].block_hits, hits);
    let sessions = d.sessions.unwrap();
    assert_eq!((sessions.count * 5, sessions.turns.unwrap().mean), (d.rows, 5.0));
    near("think", sessions.think_time_s.unwrap().mean, 30.0, 0.1);
}

#[test]
fn the_first_requests_of_conversations_are_those_of_all() {
    let sessions = Sessions { turns: law("1..9"), think_s: law("exponential:mean=5") };
    let whole = Synthetic { extent: Extent::Seconds(500.0), shape: Shape::Sessions(sessions), token_s: 0.01, ..spec() };
    let first = Synthetic { extent: Extent::Requests(700), ..whole.clone() };
    let plain = |t: &Trace| t.rows.iter().map(|r| (r.at, r.input, r.output)).collect::<Vec<_>>();
    assert_eq!(plain(&drawn(&first)), plain(&drawn(&whole))[..700]);
}

#[test]
fn trees_of_agents_have_their_shape() {
    let agents =
        Agents { steps: law("3"), tool_s: law("2"), tool_tokens: law("500"), fork: 1.0, fan_out: law("3"), depth: 1 };
    let spec = Synthetic {
        arrivals: "constant:0.01/s".parse().unwrap(),
        extent: Extent::Seconds(2000.0),
        shape: Shape::Agents(agents),
        block_tokens: Some(16),
        token_s: 0.01,
        ..spec()
    };
    let trace = drawn(&spec);
    let mut tasks: BTreeMap<Name, Vec<&Row>> = BTreeMap::new();
    trace.rows.iter().for_each(|r| tasks.entry(r.session.unwrap()).or_default().push(r));
    let by_id: BTreeMap<Name, &Row> = trace.rows.iter().map(|r| (more(r).id.unwrap(), r)).collect();
    let done = |r: &Row| r.at.unwrap() as f64 / 1e9 + f64::from(r.output.unwrap()) * 0.01;
    for rows in tasks.values() {
        // Three steps; after each of the first two, three sub-agents of three steps.
        assert_eq!(rows.len(), 3 + 2 * 3 * 3);
        let main: Vec<&&Row> = rows.iter().filter(|r| trace.names.text(r.class.unwrap()) == "agent").collect();
        assert_eq!((main.len(), more(main[0]).parent), (3, None));
        for pair in main.windows(2) {
            let latest = rows.iter().filter(|r| r.at < pair[1].at).map(|r| done(r)).fold(0.0, f64::max);
            assert!((pair[1].at.unwrap() as f64 / 1e9 - latest).abs() < 1e-6, "it waits for the last of them");
            assert_eq!(pair[1].input.unwrap(), pair[0].input.unwrap() + pair[0].output.unwrap() + 500);
        }
        for row in rows.iter().filter(|r| trace.names.text(r.class.unwrap()) == "sub-agent") {
            let parent = by_id[&more(row).parent.unwrap()];
            let wait = more(row).think.map_or(0.0, |t| t.secs());
            assert!((row.at.unwrap() as f64 / 1e9 - done(parent) - wait).abs() < 1e-6);
            assert!(more(row).turn == Some(1) || wait == 2.0);
        }
    }
    let endless =
        Agents { steps: law("1000"), tool_s: law("0"), tool_tokens: law("1"), fork: 1.0, fan_out: law("9"), depth: 9 };
    let error = synthesize(&Synthetic { shape: Shape::Agents(endless), ..spec }, Seed(1)).unwrap_err().to_string();
    assert!(error.contains("one arrival"), "{error}");
}

#[test]
fn media_and_reasoning_follow_their_laws() {
    let spec = Synthetic {
        media: vec![
            (MediaKind::Image, law("0..3"), law("lognormal:mean=600,cv=0.3")),
            (MediaKind::Audio, law("0.9*0 + 0.1*1"), law("250")),
        ],
        reason_ratio: Some(law("normal:mean=0.7,sd=0.1,max=1")),
        ..spec()
    };
    let trace = drawn(&spec);
    let parts =
        |kind: MediaKind| trace.rows.iter().flat_map(move |r| more(r).media.iter().filter(move |m| m.kind == kind));
    near("images", parts(MediaKind::Image).count() as f64, 5000.0 * 1.5, 0.03);
    let tokens: f64 = parts(MediaKind::Image).map(|m| f64::from(m.tokens.unwrap())).sum();
    near("image tokens", tokens / parts(MediaKind::Image).count() as f64, 600.0, 0.02);
    near("audio", parts(MediaKind::Audio).count() as f64, 500.0, 0.15);
    let ratio = |r: &Row| f64::from(more(r).reasoning.unwrap()) / f64::from(r.output.unwrap());
    near("ratio", trace.rows.iter().map(ratio).sum::<f64>() / 5000.0, 0.7, 0.01);
    assert!(trace.rows.iter().all(|r| more(r).reasoning <= r.output));
}
