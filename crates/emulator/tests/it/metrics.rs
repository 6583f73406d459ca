//! `/metrics` against the captured page.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::client::*;

/// Family → (type, the label names of its samples).
fn families(page: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut families = BTreeMap::new();
    let mut name = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (family, kind) = rest.split_once(' ').unwrap();
            name = family.to_owned();
            families.insert(name.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#') {
            let (sample, rest) = line.split_once('{').unwrap_or((line, ""));
            let labels: Vec<&str> = rest.split("=\"").map(|p| p.rsplit([',', '"']).next().unwrap()).collect();
            let suffix = sample.strip_prefix(&name).unwrap_or(sample);
            let names = labels[..labels.len() - 1].join(",");
            if let Some(family) = families.get_mut(&name) {
                family.1.insert(format!("{}{{{names}}}", suffix.split(' ').next().unwrap()));
            }
        }
    }
    families
}

fn buckets(page: &str, family: &str) -> Vec<String> {
    let bucket = format!("{family}_bucket{{");
    let lines = page.lines().filter(|l| l.starts_with(&bucket));
    lines.map(|l| l.split("le=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn every_family_of_vllm_has_its_type_labels_and_buckets() {
    let emulator = start(config());
    let ours = get(emulator.addr(), "/metrics");
    assert!(ours.header("content-type").unwrap().starts_with("text/plain"));
    for file in ["metrics.txt", "metrics_bs32.txt"] {
        let Some(theirs) = capture(file) else { return };
        let (mine, yours) = (families(ours.text()), families(&theirs));
        let mut compared = 0;
        for (name, expected) in yours.iter().filter(|(n, _)| n.starts_with("vllm:")) {
            // Only a server with a tool parser has these.
            if name.starts_with("vllm:tool_call_parser") {
                continue;
            }
            assert_eq!(mine.get(name), Some(expected), "{name}");
            assert_eq!(buckets(ours.text(), name), buckets(&theirs, name), "{name}");
            compared += 1;
        }
        assert!(compared > 60, "{compared}");
    }
}

#[test]
fn counts_agree_with_what_was_said() {
    let emulator = start(config());
    let addr = emulator.addr();
    let prompt = "word ".repeat(100);
    let mut completion = 0;
    for max_tokens in [1, 7, 20] {
        let body = json!({"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": true});
        completion += ask(addr, "/v1/completions", &body).json()["usage"]["completion_tokens"].as_u64().unwrap();
    }
    assert_eq!(completion, 28);
    assert_eq!(metric(addr, "vllm:generation_tokens_total"), 28.0);
    assert_eq!(metric(addr, "vllm:prompt_tokens_total"), 303.0);
    assert_eq!(metric(addr, "vllm:prefix_cache_hits_total"), 192.0, "two requests find six blocks of 16 each");
    assert_eq!(metric(addr, "vllm:request_success_total"), 3.0);
    for (name, count, sum) in [
        ("time_to_first_token_seconds", 3.0, None),
        ("inter_token_latency_seconds", 25.0, Some(25.0 * 0.002)),
        ("request_generation_tokens", 3.0, Some(28.0)),
        ("request_prompt_tokens", 3.0, Some(303.0)),
        ("request_params_max_tokens", 3.0, Some(28.0)),
        ("request_prefill_kv_computed_tokens", 3.0, Some(303.0 - 192.0)),
        ("iteration_tokens_total", 28.0, Some(28.0 + 303.0 - 192.0)),
        ("e2e_request_latency_seconds", 3.0, Some(28.0 * 0.002)),
    ] {
        assert_eq!(metric(addr, &format!("vllm:{name}_count")), count, "{name}");
        if let Some(sum) = sum {
            let got = metric(addr, &format!("vllm:{name}_sum"));
            assert!((got - sum).abs() < 1e-9, "{name}: {got} for {sum}");
        }
    }
    assert_eq!(metric(addr, "vllm:num_requests_running"), 0.0);
}

#[test]
fn each_replica_has_its_own_samples() {
    let emulator = start(tailbound_emulator::Config { data_parallel_size: 3, ..config() });
    let page = get(emulator.addr(), "/metrics");
    for rank in 0..3 {
        assert!(page.text().contains(&format!("vllm:num_requests_running{{engine=\"{rank}\",model_name=")));
    }
}
