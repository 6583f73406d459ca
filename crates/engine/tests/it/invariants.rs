//! Whatever comes, in whatever order: no block is lost, no token is lost or put out twice, and the same again gives the same.

use crate::driver::{Driver, constant};
use proptest::prelude::*;
use tailbound_clock::{Dur, Seed, Time};
use tailbound_engine::*;

#[derive(Clone, Debug)]
enum Op {
    Submit { family: u32, prompt: u32, answer: u32, output: u32, priority: i32, salt: Option<u64>, extra: Extra },
    Abort(u64),
    Release(u64),
    Reset,
    Wait(u64),
}

/// What only some replicas are asked for: an adapter, how much of the prompt comes from elsewhere, and keeping the blocks.
type Extra = (Option<u32>, u32, bool);

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (
            (0u32..3, 1u32..40, 0u32..12, 1u32..30, -1i32..2, prop::option::weighted(0.2, 0u64..2)),
            (prop::option::weighted(0.3, 0u32..4), prop_oneof![4 => Just(0u32), 1 => 1u32..50], prop::bool::weighted(0.1)),
        ).prop_map(
            |((family, prompt, answer, output, priority, salt), extra)| Op::Submit { family, prompt, answer, output, priority, salt, extra }
        ),
        2 => (0u64..30).prop_map(Op::Abort),
        3 => (0u64..30).prop_map(Op::Release),
        1 => Just(Op::Reset),
        8 => (0u64..60).prop_map(Op::Wait),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let sizes = (prop::sample::select(vec![1u32, 2, 4, 16]), 64u32..160, 1u32..12, 1u32..40);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let extras = (prop::option::of(1u32..9), prop::option::of((1u32..5, 0.0f64..1.0)), prop::option::of(1u32..6));
    let tier = || (0u32..40, any::<bool>());
    let elsewhere = (prop::collection::vec(tier(), 0..3), any::<bool>(), prop::option::of(1u32..3));
    (sizes, flags, extras, elsewhere).prop_map(
        |((block_size, tokens, seqs, budget), (caching, reserve, priority, chunked), extras, elsewhere)| {
            let (threshold, speculation, queue) = extras;
            let (tiers, transfer, loras) = elsewhere;
            let tier = |(blocks, prefetch)| Tier {
                medium: Medium::Host,
                blocks,
                rate: 1e3,
                latency: Dur::from_ms(3),
                prefetch,
            };
            Config {
                block_size,
                max_num_seqs: seqs,
                max_num_batched_tokens: if chunked { budget } else { 64 },
                chunked_prefill: chunked,
                policy: if priority { Policy::Priority } else { Policy::Fcfs },
                prefix_caching: caching,
                reserve_full_prompt: reserve,
                long_prefill_token_threshold: threshold.filter(|_| chunked),
                speculation: speculation.map(|(tokens, acceptance)| Speculation {
                    tokens,
                    acceptance,
                    draft_time: Dur::from_ms(1),
                }),
                max_num_queued_reqs: queue,
                kv_events: KvEvents::Tokens,
                kv_bytes_per_token: 1.0,
                tiers: tiers.into_iter().map(tier).collect(),
                transfer: transfer.then_some(Transfer { rate: 1e3, latency: Dur::from_ms(5) }),
                lora: loras.map(|n| Lora {
                    max_loras: n,
                    max_cpu_loras: 2,
                    load: Dur::from_ms(4),
                    fetch: Dur::from_ms(9),
                }),
                seed: Seed(7),
                // Tiny: two or three sequences fill it.
                ..Config::new(constant(), tokens.div_ceil(block_size), 64)
            }
        },
    )
}

