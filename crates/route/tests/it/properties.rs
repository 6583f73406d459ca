//! What holds whatever happens: random requests, ends, failures, replicas and metrics that come and go.

use crate::driver::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_clock::{Dur, Seed};
use tailbound_kv::vllm::{self, Batch};
use tailbound_route::*;

const ALL: &str = "featureGates: [flowControl]
plugins:
- {type: queue-scorer}
- {type: PREFIX, parameters: {PARAMETERS}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: PREFIX}}
- {type: no-hit-lru-scorer}
- {type: concurrency-detector, parameters: {maxConcurrency: 4}}
- {type: sheddable-eviction-filter}
- {type: predicted-latency-producer}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer}, {pluginRef: prefix-cache-scorer, weight: 2}, {pluginRef: no-hit-lru-scorer}]
flowControl:
  maxRequests: 30
  defaultRequestTTL: 3s
  saturationDetector: {pluginRef: concurrency-detector}
  defaultPriorityBand: {fairnessPolicyRef: FAIRNESS, orderingPolicyRef: ORDERING}
";

const BOUND: usize = 200;

#[derive(Clone, Debug)]
enum Step {
    Ask { tenant: u8, priority: i32, group: u32, blocks: u32, slo: Option<u64>, otherwise: u8 },
    End(u8),
    Fail(u8),
    Cancel(u8),
    FirstToken(u8),
    Progress(u8, u32),
    Join(u8),
    Leave(u8),
    Ready(u8, bool),
    Says(u8, u32),
    Kv(u8, u8, u32, u32),
    Replayed(u8, bool),
    KvLost(u8),
    Pass(u64),
    Wake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..4, -2i32..3, 0u32..6, 0u32..12, prop::option::of(1u64..400), 0u8..3).prop_map(
            |(tenant, priority, group, blocks, slo, otherwise)| Step::Ask { tenant, priority, group, blocks, slo, otherwise }
        ),
        4 => any::<u8>().prop_map(Step::End),
        2 => any::<u8>().prop_map(Step::Fail),
        1 => any::<u8>().prop_map(Step::Cancel),
        3 => any::<u8>().prop_map(Step::FirstToken),
        1 => (any::<u8>(), 0u32..500).prop_map(|(r, n)| Step::Progress(r, n)),
        1 => (0u8..6).prop_map(Step::Join),
        1 => (0u8..6).prop_map(Step::Leave),
        1 => (0u8..6, any::<bool>()).prop_map(|(e, r)| Step::Ready(e, r)),
        2 => (0u8..6, 0u32..9).prop_map(|(e, n)| Step::Says(e, n)),
        3 => (0u8..6, 0u8..12, 0u32..6, 0u32..12).prop_map(|(e, seq, group, n)| Step::Kv(e, seq, group, n)),
        1 => (0u8..6, any::<bool>()).prop_map(|(e, c)| Step::Replayed(e, c)),
        1 => (0u8..6).prop_map(Step::KvLost),
        2 => (0u64..900).prop_map(Step::Pass),
        1 => Just(Step::Wake),
    ]
}

/// What became of every request, and what they must weigh.
#[derive(Default)]
struct Ledger {
    waiting: BTreeSet<RequestId>,
    flying: BTreeMap<RequestId, u32>,
    answered: BTreeSet<RequestId>,
}

impl Ledger {
    fn take(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Dispatch(d) => {
                    assert!(self.waiting.remove(&d.request), "{:?} was sent twice, or after its end", d.request);
                    self.flying.insert(d.request, d.to[0].0);
                }
                Effect::Refuse(id, _) => {
                    assert!(self.waiting.remove(id), "{id:?} was refused twice, or after it was sent");
                    assert!(self.answered.insert(*id));
                }
                Effect::Evict(id) => assert!(self.flying.contains_key(id), "{id:?} isn't in flight"),
                Effect::ReplayKv(..) => {}
            }
        }
    }

    fn nth(&self, n: u8) -> Option<RequestId> {
        let all: Vec<RequestId> = self.flying.keys().copied().collect();
        (!all.is_empty()).then(|| all[n as usize % all.len()])
    }
}

