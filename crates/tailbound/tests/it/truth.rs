//! The client's figures against the emulator's truth log: counts to the token, times to what any machine can hold.

use crate::machine::data;
use crate::program::bench;
use crate::servers::{config, truthful};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Far more than a quiet machine shows (see `benches/`), and far less than a figure in the wrong unit or from the wrong moment.
const NEAR_MS: f64 = 50.0;

/// The log's rows by the request's number.
fn rows(log: &Path) -> BTreeMap<usize, Value> {
    let text = std::fs::read_to_string(log).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter_map(|row| Some((row["id"].as_str()?.strip_prefix("it-")?.parse().ok()?, row))).collect()
}

fn near(what: &str, ours_ms: f64, truth_ms: f64) {
    assert!((ours_ms - truth_ms).abs() < NEAR_MS, "{what}: {ours_ms} ms, and in truth {truth_ms} ms");
}

fn ms(row: &Value, index: usize) -> f64 {
    row["sent"][index].as_f64().unwrap() * 1e-6
}

fn compare(flags: &str, requests: usize) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("truth.jsonl");
    let mut config = config(2);
    config.engine.max_model_len = 32_768;
    let server = truthful(config, &log);
    let all =
        format!("{flags} --num-prompts {requests} --format json --save-detailed --request-id-prefix it- --no-fail");
    let result = bench(&server.url(), &all).exits(0).json();
    server.stop().unwrap();
    let truth = rows(&log);
    let completed = result["completed"].as_u64().unwrap() as usize;
    assert_eq!((truth.len(), completed), (requests, requests), "{}", result["errors"]);

    let (mut input, mut output) = (0, 0);
    for (i, (_, row)) in truth.iter().enumerate() {
        let tokens = row["output_tokens"].as_u64().unwrap();
        assert_eq!(result["input_lens"][i], row["prompt_tokens"], "request {i}");
        assert_eq!(result["output_lens"][i], tokens, "request {i}");
        input += row["prompt_tokens"].as_u64().unwrap();
        output += tokens;
        let last = tokens as usize - 1;
        near("TTFT", result["ttfts"][i].as_f64().unwrap() * 1e3, ms(row, 0));
        near("E2E", result["latencies"][i].as_f64().unwrap() * 1e3, ms(row, last));
        let gaps = result["itls"][i].as_array().unwrap();
        assert_eq!(gaps.len(), last, "request {i}");
        let sum: f64 = gaps.iter().map(|g| g.as_f64().unwrap() * 1e3).sum();
        near("the sum of gaps", sum, ms(row, last) - ms(row, 0));
    }
    assert_eq!((&result["total_input_tokens"], &result["total_output_tokens"]), (&input.into(), &output.into()));
}

#[test]
fn completions_under_a_poisson_load() {
    compare("--random-input-len 32 --random-output-len 12 --random-range-ratio 0.5 --request-rate 60", 40);
}

#[test]
fn chat_under_a_cap() {
    compare("--backend openai-chat --dataset-name sample --sharegpt-output-len 10 --max-concurrency 4", 24);
}

#[test]
fn several_threads_and_no_gathering() {
    compare("--random-input-len 16 --random-output-len 8 --threads 2 --no-gather --max-concurrency 8", 32);
}

#[test]
fn prefixes_that_repeat() {
    compare(
        "--dataset-name prefix_repetition --prefix-repetition-prefix-len 64 --prefix-repetition-suffix-len 16 \
         --prefix-repetition-num-prefixes 2 --prefix-repetition-output-len 4 --ignore-eos --max-concurrency 2",
        12,
    );
}

#[test]
fn lengths_from_a_trace() {
    let Some(file) = data("workloads/burstgpt/BurstGPT_1.first250.csv") else { return };
    compare(
        &format!("--dataset-name burstgpt --dataset-path {file} --no-self-timed --ignore-eos --max-concurrency 8"),
        16,
    );
}

#[test]
fn an_answer_as_a_whole_has_the_time_of_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("truth.jsonl");
    let server = truthful(config(4), &log);
    let flags = "--no-stream --random-input-len 8 --random-output-len 10 --num-prompts 4 --format json --save-detailed \
                 --request-id-prefix it- --no-fail";
    let result = bench(&server.url(), flags).exits(0).json();
    server.stop().unwrap();
    for (i, (_, row)) in rows(&log).iter().enumerate() {
        assert_eq!(row["stream"], false);
        assert_eq!(result["output_lens"][i], 10);
        near("E2E", result["latencies"][i].as_f64().unwrap() * 1e3, ms(row, 9));
    }
}

#[test]
fn warm_ups_and_probes_are_sent_and_counted_apart() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("truth.jsonl");
    let server = truthful(config(4), &log);
    let flags = "--random-input-len 8 --random-output-len 8 --num-prompts 20 --request-rate 50 --num-warmups 3 --probe-request-rate 20 \
                 --format json --no-fail";
    let result = bench(&server.url(), flags).exits(0).json();
    let summary = server.stop().unwrap();
    assert_eq!((&result["completed"], &result["total_output_tokens"]), (&20.into(), &160.into()));
    let probes = result["probe_completed"].as_u64().unwrap();
    assert!(probes >= 1 && result["probe_failed"] == 0, "{probes} probes");
    assert_eq!(summary.requests, 20 + 3 + probes);
}
