//! A ladder of rates over one fleet under several policies, and how fast the simulation itself was.
//!
//! `cargo run --release -p tailbound-sim --example ladder`
//!
//! The workload and the fleet are llm-d's published benchmark 37-capacity: 4 replicas of Llama 3.1 70B on 4 × H100 each, 461,376
//! KV tokens in blocks of 64; 83 groups of 3 prompts, 8,000 tokens in common and 1,000 of their own, 1,000 out.
#![allow(clippy::print_stdout)]

use tailbound_os::usage::thread_cpu;
use tailbound_record::{Moment, Row};
use tailbound_sim::{Scenario, run};
use tailbound_stats::{RunFacts, summarize};

const FLEET: &str = "
[engines]
count = 4
profile = 'llama-3.1-70b-h100-tp4'
block_size = 64
kv_tokens = 461376
[shared_prefix]
groups = 83
prompts_per_group = 3
system = 8000
question = 1000
output = 1000
[arrivals]
stages = [[9,30],[3,210],[4,180],[5,120],[6,120],[8,90],[10,70],[12,60],[15,50],[20,50]]
drain = true
";

const POLICIES: [(&str, &str); 5] = [
    ("random", "plugins: [{type: random-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: random-picker}]}]"),
    ("round robin", "plugins: [{type: round-robin-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]"),
    ("load (queue, KV)", "plugins: [{type: queue-scorer}, {type: kv-cache-utilization-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: kv-cache-utilization-scorer}]}]"),
    ("approximate 2:1:1", "plugins: [{type: prefix-cache-scorer, parameters: {maxPrefixBlocksToMatch: 1024}}, {type: queue-scorer}, {type: kv-cache-utilization-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 2}, {pluginRef: queue-scorer}, {pluginRef: kv-cache-utilization-scorer}]}]"),
    ("precise 2:1:1", "plugins:
- {type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 64}}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
- {type: queue-scorer}
- {type: kv-cache-utilization-scorer}
schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 2}, {pluginRef: queue-scorer}, {pluginRef: kv-cache-utilization-scorer}]}]"),
];

/// Output tokens per second from a stage's first arrival to its last answer, and its mean TTFT.
fn stage(rows: &[Row]) -> String {
    let start = rows.iter().filter_map(|r| r.at.get(Moment::Scheduled)).min().unwrap_or_default();
    let end = rows.iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max().unwrap_or_default();
    let tokens: u32 = rows.iter().map(Row::output_tokens).sum();
    let ttft: f64 = rows.iter().filter_map(Row::ttft).map(|d| d.ms()).sum::<f64>() / 1e3 / rows.len() as f64;
    format!("{:.0} ({ttft:.2})", f64::from(tokens) / (end.since(start).ns() as f64 * 1e-9))
}

fn main() {
    println!(
        "{:<20} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8} {:>12}",
        "policy", "out tok/s", "TTFT mean", "TTFT p90", "ITL mean", "waiting", "hits", "CPU s", "req/CPU-s"
    );
    for (name, policy) in POLICIES {
        let head = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
        let text = format!("seed = 1\npolicy = '''\n{head}{policy}'''\n{FLEET}");
        let scenario = Scenario::from_toml(&text).expect("a sound scenario");
        let start = thread_cpu();
        let outcome = run(&scenario).expect("a sound scenario");
        let cpu = (thread_cpu().ns() - start.ns()) as f64 * 1e-9;
        let first = outcome.rows.iter().filter_map(|r| r.at.get(Moment::Scheduled)).min();
        let facts = RunFacts { self_timed: true, ..RunFacts::new(first.unwrap_or_default(), outcome.end) };
        let s = summarize(&outcome.rows, &facts);
        let (ttft, gaps) = (&s.latency.ttft, &s.latency.itl);
        println!(
            "{name:<20} {:>9.1} {:>8.3} s {:>8.3} s {:>7.1} ms {:>9.1} {:>8.1}% {cpu:>8.2} {:>12.0}",
            s.throughput.output_tokens_per_s.unwrap_or(0.0),
            ttft.mean().unwrap_or(0.0) * 1e-9,
            ttft.percentile(90.0).unwrap_or(0.0) * 1e-9,
            gaps.mean().unwrap_or(0.0) * 1e-6,
            outcome.mean_waiting,
            100.0 * outcome.hit_ratio,
            outcome.rows.len() as f64 / cpu,
        );
        let ends = outcome.stages[1..].iter().copied().chain([outcome.rows.len()]);
        let stages: Vec<String> =
            outcome.stages.iter().zip(ends).map(|(&first, end)| stage(&outcome.rows[first..end])).collect();
        println!("  by stage, out tok/s (TTFT mean, s): {}", stages.join("  "));
    }
}
