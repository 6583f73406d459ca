//! The precise index: what engines say they have.

use crate::driver::*;
use tailbound_clock::Dur;
use tailbound_kv::vllm::{self, Batch, Removed, Stored};
use tailbound_route::*;
use tailbound_testdata as data;

const PRECISE: &str = "
plugins:
- {type: precise-prefix-cache-producer, parameters: {PARAMETERS}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: prefix-cache-scorer}]}
";

pub fn precise(parameters: &str) -> Policy {
    yaml(&PRECISE.replace("PARAMETERS", parameters))
}

/// Block size 4, nothing believed that isn't said.
const STRICT: &str = "tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false";

/// An engine that names its blocks in its own way.
pub struct Engine {
    pub id: u32,
    seed: u64,
    seq: u64,
}

impl Engine {
    pub fn new(id: u32, seed: u64) -> Engine {
        Engine { id, seed, seq: 0 }
    }

    /// Names of the full blocks of a prompt; another process has other ones.
    pub fn names(&self, tokens: &[u32]) -> Vec<u64> {
        let fold = |h: u64, t: &u32| (h ^ u64::from(*t)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(7);
        let mut last = self.seed;
        tokens
            .chunks_exact(4)
            .map(|b| {
                last = b.iter().fold(last, fold);
                last
            })
            .collect()
    }

    pub fn stored(&self, tokens: &[u32], from: usize) -> vllm::Event {
        let names = self.names(tokens);
        vllm::Event::Stored(Stored {
            parent: from.checked_sub(1).map(|i| names[i]),
            hashes: names[from..].to_vec(),
            tokens: tokens[from * 4..names.len() * 4].to_vec(),
            block_size: 4,
            medium: Some("GPU".into()),
            ..Stored::default()
        })
    }

    pub fn removed(&self, tokens: &[u32], blocks: std::ops::Range<usize>, medium: &str) -> vllm::Event {
        let hashes = self.names(tokens)[blocks].to_vec();
        vllm::Event::Removed(Removed { hashes, medium: Some(medium.into()), group: None })
    }

    /// The next message, delivered.
    pub fn say(&mut self, pool: &mut Pool, events: Vec<vllm::Event>) -> Vec<Effect> {
        let seq = self.seq;
        self.seq += 1;
        deliver(pool, self.id, seq, events, false)
    }

    /// The next message, lost on the way.
    pub fn lose(&mut self) {
        self.seq += 1;
    }
}

pub fn deliver(pool: &mut Pool, id: u32, seq: u64, events: Vec<vllm::Event>, replayed: bool) -> Vec<Effect> {
    let batch = Batch { ts: 0.0, events, dp_rank: None };
    pool.on(Event::Kv(EndpointId(id), &KvMessage { seq, batch: &batch, replayed }))
}

/// Tokens of the prompt that the chosen replica is believed to have.
fn cached(pool: &mut Pool, tokens: &[u32]) -> (u32, u64) {
    let (id, effects) = pool.prompt(tokens);
    let found = (target(&effects), pool.router.explain(id).unwrap().cached);
    pool.end(id);
    found
}

fn tokens(n: u32) -> Vec<u32> {
    (0..n).collect()
}

fn health(pool: &Pool, id: u32) -> KvHealth {
    pool.router.kv_health(pool.now, EndpointId(id)).unwrap()
}

#[test]
fn replicas_with_different_names_for_a_block_are_both_found() {
    let mut pool = Pool::new(precise(STRICT), 3);
    let (mut a, mut b) = (Engine::new(1, 11), Engine::new(2, 22));
    let t = tokens(42);
    let events = vec![a.stored(&t[..20], 0)];
    a.say(&mut pool, events);
    let events = vec![b.stored(&t, 0)];
    b.say(&mut pool, events);
    assert_eq!(cached(&mut pool, &t), (2, 40), "ten full blocks, the tail is none");
    // In two messages, the second a child of the first.
    let events = vec![a.stored(&t, 5)];
    a.say(&mut pool, events);
    let events = vec![b.removed(&t, 0..1, "GPU")];
    b.say(&mut pool, events);
    assert_eq!(cached(&mut pool, &t), (1, 40), "without its first block the rest is nothing");
}

#[test]
fn slower_tiers_count_less_and_are_left_one_by_one() {
    let mut pool = Pool::new(precise(STRICT), 2);
    let (mut a, mut b) = (Engine::new(0, 1), Engine::new(1, 2));
    let t = tokens(40);
    let on = |e: &Engine, medium: &str| match e.stored(&t, 0) {
        vllm::Event::Stored(s) => vllm::Event::Stored(Stored { medium: Some(medium.into()), ..s }),
        other => other,
    };
    let cpu = vec![on(&a, "CPU")];
    a.say(&mut pool, cpu);
    let (id, effects) = pool.prompt(&t);
    assert_eq!(target(&effects), 0);
    assert!((pool.router.explain(id).unwrap().scores[0] - 0.8).abs() < 1e-9);
    let gpu = vec![on(&b, "GPU")];
    b.say(&mut pool, gpu);
    assert_eq!(cached(&mut pool, &t), (1, 40));
    // The GPU's copy goes where there is one on the CPU too.
    let both = vec![on(&b, "cpu"), b.removed(&t, 0..10, "GPU")];
    b.say(&mut pool, both);
    let (id, _) = pool.prompt(&t);
    assert!((pool.router.explain(id).unwrap().scores[0] - 0.8).abs() < 1e-9);
    let events = vec![b.removed(&t, 0..10, "CPU")];
    b.say(&mut pool, events);
    assert_eq!(pool.router.indexed().0, 10, "only a's are left");
}

#[test]
fn what_was_sent_is_believed_for_two_seconds() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}"), 8);
    let t = tokens(40);
    let home = cached(&mut pool, &t).0;
    pool.pass(Dur::from_ms(1_900));
    assert_eq!(cached(&mut pool, &t), (home, 40), "which is another sending");
    pool.pass(Dur::from_ms(1_900));
    assert_eq!(cached(&mut pool, &t), (home, 40));
    pool.pass(Dur::from_ms(2_001));
    let (id, _) = pool.prompt(&tokens(4));
    assert_eq!(pool.router.explain(id).unwrap().cached, 0);
    pool.pass(Dur::from_ms(2_001));
    pool.prompt(&[9, 9, 9, 9]);
    assert_eq!(pool.router.indexed().0, 1, "no event confirmed any of it");
}

