//! Properties: writing and reading back loses nothing the format can carry; row order in the file does not matter; transforms
//! keep together what belongs together.

use proptest::prelude::*;
use std::io::Cursor;
use tailbound_clock::{Dur, Seed};
use tailbound_trace::describe::{PrefixFigures, burstiness, describe_rows};
use tailbound_trace::transform::Unit;
use tailbound_trace::{
    Body, Clock, Format, Media, MediaKind, Message, More, Names, Options, Output, Row, Trace, read, write,
};

fn message() -> impl Strategy<Value = Message> {
    ("[a-z]{1,6}", "\\PC{0,12}").prop_map(|(role, content)| Message { role: role.into(), content: content.into() })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::None),
        "\\PC{0,20}".prop_map(|t| Body::Text(t.into())),
        prop::collection::vec(message(), 1..4).prop_map(Body::Messages),
        prop::collection::vec(message(), 1..4).prop_map(Body::Added),
        Just(Body::Payload("{\"a\":[1,2]}".into())),
    ]
}

fn media() -> impl Strategy<Value = Media> {
    let kind = prop_oneof![Just(MediaKind::Image), Just(MediaKind::Audio), Just(MediaKind::Video)];
    (kind, any::<Option<u32>>()).prop_map(|(kind, tokens)| Media { kind, tokens })
}

/// A row, with its names still as numbers.
#[derive(Clone, Debug)]
struct Draft {
    row: Row,
    names: [Option<u8>; 6],
}

fn draft() -> impl Strategy<Value = Draft> {
    let more = (
        (
            any::<Option<u32>>(),
            prop::option::of(0..u64::MAX / 4),
            prop::option::of(prop::collection::vec(any::<u64>(), 0..5)),
        ),
        (any::<Option<i64>>(), any::<Option<u32>>(), prop::collection::vec(media(), 0..3)),
        (body(), prop::option::of("\\PC{0,9}"), prop::option::of("\\{\\}")),
    );
    let row = (prop::option::of(0..1i64 << 50), any::<Option<u32>>(), any::<Option<u32>>());
    let rest = (prop::option::of(any::<u64>()), any::<Option<bool>>(), any::<[Option<u8>; 6]>());
    (row, rest, more).prop_map(|((at, input, output), (took, ok, names), (a, b, c))| {
        let more = More {
            turn: a.0,
            think: a.1.map(Dur),
            blocks: a.2,
            priority: b.0,
            reasoning: b.1,
            media: b.2,
            body: c.0,
            answer: c.1.map(Into::into),
            tools: c.2.map(Into::into),
            ..More::default()
        };
        Draft {
            row: Row { at, input, output, took: took.map(Dur), ok, more: Some(Box::new(more)), ..Row::default() },
            names,
        }
    })
}

fn trace(drafts: Vec<Draft>) -> Trace {
    let mut names = Names::default();
    let rows = drafts.into_iter().map(|Draft { mut row, names: n }| {
        let mut name = |i: usize| n[i].map(|n| names.intern(&format!("name {n}")));
        (row.session, row.client, row.model, row.class) = (name(0), name(1), name(2), name(3));
        let more = row.more_mut();
        (more.id, more.parent) = (name(4), name(5));
        if *more == More::default() {
            row.more = None;
        }
        row
    });
    let rows = rows.collect();
    Trace::of_rows(rows, names, Some(16))
}

fn round_trip(trace: &Trace, output: Output, format: Format) -> Trace {
    let mut bytes = Vec::new();
    write(trace, output, &mut bytes).unwrap();
    let options = Options { format: Some(format), block_tokens: Some(16), ..Options::default() };
    Trace::collect(read("written", Cursor::new(bytes), &options).unwrap()).unwrap()
}

