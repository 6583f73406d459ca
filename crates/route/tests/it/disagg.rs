//! Prefill here, decode there.

use crate::driver::*;
use tailbound_route::*;

const PD: &str = "
plugins:
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: prefix-cache-scorer}
- {type: queue-scorer}
- {type: prefill-filter}
- {type: decode-filter}
- {type: topology-affinity-scorer}
- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: TOKENS}}
- {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
schedulingProfiles:
- name: prefill
  plugins: [{pluginRef: prefill-filter}, {pluginRef: topology-affinity-scorer, weight: 1}, {pluginRef: queue-scorer, weight: 5}]
- name: decode
  plugins: [{pluginRef: decode-filter}, {pluginRef: prefix-cache-scorer, weight: 2}, {pluginRef: queue-scorer}]
";

/// Replicas 0 and 1 prefill, 2 and 3 decode; 0 and 2 share a host, 1 and 3 do.
fn pool(tokens: u32) -> Pool {
    let mut pool = Pool::new(yaml(&PD.replace("TOKENS", &tokens.to_string())), 0);
    for (id, role, host) in [(0, "prefill", "a"), (1, "prefill", "b"), (2, "decode", "a"), (3, "decode", "b")] {
        pool.join(id, &[(ROLE_LABEL, role), ("kubernetes.io/hostname", host)]);
    }
    pool
}

fn places(effects: &[Effect]) -> (u32, Option<u32>) {
    let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
    (d.to[0].0, d.prefill.map(|p| p.0))
}

#[test]
fn long_prompts_are_split_short_and_cached_ones_are_not() {
    let mut pool = pool(200);
    let long: Vec<u32> = (0..1000).collect();
    let (decode, prefill) = places(&pool.prompt(&long).1);
    assert!(decode >= 2 && prefill.is_some_and(|p| p < 2));
    let (_, effects) = pool.ask(199);
    assert_eq!(places(&effects).1, None, "too short");
    // The decoding replica got the KV, and so has the beginning.
    let follow_up: Vec<u32> = (0..1100).collect();
    let (again, prefill) = places(&pool.prompt(&follow_up).1);
    assert_eq!((again, prefill), (decode, None), "only 100 tokens are new");
}

#[test]
fn the_prefilling_one_is_near_the_decoding_one() {
    for _ in 0..5 {
        let mut pool = pool(16);
        let (decode, prefill) = places(&pool.ask(500).1);
        assert_eq!(prefill, Some(decode - 2), "the same host");
    }
}

#[test]
fn the_prompt_weighs_on_who_computes_it_until_the_first_token() {
    let mut pool = pool(16);
    let (id, effects) = pool.ask(500);
    let (decode, prefill) = places(&effects);
    let prefill = prefill.unwrap();
    assert_eq!((pool.load(prefill).prefill_tokens, pool.load(decode).prefill_tokens), (500, 0));
    assert_eq!((pool.load(prefill).requests, pool.load(decode).requests), (1, 1));
    pool.on(Event::FirstToken(id));
    assert_eq!((pool.load(prefill), pool.load(decode).requests), (Load::default(), 1));
    pool.end(id);
    assert_eq!(pool.load(decode), Load::default());
}

#[test]
fn without_anybody_to_prefill_one_does_all_of_it() {
    let mut pool = pool(16);
    pool.on(Event::Left(EndpointId(0)));
    pool.on(Event::Left(EndpointId(1)));
    assert_eq!(places(&pool.ask(500).1).1, None);
    pool.on(Event::Left(EndpointId(2)));
    pool.on(Event::Left(EndpointId(3)));
    assert_eq!(refused(&pool.ask(500).1), Some(Refusal::NoEndpoints));
}

/// A full prefill pool isn't hidden by an idle decode pool.
#[test]
fn the_fuller_of_both_pools_counts() {
    let mut pool = pool(16);
    for id in 0..4 {
        pool.says(id, if id < 2 { 10 } else { 0 }, 0, 0.0);
    }
    assert_eq!(pool.router.pool_saturation(pool.now), 2.0);
}

#[test]
fn media_are_encoded_elsewhere_if_there_are_any() {
    let body = "
plugins:
- {type: encode-filter}
- {type: decode-filter}
- {type: always-disagg-multimodal-decider}
- {type: disagg-profile-handler, parameters: {deciders: {encode: always-disagg-multimodal-decider}}}
schedulingProfiles:
- {name: encode, plugins: [{pluginRef: encode-filter}]}
- {name: decode, plugins: [{pluginRef: decode-filter}]}
";
    let mut pool = Pool::new(yaml(body), 0);
    pool.join(0, &[(ROLE_LABEL, "encode")]);
    pool.join(1, &[]);
    let encode = |effects: &[Effect]| {
        let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
        d.encode.map(|e| e.0)
    };
    assert_eq!(encode(&pool.ask(50).1), None);
    let id = pool.name();
    assert_eq!(encode(&pool.send(Arrival { id, media: &[77], ..arrival(&[1, 2]) }).1), Some(0));
}

const AGES: &str = "plugins:
- {type: prefill-filter}
- {type: decode-filter}
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 100}}
- {type: HANDLER, parameters: {PARAMETERS}}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}]}
- {name: decode, plugins: [{pluginRef: decode-filter}]}
";

/// Whether prompts of 40, 200 and 600 tokens are split.
fn splits(handler: &str, parameters: &str) -> [bool; 3] {
    let mut pool = Pool::new(yaml(&AGES.replace("HANDLER", handler).replace("PARAMETERS", parameters)), 0);
    pool.join(0, &[(ROLE_LABEL, "prefill")]);
    pool.join(1, &[(ROLE_LABEL, "decode")]);
    [40, 200, 600].map(|tokens| match &pool.ask(tokens).1[..] {
        [Effect::Dispatch(d)] => d.prefill == Some(EndpointId(0)),
        other => panic!("{other:?}"),
    })
}

#[test]
fn handlers_of_every_age_load() {
    assert_eq!(splits("pd-profile-handler", ""), [true; 3], "always is the published default");
    assert_eq!(splits("pd-profile-handler", "deciderPluginName: prefix-based-pd-decider"), [false, true, true]);
    assert_eq!(splits("pd-profile-handler", "threshold: 2000, hashBlockSize: 5"), [false, false, true]);
    assert_eq!(splits("disagg-profile-handler", "deciderPluginName: prefix-based-pd-decider"), [false, true, true]);
    assert_eq!(splits("disagg-profile-handler", "deciders: {prefill: prefix-based-pd-decider}"), [false, true, true]);
}
