//! Flow control: who waits, whose turn it is, who is refused and with what.

use crate::driver::*;
use tailbound_clock::{Dur, Time};
use tailbound_route::*;

/// One replica that takes `limit` requests at a time.
fn narrow(limit: u32, plugins: &str, flow: &str) -> Pool {
    let body = format!(
        "featureGates: [flowControl]
plugins:
- type: queue-scorer
- {{type: concurrency-detector, parameters: {{maxConcurrency: {limit}}}}}
{plugins}
schedulingProfiles:
- {{name: default, plugins: [{{pluginRef: queue-scorer}}]}}
flowControl:
  saturationDetector: {{pluginRef: concurrency-detector}}
{flow}"
    );
    Pool::new(yaml(&body), 1)
}

fn send(pool: &mut Pool, tenant: &str, priority: i32, tokens: u32) -> RequestId {
    let id = pool.name();
    let prompt = vec![id.0 as u32; tokens as usize];
    pool.send(Arrival { id, tenant, priority, ..arrival(&prompt) }).0
}

/// Fills the replica, queues what `then` sends, and says in which order that is served.
fn order(pool: &mut Pool, then: impl FnOnce(&mut Pool) -> Vec<RequestId>) -> Vec<usize> {
    let filler = send(pool, "filler", 100, 1);
    let queued = then(pool);
    let mut last = filler;
    let mut order = Vec::new();
    for _ in &queued {
        pool.pass(Dur::from_ms(10));
        let went = sent(&pool.end(last));
        assert_eq!(went.len(), 1, "one ends, one goes");
        last = went[0];
        order.push(queued.iter().position(|q| *q == last).unwrap());
    }
    pool.end(last);
    order
}

#[test]
fn bands_are_strict_and_first_come_first_served_within() {
    let mut pool = narrow(1, "", "");
    let o = order(&mut pool, |p| vec![send(p, "a", 0, 5), send(p, "b", 1, 5), send(p, "a", 1, 5), send(p, "c", -1, 5)]);
    assert_eq!(o, [1, 2, 0, 3]);
}

#[test]
fn a_band_that_is_held_back_holds_back_those_below_it() {
    let limit = "- {type: priority-holdback-policy, parameters: {minCeiling: 0.5}}";
    let mut pool = narrow(
        10,
        limit,
        "  usageLimitPolicyPluginRef: priority-holdback-policy\n  priorityBands: [{priority: 5}, {priority: 0}]\n",
    );
    // The lower band may fill half of the pool.
    let low: Vec<RequestId> = (0..8).map(|_| send(&mut pool, "a", 0, 5)).collect();
    assert_eq!((pool.load(0).requests, pool.router.waiting().requests), (5, 3));
    for _ in 0..5 {
        send(&mut pool, "b", 5, 5);
    }
    assert_eq!(pool.load(0).requests, 10, "the higher one all of it");
    for _ in 0..2 {
        send(&mut pool, "b", 5, 5);
    }
    assert_eq!(pool.router.waiting().requests, 5);
    assert!(sent(&pool.end(low[0])).len() == 1, "of the higher band");
}

#[test]
fn tenants_take_turns_however_many_each_sends() {
    let rr = "  defaultPriorityBand: {fairnessPolicyRef: round-robin-fairness-policy}\n";
    let mut pool = narrow(1, "", rr);
    let o = order(&mut pool, |p| {
        let mut all: Vec<RequestId> = (0..4).map(|_| send(p, "greedy", 0, 5)).collect();
        all.extend((0..2).map(|_| send(p, "modest", 0, 5)));
        all
    });
    let modest: Vec<usize> = o.iter().enumerate().filter(|(_, i)| **i >= 4).map(|(at, _)| at).collect();
    assert!(modest == [0, 2] || modest == [1, 3], "{o:?}");
}

/// Served tokens of the tenant with long prompts, when that of the short ones has had as much.
fn served(fairness: &str) -> (f64, f64) {
    let mut pool = narrow(1, "", &format!("  defaultPriorityBand: {{fairnessPolicyRef: {fairness}}}\n"));
    let mut queued = Vec::new();
    order_of(&mut pool, |p| {
        for _ in 0..40 {
            queued.push((send(p, "long", 0, 4000), 4000.0));
            (0..10).for_each(|_| queued.push((send(p, "short", 0, 400), 400.0)));
        }
        queued.iter().map(|(id, _)| *id).collect()
    })
    .iter()
    .take(80)
    .map(|i| queued[*i].1)
    .fold((0.0, 0.0), |(l, s), t| if t > 1000.0 { (l + t, s) } else { (l, s + t) })
}

fn order_of(pool: &mut Pool, then: impl FnOnce(&mut Pool) -> Vec<RequestId>) -> Vec<usize> {
    order(pool, then)
}