fn play(config: &Config, ops: &[Op]) -> (Driver, Vec<(u64, u32)>, Vec<u64>) {
    let mut driver = Driver::new(config.clone());
    let (mut asked, mut aborted) = (Vec::new(), Vec::new());
    for (n, op) in ops.iter().enumerate() {
        match op {
            Op::Submit { family, prompt, answer, output, priority, salt, extra: (lora, remote, hold) } => {
                let id = n as u64;
                let tokens: Vec<u32> = (0..*prompt).map(|i| family * 1000 + i).collect();
                let answer: Vec<u32> = (*prompt..prompt + answer).map(|i| family * 1000 + i).collect();
                let submit = Submit {
                    answer: &answer,
                    priority: *priority,
                    salt: *salt,
                    lora: *lora,
                    remote: *remote,
                    hold: *hold,
                    ..Submit::new(SeqId(id), &tokens, *output)
                };
                let effects = driver.on(Event::Submit(submit));
                if effects.is_empty() {
                    asked.push((id, (*output).min(64 - prompt)));
                }
            }
            Op::Abort(back) => {
                let id = (n as u64).saturating_sub(*back);
                if driver.on(Event::Abort(SeqId(id))) == [Effect::Aborted { id: SeqId(id) }] {
                    aborted.push(id);
                }
            }
            Op::Release(back) => {
                let id = (n as u64).saturating_sub(*back);
                driver.on(Event::Release(SeqId(id)));
            }
            Op::Reset => {
                driver.on(Event::ResetPrefixCache);
            }
            Op::Wait(ms) => {
                let until = driver.now + Dur::from_ms(*ms);
                while driver.wake(until) {}
                driver.now = until;
            }
        }
    }
    // Blocks that are kept may keep others waiting, or computing the same again and again: they are let go in the end.
    loop {
        let until = driver.now + Dur::from_secs(5);
        while driver.wake(until) {}
        let c = driver.engine.counters();
        if c.running + c.waiting + driver.engine.held() == 0 {
            break;
        }
        driver.now = driver.now.max(until);
        (0..ops.len() as u64).for_each(|id| drop(driver.on(Event::Release(SeqId(id)))));
    }
    (driver, asked, aborted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_token_comes_once_and_in_order(config in config(), ops in prop::collection::vec(op(), 1..60)) {
        // `Driver::on` checks the engine's invariants after every event.
        let (driver, asked, aborted) = play(&config, &ops);
        for (id, output) in asked {
            let outputs = driver.tokens.get(&id).map_or(&[][..], Vec::as_slice);
            let mut next = 0;
            for (n, (at, first, tokens, finish)) in outputs.iter().enumerate() {
                prop_assert_eq!(*first, next);
                prop_assert!(*tokens > 0 && (config.speculation.is_some() || *tokens == 1));
                prop_assert!(n == 0 || *at > outputs[n - 1].0);
                next += tokens;
                prop_assert_eq!(finish.is_some(), next == output);
            }
            let record = driver.finished[&id];
            prop_assert_eq!(record.generated, next);
            prop_assert_eq!(record.first_token, outputs.first().map(|o| o.0));
            prop_assert_eq!(record.last_token, outputs.last().map(|o| o.0));
            if aborted.contains(&id) {
                prop_assert!(next < output);
                prop_assert_eq!(record.finish, Finish::Abort);
            } else {
                prop_assert_eq!(next, output, "sequence {} of {:?}", id, outputs);
            }
        }
        let c = driver.engine.counters();
        prop_assert_eq!((c.running, c.waiting, c.blocks_used), (0, 0, 0));
        prop_assert_eq!(c.finished_length + c.finished_abort, driver.finished.len() as u64);
    }

    #[test]
    fn the_same_again_gives_the_same(config in config(), ops in prop::collection::vec(op(), 1..60)) {
        let (a, ..) = play(&config, &ops);
        let (b, ..) = play(&config, &ops);
        prop_assert_eq!(a.tokens, b.tokens);
        prop_assert_eq!(a.finished, b.finished);
        prop_assert_eq!(a.steps, b.steps);
        prop_assert_eq!(a.kv, b.kv);
        prop_assert_eq!(a.engine.counters(), b.engine.counters());
    }

    /// A mirror that follows the events alone knows exactly what the engine would find.
    #[test]
    fn kv_events_tell_the_whole_cache(config in config(), ops in prop::collection::vec(op(), 1..60)) {
        use tailbound_kv::Event as Kv;
        let (driver, ..) = play(&config, &ops);
        let mut held = std::collections::BTreeSet::new();
        for event in &driver.kv {
            match event {
                Kv::Stored(s) => prop_assert!(held.insert(s.hash), "stored twice"),
                Kv::Removed { hash } => prop_assert!(held.remove(hash), "removed, but not there"),
                Kv::Cleared => held.clear(),
            }
        }
        prop_assert_eq!(held.len() as u32, driver.engine.cached_blocks());
    }
}

/// A driver that is late does not shift the plan: output is stamped, and the next step begins, at the planned end.
#[test]
fn a_late_wake_stays_on_plan() {
    let mut driver = Driver::new(Config::new(constant(), 100, 1000));
    driver.submit(1, &[1, 2, 3], 4);
    driver.on(Event::Wake);
    driver.now = Time(1_000_000_000);
    for _ in 0..4 {
        driver.on(Event::Wake);
    }
    assert_eq!(driver.times(1), [10.3, 20.3, 30.3, 40.3]);
}
