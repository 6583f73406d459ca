//! Decisions that must stay what they are: a digest of who was sent where, why, and with how much of its prompt there, under
//! each way of picking. Whoever makes the router faster changes none of them; whoever changes a policy changes the digest
//! of those that use it, and says so.

use crate::driver::*;
use tailbound_clock::{Dur, Rng, Seed};
use tailbound_kv::vllm::{self, Batch};
use tailbound_route::*;

const REPLICAS: u32 = 40;
const GROUPS: u64 = 12;

const PREFIX: &str = "
plugins:
- {type: queue-scorer}
- {type: kv-cache-utilization-scorer}
- {type: no-hit-lru-scorer}
- {type: PRODUCER, parameters: {PARAMETERS}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: PRODUCER}}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: kv-cache-utilization-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: 3}, {pluginRef: no-hit-lru-scorer}]
";

fn prefix(producer: &str, parameters: &str) -> Policy {
    yaml(&PREFIX.replace("PRODUCER", producer).replace("PARAMETERS", parameters))
}

/// FNV-1a over 64-bit words.
struct Digest(u64);

impl Digest {
    fn eat(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A prompt that begins as its group's do, for some blocks of four tokens, and goes on as one of seven.
fn prompt(rng: &mut Rng) -> Vec<u32> {
    let (group, own) = (rng.below(GROUPS) as u32, rng.below(7) as u32);
    let shared = 4 * (4 + group % 5 * 9);
    let length = 4 * (1 + rng.below(60) as u32) + rng.below(4) as u32;
    (0..length).map(|t| if t < shared { group << 16 | t } else { (group * 7 + own + 100) << 16 | t }).collect()
}

fn digest(policy: Policy, events: u32) -> u64 {
    let mut pool = Pool::with(Config::new(policy, Seed(5)), REPLICAS);
    let mut rng = Seed(6).stream("golden");
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let mut flying: Vec<RequestId> = Vec::new();
    let mut seqs = [0u64; REPLICAS as usize];
    for _ in 0..events {
        pool.pass(Dur::from_ms(rng.below(60)));
        let id = rng.below(u64::from(REPLICAS)) as u32;
        match rng.below(20) {
            0..=8 => {
                let tokens = prompt(&mut rng);
                let (request, effects) = pool.prompt(&tokens);
                for to in effects.iter().filter_map(|e| if let Effect::Dispatch(d) = e { Some(d) } else { None }) {
                    to.to.iter().for_each(|t| digest.eat(u64::from(t.0)));
                }
                if let Some(d) = pool.router.explain(request) {
                    digest.eat(d.cached);
                    digest.eat(u64::from(d.candidates));
                    d.scores[..d.scorers as usize].iter().for_each(|s| digest.eat(s.to_bits()));
                }
                flying.push(request);
            }
            9..=12 if !flying.is_empty() => {
                let request = flying.swap_remove(rng.below(flying.len() as u64) as usize);
                pool.on(Event::FirstToken(request));
                pool.end(request);
            }
            13..=15 => {
                let (waiting, running) = (rng.below(6) as u32, rng.below(30) as u32);
                pool.says(id, waiting, running, rng.below(100) as f64 / 110.0);
            }
            16..=18 => {
                let tokens = prompt(&mut rng);
                let engine = crate::kv::Engine::new(id, 1);
                let blocks = tokens.len() / 4;
                let event = match rng.below(9) {
                    0 => vllm::Event::Cleared,
                    1 => engine.removed(&tokens, blocks / 2..blocks, "GPU"),
                    2 => engine.removed(&tokens, blocks / 3..blocks / 2, "GPU"),
                    3 => match engine.stored(&tokens, 0) {
                        vllm::Event::Stored(s) => vllm::Event::Stored(vllm::Stored { medium: Some("CPU".into()), ..s }),
                        other => other,
                    },
                    _ => engine.stored(&tokens, 0),
                };
                let batch = Batch { ts: 0.0, events: vec![event], dp_rank: None };
                let seq = seqs[id as usize];
                seqs[id as usize] += 1;
                pool.on(Event::Kv(EndpointId(id), &KvMessage { seq, batch: &batch, replayed: false }));
            }
            19 if rng.below(10) == 0 => {
                pool.on(Event::Left(EndpointId(id)));
                seqs[id as usize] = 0;
                pool.join(id, &[]);
            }
            _ => {}
        }
    }
    let (entries, blocks) = pool.router.indexed();
    digest.eat(entries as u64);
    digest.eat(blocks as u64);
    digest.0
}

#[test]
fn decisions_stay_what_they_are() {
    let approx = "approx-prefix-cache-producer";
    let precise = "precise-prefix-cache-producer";
    let cases: [(&str, Policy, u64); 16] = [
        ("approximate", prefix(approx, "autoTune: false, blockSizeTokens: 4"), 0xb3c2_54b4_2937_261f),
        (
            "approximate, small",
            prefix(approx, "autoTune: false, blockSizeTokens: 4, lruCapacityPerServer: 50"),
            0x64ee_b65e_1584_f845,
        ),
        (
            "approximate, bounded",
            prefix(approx, "autoTune: false, blockSizeTokens: 4").with_max_entries(1000),
            0xed67_444c_bc26_ded5,
        ),
        (
            "precise",
            prefix(precise, "tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"),
            0xdbb6_3591_c76c_0e51,
        ),
        (
            "precise, speculative",
            prefix(precise, "tokenProcessorConfig: {blockSize: 4}, speculativeTTL: 1s"),
            0x4a95_346e_e151_d69a,
        ),
        (
            "precise, bounded",
            prefix(precise, "tokenProcessorConfig: {blockSize: 4}").with_max_entries(900),
            0xe8a9_d79f_08b7_f317,
        ),
        ("burst", prefix("burst-prefix-cache-producer", "windowDurationMs: 500"), 0xae29_b5af_1c22_34e7),
        ("default", Policy::default(), 0x8811_b1d1_1e4f_5635),
        ("affinity", policy("prefix-cache-affinity-filter token-load-scorer no-hit-lru-scorer"), 0x00e9_f1d2_5e83_453b),
        (
            "load",
            policy("load-aware-scorer active-request-scorer:2 running-requests-size-scorer"),
            0xf7b6_5235_dde8_ab51,
        ),
        ("latency", policy("slo-headroom-tier-filter latency-scorer"), 0x39dc_c3e2_af98_2e0f),
        ("weighted random", policy("queue-scorer weighted-random-picker"), 0x82f8_4598_2409_d98a),
        ("power of two", policy("power-of-two-picker"), 0xb412_2fd4_7440_3c29),
        ("consistent hash", policy("consistent-hash-picker"), 0xdf18_3b7c_8665_7314),
        ("dynamo", policy("dynamo-cost-picker"), 0x141c_b82d_ea94_b5ca),
        ("round robin", policy("round-robin-picker"), 0x20be_d948_e9f9_7d65),
    ];
    let found: Vec<(&str, u64)> = cases.iter().map(|(name, policy, _)| (*name, digest(policy.clone(), 3000))).collect();
    for (name, digest) in &found {
        println!("{name}: {digest:#018x}");
    }
    for ((name, _, golden), (_, digest)) in cases.iter().zip(&found) {
        assert_eq!(digest, golden, "{name}: decisions changed");
    }
}
