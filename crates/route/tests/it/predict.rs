//! Predicted latency: what is learnt, and what is done with it.

use crate::driver::*;
use tailbound_clock::{Dur, Rng, Seed};
use tailbound_route::*;

const SLO: &str = "
plugins:
- {type: predicted-latency-producer}
- {type: slo-headroom-tier-filter, parameters: {explorationProbability: 0}}
- {type: latency-scorer, parameters: {STRATEGY}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: slo-headroom-tier-filter}, {pluginRef: latency-scorer}]}
";

/// Replicas that take 20 ms and a tenth of a millisecond per prompt token for a first token, and 10 ms and half a one per
/// request in flight for each token after; replica 1 takes twice as long.
fn serve(pool: &mut Pool, id: RequestId, tokens: u32, to: u32, rng: &mut Rng) {
    let slow = if to == 1 { 2.0 } else { 1.0 };
    let load = f64::from(pool.load(to).requests - 1);
    let noise = 1.0 + 0.03 * rng.normal();
    pool.pass(Dur::from_ms_f64(slow * noise * (20.0 + 0.1 * f64::from(tokens))));
    pool.on(Event::FirstToken(id));
    pool.pass(Dur::from_ms_f64(99.0 * slow * noise * (10.0 + 0.5 * load)));
    let usage = Usage { ok: true, generated: Some(100), ..Usage::default() };
    pool.on(Event::Ended(id, usage));
}

fn taught(strategy: &str) -> Pool {
    let mut pool = Pool::new(yaml(&SLO.replace("STRATEGY", strategy)), 3);
    let mut rng = Seed(3).stream("work");
    for _ in 0..600 {
        let tokens = rng.between(100, 4000) as u32;
        let id = pool.name();
        let only = [EndpointId(rng.below(3) as u32)];
        let prompt: Vec<u32> = (0..tokens).collect();
        let (id, effects) = pool.send(Arrival { id, subset: Some(&only), ..arrival(&prompt) });
        serve(&mut pool, id, tokens, target(&effects), &mut rng);
    }
    pool
}

fn ask(pool: &mut Pool, tokens: u32, ttft_ms: u64, otherwise: Otherwise) -> (RequestId, Vec<Effect>) {
    let id = pool.name();
    let prompt: Vec<u32> = (0..tokens).collect();
    let slo = Slo { ttft: Some(Dur::from_ms(ttft_ms)), tpot: None };
    pool.send(Arrival { id, slo, otherwise, ..arrival(&prompt) })
}

#[test]
fn a_law_with_noise_is_learnt_to_a_few_per_cent_slow_replicas_too() {
    let accuracy = taught("").router.accuracy().unwrap();
    assert_eq!((accuracy.ttft_samples, accuracy.tpot_samples), (600, 600));
    assert!(accuracy.ttft_error.unwrap() < 0.25, "{accuracy:?}");
    assert!(accuracy.tpot_error.unwrap() < 0.25, "{accuracy:?}");
}

#[test]
fn who_can_keep_the_objective_is_chosen_tightly_or_with_most_room() {
    // 1,000 tokens take 120 ms, on replica 1 240: at 300 ms packing prefers the slow one, at 180 only the others will do.
    let mut pool = taught("strategy: least");
    let (id, effects) = ask(&mut pool, 1000, 300, Otherwise::Refuse);
    assert_eq!(target(&effects), 1);
    pool.on(Event::Cancelled(id));
    let (_, effects) = ask(&mut pool, 1000, 180, Otherwise::Refuse);
    assert_ne!(target(&effects), 1);
    let mut pool = taught("strategy: most");
    assert_ne!(target(&ask(&mut pool, 1000, 300, Otherwise::Refuse).1), 1);
}

#[test]
fn what_cannot_make_it_is_refused_served_anyway_or_waits_as_it_says() {
    let mut pool = taught("");
    let (_, effects) = ask(&mut pool, 4000, 50, Otherwise::Refuse);
    assert_eq!(refused(&effects), Some(Refusal::SloOutOfReach));
    let (id, effects) = ask(&mut pool, 4000, 50, Otherwise::Downgrade);
    assert!(dispatched(&effects).is_some());
    pool.on(Event::Cancelled(id));
    let (id, effects) = ask(&mut pool, 4000, 50, Otherwise::Wait);
    assert_eq!(effects, []);
    assert_eq!(pool.router.next_wake(), Some(pool.now + Dur::from_ms(50)));
    pool.pass(Dur::from_ms(50));
    assert_eq!(pool.on(Event::Wake), [Effect::Refuse(id, Refusal::SloOutOfReach)], "nobody can make it any more");
    assert_eq!(pool.router.requests(), 0);
}

/// The same events give the same predictions, and so the same choices.
#[test]
fn learning_is_deterministic() {
    let choices = || {
        let mut pool = taught("");
        let pick = |i: u64| dispatched(&ask(&mut pool, 500 + 37 * i as u32, 120 + i, Otherwise::Downgrade).1);
        (0..40).map(pick).collect::<Vec<_>>()
    };
    assert_eq!(choices(), choices());
}
