//! Every file of `messy/` ends as its manifest says: read rightly, or refused with a message that says why.

use serde_json::Value;
use tailbound_trace::{
    Body, Description, Drop, Error, Failures, Notice, Options, Reader, Refusal, Row, describe, open,
};

fn path(file: &str) -> Option<std::path::PathBuf> {
    Some(crate::data()?.join("messy").join(file))
}

fn rows(file: &str) -> Option<(Vec<Row>, Reader)> {
    let mut reader = open(path(file)?, &Options::default()).unwrap();
    let rows = reader.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(reader.accounting().adds_up());
    assert_eq!(reader.accounting().rows_emitted, rows.len() as u64);
    Some((rows, reader))
}

fn described(file: &str) -> Option<Description> {
    let options = Options { failures: Failures::Keep, ..Options::default() };
    Some(describe(&mut open(path(file)?, &options).unwrap()).unwrap())
}

fn refusal(file: &str) -> Option<Refusal> {
    let mut reader = match open(path(file)?, &Options::default()) {
        Err(Error::File { what, file: named }) => {
            assert!(named.ends_with(file));
            return Some(what);
        }
        Err(e) => panic!("{e}"),
        Ok(reader) => reader,
    };
    match reader.find_map(Result::err) {
        Some(Error::File { what, .. }) => Some(what),
        other => panic!("{file}: {other:?}"),
    }
}

/// Offsets from the earliest, ascending, in seconds.
fn offsets(rows: &[Row]) -> Vec<f64> {
    let mut at: Vec<i64> = rows.iter().map(|r| r.at.unwrap()).collect();
    at.sort_unstable();
    at.iter().map(|a| (a - at[0]) as f64 / 1e9).collect()
}

fn inputs(rows: &[Row]) -> Vec<u32> {
    rows.iter().map(|r| r.input.unwrap()).collect()
}

#[test]
fn the_manifest_names_no_file_without_a_test() {
    let Some(path) = path("manifest.json") else { return };
    let manifest: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let here = include_str!("messy.rs");
    for entry in &manifest {
        let file = entry["file"].as_str().unwrap();
        if entry["format"] == "servegen" {
            continue;
        }
        assert!(here.contains(&format!("\"{file}\"")), "{file}");
    }
}

#[test]
fn burstgpt_is_read_by_column_name() {
    let Some((read, _)) = rows("burstgpt_bom_crlf.csv") else { return };
    assert_eq!(inputs(&read), [472, 1087]);
    let Some((read, _)) = rows("burstgpt_float_ints.csv") else { return };
    assert_eq!(inputs(&read), [472, 1087]);
    let Some((read, _)) = rows("burstgpt_column_order.csv") else { return };
    assert_eq!((read[0].input, read[0].output, read[0].at), (Some(472), Some(18), Some(5_000_000_000)));
    let Some((read, reader)) = rows("burstgpt3_positional_trap.csv") else { return };
    assert_eq!(inputs(&read), [906, 264]);
    assert_eq!([read[0].output, read[1].output], [Some(446), Some(171)]);
    assert_eq!(read[0].at, Some(19_440_110_000_000_000));
    assert_eq!((read[0].session.is_some(), read[1].session), (true, None));
    assert_eq!(reader.names().text(read[0].model.unwrap()), "GPT-4");
}

#[test]
fn dirty_rows_are_dropped_by_reason_with_their_first_row() {
    let Some((read, reader)) = rows("burstgpt_dirty.csv") else { return };
    let account = reader.accounting();
    assert_eq!((account.rows_read, read.len()), (9, 3));
    let count = |why: Drop| (account.dropped[&why].count, account.dropped[&why].first_row);
    assert_eq!(count(Drop::ZeroInputTokens), (1, 2));
    assert_eq!(count(Drop::FailedZeroOutput), (1, 3));
    assert_eq!(count(Drop::Negative), (1, 4));
    assert_eq!(count(Drop::NotANumber), (2, 5));
    assert_eq!(count(Drop::ShortRow), (1, 7));
    assert_eq!(account.dropped.len(), 5);
    assert_eq!(account.noticed(Notice::OutOfOrder), 1);
}

#[test]
fn azure_times_are_exact_to_the_nanosecond() {
    let Some((read, _)) = rows("azure_crlf_no_final_newline.csv") else { return };
    assert_eq!(offsets(&read), [0.0, 4.314579]);
    assert_eq!([read[0].output, read[1].output], [Some(44), Some(109)]);
    let Some((read, _)) = rows("azure_subms.csv") else { return };
    assert_eq!(offsets(&read), [0.0, 0.001, 0.008, 0.01]);
    let Some((read, _)) = rows("azure_fraction_lengths.csv") else { return };
    assert_eq!(offsets(&read), [0.0, 0.5, 1.25, 1.5, 2.123456789]);
}

#[test]
fn the_origin_is_the_earliest_row() {
    let Some((mut read, reader)) = rows("azure_unsorted.csv") else { return };
    assert_eq!(reader.accounting().noticed(Notice::OutOfOrder), 1);
    assert_eq!(offsets(&read), [0.0, 21.0, 42.0]);
    read.sort_by_key(|r| r.at);
    assert_eq!(inputs(&read), [20, 30, 10]);
}