#[test]
fn token_fairness_is_in_tokens_and_turns_are_in_requests() {
    for fairness in ["deficit-fairness-policy", "vtc-fairness-policy", "program-aware-fairness"] {
        let (long, short) = served(fairness);
        assert!((0.6..1.67).contains(&(long / short)), "{fairness}: {long} to {short}");
    }
    let (long, short) = served("round-robin-fairness-policy");
    assert!(long / short > 5.0, "ten times the tokens at equal turns: {long} to {short}");
}

#[test]
fn a_tenant_gets_no_credit_for_having_been_away() {
    let mut pool = narrow(1, "", "  defaultPriorityBand: {fairnessPolicyRef: vtc-fairness-policy}\n");
    let o = order(&mut pool, |p| (0..6).map(|_| send(p, "old", 0, 1000)).collect());
    assert_eq!(o.len(), 6);
    let o = order(&mut pool, |p| {
        let mut all: Vec<RequestId> = (0..4).map(|_| send(p, "old", 0, 1000)).collect();
        all.extend((0..4).map(|_| send(p, "new", 0, 1000)));
        all
    });
    let first_four = o[..4].iter().filter(|i| **i >= 4).count();
    assert!((1..=3).contains(&first_four), "they take turns, rather than the new one first: {o:?}");
}

#[test]
fn orderings_go_by_deadline_length_and_age() {
    let ordering = |name: &str| narrow(1, "", &format!("  defaultPriorityBand: {{orderingPolicyRef: {name}}}\n"));
    let with = |p: &mut Pool, ttft: Option<u64>, patience: Option<u64>, tokens: u32| {
        let id = p.name();
        let prompt = vec![1; tokens as usize];
        let slo = Slo { ttft: ttft.map(Dur::from_ms), tpot: None };
        p.send(Arrival { id, slo, patience: patience.map(Dur::from_secs), ..arrival(&prompt) }).0
    };
    let o = order(&mut ordering("edf-ordering-policy"), |p| {
        vec![with(p, None, None, 1), with(p, None, Some(20), 1), with(p, None, Some(10), 1)]
    });
    assert_eq!(o, [2, 1, 0]);
    let o = order(&mut ordering("slo-deadline-ordering-policy"), |p| {
        vec![with(p, None, None, 1), with(p, Some(900), None, 1), with(p, Some(300), None, 1)]
    });
    assert_eq!(o, [2, 1, 0]);
    let o = order(&mut ordering("wspt-ordering-policy"), |p| {
        vec![with(p, None, None, 500), with(p, None, None, 50), with(p, None, None, 200)]
    });
    assert_eq!(o, [1, 2, 0]);
    let o = order(&mut ordering("lcfs-ordering-policy"), |p| (0..3).map(|_| with(p, None, None, 5)).collect());
    assert_eq!(o, [2, 1, 0]);
}

#[test]
fn bounds_are_kept_in_requests_and_in_bytes() {
    let mut pool = narrow(1, "", "  maxRequests: 3\n  defaultPriorityBand: {maxBytes: 1k}\n");
    send(&mut pool, "a", 0, 1);
    let bytes = |pool: &mut Pool, bytes: u64| {
        let id = pool.name();
        let (_, effects) = pool.send(Arrival { id, bytes, ..arrival(&[1]) });
        refused(&effects)
    };
    assert_eq!(bytes(&mut pool, 600), None);
    assert_eq!(bytes(&mut pool, 600), Some(Refusal::QueueFull));
    assert_eq!(bytes(&mut pool, 400), None);
    assert_eq!(bytes(&mut pool, 0), None);
    assert_eq!(bytes(&mut pool, 0), Some(Refusal::QueueFull));
    assert_eq!((pool.router.waiting().requests, pool.router.waiting().bytes), (3, 1000));
    assert_eq!(Refusal::QueueFull.status(), 429);
}

#[test]
fn who_waits_too_long_is_answered_503_at_that_moment() {
    let mut pool = narrow(1, "", "  defaultRequestTTL: 2s\n");
    send(&mut pool, "a", 0, 1);
    let id = send(&mut pool, "a", 0, 1);
    assert_eq!(pool.router.next_wake(), Some(Time::ZERO + Dur::from_secs(2)));
    pool.pass(Dur::from_ms(1_999));
    assert_eq!(pool.on(Event::Wake), []);
    pool.pass(Dur::from_ms(1));
    let why = Refusal::Expired(Dur::from_secs(2));
    assert_eq!(pool.on(Event::Wake), [Effect::Refuse(id, why)]);
    assert_eq!((why.status(), why.reason()), (503, "rejected-ttl-expired"));
    assert_eq!(pool.router.next_wake(), None);
}

#[test]
fn a_queue_without_replicas_is_a_waiting_room() {
    let mut pool = narrow(5, "", "  maxRequests: 2\n");
    pool.on(Event::Left(EndpointId(0)));
    let (a, b) = (send(&mut pool, "a", 0, 1), send(&mut pool, "a", 0, 1));
    let (_, effects) = pool.ask(1);
    assert_eq!(refused(&effects), Some(Refusal::NoEndpoints), "full, and no capacity at all: 503, not 429");
    let endpoint = Endpoint { name: "new".into(), ..Endpoint::default() };
    assert_eq!(sent(&pool.on(Event::Joined(EndpointId(9), &endpoint))), [a, b]);
}

