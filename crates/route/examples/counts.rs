//! Work of which the instructions are counted: `counts pick` or `counts index`.
//!
//! `tools/check-instructions.py` runs it under callgrind, which counts what happens inside the two functions below that bear the
//! cases' names, and divides by [`TIMES`].

use tailbound_clock::{Dur, Seed, Time};
use tailbound_kv::vllm::{self, Batch, Removed, Stored};
use tailbound_route::*;

/// How often each case is done.
const TIMES: u64 = 100;
const REPLICAS: u32 = 1000;
/// Prompts of 100 blocks; with what they share, some 100,000 different ones.
const PROMPTS: u32 = 2000;
const BLOCK: u32 = 16;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("pick") => {
            let mut pool = Pool::new(APPROX);
            pool.fill();
            pick(&pool.prompts, &mut pool.router, pool.now);
        }
        Some("index") => {
            let mut pool = Pool::new(PRECISE);
            pool.fill();
            let batches: Vec<Batch> = (0..TIMES as u32).map(|i| message(REPLICAS + i)).collect();
            index(&batches, &mut pool.router, pool.now);
        }
        _ => panic!("usage: counts pick|index"),
    }
}

/// One pick among 1,000 replicas, of a prompt whose blocks some of them have.
#[inline(never)]
fn pick(prompts: &[Vec<u32>], router: &mut Router, now: Time) {
    for i in 0..TIMES {
        let prompt = &prompts[i as usize * 7];
        std::hint::black_box(router.consider(now, &arrival(1_000_000 + i, prompt)));
    }
}

/// One message of KV events: 50 blocks stored, 10 removed.
#[inline(never)]
fn index(batches: &[Batch], router: &mut Router, now: Time) {
    let mut out = Vec::new();
    for (i, batch) in batches.iter().enumerate() {
        let message = KvMessage { seq: 0, batch, replayed: false };
        router.on(now, Event::Kv(EndpointId(i as u32), &message), &mut out);
    }
}

const APPROX: &str = "{type: approx-prefix-cache-producer, parameters: {autoTune: false}}";
const PRECISE: &str =
    "{type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 16}, speculativeTTL: 1h}}";

struct Pool {
    router: Router,
    prompts: Vec<Vec<u32>>,
    now: Time,
}

impl Pool {
    fn new(producer: &str) -> Pool {
        let name = if producer == APPROX { "approx-prefix-cache-producer" } else { "precise-prefix-cache-producer" };
        let text = format!(
            "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n\
             - type: kv-cache-utilization-scorer\n- {producer}\n\
             - {{type: prefix-cache-scorer, parameters: {{prefixMatchInfoProducerName: {name}}}}}\n\
             schedulingProfiles:\n- name: default\n  plugins: [{{pluginRef: queue-scorer, weight: 2}}, \
             {{pluginRef: kv-cache-utilization-scorer, weight: 2}}, {{pluginRef: prefix-cache-scorer, weight: 3}}]\n"
        );
        let policy = Policy::from_yaml(&text).expect("a sound policy");
        let mut router = Router::new(Config::new(policy, Seed(1)));
        let now = Time::ZERO + Dur::from_secs(1);
        let mut out = Vec::new();
        for i in 0..REPLICAS {
            let endpoint = Endpoint { name: format!("pod-{i}"), ..Endpoint::default() };
            router.on(now, Event::Joined(EndpointId(i), &endpoint), &mut out);
            let signals = Signals { waiting: i % 7, kv_usage: f64::from(i % 10) / 12.0, ..Signals::idle(now) };
            router.on(now, Event::Signals(EndpointId(i), &signals), &mut out);
        }
        Pool { router, prompts: (0..PROMPTS).map(|i| prompt(i % 400, i)).collect(), now }
    }

    /// Every prompt was asked once, each of one replica.
    fn fill(&mut self) {
        let mut out = Vec::new();
        for (i, prompt) in self.prompts.iter().enumerate() {
            let id = i as u64;
            let only = [EndpointId(i as u32 % REPLICAS)];
            let arrival = Arrival { subset: Some(&only), ..arrival(id, prompt) };
            self.router.on(self.now, Event::Arrived(&arrival), &mut out);
            self.router.on(self.now, Event::Ended(arrival.id, Usage::default()), &mut out);
            out.clear();
        }
    }
}

/// 60 blocks that a fifth of its group's prompts share, and 40 of its own.
fn prompt(group: u32, i: u32) -> Vec<u32> {
    (0..100 * BLOCK).map(|t| if t < 60 * BLOCK { group << 16 | t } else { i << 16 | t }).collect()
}

fn arrival(id: u64, prompt: &[u32]) -> Arrival<'_> {
    Arrival::new(RequestId(id), "m", Prompt { text: &[], tokens: prompt })
}

fn message(i: u32) -> Batch {
    let hashes: Vec<u64> = (1..=50).map(|n| u64::from(i) << 32 | n).collect();
    let tokens = (0..50 * BLOCK).map(|t| i << 16 | t).collect();
    let removed = vllm::Event::Removed(Removed { hashes: hashes[40..].to_vec(), ..Removed::default() });
    let stored = vllm::Event::Stored(Stored { hashes, tokens, block_size: BLOCK, ..Stored::default() });
    Batch { ts: 0.0, events: vec![stored, removed], dp_rank: None }
}