/// Rows with their names as text, so that traces with different interning compare.
fn plain(trace: &Trace) -> Vec<(Row, Vec<Option<String>>)> {
    let text = |n: Option<tailbound_trace::Name>| n.map(|n| trace.names.text(n).to_owned());
    let strip = |row: &Row| {
        let mut row = row.clone();
        let mut names: Vec<_> = [row.session, row.client, row.model, row.class].into_iter().map(text).collect();
        (row.session, row.client, row.model, row.class) = (None, None, None, None);
        if let Some(more) = &mut row.more {
            names.extend([text(more.id.take()), text(more.parent.take())]);
            if **more == More::default() {
                row.more = None;
            }
        }
        names.resize(6, None);
        (row, names)
    };
    trace.rows.iter().map(strip).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn canonical_rows_lose_nothing(drafts in prop::collection::vec(draft(), 1..12)) {
        let trace = trace(drafts);
        prop_assert_eq!(plain(&round_trip(&trace, Output::Canonical, Format::Canonical)), plain(&trace));
    }

    #[test]
    fn mooncake_rows_keep_what_mooncake_carries(drafts in prop::collection::vec(draft(), 1..12)) {
        let mut trace = trace(drafts);
        for row in &mut trace.rows {
            row.input.get_or_insert(7);
            (row.took, row.ok, row.client, row.class) = (None, None, None, None);
            let more = row.more_mut();
            if let Body::Added(list) = &more.body {
                more.body = Body::Messages(list.clone());
            }
            (more.id, more.parent, more.turn, more.reasoning, more.answer) = (None, None, None, None, None);
            more.media.clear();
        }
        prop_assert_eq!(plain(&round_trip(&trace, Output::Mooncake, Format::Mooncake)), plain(&trace));
    }

    #[test]
    fn aiperf_rows_keep_what_aiperf_takes(drafts in prop::collection::vec(draft(), 1..12)) {
        let mut trace = trace(drafts);
        for row in &mut trace.rows {
            row.input.get_or_insert(7);
            (row.took, row.ok, row.client, row.class) = (None, None, None, None);
            let input = row.input;
            let more = row.more_mut();
            if let Body::Added(list) = &more.body {
                more.body = Body::Messages(list.clone());
            }
            (more.id, more.parent, more.turn, more.reasoning, more.answer) = (None, None, None, None, None);
            more.media.clear();
            // A prompt or its length and blocks, not both; tools only with messages.
            let talks = matches!(more.body, Body::Messages(_));
            more.tools = more.tools.as_ref().filter(|_| talks).map(|_| "[{}]".into());
            if more.body != Body::None {
                more.blocks = None;
            }
            row.input = if row.more_mut().body == Body::None { input } else { None };
        }
        prop_assert_eq!(plain(&round_trip(&trace, Output::AiPerf, Format::Mooncake)), plain(&trace));
    }

    #[test]
    fn guidellm_rows_keep_times_lengths_durations_and_what_blocks_are_alike(
        rows in prop::collection::vec((0..1i64 << 50, 1..70u32, any::<u32>(), prop::option::of(0..1u64 << 50), any::<Option<u8>>()), 1..12),
        seed in any::<u64>(),
    ) {
        let mut names = Names::default();
        let mut rng = Seed(seed).stream("blocks");
        let mut row = |(at, input, output, took, session): (i64, u32, u32, Option<u64>, Option<u8>)| {
            let session = session.map(|n| names.intern(&format!("s{n}")));
            let mut row = Row { at: Some(at), input: Some(input), output: Some(output), took: took.map(Dur), session, ..Row::default() };
            row.more_mut().blocks = Some((0..input.div_ceil(16)).map(|_| u64::MAX - rng.below(6)).collect());
            row
        };
        let rows: Vec<Row> = rows.into_iter().map(&mut row).collect();
        let trace = Trace::of_rows(rows, names, Some(16));
        let read = round_trip(&trace, Output::GuideLlm, Format::TimedTrace);
        // The ids are others; which are equal is the same.
        let ids = |t: &Trace| t.rows.iter().flat_map(|r| r.blocks().unwrap().to_vec()).collect::<Vec<u64>>();
        let (a, b) = (ids(&trace), ids(&read));
        prop_assert!((0..a.len()).all(|i| (0..i).all(|k| (a[i] == a[k]) == (b[i] == b[k]))));
        prop_assert!(b.iter().all(|id| *id < 1 << 31));
        let without = |t: &Trace| {
            let mut t = t.clone();
            t.rows.iter_mut().for_each(|r| r.more = None);
            plain(&t)
        };
        prop_assert_eq!(without(&read), without(&trace));
    }

    #[test]
    fn timed_traces_keep_times_lengths_and_blocks(
        rows in prop::collection::vec((0..1i64 << 50, any::<u32>(), any::<Option<u32>>(), prop::collection::vec(any::<u64>(), 0..4)), 1..12),
    ) {
        let row = |(at, input, output, blocks): (i64, u32, Option<u32>, Vec<u64>)| {
            let mut row = Row { at: Some(at), input: Some(input), output, ..Row::default() };
            row.more_mut().blocks = Some(blocks);
            row
        };
        let trace = Trace::of_rows(rows.into_iter().map(row).collect(), Names::default(), Some(16));
        prop_assert_eq!(plain(&round_trip(&trace, Output::TimedTrace, Format::TimedTrace)), plain(&trace));
    }

    #[test]
    fn the_order_of_rows_in_the_file_changes_nothing_but_ties(
        rows in prop::collection::vec((0..50u32, 1..9u32, 1..9u32), 1..40), seed in any::<u64>(),
    ) {
        let text = |rows: &[(u32, u32, u32)]| {
            let line = |(t, i, o): &(u32, u32, u32)| format!("2024-05-10 04:00:{:02}.{:03}0,{i},{o}\n", t / 10, t % 10 * 100);
            "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned() + &rows.iter().map(line).collect::<String>()
        };
        let sorted = |rows: &[(u32, u32, u32)]| {
            let reader = read("azure", Cursor::new(text(rows)), &Options::default()).unwrap();
            let trace = Trace::collect(reader).unwrap();
            assert!(trace.rows.is_sorted_by_key(|r| r.at) && trace.rows[0].at == Some(0));
            let mut all: Vec<_> = trace.rows.iter().map(|r| (r.at, r.input, r.output)).collect();
            all.sort_unstable();
            all
        };
        let mut shuffled = rows.clone();
        Seed(seed).stream("shuffle").shuffle(&mut shuffled);
        prop_assert_eq!(sorted(&rows), sorted(&shuffled));
    }

    #[test]
    fn conversations_named_by_parents_do_not_depend_on_the_order_of_rows(
        parents in prop::collection::vec(prop::option::of(0..24usize), 1..20), seed in any::<u64>(),
    ) {
        let line = |(i, parent): (usize, &Option<usize>)| {
            let parent = parent.map_or("-1".to_owned(), |p| p.to_string());
            format!("{{\"chat_id\":{i},\"parent_chat_id\":{parent},\"timestamp\":{i}.5,\"input_length\":{},\"output_length\":1}}\n", i + 1)
        };
        let mut lines: Vec<String> = parents.iter().enumerate().map(line).collect();
        let sessions = |lines: &[String]| {
            let trace = Trace::collect(read("bailian", Cursor::new(lines.concat()), &Options::default()).unwrap()).unwrap();
            trace.rows.iter().map(|r| trace.names.text(r.session.unwrap()).to_owned()).collect::<Vec<_>>()
        };
        let whole = sessions(&lines);
        Seed(seed).stream("shuffle").shuffle(&mut lines);
        prop_assert_eq!(sessions(&lines), whole);
    }

    #[test]
    fn shards_are_the_whole_and_keep_sessions_together(drafts in prop::collection::vec(draft(), 0..30), n in 1..6u32) {
        let trace = trace(drafts);
        let shards: Vec<Trace> = (0..n).map(|i| trace.shard(i, n)).collect();
        prop_assert_eq!(shards.iter().map(|s| s.rows.len()).sum::<usize>(), trace.rows.len());
        let mut left: Vec<Row> = trace.rows.clone();
        for (i, shard) in shards.iter().enumerate() {
            for row in &shard.rows {
                let at = left.iter().position(|r| r == row);
                prop_assert!(at.is_some());
                left.remove(at.unwrap_or_default());
                let elsewhere = |(k, s): (usize, &Trace)| k != i && s.rows.iter().any(|r| r.session == row.session);
                prop_assert!(row.session.is_none() || !shards.iter().enumerate().any(elsewhere));
            }
        }
    }

    #[test]
    fn exactly_as_many_as_asked(drafts in prop::collection::vec(draft(), 1..9), n in 0..40usize) {
        let mut trace = trace(drafts);
        trace.take_exactly(n).unwrap();
        prop_assert_eq!(trace.rows.len(), n);
    }
}