#[test]
fn a_confirmed_block_outlives_the_belief() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}"), 1);
    let mut a = Engine::new(0, 5);
    let t = tokens(40);
    pool.prompt(&t);
    let events = vec![a.stored(&t[..20], 0)];
    a.say(&mut pool, events);
    pool.pass(Dur::from_secs(3));
    assert_eq!(cached(&mut pool, &t).1, 20);
}

#[test]
fn a_gap_is_noticed_and_what_was_missed_is_fetched() {
    let mut pool = Pool::new(precise(STRICT), 1);
    let mut a = Engine::new(0, 5);
    let t = tokens(40);
    let events = vec![a.stored(&t[..20], 0)];
    a.say(&mut pool, events);
    a.lose();
    let effects = a.say(&mut pool, vec![vllm::Event::Cleared]);
    assert_eq!(effects, [Effect::ReplayKv(EndpointId(0), 1)]);
    assert_eq!(health(&pool, 0).state, KvState::Replaying);
    // Live ones meanwhile are part of the replay.
    assert_eq!(a.say(&mut pool, vec![]), []);
    let missed = vec![a.stored(&t, 5)];
    deliver(&mut pool, 0, 1, missed, true);
    assert_eq!(cached(&mut pool, &t).1, 40);
    deliver(&mut pool, 0, 2, vec![vllm::Event::Cleared], true);
    deliver(&mut pool, 0, 3, vec![], true);
    assert_eq!(pool.on(Event::KvReplayed(EndpointId(0), Complete::Yes)), []);
    assert_eq!(cached(&mut pool, &t).1, 0);
    assert_eq!((health(&pool, 0).state, health(&pool, 0).gaps), (KvState::Live, 1));
    let events = vec![a.stored(&t, 0)];
    assert_eq!(a.say(&mut pool, events), [], "and on it goes");
    assert_eq!(cached(&mut pool, &t).1, 40);
}

#[test]
fn without_a_replay_what_a_replica_has_is_unknown() {
    let mut pool = Pool::new(precise(STRICT), 1);
    let mut a = Engine::new(0, 5);
    let t = tokens(40);
    let events = vec![a.stored(&t, 0)];
    a.say(&mut pool, events);
    a.lose();
    a.say(&mut pool, vec![]);
    pool.on(Event::KvReplayed(EndpointId(0), Complete::No));
    assert_eq!(pool.router.indexed(), (0, 0));
    let u: Vec<u32> = (100..140).collect();
    let events = vec![a.stored(&u, 0)];
    assert_eq!(a.say(&mut pool, events), [], "from here on it is followed again");
    assert_eq!(cached(&mut pool, &u).1, 40);
    let child = vec![a.stored(&t, 5)];
    a.say(&mut pool, child);
    assert_eq!(health(&pool, 0).orphans, 5, "children of what was missed can't be placed");
}