#[test]
fn who_leaves_the_queue_is_never_sent() {
    let mut pool = narrow(1, "", "");
    let first = send(&mut pool, "a", 0, 1);
    let second = send(&mut pool, "a", 0, 1);
    assert_eq!(pool.on(Event::Cancelled(second)), []);
    assert_eq!(pool.end(first), []);
    assert_eq!((pool.router.requests(), pool.router.waiting()), (0, Waiting { tenants: 1, ..Waiting::default() }));
}

#[test]
fn without_a_queue_only_the_sheddable_are_shed() {
    let body = "
plugins:
- {type: queue-scorer}
- {type: utilization-detector}
saturationDetector: {pluginRef: utilization-detector}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}]}
";
    let mut pool = Pool::new(yaml(body), 1);
    pool.says(0, 50, 50, 0.99);
    let of = |pool: &mut Pool, priority| {
        let id = pool.name();
        let (_, effects) = pool.send(Arrival { id, priority, ..arrival(&[1]) });
        refused(&effects)
    };
    assert_eq!(of(&mut pool, -1), Some(Refusal::Saturated));
    assert_eq!(of(&mut pool, 0), None);
    assert_eq!((Refusal::Saturated.status(), Refusal::Saturated.reason()), (429, "rejected-saturated"));
}

#[test]
fn the_probabilistic_admitter_has_the_published_curve() {
    let body = "
plugins:
- {type: probabilistic-admitter}
- {type: random-picker}
- {type: utilization-detector, parameters: {queueDepthThreshold: 100, kvCacheUtilThreshold: 1.0}}
saturationDetector: {pluginRef: utilization-detector}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: random-picker}]}
";
    let mut pool = Pool::new(yaml(body), 1);
    let mut shed = |kv: f64| {
        let mut shed = 0;
        for _ in 0..2000 {
            pool.pass(Dur::from_ms(1));
            pool.says(0, 0, 0, kv);
            let id = pool.name();
            let (id, effects) = pool.send(Arrival { id, priority: -1, ..arrival(&[1]) });
            shed += u32::from(refused(&effects).is_some());
            pool.end(id);
        }
        f64::from(shed) / 2000.0
    };
    assert!((0.012..0.036).contains(&shed(0.15)), "2.3 % at 0.15");
    assert_eq!(shed(0.34), 1.0);
    assert_eq!(shed(0.0), 0.0);
}

#[test]
fn requests_in_flight_that_may_be_shed_make_room() {
    let eviction = "- {type: sheddable-eviction-filter}\n- {type: priority-then-time-eviction-order-policy}";
    let mut pool = narrow(4, eviction, "");
    let low: Vec<RequestId> = [-1, -2, -1, 0]
        .map(|p| {
            pool.pass(Dur::from_ms(1));
            send(&mut pool, "a", p, 5)
        })
        .to_vec();
    let urgent = |pool: &mut Pool| {
        let id = pool.name();
        pool.send(Arrival { id, priority: 1, ..arrival(&[1]) }).1
    };
    assert_eq!(urgent(&mut pool), [Effect::Evict(low[1])], "the least important");
    assert_eq!(urgent(&mut pool), [Effect::Evict(low[2])], "of equals the latest");
    assert_eq!(urgent(&mut pool), [], "no more than two at a time");
    let effects = pool.on(Event::Cancelled(low[2]));
    assert_eq!(
        (sent(&effects).len(), effects.last()),
        (1, Some(&Effect::Evict(low[0]))),
        "two wait, one is on its way"
    );
    assert_eq!(pool.load(0).requests, 4);
    // Those that don't answer hold up nobody else; but who may not be shed is left alone.
    pool.pass(Dur::from_ms(501));
    assert_eq!(pool.on(Event::Wake), []);
}

#[test]
fn tenants_have_limits_of_requests_and_of_tokens() {
    let limits = Limits { requests_per_s: Some(1.0), request_burst: Some(2.0), ..Limits::default() };
    let policy = policy("queue-scorer");
    let config = Config { limits: vec![("small".into(), limits)], ..Config::new(policy, tailbound_clock::Seed(1)) };
    let mut pool = Pool::with(config, 1);
    let of = |pool: &mut Pool, tenant| {
        let id = pool.name();
        refused(&pool.send(Arrival { id, tenant, ..arrival(&[1]) }).1)
    };
    assert_eq!([of(&mut pool, "small"), of(&mut pool, "small")], [None, None]);
    let refusal = of(&mut pool, "small").unwrap();
    assert_eq!(refusal, Refusal::RateLimited(Dur::from_secs(1)));
    assert_eq!((refusal.status(), refusal.reason()), (429, "rejected-rate-limit"));
    assert_eq!(of(&mut pool, "other"), None);
    pool.pass(Dur::from_secs(1));
    assert_eq!(of(&mut pool, "small"), None);
}
