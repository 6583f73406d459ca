//! Prefilling here, decoding there.

use crate::driver::{Driver, constant, prompt};
use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

/// 1,000 bytes a token, 1 MB/s, 5 ms: 100 tokens take 105 ms.
fn config() -> Config {
    Config {
        kv_bytes_per_token: 1000.0,
        transfer: Some(Transfer { rate: 1e6, latency: Dur::from_ms(5) }),
        ..Config::new(constant(), 100, 1600)
    }
}

fn decode(id: u64, prompt: &[u32], output: u32) -> Submit<'_> {
    Submit { remote: prompt.len() as u32, ..Submit::new(SeqId(id), prompt, output) }
}

#[test]
fn the_decoding_half_waits_for_the_transfer_and_computes_one_token() {
    let mut driver = Driver::new(config());
    let p = prompt(1, 100);
    driver.on(Event::Submit(decode(1, &p, 3)));
    driver.run();
    // 105 ms on the way, then steps of 10 ms: the prompt isn't computed again.
    assert_eq!(driver.times(1), [115.0, 125.0, 135.0]);
    assert_eq!(driver.steps[0].prefill_tokens, 0);
    let c = driver.engine.counters();
    assert_eq!((c.transferred, c.prefix_hits), (100, 0));
    assert_eq!(driver.finished[&1].cached, 99);
}

#[test]
fn others_decode_while_it_is_on_its_way() {
    let mut driver = Driver::new(config());
    driver.submit(1, &prompt(1, 50), 20);
    driver.wake(Time::MAX);
    driver.on(Event::Submit(decode(2, &prompt(2, 100), 1)));
    driver.run();
    assert_eq!(driver.times(1).len(), 20);
    let gaps: Vec<f64> = driver.times(1).windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|g| *g == 10.0), "{gaps:?}");
    // Set out with the step that began at 15 ms; there at 120 ms, in the step that begins at 125.
    assert_eq!(driver.times(2), [135.0]);
}

#[test]
fn what_is_cached_here_is_not_fetched() {
    let mut driver = Driver::new(config());
    let p = prompt(1, 100);
    driver.on(Event::Submit(decode(1, &p, 1)));
    driver.run();
    driver.on(Event::Submit(decode(2, &p, 1)));
    driver.run();
    let c = driver.engine.counters();
    assert_eq!((c.prefix_hits, c.transferred), (96, 104));
}

#[test]
fn the_prefilling_half_keeps_its_blocks_until_they_are_fetched() {
    let mut driver = Driver::new(config());
    driver.on(Event::Submit(Submit { hold: true, ..Submit::new(SeqId(1), &prompt(1, 100), 1) }));
    driver.run();
    assert_eq!(driver.finished[&1].generated, 1);
    assert_eq!((driver.engine.held(), driver.engine.counters().blocks_used), (1, 7));
    driver.on(Event::Release(SeqId(1)));
    driver.on(Event::Release(SeqId(1)));
    assert_eq!((driver.engine.held(), driver.engine.counters().blocks_used), (0, 0));
    assert_eq!(driver.engine.cached_blocks(), 6, "what was kept is cached like anything else");
}

#[test]
fn kept_blocks_make_others_wait_until_they_are_let_go() {
    let mut driver = Driver::new(Config { num_blocks: 8, max_model_len: 128, ..config() });
    driver.on(Event::Submit(Submit { hold: true, ..Submit::new(SeqId(1), &prompt(1, 100), 1) }));
    driver.run();
    driver.submit(2, &prompt(2, 100), 1);
    driver.run();
    assert_eq!(driver.engine.next_wake(), None);
    assert_eq!(driver.engine.counters().waiting, 1);
    driver.now = Time(1_000_000_000);
    driver.on(Event::Release(SeqId(1)));
    driver.run();
    assert_eq!(driver.times(2), [1020.0]);
}

#[test]
fn a_replica_that_starts_takes_requests_and_serves_them_when_it_is_up() {
    let mut driver = Driver::new(config());
    driver.engine.open_at(Time(50_000_000));
    driver.submit(1, &prompt(1, 10), 1);
    assert!(!driver.wake(Time(49_000_000)));
    driver.run();
    assert_eq!(driver.times(1), [61.0]);
}
