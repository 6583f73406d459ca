//! The prefix cache.

use crate::driver::{Driver, constant, prompt};
use tailbound_engine::*;

fn config() -> Config {
    Config { kv_events: KvEvents::Tokens, ..Config::new(constant(), 100, 1600) }
}

fn cached(driver: &Driver, id: u64) -> u32 {
    driver.finished[&id].cached
}

#[test]
fn full_blocks_of_a_prompt_are_found_again() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 40), 1);
    driver.run();
    driver.submit(2, &prompt(1, 40), 1);
    driver.submit(3, &prompt(1, 200), 1);
    driver.run();
    assert_eq!((cached(&driver, 1), cached(&driver, 2), cached(&driver, 3)), (0, 32, 32));
    let c = driver.engine.counters();
    assert_eq!((c.prefix_queries, c.prefix_hits), (280, 64));
    assert_eq!((c.prompt_computed, c.prompt_cached, c.prompt_tokens()), (216, 64, 280));
}

#[test]
fn the_last_token_is_always_computed() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 32), 1);
    driver.run();
    driver.submit(2, &prompt(1, 32), 1);
    driver.run();
    assert_eq!(cached(&driver, 2), 16, "a whole block is given up for it");
}

#[test]
fn an_answer_is_found_in_the_next_turn() {
    let mut driver = Driver::new(config());
    let first = prompt(1, 20);
    let answer: Vec<u32> = (500..530).collect();
    driver.on(Event::Submit(Submit { answer: &answer, ..Submit::new(SeqId(1), &first, 30) }));
    driver.run();
    let turn = |more: &[u32]| [&first[..], more, &[9; 8]].concat();
    driver.submit(2, &turn(&answer), 1);
    driver.run();
    // 50 tokens, but the last one generated was never put in.
    assert_eq!(cached(&driver, 2), 48);

    let invented: Vec<u32> = (0..30).map(|i| invented_token(SeqId(3), i)).collect();
    driver.submit(3, &first, 30);
    driver.run();
    driver.submit(4, &turn(&invented), 1);
    driver.run();
    assert_eq!(cached(&driver, 4), 48);
}

#[test]
fn salt_and_adapter_separate() {
    let mut driver = Driver::new(config());
    let p = prompt(1, 40);
    let base = |id| Submit::new(SeqId(id), &p, 1);
    driver.on(Event::Submit(base(1)));
    driver.run();
    for s in [
        Submit { salt: Some(1), ..base(2) },
        Submit { lora: Some(1), ..base(3) },
        Submit { lora: Some(2), ..base(4) },
        Submit { salt: Some(1), ..base(5) },
        Submit { lora: Some(1), ..base(6) },
    ] {
        driver.on(Event::Submit(s));
        driver.run();
    }
    assert_eq!([2, 3, 4, 5, 6].map(|id| cached(&driver, id)), [0, 0, 0, 32, 32]);
}

#[test]
fn a_prompt_that_joins_the_same_step_already_shares() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 40), 4);
    driver.submit(2, &prompt(1, 40), 4);
    driver.run();
    assert_eq!(cached(&driver, 2), 32);
    assert_eq!(driver.steps[0].prefill_tokens, 48);
}

#[test]
fn blocks_in_use_are_never_evicted() {
    // 12 blocks: the first takes 4 and keeps generating while others come and go through the rest.
    let mut driver = Driver::new(Config { num_blocks: 12, max_model_len: 128, ..config() });
    driver.submit(1, &prompt(1, 48), 70);
    for id in 2..10 {
        for _ in 0..6 {
            driver.wake(tailbound_clock::Time::MAX);
        }
        driver.submit(id, &prompt(id as u32, 48), 1);
    }
    driver.run();
    driver.submit(20, &prompt(1, 60), 1);
    driver.run();
    assert_eq!(cached(&driver, 20), 48);
    assert!(driver.engine.counters().evictions > 10);
    assert_eq!(driver.engine.counters().preemptions, 0);
}

#[test]
fn the_longest_unused_is_evicted_and_of_one_prompt_its_end() {
    let mut driver = Driver::new(Config { num_blocks: 10, max_model_len: 160, ..config() });
    for id in [1, 2] {
        driver.submit(id, &prompt(id as u32, 65), 1); // five blocks, four of them full
        driver.run();
    }
    driver.submit(3, &prompt(1, 65), 1); // uses 1's again: 2's are older now
    driver.run();
    driver.submit(4, &prompt(4, 65), 1); // the two plain blocks and the last three of 2's
    driver.run();
    driver.submit(5, &prompt(1, 65), 1);
    driver.run();
    driver.submit(6, &prompt(2, 65), 1);
    driver.run();
    assert_eq!((cached(&driver, 3), cached(&driver, 5), cached(&driver, 6)), (64, 64, 16));
}

#[test]
fn a_preempted_sequence_finds_its_own_blocks_again() {
    let recomputed = |prefix_caching| {
        // One block too few for all three at their end: the third gives up its own, which nobody else needs.
        let mut driver = Driver::new(Config { prefix_caching, ..Config::new(constant(), 11, 128) });
        for id in [1, 2, 3] {
            driver.submit(id, &prompt(id as u32, 32), 32);
        }
        driver.run();
        assert!(driver.engine.counters().preemptions > 0);
        driver.steps.iter().map(|s| s.prefill_tokens).sum::<u32>() - 96
    };
    assert_eq!((recomputed(true), recomputed(false)), (0, 49));
}

#[test]
fn a_reset_is_refused_while_blocks_are_in_use() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 40), 2);
    driver.wake(tailbound_clock::Time::MAX);
    assert_eq!(driver.on(Event::ResetPrefixCache), [Effect::PrefixCacheReset { done: false }]);
    driver.run();
    assert_eq!(driver.on(Event::ResetPrefixCache), [Effect::PrefixCacheReset { done: true }]);
    assert_eq!(driver.kv.last(), Some(&tailbound_kv::Event::Cleared));
    driver.submit(2, &prompt(1, 40), 1);
    driver.run();
    assert_eq!(cached(&driver, 2), 0);
}

#[test]
fn events_carry_the_chain_and_the_tokens() {
    let mut engine = Engine::new(config()).unwrap();
    let mut out = Vec::new();
    let p = prompt(1, 30);
    let answer = [7; 40];
    let submit = Submit { answer: &answer, salt: Some(3), lora: Some(2), ..Submit::new(SeqId(1), &p, 40) };
    engine.on(tailbound_clock::Time::ZERO, Event::Submit(submit), &mut out);
    let mut tokens = Vec::new();
    let mut parent = None;
    while let Some(at) = engine.next_wake() {
        engine.on(at, Event::Wake, &mut out);
        for event in engine.kv().events() {
            let tailbound_kv::Event::Stored(s) = event else { panic!("{event:?}") };
            assert_eq!((s.parent, s.salt, s.lora), (parent, Some(3), Some(2)));
            tokens.extend_from_slice(engine.kv().tokens(s).unwrap());
            parent = Some(s.hash);
        }
    }
    assert_eq!(tokens, [&p[..], &[7; 34]].concat(), "four full blocks of the 69 tokens that were computed");
}