#[test]
fn mooncake_without_ids_keeps_its_lengths() {
    let Some((read, _)) = rows("mooncake_no_hash.jsonl") else { return };
    assert_eq!(inputs(&read), [100, 100]);
    assert_eq!((read[0].blocks(), read[1].blocks()), (None, Some(&[][..])));
    let Some((read, _)) = rows("mooncake.jsonl.gz") else { return };
    assert_eq!(read.len(), 2);
}

#[test]
fn the_block_size_is_inferred_from_the_rows() {
    let Some(d) = described("mooncake_block16.jsonl") else { return };
    let prefix = d.prefix.unwrap();
    assert_eq!((prefix.block_tokens, prefix.hash_ids.rows_len_ne_ceil), (16, 0));
    assert_eq!(prefix.prefix_cache[0].token_hits, 32);
}

#[test]
fn a_block_partly_filled_and_then_full_is_reported_with_its_row() {
    let Some(d) = described("mooncake_partial_then_full.jsonl") else { return };
    let prefix = d.prefix.unwrap();
    assert!(prefix.prefix_cache[0].token_hits >= 600);
    assert_eq!((prefix.partial_block_conflicts, prefix.first_partial_conflict_row), (1, Some(2)));
}

#[test]
fn ids_keep_all_64_bits() {
    let Some(d) = described("mooncake_u64_ids.jsonl") else { return };
    let prefix = d.prefix.unwrap();
    assert_eq!((prefix.hash_ids.distinct, prefix.hash_ids.max_id), (2, Some(u64::MAX)));
    assert_eq!(prefix.prefix_cache[0].block_hits, 0);
}

#[test]
fn bailian_seconds_are_not_mooncake_milliseconds() {
    let Some((read, reader)) = rows("mooncake_float_ts_seconds.jsonl") else { return };
    assert_eq!(reader.format().word(), "bailian");
    assert_eq!([read[0].at, read[1].at], [Some(61_114_000_000), Some(75_500_000_000)]);
    assert_eq!(read[0].session, read[1].session);
    assert_eq!(reader.block_tokens(), Some(16));
    assert_eq!(reader.accounting().noticed(Notice::HashLenMismatch), 2);
}

#[test]
fn orphans_self_parents_and_cycles_end() {
    let Some((read, reader)) = rows("mooncake_orphan_parent.jsonl") else { return };
    assert_eq!(read.len(), 4);
    assert_eq!(reader.accounting().noticed(Notice::SelfParent), 1);
    assert_eq!(reader.accounting().noticed(Notice::ParentNotSeen), 2);
    assert_eq!(read[2].session, read[3].session);
}

#[test]
fn sharegpt_takes_every_tolerable_conversation_and_counts_the_rest() {
    let Some((read, reader)) = rows("sharegpt_mixed.json") else { return };
    let account = reader.accounting();
    assert_eq!((account.records, read.len(), account.rows_read), (12, 7, 12));
    let figures = reader.conversations().unwrap().figures();
    assert_eq!((figures.entries, figures.human_gpt_pairs), (12, 7));
    for (why, row) in [(Drop::NoTurns, 1), (Drop::NoAnswer, 3), (Drop::EmptyPrompt, 6), (Drop::NotText, 12)] {
        assert_eq!(account.dropped[&why].first_row, row, "{why:?}");
    }
    let messages = |i: usize| match &read[i].more.as_ref().unwrap().body {
        Body::Added(list) => list.iter().map(|m| format!("{}: {}", m.role, m.content)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(messages(0), ["assistant: I start", "user: ok"]);
    assert_eq!(messages(1), ["system: be short", "user: q"]);
    assert_eq!(messages(2), ["user: q1", "user: q2"]);
    assert_eq!(messages(3), ["user: quoted"]);
    assert_eq!(messages(5), ["user: 你好 😀 café"]);
    let Some((read, _)) = rows("sharegpt_utf8_bom.json") else { return };
    assert_eq!(read.len(), 1);
    let Some((read, _)) = rows("sharegpt.jsonl") else { return };
    assert_eq!(read.len(), 2);
}

#[test]
fn latin1_is_refused_at_its_byte_and_read_when_asked() {
    let file = "sharegpt_latin1.json";
    let Some(what) = refusal(file) else { return };
    let bytes = std::fs::read(path(file).unwrap()).unwrap();
    let at = bytes.iter().position(|b| !b.is_ascii()).unwrap() as u64;
    assert_eq!(what, Refusal::NotUtf8 { byte: at });
    let options = Options { lossy: true, ..Options::default() };
    let mut reader = open(path(file).unwrap(), &options).unwrap();
    assert_eq!(reader.by_ref().filter(|r| r.is_ok()).count(), 1);
    assert_eq!(reader.accounting().noticed(Notice::LossyText), 1);
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    let Some(what) = refusal("lfs_pointer.csv") else { return };
    assert!(what.to_string().contains("Git LFS pointer, not data"), "{what}");
    assert_eq!(refusal("empty.jsonl"), Some(Refusal::Empty));
    assert!(Refusal::Empty.to_string().contains("no requests"));
    assert!(refusal("html_404.csv").unwrap().to_string().contains("not CSV/JSON but an HTML page"));
}

#[test]
fn agent_rows_in_order_of_completion_are_put_in_order() {
    let Some((read, reader)) = rows("agent_completion_order.jsonl") else { return };
    assert_eq!(offsets(&read), [0.0, 3.682198]);
    assert_eq!(reader.accounting().noticed(Notice::OutOfOrder), 1);
    assert_eq!(reader.accounting().noticed(Notice::EmptyOutput), 1);
}