fn block_tokens(group: u32, blocks: u32) -> Vec<u32> {
    (0..blocks * 4 + 1).map(|i| group << 16 | i).collect()
}

fn run(policy: Policy, steps: &[Step]) -> Vec<Effect> {
    let mut pool = Pool::with(Config::new(policy.with_max_entries(BOUND), Seed(9)), 3);
    let mut ledger = Ledger::default();
    let mut present: BTreeSet<u32> = (0..3).collect();
    let mut log = Vec::new();
    for step in steps {
        let effects = apply(&mut pool, &mut ledger, &mut present, step);
        ledger.take(&effects);
        log.extend(effects);
        let known = ledger.waiting.len() + ledger.flying.len();
        assert_eq!(pool.router.requests(), known, "after {step:?}");
        assert!(pool.router.indexed().0 <= BOUND, "after {step:?}: {:?}", pool.router.indexed());
        for id in &present {
            let mine = ledger.flying.values().filter(|e| *e == id).count() as u32;
            assert!(pool.load(*id).requests <= mine, "after {step:?}: {:?} of {mine}", pool.load(*id));
        }
        assert!(pool.router.waiting().requests <= ledger.waiting.len());
    }
    // Everything ends: nothing weighs, waits or is known any more.
    while let Some(id) = ledger.nth(0) {
        ledger.flying.remove(&id);
        ledger.answered.insert(id);
        let effects = pool.end(id);
        ledger.take(&effects);
        log.extend(effects);
    }
    while let Some(wake) = pool.router.next_wake() {
        assert!(!ledger.waiting.is_empty(), "it wants to be woken for nobody");
        pool.now = pool.now.max(wake);
        let effects = pool.on(Event::Wake);
        ledger.take(&effects);
        while let Some(id) = ledger.nth(0) {
            ledger.flying.remove(&id);
            let effects = pool.end(id);
            ledger.take(&effects);
        }
    }
    assert!(ledger.waiting.is_empty(), "lost: {:?}", ledger.waiting);
    assert_eq!(pool.router.requests(), 0);
    assert_eq!((pool.router.waiting().requests, pool.router.waiting().bytes), (0, 0));
    for id in present {
        assert_eq!(pool.load(id), Load::default());
    }
    log
}

