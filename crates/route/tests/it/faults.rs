//! What routers people run have done wrong, by the numbers of the list these tests were made from, and that this one can't.

use crate::driver::*;
use crate::kv::{Engine, deliver, precise};
use tailbound_clock::{Dur, Seed};
use tailbound_kv::vllm;
use tailbound_route::*;

/// 7: the target is gone between the pick and the connection. (llm-d: fallbacks; here: again, elsewhere.)
#[test]
fn fault_07_a_target_that_is_gone_is_replaced() {
    let mut pool = Pool::new(policy("queue-scorer"), 3);
    let (id, effects) = pool.ask(10);
    let first = target(&effects);
    let second = target(&pool.on(Event::Failed(id)));
    assert_ne!(second, first);
    let third = target(&pool.on(Event::Failed(id)));
    assert!(third != first && third != second);
    assert_eq!(refused(&pool.on(Event::Failed(id))), Some(Refusal::AllFailed));
    assert!((0..3).all(|i| pool.load(i) == Load::default()) && pool.router.requests() == 0);
}

const T: [u32; 40] = {
    let mut t = [0; 40];
    let mut i = 0;
    while i < 40 {
        t[i] = i as u32;
        i += 1;
    }
    t
};

/// 8: an engine that restarts in place leaves phantom blocks behind.
#[test]
fn fault_08_a_restarted_engine_has_nothing() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"), 1);
    let mut old = Engine::new(0, 1);
    let stored = vec![old.stored(&T, 0)];
    old.say(&mut pool, stored);
    old.say(&mut pool, vec![]);
    assert_eq!(pool.router.indexed().0, 10);
    let mut new = Engine::new(0, 2);
    new.say(&mut pool, vec![]);
    assert_eq!(pool.router.indexed().0, 0, "the numbers began anew");
    assert_eq!(pool.router.kv_health(pool.now, EndpointId(0)).unwrap().restarts, 1);
    let stored = vec![new.stored(&T, 0)];
    assert_eq!(new.say(&mut pool, stored), []);
    assert_eq!(pool.router.indexed().0, 10);
    // A lost connection may hide a restart whose numbers have caught up.
    assert_eq!(pool.on(Event::KvLost(EndpointId(0))), [Effect::ReplayKv(EndpointId(0), 0)]);
    assert_eq!(pool.router.indexed().0, 0);
}

/// 9: `ip` and `ip:port` made what was believed and what was confirmed two different pods. Here both go by one id.
#[test]
fn fault_09_belief_and_confirmation_are_of_one_replica() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}"), 1);
    pool.prompt(&T);
    let mut engine = Engine::new(0, 1);
    let stored = vec![engine.stored(&T, 0)];
    engine.say(&mut pool, stored);
    assert_eq!(pool.router.indexed(), (10, 10), "ten blocks at one replica, not at two");
}

/// 11 and 16: a score of 0 for ever, and nobody knows that no event comes. "No events" isn't "no traffic".
#[test]
fn fault_11_and_16_no_events_is_told_from_no_traffic() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"), 1);
    let state = |pool: &Pool| pool.router.kv_health(pool.now, EndpointId(0)).unwrap().state;
    pool.pass(Dur::from_secs(3600));
    assert_eq!(state(&pool), KvState::NoTraffic);
    for _ in 0..5 {
        let (id, _) = pool.ask(40);
        pool.end(id);
        pool.pass(Dur::from_secs(10));
    }
    assert_eq!(state(&pool), KvState::NoEvents);
    assert_eq!(pool.router.kv_pool(pool.now).unwrap().no_events, 1);
    deliver(&mut pool, 0, 0, vec![], false);
    assert_eq!(state(&pool), KvState::Live);
    pool.pass(Dur::from_secs(3600));
    assert_eq!(state(&pool), KvState::Live, "nothing was sent, so nothing is missing");
}

/// 11: what a replica said before its events stopped isn't believed for ever.
#[test]
fn fault_11_the_word_of_a_silent_replica_expires() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"), 1);
    let mut engine = Engine::new(0, 1);
    let stored = vec![engine.stored(&T, 0)];
    engine.say(&mut pool, stored);
    for _ in 0..6 {
        pool.ask(40);
        pool.pass(Dur::from_secs(10));
    }
    assert_eq!(pool.router.indexed().0, 0);
}

const DETECTED: &str = "featureGates: [flowControl]
plugins:
- {type: queue-scorer}
- {type: utilization-detector}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}]}
flowControl: {saturationDetector: {pluginRef: utilization-detector}}
";

/// 12: signals that are a little old made a pool of one look full, and everything stopped.
#[test]
fn fault_12_stale_signals_stop_nothing() {
    let mut pool = Pool::new(yaml(DETECTED), 1);
    assert!(dispatched(&pool.ask(10).1).is_some(), "before anything was heard");
    pool.says(0, 0, 1, 0.1);
    pool.pass(Dur::from_ms(900));
    assert!(dispatched(&pool.ask(10).1).is_some(), "0.9 s old");
    pool.pass(Dur::from_secs(600));
    assert!(dispatched(&pool.ask(10).1).is_some(), "ten minutes old, all of them: fail open");
    // One of two is stale: it counts as full, the other one still takes.
    pool.join(1, &[]);
    pool.says(1, 0, 0, 0.0);
    assert_eq!(pool.router.pool_saturation(pool.now), 0.5);
    assert!(dispatched(&pool.ask(10).1).is_some());
}