/// A replay that begins later than asked for: the engine no longer had all of it.
#[test]
fn a_replay_with_a_hole_begins_anew() {
    let mut pool = Pool::new(precise(STRICT), 1);
    let mut a = Engine::new(0, 5);
    let t = tokens(40);
    let events = vec![a.stored(&t, 0)];
    a.say(&mut pool, events);
    (0..5).for_each(|_| a.lose());
    a.say(&mut pool, vec![]);
    let u: Vec<u32> = (100..120).collect();
    let events = vec![a.stored(&u, 0)];
    deliver(&mut pool, 0, 4, events, true);
    deliver(&mut pool, 0, 5, vec![], true);
    deliver(&mut pool, 0, 6, vec![], true);
    pool.on(Event::KvReplayed(EndpointId(0), Complete::Yes));
    assert_eq!((cached(&mut pool, &t).1, cached(&mut pool, &u).1), (0, 20));
}

#[test]
fn a_router_that_comes_late_asks_for_what_was_before() {
    let mut pool = Pool::new(precise(STRICT), 1);
    let mut a = Engine::new(0, 5);
    (0..7).for_each(|_| a.lose());
    assert_eq!(a.say(&mut pool, vec![]), [Effect::ReplayKv(EndpointId(0), 0)]);
    assert_eq!(health(&pool, 0).gaps, 0, "that is no fault of the connection");
}

/// A replay that ends before the newest message is asked for again, once.
#[test]
fn a_replay_that_brings_nothing_is_not_asked_for_for_ever() {
    let mut pool = Pool::new(precise(STRICT), 1);
    let mut a = Engine::new(0, 5);
    (0..3).for_each(|_| a.lose());
    a.say(&mut pool, vec![]);
    assert_eq!(pool.on(Event::KvReplayed(EndpointId(0), Complete::Yes)), []);
    assert_eq!(health(&pool, 0).state, KvState::Live);
}

#[test]
fn events_of_a_real_vllm_are_followed_and_found() {
    for (size, parameters) in [("32", "tokenProcessorConfig: {blockSize: 32}"), ("128", "")] {
        let Some(frames) = data::read(&format!("engines/vllm/kvevents_bs{size}.replay.hex")) else { return };
        let mut pool = Pool::new(
            precise(&format!(
                "{parameters}{}speculativeIndexing: false",
                if parameters.is_empty() { "" } else { ", " }
            )),
            2,
        );
        let mut prompts: Vec<(Vec<u32>, Option<String>)> = Vec::new();
        for line in frames.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let seq = u64::from_str_radix(fields[2], 16).unwrap();
            if seq == u64::MAX {
                break;
            }
            let payload: Vec<u8> = (0..fields[3].len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&fields[3][i..i + 2], 16).unwrap())
                .collect();
            let batch = vllm::decode(&payload).unwrap();
            for event in &batch.events {
                match event {
                    vllm::Event::Stored(s) if s.parent.is_none() => {
                        let salt = s.extra_keys.first().and_then(|k| k.first()).cloned();
                        prompts.push((s.tokens.clone(), salt));
                    }
                    vllm::Event::Cleared => prompts.clear(),
                    _ => {}
                }
            }
            let message = KvMessage { seq, batch: &batch, replayed: false };
            assert_eq!(pool.on(Event::Kv(EndpointId(1), &message)), []);
        }
        assert_eq!(health(&pool, 1).orphans, 0);
        for (tokens, salt) in &prompts {
            let id = pool.name();
            let (id, effects) = pool.send(Arrival { id, salt: salt.as_deref(), ..arrival(tokens) });
            assert_eq!(target(&effects), 1);
            assert_eq!(pool.router.explain(id).unwrap().cached, tokens.len() as u64);
            // Another tenant's salt finds nothing.
            let id = pool.name();
            let (id, _) = pool.send(Arrival { id, salt: Some("somebody else"), ..arrival(tokens) });
            assert_eq!(pool.router.explain(id).unwrap().cached, 0);
        }
        let pool = pool.router.kv_pool(pool.now).unwrap();
        assert_eq!((pool.live, pool.mismatched), (1, 0));
        assert!(size == "128" || prompts.len() >= 5, "{} prompts", prompts.len());
    }
}
