//! The approximate index and the published hashes.

use crate::driver::*;
use tailbound_clock::Dur;
use tailbound_route::*;
use tailbound_testdata as data;

fn chain(input: HashInput, text: &[u8], tokens: &[u32], most: usize) -> Vec<u64> {
    let mut out = Vec::new();
    let how = Hashing { input, block_tokens: 16, most_blocks: most };
    hash_chain(&how, "mock", None, Prompt { text, tokens }, &mut out);
    out
}

#[test]
fn both_published_hash_inputs_give_the_golden_vectors() {
    let Some(text) = data::read("gateways/hash_vectors.json") else { return };
    let v: serde_json::Value = serde_json::from_str(&text).unwrap();
    let golden = |name: &str| -> Vec<u64> { serde_json::from_value(v[name]["hashes"].clone()).unwrap() };
    let text = ["x".repeat(64), "y".repeat(64), "zz".into()].concat();
    assert_eq!(chain(HashInput::Chars, text.as_bytes(), &[], 256), golden("epp_approx_chars_2026_05"));
    let tokens: Vec<u32> = (1..=32).collect();
    assert_eq!(chain(HashInput::Tokens, &[], &tokens, 256), golden("epp_approx_tokens_2026_08"));
}

#[test]
fn chains_are_anchored_salted_cut_and_empty_when_short() {
    let text = vec![b'a'; 640];
    let whole = chain(HashInput::Chars, &text, &[], 256);
    assert_eq!(whole.len(), 10);
    assert_eq!(chain(HashInput::Chars, &text, &[], 4), whole[..4]);
    assert!(chain(HashInput::Chars, &text[..63], &[], 256).is_empty());
    let mut salted = Vec::new();
    let how = Hashing { input: HashInput::Chars, block_tokens: 16, most_blocks: 256 };
    hash_chain(&how, "mock", Some("s"), Prompt { text: &text, tokens: &[] }, &mut salted);
    assert!(salted.iter().all(|h| !whole.contains(h)));
    // The same block later in the prompt is another: aibrix#917 matched it wherever it stood.
    assert!((1..10).all(|i| whole[i] != whole[0]));
}

const APPROX: &str = "
plugins:
- {type: approx-prefix-cache-producer, parameters: {CAPACITY}}
- {type: prefix-cache-scorer}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: prefix-cache-scorer}]}
";

fn approx(capacity: &str) -> Policy {
    yaml(&APPROX.replace("CAPACITY", capacity))
}

#[test]
fn a_conversation_stays_where_its_beginning_is() {
    let mut pool = Pool::new(approx("autoTune: false"), 8);
    let mut history: Vec<u32> = (0..200).collect();
    let home = target(&pool.prompt(&history).1);
    for turn in 0..10 {
        history.extend((0..100).map(|i| 1000 * (turn + 1) + i));
        let (id, effects) = pool.prompt(&history);
        assert_eq!(target(&effects), home);
        assert!(pool.router.explain(id).unwrap().cached >= u64::from(turn) * 100 + 180);
    }
}

#[test]
fn a_replica_forgets_the_end_of_a_chain_first_and_never_holds_more_than_its_capacity() {
    let mut pool = Pool::new(approx("autoTune: false, lruCapacityPerServer: 20"), 1);
    let a: Vec<u32> = (0..160).collect();
    let b: Vec<u32> = (1000..1240).collect();
    pool.prompt(&a);
    pool.prompt(&b);
    assert_eq!(pool.router.indexed().0, 20, "10 blocks and 15, of which 5 had to go");
    let (id, _) = pool.prompt(&a);
    assert_eq!(pool.router.explain(id).unwrap().cached, 80, "the first five of ten are left");
}

#[test]
fn capacity_and_block_size_follow_the_engine() {
    let mut pool = Pool::new(approx("autoTune: true"), 1);
    let now = pool.now;
    pool.hear(0, Signals { blocks: Some(8), block_size: Some(32), ..Signals::idle(now) });
    let long: Vec<u32> = (0..32 * 12).collect();
    pool.prompt(&long);
    assert_eq!(pool.router.indexed(), (8, 8));
}