/// 12: a replica whose metrics stopped at a bad moment isn't shunned for ever.
#[test]
fn fault_12_a_bad_moment_is_forgotten() {
    let mut pool = Pool::new(policy("queue-scorer"), 2);
    pool.says(0, 40, 0, 0.0);
    pool.says(1, 0, 0, 0.0);
    assert_eq!(target(&pool.ask(10).1), 1);
    pool.pass(Dur::from_secs(30));
    let to: Vec<u32> = (0..10).map(|_| target(&pool.ask(10).1)).collect();
    assert!(to.contains(&0), "{to:?}");
}

/// 13: dispatching faster than metrics come overshoots. What was sent since counts.
#[test]
fn fault_13_dispatch_does_not_outrun_the_metrics() {
    let mut pool = Pool::new(yaml(DETECTED), 2);
    (0..2).for_each(|id| drop(pool.says(id, 0, 0, 0.0)));
    pool.pass(Dur::from_ms(1));
    (0..100).for_each(|_| drop(pool.ask(10)));
    assert_eq!((pool.load(0).requests, pool.load(1).requests), (5, 5), "five waiting each is full");
    assert_eq!(pool.router.waiting().requests, 90);
}

/// 14: 429 says "later", 503 says "not here".
#[test]
fn fault_14_no_replicas_is_503_and_no_room_is_429() {
    let mut pool = Pool::new(policy("queue-scorer"), 0);
    assert_eq!(refused(&pool.ask(1).1).map(Refusal::status), Some(503));
    let mut pool = Pool::new(policy("queue-scorer"), 1);
    let id = pool.name();
    let (_, effects) = pool.send(Arrival { id, subset: Some(&[]), ..arrival(&[1]) });
    assert_eq!(refused(&effects).map(Refusal::status), Some(503), "an empty subset");
    let mut pool = Pool::new(policy("prefill-filter"), 1);
    assert_eq!(refused(&pool.ask(1).1), Some(Refusal::NoneEligible));
    assert_eq!(Refusal::NoneEligible.status(), 429);
}

/// 15: what waits in the gateway is invisible to whoever watches the engines.
#[test]
fn fault_15_the_queue_is_a_figure() {
    let mut pool = Pool::new(yaml(DETECTED), 1);
    pool.says(0, 9, 9, 0.9);
    (0..7).for_each(|_| drop(pool.ask(10)));
    assert_eq!(pool.router.waiting().requests, 7);
    assert!(pool.router.pool_saturation(pool.now) > 1.0);
}

/// 17: a miss that goes by the smallest tree rather than by load.
#[test]
fn fault_17_a_miss_goes_by_load() {
    let body = "
plugins:
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: prefix-cache-scorer}
- {type: active-request-scorer}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 3}, {pluginRef: active-request-scorer, weight: 2}]}
";
    let mut pool = Pool::new(yaml(body), 3);
    // Replica 2 is new and has cached least, but is the busiest.
    let only = [EndpointId(2)];
    for _ in 0..20 {
        let id = pool.name();
        pool.send(Arrival { id, subset: Some(&only), ..arrival(&[5; 16]) });
    }
    for _ in 0..10 {
        assert_ne!(target(&pool.ask(500).1), 2);
    }
}

/// 18 and 20: load that is counted only when an answer starts, or never, sends everything to one.
#[test]
fn fault_18_and_20_load_counts_from_the_dispatch_on() {
    for plugins in
        ["active-request-scorer", "token-load-scorer", "least-load-picker", "queue-scorer", "dynamo-cost-picker"]
    {
        let mut pool = Pool::new(policy(plugins), 8);
        (0..80).for_each(|_| drop(pool.ask(1000)));
        let loads: Vec<u32> = (0..8).map(|i| pool.load(i).requests).collect();
        assert_eq!(loads, [10; 8], "{plugins}: nobody answered yet, and still they are even");
    }
}

/// 19: the load is dropped when the handler returns although the answer still streams.
#[test]
fn fault_19_load_lasts_as_long_as_the_answer() {
    let mut pool = Pool::new(policy("queue-scorer"), 1);
    let (id, _) = pool.ask(100);
    pool.on(Event::FirstToken(id));
    pool.on(Event::Progress(id, 50));
    assert_eq!(pool.load(0), Load { requests: 1, prefill_tokens: 0, kv_tokens: 150 });
    pool.end(id);
    assert_eq!(pool.load(0), Load::default());
}