#[test]
fn rows_that_a_format_cannot_express_are_named() {
    let row = |at, input, blocks: Option<Vec<u64>>| {
        let mut row = Row { at, input, output: Some(1), ..Row::default() };
        if blocks.is_some() {
            row.more_mut().blocks = blocks;
        }
        row
    };
    for (output, bad, why) in [
        (Output::GuideLlm, row(Some(9), None, None), "row 2: GuideLLM's trace needs a prompt length"),
        (Output::GuideLlm, row(Some(9), Some(40), Some(vec![1, 2])), "wants 3 blocks of 16 tokens"),
        (Output::GuideLlm, row(Some(9), Some(40), None), "list of blocks"),
        (Output::AiPerf, row(None, None, None), "row 2: AIPerf's trace needs a prompt length or prompt"),
        (Output::TimedTrace, row(None, Some(3), None), "row 2: a timed trace needs a time"),
    ] {
        let rows = vec![row(Some(5), Some(16), Some(vec![7])), bad];
        let trace = Trace::of_rows(rows, Names::default(), Some(16));
        let error = write(&trace, output, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Each format's rows in another order: the same trace, but for the order of ties.
#[test]
fn shuffled_files_of_every_format_with_times_are_the_same_traces() {
    let Some(root) = crate::data() else { return };
    for file in [
        "azure-llm-2023/AzureLLMInferenceTrace_code.first4409.csv",
        "azure-functions/Azure2021_200.first100.csv",
        "burstgpt/BurstGPT_1.first250.csv",
        "burstgpt/BurstGPT_3.first90.csv",
        "length-traces/vidur_splitwise_conv.first4000.csv",
        "mooncake/synthetic_trace.first2000.jsonl",
        "agentic-lmcache/taubench-24c817382a29e399b7dac064b923c268.jsonl",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let headed = file.ends_with(".csv");
        let mut lines: Vec<&str> = text.lines().collect();
        let head = if headed { lines.remove(0) } else { "" };
        let options = Options { failures: tailbound_trace::Failures::Keep, ..Options::default() };
        let of = |lines: &[&str]| {
            let text = format!("{head}{}{}\n", if headed { "\n" } else { "" }, lines.join("\n"));
            let trace = Trace::collect(read(file, Cursor::new(text), &options).unwrap()).unwrap();
            assert!(trace.rows.is_sorted_by_key(|r| r.at), "{file}");
            let mut rows: Vec<String> = plain(&trace).iter().map(|r| format!("{r:?}")).collect();
            rows.sort_unstable();
            (rows, trace.origin_ns, trace.block_tokens)
        };
        let whole = of(&lines);
        Seed(5).stream("shuffle").shuffle(&mut lines);
        assert!(of(&lines) == whole, "{file}");
        let trace = Trace::collect(read(file, Cursor::new(text), &options).unwrap()).unwrap();
        let shards = (0..3).flat_map(|i| plain(&trace.shard(i, 3)));
        let mut union: Vec<String> = shards.map(|r| format!("{r:?}")).collect();
        union.sort_unstable();
        assert!(union == whole.0, "{file}: the shards together");
    }
}

fn burstgpt() -> Option<Trace> {
    let path = crate::data()?.join("burstgpt/BurstGPT_1.first250.csv");
    let options = Options { failures: tailbound_trace::Failures::Keep, ..Options::default() };
    Some(Trace::collect(tailbound_trace::open(path, &options).unwrap()).unwrap())
}

#[test]
fn the_rate_is_scaled_without_touching_the_pattern() {
    let Some(mut trace) = burstgpt() else { return };
    let before = burstiness(&trace.times()).gap_cv.unwrap();
    let factor = trace.scale_to_rate(1.0).unwrap();
    // expected.json, scale_to_rate: factor_speedup, last_offset_s, gap_cv_unchanged.
    assert!((factor - 139.81124497991968).abs() < 1e-9 * factor);
    assert_eq!(trace.span_ns(), 249_000_000_000);
    assert!((burstiness(&trace.times()).gap_cv.unwrap() / before - 1.0).abs() < 1e-9);
    assert!(trace.scale_to_rate(0.0).is_err());
}

#[test]
fn silences_are_capped_and_the_loss_reported() {
    let Some(mut trace) = burstgpt() else { return };
    let span = trace.span_ns();
    let long = trace.times().windows(2).filter(|w| w[1] - w[0] > 600_000_000_000).count() as u64;
    let capped = trace.cap_gaps(600_000_000_000);
    assert_eq!(capped.gaps, long);
    assert_eq!(trace.span_ns(), span - capped.removed_ns);
    assert!(trace.times().windows(2).all(|w| w[1] - w[0] <= 600_000_000_000));
}

#[test]
fn longer_prompts_share_as_much_longer_beginnings() {
    let Some(root) = crate::data() else { return };
    let file = root.join("mooncake/synthetic_trace.first2000.jsonl");
    let trace = Trace::collect(tailbound_trace::open(file, &Options::default()).unwrap()).unwrap();
    let prefix = |t: &Trace| describe_rows(&t.rows, &t.names, t.block_tokens, Clock::Offset).prefix.unwrap();
    let (before, mut twice) = (prefix(&trace), trace.clone());
    twice.multiply_lengths(2.0, 0.5).unwrap();
    let after = prefix(&twice);
    assert_eq!((after.hash_ids.rows_len_ne_ceil, twice.rows[7].input), (0, trace.rows[7].input.map(|n| 2 * n)));
    let near = |a: u64, b: u64| assert!((a as f64 / b as f64 - 1.0).abs() < 0.01, "{a} {b}");
    near(after.prefix_cache[0].token_hits, 2 * before.prefix_cache[0].token_hits);
    let mut half = trace.clone();
    half.multiply_lengths(0.5, 1.0).unwrap();
    assert_eq!(prefix(&half).hash_ids.rows_len_ne_ceil, 0);
    let ratio = |p: &PrefixFigures| p.prefix_cache[0].token_hit_ratio.unwrap();
    assert!((ratio(&prefix(&half)) / ratio(&before) - 1.0).abs() < 0.03);

    let mut split = trace.clone();
    split.split_prefixes(4).unwrap();
    let fewer = prefix(&split);
    assert!(ratio(&fewer) < ratio(&before) && fewer.hash_ids.distinct > before.hash_ids.distinct);
    let mut same = trace.clone();
    same.split_prefixes(1).unwrap();
    assert_eq!(plain(&same), plain(&trace));
    assert!(same.split_prefixes(0).is_err());
    let mut text = Trace::of_rows(vec![Row::default()], Names::default(), None);
    text.rows[0].more_mut().body = Body::Text("said".into());
    assert!(text.multiply_lengths(2.0, 1.0).is_err() && text.multiply_lengths(1.0, 2.0).is_ok());
}

#[test]
fn windows_samples_and_merges_account_for_their_rows() {
    let Some(trace) = burstgpt() else { return };
    let mut window = trace.clone();
    let gone = window.window(3_600_000_000_000, 7_200_000_000_000);
    assert_eq!(gone as usize + window.rows.len(), 250);
    assert_eq!(window.rows[0].at, Some(0));
    let merged = Trace::merge(vec![trace.clone(), window.clone()]).unwrap();
    assert_eq!(merged.rows.len(), 250 + window.rows.len());
    assert!(merged.rows.is_sorted_by_key(|r| r.at));
    assert!(trace.clone().sample(Unit::Client, 0.5, Seed(1)).is_err(), "BurstGPT names no clients");

    let Some(root) = crate::data() else { return };
    let file = root.join("burstgpt/BurstGPT_3.first90.csv");
    let mut sessions = Trace::collect(tailbound_trace::open(file, &Options::default()).unwrap()).unwrap();
    let whole = sessions.clone();
    sessions.sample(Unit::Session, 0.5, Seed(1)).unwrap();
    assert!((20..70).contains(&sessions.rows.len()));
    let turns = |t: &Trace, s| t.rows.iter().filter(|r| r.session == Some(s)).count();
    for session in sessions.rows.iter().filter_map(|r| r.session) {
        assert_eq!(turns(&sessions, session), turns(&whole, session));
    }
}
