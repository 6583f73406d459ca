use crate::make;
use serde_json::Value;
use tailbound_report::json::{Detail, Mode, file_name, save, vllm_result};
use tailbound_report::{Description, Run};
use tailbound_stats::{Ramp, RampLaw, RunFacts};

fn value(run: &Run<'_>, detail: Detail) -> Value {
    serde_json::from_str(&vllm_result(run, detail)).expect("valid JSON")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_run_with_everything() {
    let owned = make::full();
    let mut value = value(&owned.run(), Detail::PerRequest);
    value["tailbound"]["version"] = "[version]".into();
    insta::assert_snapshot!(compact(&value));
}

#[test]
fn a_run_in_which_nothing_completed() {
    let owned = make::nothing();
    let mut value = value(&owned.run(), Detail::Totals);
    value["tailbound"]["version"] = "[version]".into();
    insta::assert_snapshot!(compact(&value));
}

/// The keys of `vllm bench serve` 0.33 in the order in which it writes them.
#[test]
fn the_keys_are_vllms_in_its_order_and_ours_come_last() {
    let owned = make::full();
    let head = ["date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "gpu"];
    let load = ["request_rate", "burstiness", "max_concurrency"];
    let totals = [
        "duration",
        "completed",
        "failed",
        "total_input_tokens",
        "total_output_tokens",
        "request_throughput",
        "request_goodput",
        "output_throughput",
        "total_token_throughput",
    ];
    let detailed = [
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "latencies",
        "start_times",
        "queue_times",
        "generated_texts",
        "errors",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
        "rtfx",
        "server_queue_times",
        "server_ttfts",
    ];
    let probes = ["probe_completed", "probe_failed", "probe_median_e2el_ms", "probe_p99_e2el_ms", "probe_max_e2el_ms"];
    let spec = [
        "acceptance_rate",
        "acceptance_length",
        "num_drafts",
        "draft_tokens",
        "accepted_tokens",
        "per_position_acceptance_rates",
    ]
    .map(|k| format!("spec_decode_{k}"));
    let metrics = ["ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"];
    let statistics = ["mean", "median", "std", "p50", "p99", "p99.9"];
    let mut expected: Vec<String> = Vec::new();
    for part in [&head[..], &load, &totals, &detailed, &probes] {
        expected.extend(part.iter().map(|k| (*k).to_owned()));
    }
    expected.extend(spec);
    expected.extend(metrics.iter().flat_map(|m| statistics.iter().map(move |s| format!("{s}_{m}_ms"))));
    // What the Rust client adds to the Python one.
    expected.extend(["max_model_len", "input_throughput"].map(str::to_owned));
    expected.extend(metrics.iter().map(|m| format!("p90_{m}_ms")));
    expected.extend(["steady_state", "tailbound"].map(str::to_owned));
    assert_eq!(keys(&value(&owned.run(), Detail::PerRequest)), expected);

    let dropped = [
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "start_times",
        "generated_texts",
        "errors",
        "server_queue_times",
        "server_ttfts",
    ];
    expected.retain(|k| !dropped.contains(&k.as_str()));
    assert_eq!(keys(&value(&owned.run(), Detail::Totals)), expected);
}

#[test]
fn values_have_vllms_types() {
    let owned = make::full();
    let v = value(&owned.run(), Detail::PerRequest);
    assert_eq!(v["burstiness"], "inf");
    assert!(v["request_rate"].is_f64() && v["max_concurrency"].is_u64() && v["label"].is_null());
    assert!(v["max_output_tokens_per_s"].is_f64() && v["max_concurrent_requests"].is_u64());
    // A failed request has zeros, and stands in its place.
    assert_eq!((&v["latencies"][3], &v["ttfts"][3], &v["output_lens"][3]), (&0.0.into(), &0.0.into(), &0.into()));
    assert_eq!(v["itls"][3], serde_json::json!([]));
    assert_eq!(v["errors"][9], "busy");
    assert_eq!(v["errors"][12], "connection closed by the server in the middle");
    assert_eq!(v["generated_texts"][5], "answer 5");

    let owned = make::nothing();
    let v = value(&owned.run(), Detail::Totals);
    assert_eq!(
        (&v["request_rate"], &v["ramp_up_strategy"], &v["ramp_up_end_rps"]),
        (&"inf".into(), &"linear".into(), &10.into())
    );
    // What has no value is 0.0 in vLLM's keys and null in ours; TTFT needs a tokenizer there.
    assert_eq!((&v["mean_e2el_ms"], v.get("mean_ttft_ms"), &v["request_goodput"]), (&0.0.into(), None, &Value::Null));
    assert_eq!(v["tailbound"]["latency"]["e2e_s"]["mean"], Value::Null);
}

#[test]
fn metadata_cannot_take_a_key_of_the_result() {
    let mut owned = make::plain();
    owned.description.metadata =
        vec![("duration".into(), "1".into()), ("tp".into(), "2".into()), ("tp".into(), "4".into())];
    let text = vllm_result(&owned.run(), Detail::Totals);
    let v: Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!((&v["tp"], &v["tailbound"]["metadata"]["duration"]), (&"2".into(), &"1".into()));
    assert!(v["duration"].is_f64());
    assert_eq!(text.matches("\"tp\":").count(), 2);
}

#[test]
fn files_are_named_as_vllm_names_them() {
    let owned = make::plain();
    assert_eq!(file_name(&owned.description, &owned.facts), "openai-infqps-concurrency4-model-7b-20261130-120000.json");
    let rate = RunFacts { request_rate: Some(20.0), max_concurrency: None, ..owned.facts.clone() };
    let labelled = Description { label: Some("night".into()), ..owned.description.clone() };
    assert_eq!(file_name(&labelled, &rate), "night-20.0qps-model-7b-20261130-120000.json");
    let ramp = Some(Ramp { law: RampLaw::Exponential, start_rps: 1.0, end_rps: 16.0 });
    let ramped = RunFacts { ramp, ..owned.facts };
    assert_eq!(
        file_name(&labelled, &ramped),
        "night-ramp-up-exponential-1qps-16qps-concurrency4-model-7b-20261130-120000.json"
    );
}

#[test]
fn results_replace_or_follow_each_other() {
    let owned = make::plain();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep/result.json");
    for mode in [Mode::Append, Mode::Append, Mode::Append] {
        save(&owned.run(), Detail::Totals, &path, mode).expect("saved");
    }
    let text = std::fs::read_to_string(&path).expect("readable");
    assert_eq!(text.lines().count(), 3);
    assert!(!text.ends_with('\n') && text.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()));
    save(&owned.run(), Detail::Totals, &path, Mode::Replace).expect("saved");
    assert_eq!(std::fs::read_to_string(&path).expect("readable").lines().count(), 1);
    assert_eq!(
        std::fs::read_dir(path.parent().expect("a folder")).expect("read").count(),
        1,
        "nothing half-written stays"
    );
    let error = save(&owned.run(), Detail::Totals, folder.path(), Mode::Replace).expect_err("a folder is no file");
    assert!(error.to_string().starts_with("failed to open "), "{error}");
}

/// Indented, with arrays of numbers on one line and rounded to nine figures.
fn compact(value: &Value) -> String {
    let text = serde_json::to_string_pretty(&rounded(value)).expect("JSON");
    let mut out = String::new();
    let mut depth = 0usize;
    for line in text.lines() {
        let trimmed = line.trim();
        if depth == 0 {
            out.push_str(line);
        } else {
            out.push_str(trimmed);
        }
        depth = (depth + usize::from(trimmed.ends_with('['))).saturating_sub(usize::from(trimmed.starts_with(']')));
        out.push(if depth == 0 { '\n' } else { ' ' });
    }
    out
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            let v: f64 = format!("{:.8e}", n.as_f64().unwrap_or(0.0)).parse().expect("a number");
            v.into()
        }
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(map) => {
            map.iter().map(|(k, v)| (k.clone(), rounded(v))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