#[test]
fn the_bound_over_all_replicas_holds_while_they_come_and_go() {
    let policy = approx("autoTune: false").with_max_entries(300);
    let mut pool = Pool::new(policy, 1);
    for round in 0..60 {
        if round % 5 == 4 {
            pool.join(round / 5 + 1, &[]);
        }
        pool.ask(320);
        assert!(pool.router.indexed().0 <= 300, "round {round}: {:?}", pool.router.indexed());
    }
    (0..12).for_each(|id| drop(pool.on(Event::Left(EndpointId(id)))));
    assert!(pool.router.indexed().0 <= 300);
}

#[test]
fn a_replica_that_left_has_nothing_and_its_successor_neither() {
    let mut pool = Pool::new(approx("autoTune: false"), 1);
    pool.ask(320);
    pool.on(Event::Left(EndpointId(0)));
    assert_eq!(pool.router.indexed(), (0, 0));
    pool.join(1, &[]);
    let (id, _) = pool.ask(320);
    assert_eq!(pool.router.explain(id).unwrap().cached, 0);
}

/// Adapters and salts seed the chain: what one tenant has cached is no hit for another.
#[test]
fn models_adapters_and_salts_do_not_share() {
    let mut pool = Pool::new(approx("autoTune: false"), 1);
    let tokens: Vec<u32> = (0..160).collect();
    let cached = |pool: &mut Pool, model: &str, salt: Option<&str>| {
        let id = pool.name();
        let (id, _) = pool.send(Arrival { id, model, salt, ..arrival(&tokens) });
        pool.router.explain(id).unwrap().cached
    };
    assert_eq!(cached(&mut pool, "base", None), 0);
    assert_eq!(cached(&mut pool, "base", None), 160);
    assert_eq!(cached(&mut pool, "adapter", None), 0);
    assert_eq!(cached(&mut pool, "base", Some("tenant")), 0);
}

#[test]
fn the_affinity_filter_lets_go_when_the_holder_is_too_busy() {
    let body = "
plugins:
- {type: prefix-cache-affinity-filter}
- {type: token-load-scorer}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: prefix-cache-affinity-filter}, {pluginRef: token-load-scorer}]}
";
    let mut pool = Pool::new(yaml(body), 2);
    let prompt: Vec<u32> = (0..1600).collect();
    let home = target(&pool.prompt(&prompt).1);
    assert_eq!(target(&pool.prompt(&prompt).1), home);
    // 18 s at 15,928 tokens per second are 286,704 tokens.
    let id = pool.name();
    let long: Vec<u32> = (10_000..310_000).collect();
    let (long_id, _) = pool.send(Arrival { id, subset: Some(&[EndpointId(home)]), ..arrival(&long) });
    assert_eq!(target(&pool.prompt(&prompt).1), 1 - home);
    pool.on(Event::FirstToken(long_id));
    pool.pass(Dur::from_ms(1));
    let other: Vec<u32> = (500_000..501_600).collect();
    pool.prompt(&other);
}

#[test]
fn a_burst_of_equal_prompts_goes_together() {
    let Some(text) = data::read("gateways/epp-configs-2026-08/epp-burst-prefix-cache-config.yaml") else { return };
    let mut pool = Pool::new(Policy::from_yaml(&text).unwrap(), 6);
    let prompt: Vec<u32> = (0..640).collect();
    let home = target(&pool.prompt(&prompt).1);
    for _ in 0..5 {
        assert_eq!(target(&pool.prompt(&prompt).1), home);
    }
    pool.pass(Dur::from_ms(200));
    let spread: Vec<u32> = (0..12).map(|i| target(&pool.prompt(&vec![i; 640]).1)).collect();
    assert!(spread.iter().any(|t| *t != home), "others are spread: {spread:?}");
}
