//! What a pick costs: CPU time per request over 1,000 replicas and 100,000 indexed blocks, and allocations.
//!
//! `cargo run --release -p tailbound-route --example pick [requests-per-case]`
//!
//! Prompts have one of 400 beginnings, each of them cached by five replicas at least. `hash`: the block hashes of a prompt alone.
//! `pick`: hashing, the look-up in the index, filters, scorers, the choice. `request`: the same with everything that follows:
//! load counted and given back, the chosen replica's entries in the index brought up to date, first token, end.
#![allow(clippy::print_stdout)]

use tailbound_clock::{Dur, Seed, Time};
use tailbound_os::alloc::{Counting, allocations};
use tailbound_os::usage::thread_cpu;
use tailbound_route::*;

#[global_allocator]
static COUNTING: Counting = Counting;

const REPLICAS: u32 = 1000;
const GROUPS: u32 = 400;

fn main() {
    let requests: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(20_000);
    println!(
        "{:<34} {:>7} {:>9} {:>9} {:>9} {:>9} {:>11} {:>12}",
        "1,000 replicas", "tokens", "blocks", "entries", "hash us", "pick us", "request us", "allocations"
    );
    for (name, plugins) in POLICIES {
        case(name, plugins, 100, requests);
    }
    case(POLICIES[1].0, POLICIES[1].1, 500, requests);
}

const APPROX: &str =
    "- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}\n- {type: prefix-cache-scorer}\n";
const PRECISE: &str = "- {type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 16}, speculativeTTL: 1h}}\n\
                       - {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}\n";

const POLICIES: [(&str, &[(&str, u32)]); 4] = [
    ("queue 2, KV use 2", &[("queue-scorer", 2), ("kv-cache-utilization-scorer", 2)]),
    ("queue 2, KV use 2, approximate 3", &[("queue-scorer", 2), ("kv-cache-utilization-scorer", 2), (APPROX, 3)]),
    ("queue 2, KV use 2, precise 3", &[("queue-scorer", 2), ("kv-cache-utilization-scorer", 2), (PRECISE, 3)]),
    ("affinity filter, token load", &[(APPROX, 0), ("prefix-cache-affinity-filter", 1), ("token-load-scorer", 1)]),
];

fn policy(plugins: &[(&str, u32)]) -> Policy {
    let mut declared = String::new();
    let mut used = String::new();
    for (plugin, weight) in plugins {
        let name = if plugin.starts_with('-') { "prefix-cache-scorer" } else { plugin };
        declared += &if plugin.starts_with('-') { plugin.to_string() } else { format!("- type: {plugin}\n") };
        if *weight > 0 {
            used += &format!("  - {{pluginRef: {name}, weight: {weight}}}\n");
        }
    }
    let head = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
    let text = format!("{head}plugins:\n{declared}schedulingProfiles:\n- name: default\n  plugins:\n{used}");
    Policy::from_yaml(&text).expect("a sound policy")
}

/// `blocks` per prompt of 16 tokens each.
fn case(name: &str, plugins: &[(&str, u32)], blocks: u32, requests: u64) {
    let mut router = Router::new(Config::new(policy(plugins), Seed(1)));
    let mut out = Vec::with_capacity(16);
    let now = Time::ZERO + Dur::from_secs(1);
    for i in 0..REPLICAS {
        let endpoint = Endpoint { name: format!("pod-{i}"), address: format!("10.0.0.1:{i}"), labels: Vec::new() };
        router.on(now, Event::Joined(EndpointId(i), &endpoint), &mut out);
        let signals = Signals { waiting: i % 7, kv_usage: f64::from(i % 10) / 12.0, ..Signals::idle(now) };
        router.on(now, Event::Signals(EndpointId(i), &signals), &mut out);
    }
    let mut rng = Seed(2).stream("prompts");
    let prompts: Vec<Vec<u32>> = (0..GROUPS * 5).map(|i| prompt(i % GROUPS, i, blocks)).collect();
    let mut next = 0;
    // Every prompt once, each at one replica: 100,000 blocks and more.
    for (i, prompt) in prompts.iter().enumerate() {
        next += 1;
        let only = [EndpointId(i as u32 % REPLICAS)];
        let arrival = Arrival { subset: Some(&only), ..arrival(next, prompt) };
        serve(&mut router, now, &arrival, &mut out);
    }
    for _ in 0..2000 {
        next += 1;
        serve(&mut router, now, &arrival(next, &prompts[rng.below(prompts.len() as u64) as usize]), &mut out);
    }
    let (entries, different) = router.indexed();
    let picks: Vec<usize> = (0..BATCH).map(|_| rng.below(prompts.len() as u64) as usize).collect();
    let before = allocations();
    let mut costs: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(requests as usize / BATCH + 1));
    let made = allocations() - before;
    let mut chain = Vec::with_capacity(1024);
    for _ in 0..requests.div_ceil(BATCH as u64) {
        let hash = |p: &usize| {
            let how = Hashing { input: HashInput::Tokens, block_tokens: 16, most_blocks: 2048 };
            hash_chain(&how, "m", None, Prompt { text: &[], tokens: &prompts[*p] }, &mut chain);
            std::hint::black_box(&chain);
        };
        costs[0].push(timed(|| picks.iter().for_each(hash)));
        costs[1].push(timed(|| {
            for p in &picks {
                next += 1;
                std::hint::black_box(router.consider(now, &arrival(next, &prompts[*p])));
            }
        }));
        costs[2].push(timed(|| {
            for p in &picks {
                next += 1;
                serve(&mut router, now, &arrival(next, &prompts[*p]), &mut out);
            }
        }));
    }
    let allocated = allocations() - before - made;
    let [hash, pick, request] = costs.map(median);
    println!(
        "{name:<34} {:>7} {different:>9} {entries:>9} {hash:>9.2} {pick:>9.2} {request:>11.2} {allocated:>12}",
        16 * blocks
    );
}

const BATCH: usize = 100;

/// CPU microseconds per call of a batch.
fn timed(work: impl FnOnce()) -> f64 {
    let start = thread_cpu();
    work();
    (thread_cpu().ns() - start.ns()) as f64 / BATCH as f64 / 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A beginning of 60 % that a fifth of the group's prompts share, and an end of its own.
fn prompt(group: u32, i: u32, blocks: u32) -> Vec<u32> {
    let shared = blocks * 16 * 6 / 10;
    (0..blocks * 16).map(|t| if t < shared { group << 16 | t } else { i << 16 | t }).collect()
}

fn arrival(id: u64, prompt: &[u32]) -> Arrival<'_> {
    Arrival::new(RequestId(id), "m", Prompt { text: &[], tokens: prompt })
}

/// Routes a request and ends it.
fn serve(router: &mut Router, now: Time, arrival: &Arrival, out: &mut Vec<Effect>) {
    out.clear();
    router.on(now, Event::Arrived(arrival), out);
    assert!(matches!(out.first(), Some(Effect::Dispatch(_))), "{out:?}");
    router.on(now, Event::FirstToken(arrival.id), out);
    router.on(now, Event::Ended(arrival.id, Usage::default()), out);
}