fn apply(pool: &mut Pool, ledger: &mut Ledger, present: &mut BTreeSet<u32>, step: &Step) -> Vec<Effect> {
    match step.clone() {
        Step::Ask { tenant, priority, group, blocks, slo, otherwise } => {
            let id = pool.name();
            ledger.waiting.insert(id);
            let tokens = block_tokens(group, blocks);
            let tenant = ["a", "b", "c", "d"][tenant as usize];
            let otherwise = [Otherwise::Refuse, Otherwise::Wait, Otherwise::Downgrade][otherwise as usize];
            let slo = Slo { ttft: slo.map(Dur::from_ms), tpot: slo.map(Dur::from_ms) };
            pool.send(Arrival { id, tenant, priority, slo, otherwise, ..arrival(&tokens) }).1
        }
        Step::End(n) => match ledger.nth(n) {
            Some(id) => {
                ledger.flying.remove(&id);
                ledger.answered.insert(id);
                pool.on(Event::Ended(id, Usage { ok: n % 2 == 0, generated: Some(u32::from(n)), ..Usage::default() }))
            }
            None => pool.end(RequestId(u64::from(n))),
        },
        Step::Fail(n) => match ledger.nth(n) {
            Some(id) => {
                ledger.flying.remove(&id);
                ledger.waiting.insert(id);
                pool.on(Event::Failed(id))
            }
            None => Vec::new(),
        },
        Step::Cancel(n) => {
            let all: Vec<RequestId> = ledger.waiting.iter().chain(ledger.flying.keys()).copied().collect();
            let Some(id) = all.get(n as usize % all.len().max(1)).copied() else { return Vec::new() };
            ledger.waiting.remove(&id);
            ledger.flying.remove(&id);
            ledger.answered.insert(id);
            pool.on(Event::Cancelled(id))
        }
        Step::FirstToken(n) => ledger.nth(n).map_or(Vec::new(), |id| pool.on(Event::FirstToken(id))),
        Step::Progress(n, tokens) => ledger.nth(n).map_or(Vec::new(), |id| pool.on(Event::Progress(id, tokens))),
        Step::Join(e) => {
            present.insert(u32::from(e));
            let endpoint = Endpoint { name: format!("pod-{e}"), ..Endpoint::default() };
            pool.on(Event::Joined(EndpointId(u32::from(e)), &endpoint))
        }
        Step::Leave(e) => {
            present.remove(&u32::from(e));
            // Its requests fly on, but weigh on nobody.
            let gone: Vec<RequestId> =
                ledger.flying.iter().filter(|(_, t)| **t == u32::from(e)).map(|(r, _)| *r).collect();
            for request in gone {
                ledger.flying.insert(request, u32::MAX);
            }
            pool.on(Event::Left(EndpointId(u32::from(e))))
        }
        Step::Ready(e, ready) => pool.on(Event::Ready(EndpointId(u32::from(e)), ready)),
        Step::Says(e, n) => pool.says(u32::from(e), n, n, f64::from(n) / 10.0),
        Step::Kv(e, seq, group, n) => {
            let engine = crate::kv::Engine::new(u32::from(e), 1);
            let tokens = block_tokens(group, n.max(1));
            let event = match n {
                0 => vllm::Event::Cleared,
                n if n % 3 == 0 => engine.removed(&tokens, 0..n as usize / 2, "GPU"),
                _ => engine.stored(&tokens, 0),
            };
            let batch = Batch { ts: 0.0, events: vec![event], dp_rank: None };
            let message = KvMessage { seq: u64::from(seq), batch: &batch, replayed: seq % 5 == 0 };
            pool.on(Event::Kv(EndpointId(u32::from(e)), &message))
        }
        Step::Replayed(e, complete) => {
            let complete = if complete { Complete::Yes } else { Complete::No };
            pool.on(Event::KvReplayed(EndpointId(u32::from(e)), complete))
        }
        Step::KvLost(e) => pool.on(Event::KvLost(EndpointId(u32::from(e)))),
        Step::Pass(ms) => {
            pool.pass(Dur::from_ms(ms));
            Vec::new()
        }
        Step::Wake => pool.on(Event::Wake),
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    let prefix = prop_oneof![
        Just(("precise-prefix-cache-producer", "tokenProcessorConfig: {blockSize: 4}")),
        Just(("approx-prefix-cache-producer", "blockSizeTokens: 4, autoTune: false")),
    ];
    let fairness = prop_oneof![
        Just("global-strict-fairness-policy"),
        Just("round-robin-fairness-policy"),
        Just("deficit-fairness-policy"),
        Just("vtc-fairness-policy"),
        Just("program-aware-fairness"),
    ];
    let ordering = prop_oneof![Just("fcfs-ordering-policy"), Just("edf-ordering-policy"), Just("wspt-ordering-policy")];
    (prefix, fairness, ordering).prop_map(|((prefix, parameters), fairness, ordering)| {
        let text = ALL.replace("PREFIX", prefix).replace("PARAMETERS", parameters);
        yaml(&text.replace("FAIRNESS", fairness).replace("ORDERING", ordering))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No request is lost or answered twice, loads return to zero, and the index keeps to its bound. And it is the same
    /// when it is done again.
    #[test]
    fn whatever_happens(policy in policies(), steps in prop::collection::vec(step(), 0..150)) {
        let first = run(policy.clone(), &steps);
        prop_assert_eq!(first, run(policy, &steps));
    }
}
