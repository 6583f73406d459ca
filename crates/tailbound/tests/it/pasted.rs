//! The two commands that people paste, verbatim but for names and paths, and the files they leave.

use crate::machine::{data, only_noise};
use crate::program::{command, run, start};
use crate::servers::{config, emulator};
use serde_json::Value;
use std::path::Path;
use tailbound_emulator::Config;

/// A key, and a test of its value's type.
type Key = (&'static str, fn(&Value) -> bool);

/// vLLM's keys of every generation run, each with a test of its type.
const VLLM: &[Key] = &[
    ("date", Value::is_string),
    ("endpoint_type", Value::is_string),
    ("backend", Value::is_string),
    ("label", string_or_null),
    ("model_id", Value::is_string),
    ("tokenizer_id", string_or_null),
    ("num_prompts", Value::is_u64),
    ("request_rate", rate),
    ("burstiness", Value::is_f64),
    ("max_concurrency", int_or_null),
    ("duration", Value::is_f64),
    ("completed", Value::is_u64),
    ("failed", Value::is_u64),
    ("total_input_tokens", Value::is_u64),
    ("total_output_tokens", Value::is_u64),
    ("request_throughput", Value::is_f64),
    ("request_goodput", float_or_null),
    ("output_throughput", Value::is_f64),
    ("total_token_throughput", Value::is_f64),
    ("max_output_tokens_per_s", Value::is_f64),
    ("max_concurrent_requests", Value::is_u64),
    ("rtfx", Value::is_f64),
    ("latencies", floats),
    ("queue_times", floats),
    ("mean_ttft_ms", Value::is_f64),
    ("median_ttft_ms", Value::is_f64),
    ("std_ttft_ms", Value::is_f64),
    ("p99_ttft_ms", Value::is_f64),
    ("mean_tpot_ms", Value::is_f64),
    ("median_tpot_ms", Value::is_f64),
    ("std_tpot_ms", Value::is_f64),
    ("p99_tpot_ms", Value::is_f64),
    ("mean_itl_ms", Value::is_f64),
    ("median_itl_ms", Value::is_f64),
    ("std_itl_ms", Value::is_f64),
    ("p99_itl_ms", Value::is_f64),
];

/// What `--save-detailed` adds.
const DETAILED: &[Key] = &[
    ("input_lens", |v| each(v, Value::is_u64)),
    ("output_lens", |v| each(v, Value::is_u64)),
    ("start_times", floats),
    ("ttfts", floats),
    ("itls", |v| each(v, floats)),
    ("generated_texts", |v| each(v, Value::is_string)),
    ("errors", |v| each(v, Value::is_string)),
];

/// The report's lines of vLLM, in its order, and ours that people know from elsewhere.
const LINES: &[&str] = &[
    "============ Serving Benchmark Result ============",
    "Successful requests:",
    "Failed requests:",
    "Benchmark duration (s):",
    "Total input tokens:",
    "Total generated tokens:",
    "Request throughput (req/s):",
    "Output token throughput (tok/s):",
    "Peak output token throughput (tok/s):",
    "Peak concurrent requests:",
    "Total token throughput (tok/s):",
    "---------------Time to First Token----------------",
    "Mean TTFT (ms):",
    "Median TTFT (ms):",
    "P99 TTFT (ms):",
    "-----Time per Output Token (excl. 1st token)------",
    "Mean TPOT (ms):",
    "Median TPOT (ms):",
    "P99 TPOT (ms):",
    "---------------Inter-token Latency----------------",
    "Mean ITL (ms):",
    "Median ITL (ms):",
    "P99 ITL (ms):",
    "==================================================",
    "Verdict:",
    "Input token throughput (tok/s):",
];

fn string_or_null(v: &Value) -> bool {
    v.is_string() || v.is_null()
}

fn int_or_null(v: &Value) -> bool {
    v.is_u64() || v.is_null()
}

fn float_or_null(v: &Value) -> bool {
    v.is_f64() || v.is_null()
}

fn rate(v: &Value) -> bool {
    v.is_f64() || v == "inf"
}

fn floats(v: &Value) -> bool {
    each(v, Value::is_f64)
}

fn each(v: &Value, is: fn(&Value) -> bool) -> bool {
    v.as_array().is_some_and(|all| all.iter().all(is))
}

fn has(result: &Value, keys: &[Key]) {
    for (key, is) in keys {
        let value = result.get(key).unwrap_or_else(|| panic!("no {key}"));
        assert!(is(value), "{key}: {value}");
    }
}

fn lines_in_order(report: &str) {
    let mut rest = report;
    for line in LINES {
        let at = rest.find(line).unwrap_or_else(|| panic!("`{line}` is missing, or out of order, in {report}"));
        rest = &rest[at + line.len()..];
    }
}

/// The one file in a folder.
fn only_file(folder: &Path) -> (String, String) {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    (files[0].file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&files[0]).unwrap())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
}

#[test]
fn the_first_command_works_as_it_is_pasted() {
    let Some(file) = data("workloads/sharegpt/dpo_en_as_sharegpt.first150.json") else { return };
    let server = emulator(config(2));
    let port = server.addr().port();
    let text = format!(
        "bench serve --backend vllm --model tiny --endpoint /v1/completions --dataset-name sharegpt --dataset-path {file} \
         --num-prompts 10 --port {port} --no-fail"
    );
    let ended = run(&words(&text)).exits(0);
    lines_in_order(&ended.stdout);
    assert_eq!(ended.line("Successful requests:"), "10");
    assert_eq!(ended.line("Failed requests:"), "0");
}

