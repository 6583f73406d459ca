//! A pick allocates nothing once every buffer has its size.

use crate::driver::*;
use tailbound_clock::Dur;
use tailbound_os::alloc::{self, Counting};
use tailbound_route::*;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of 1,000 requests, after 3,000: each routed, answered and ended.
fn allocations(policy: Policy, replicas: u32) -> u64 {
    let mut pool = Pool::new(policy.with_max_entries(4000), replicas);
    let mut out = Vec::with_capacity(64);
    let mut prompt = vec![0u32; 600];
    let mut before = 0;
    for round in 0..4000u32 {
        if round == 3000 {
            before = alloc::allocations();
        }
        // A third of them begin alike, and go on in one of fifty ways: after a while all have been seen.
        prompt[..200].fill(round % 3);
        prompt[200..].fill(round % 50);
        let id = RequestId(u64::from(round) + 1);
        let request = Arrival { id, ..arrival(&prompt) };
        out.clear();
        pool.router.on(pool.now, Event::Arrived(&request), &mut out);
        assert!(dispatched(&out).is_some());
        pool.router.on(pool.now, Event::FirstToken(id), &mut out);
        pool.router.on(pool.now, Event::Ended(id, Usage::default()), &mut out);
        pool.pass(Dur::from_ms(5));
    }
    alloc::allocations() - before
}

#[test]
fn nothing_is_allocated_after_warm_up() {
    assert_eq!(allocations(Policy::default(), 20), 0, "the default");
    let precise = crate::kv::precise("tokenProcessorConfig: {blockSize: 16}");
    assert_eq!(allocations(precise, 20), 0, "precise, with speculative entries");
    for plugins in [
        "active-request-scorer token-load-scorer lora-affinity-scorer",
        "prefix-cache-affinity-filter token-load-scorer no-hit-lru-scorer",
        "queue-scorer weighted-random-picker",
        "power-of-two-picker",
        "consistent-hash-picker",
        "dynamo-cost-picker",
        "prefix-cache-affinity-filter cache-aware-picker",
    ] {
        assert_eq!(allocations(policy(plugins), 20), 0, "{plugins}");
    }
    let more = "featureGates: [flowControl]\n";
    assert_eq!(allocations(policy_with("queue-scorer", more), 20), 0, "with an open queue");
}