/// 21: at low concurrency every miss goes to replica 0.
#[test]
fn fault_21_ties_are_broken_at_random() {
    for plugins in [
        "queue-scorer",
        "queue-scorer:2 kv-cache-utilization-scorer:2 prefix-cache-scorer:3",
        "least-load-picker",
        "random-picker",
        "power-of-two-picker",
        "dynamo-cost-picker",
    ] {
        let mut pool = Pool::new(policy(plugins), 4);
        let mut counts = [0u32; 4];
        for _ in 0..2000 {
            let (id, effects) = pool.ask(8);
            counts[target(&effects) as usize] += 1;
            pool.end(id);
        }
        assert!(counts.iter().all(|n| (400..600).contains(n)), "{plugins}: {counts:?}");
    }
}

/// 22: a retry, or an end that is told twice, gives back load twice or never.
#[test]
fn fault_22_load_is_given_back_once() {
    let mut pool = Pool::new(policy("queue-scorer"), 2);
    let (id, _) = pool.ask(100);
    let (other, _) = pool.ask(100);
    pool.on(Event::Failed(id));
    for _ in 0..3 {
        pool.end(id);
        pool.on(Event::Cancelled(id));
        pool.on(Event::Failed(id));
        pool.on(Event::FirstToken(id));
    }
    let all: u32 = (0..2).map(|i| pool.load(i).requests).sum();
    assert_eq!(all, 1, "the other one's");
    pool.end(other);
    assert!((0..2).all(|i| pool.load(i) == Load::default()));
}

/// 23: ejecting replicas for transient errors makes a bad moment an outage. If nobody looks well, all are tried.
#[test]
fn fault_23_a_pool_that_looks_ill_is_still_a_pool() {
    let mut pool = Pool::new(policy("queue-scorer"), 2);
    pool.on(Event::Ready(EndpointId(0), false));
    assert!((0..10).all(|_| target(&pool.ask(1).1) == 1));
    pool.on(Event::Ready(EndpointId(1), false));
    assert!(dispatched(&pool.ask(1).1).is_some());
}

/// 26: a KV router that starves some of the workers when requests have nothing in common.
#[test]
fn fault_26_nobody_starves_on_single_turns() {
    let body = "
plugins:
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: dynamo-cost-picker}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: dynamo-cost-picker}]}
";
    let mut pool = Pool::new(yaml(body), 5);
    let mut counts = [0u32; 5];
    let mut rng = Seed(1).stream("ends");
    let mut open: Vec<RequestId> = Vec::new();
    for _ in 0..1000 {
        let (id, effects) = pool.ask(200);
        counts[target(&effects) as usize] += 1;
        open.push(id);
        if open.len() > 12 {
            let id = open.swap_remove(rng.below(13) as usize);
            pool.end(id);
        }
    }
    assert!(counts.iter().all(|n| (150..250).contains(n)), "{counts:?}");
}

/// 27: requests that hang for ever when workers come and go. Every one is sent, refused or waits for a moment that comes.
#[test]
fn fault_27_nobody_waits_without_a_moment_that_ends_it() {
    let mut pool = Pool::new(yaml(DETECTED), 1);
    pool.says(0, 9, 0, 0.0);
    pool.ask(1);
    pool.on(Event::Left(EndpointId(0)));
    assert_eq!(pool.router.waiting().requests, 1);
    let wake = pool.router.next_wake().expect("a moment");
    pool.now = wake;
    assert_eq!(refused(&pool.on(Event::Wake)).map(Refusal::status), Some(503));
}

/// 28: a dead worker is still chosen, as its cache fits best.
#[test]
fn fault_28_the_dead_are_never_chosen() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"), 2);
    let mut engine = Engine::new(1, 1);
    let stored = vec![engine.stored(&T, 0)];
    engine.say(&mut pool, stored.clone());
    assert_eq!(target(&pool.prompt(&T).1), 1);
    pool.on(Event::Left(EndpointId(1)));
    assert_eq!(target(&pool.prompt(&T).1), 0);
    // Events that are still on their way from it change nothing.
    engine.say(&mut pool, stored);
    assert_eq!((target(&pool.prompt(&T).1), pool.router.indexed().0), (0, 0));
}

/// 29: a block that matches somewhere in the middle is no prefix.
#[test]
fn fault_29_matches_begin_at_the_beginning() {
    let mut pool = Pool::new(precise("tokenProcessorConfig: {blockSize: 4}, speculativeIndexing: false"), 2);
    let mut engine = Engine::new(1, 1);
    let stored = vec![engine.stored(&T, 0)];
    engine.say(&mut pool, stored);
    let shifted: Vec<u32> = [&[99; 4][..], &T[..]].concat();
    let (id, _) = pool.prompt(&shifted);
    assert_eq!(pool.router.explain(id).unwrap().cached, 0);
    let hole =
        vec![vllm::Event::Removed(vllm::Removed { hashes: vec![engine.names(&T)[3]], medium: None, group: None })];
    engine.say(&mut pool, hole);
    let (id, _) = pool.prompt(&T);
    assert_eq!(pool.router.explain(id).unwrap().cached, 12, "up to the hole, not beyond it");
}