#[test]
fn the_second_command_works_as_it_is_pasted_and_saves_its_result() {
    let Some(file) = data("workloads/sharegpt/dpo_en_as_sharegpt.first150.json") else { return };
    let name = "acme/tiny-1b";
    let server = emulator(Config { served_model_names: vec![name.into()], ..config(1) });
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "bench serve --backend openai --model {name} --tokenizer {name} --endpoint \"/v1/chat/completions\" --dataset-name sharegpt \
         --dataset-path {file} --num-prompts 60 --max-concurrency 10 --save-result --port {} --no-fail",
        server.addr().port()
    );
    let mut command = command(&words(&text));
    command.current_dir(folder.path());
    let ended = start(command).ended().exits(0);
    lines_in_order(&ended.stdout);
    assert_eq!(ended.line("Maximum request concurrency:"), "10");

    let (file, text) = only_file(folder.path());
    let date = file.strip_prefix("openai-infqps-concurrency10-tiny-1b-").and_then(|f| f.strip_suffix(".json"));
    let date = date.unwrap_or_else(|| panic!("{file}"));
    assert!(date.len() == 15 && date.as_bytes()[8] == b'-', "{file}");
    assert!(ended.stderr.contains(&format!("result saved to {file}")), "{}", ended.stderr);
    let result: Value = serde_json::from_str(&text).unwrap();
    has(&result, VLLM);
    assert_eq!(result["date"], date);
    assert_eq!((&result["completed"], &result["num_prompts"]), (&60.into(), &60.into()));
    assert_eq!((&result["request_rate"], &result["max_concurrency"]), (&"inf".into(), &10.into()));
    assert_eq!((&result["backend"], &result["model_id"]), (&"openai".into(), &name.into()));
    assert!(DETAILED.iter().all(|(key, _)| result.get(key).is_none()));
    // Both reports are made of the same figures.
    assert_eq!(ended.line("Total generated tokens:"), result["total_output_tokens"].to_string());
    let ttft = result["median_ttft_ms"].as_f64().unwrap();
    assert_eq!(ended.line("Median TTFT (ms):"), format!("{ttft:.2}"));
}

#[test]
fn files_are_named_filled_and_appended_to_as_vllm_does() {
    let server = emulator(config(1));
    let folder = tempfile::tempdir().unwrap();
    let flags = format!(
        "--base-url {} --num-prompts 3 --random-input-len 8 --random-output-len 4 --request-rate 200 --no-fail --label night \
         --result-dir {} --metadata gpu=none note=a=b --percentile-metrics ttft,e2el --metric-percentiles 50,99.9",
        server.url(),
        folder.path().join("deep/er").display()
    );
    let named = run(&words(&format!("bench serve {flags} --save-result --save-detailed"))).exits(0);
    let (file, text) = only_file(&folder.path().join("deep/er"));
    assert!(file.starts_with("night-200.0qps-tiny-") && file.ends_with(".json"), "{file}");
    let result: Value = serde_json::from_str(&text).unwrap();
    has(&result, DETAILED);
    for (key, _) in DETAILED {
        assert_eq!(result[key].as_array().unwrap().len(), 3, "{key}");
    }
    assert_eq!(result["itls"][0].as_array().unwrap().len(), 3);
    assert_eq!((&result["gpu"], &result["note"]), (&"none".into(), &"a=b".into()));
    assert_eq!((&result["label"], &result["request_rate"]), (&"night".into(), &200.0.into()));
    assert!(result["p99.9_ttft_ms"].is_f64() && result["p50_e2el_ms"].is_f64() && result.get("mean_itl_ms").is_none());
    assert!(named.stdout.contains("P99.9 TTFT (ms):"), "{}", named.stdout);

    for _ in 0..2 {
        run(&words(&format!("bench serve {flags} --append-result --result-filename all.json"))).exits(0);
    }
    let all = std::fs::read_to_string(folder.path().join("deep/er/all.json")).unwrap();
    let results: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 2, "{all}");
    results.iter().for_each(|r| assert_eq!(r["completed"], 3));
}

#[test]
fn standard_output_is_the_result_and_nothing_else() {
    let server = emulator(config(1));
    let flags = format!(
        "bench serve --base-url {} --num-prompts 4 --random-input-len 8 --random-output-len 4 --no-fail --format json",
        server.url()
    );
    let result = run(&words(&flags)).exits(0).json();
    has(&result, VLLM);
    only_noise(&result);
    assert_eq!(result["tailbound"]["tokens"]["output"], 16);
}

#[test]
fn a_flag_without_effect_is_not_passed_over_in_silence() {
    let server = emulator(config(1));
    for (flags, note) in [
        ("--dataset-name sample --input-len 9 --output-len 2", "note: --input-len changes nothing"),
        ("--trust-remote-code --random-input-len 8 --random-output-len 2", "note: --trust-remote-code changes nothing"),
        ("--pin 4000 --random-input-len 8 --random-output-len 2", "note: --pin 4000: failed to pin"),
    ] {
        let ended =
            run(&words(&format!("bench serve --base-url {} --num-prompts 2 --no-fail {flags}", server.url()))).exits(0);
        assert!(ended.stderr.contains(note) || ended.stdout.contains(note), "{ended:?}");
    }
}

#[test]
fn underscores_and_dashes_are_the_same_in_flag_names() {
    let server = emulator(config(1));
    let flags = format!(
        "bench serve --base_url={} --num_prompts 2 --random_input_len 8 --random-output_len=4 --no_fail",
        server.url()
    );
    assert_eq!(run(&words(&flags)).exits(0).line("Total generated tokens:"), "8");
}
