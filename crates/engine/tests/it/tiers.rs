//! Blocks below the GPU's cache.

use crate::driver::{Driver, constant, prompt};
use tailbound_clock::{Dur, Seed, Time};
use tailbound_engine::*;

/// Blocks of 16 KB; 1.6 MB/s: 10 ms a block, and 5 ms besides.
fn tier(medium: Medium, blocks: u32) -> Tier {
    Tier { medium, blocks, rate: 1.6e6, latency: Dur::from_ms(5), prefetch: false }
}

fn config(tiers: Vec<Tier>) -> Config {
    Config { kv_bytes_per_token: 1000.0, tiers, ..Config::new(constant(), 7, 112) }
}

/// Milliseconds to a tenth.
fn rounded(time: Dur) -> f64 {
    (time.ns() / 100_000) as f64 / 10.0
}

fn ask(driver: &mut Driver, id: u64, salt: u32) -> (u32, f64) {
    driver.submit(id, &prompt(salt, 100), 1);
    let start = driver.now;
    driver.run();
    let f = driver.finished[&id];
    (f.cached, rounded(f.first_token.expect("it ended").since(start)))
}

#[test]
fn what_the_gpu_forgot_is_read_from_the_host() {
    let mut driver = Driver::new(config(vec![tier(Medium::Host, 100)]));
    assert_eq!(ask(&mut driver, 1, 1), (0, 20.0));
    assert_eq!(ask(&mut driver, 2, 2), (0, 20.0), "it takes all of the GPU's blocks");
    // Six blocks in 65 ms, then a step with the four tokens that are left.
    assert_eq!(ask(&mut driver, 3, 1), (96, 75.4));
    let c = driver.engine.counters();
    assert_eq!((c.prefix_hits, c.tier_queries, c.tier_hits), (0, 100, [96, 0]));
    assert_eq!(driver.engine.tier_blocks(0), 12);
    // Now the GPU has it again.
    assert_eq!(ask(&mut driver, 4, 1), (96, 10.4));
}

#[test]
fn the_disk_has_what_the_host_forgot_and_reading_ahead_hides_its_time() {
    let slow = Tier { rate: 0.8e6, ..tier(Medium::Disk, 100) };
    for prefetch in [false, true] {
        let disk = Tier { prefetch, ..slow };
        let mut driver = Driver::new(config(vec![tier(Medium::Host, 6), disk]));
        ask(&mut driver, 1, 1);
        ask(&mut driver, 2, 2);
        // Six blocks at 20 ms from disk: no time to read them ahead.
        assert_eq!(ask(&mut driver, 3, 1), (96, 135.4), "prefetch {prefetch}");
    }
    // While somebody else has the GPU's blocks, they go on to the host, and are read from there.
    let mut driver = Driver::new(config(vec![tier(Medium::Host, 6), Tier { prefetch: true, ..slow }]));
    ask(&mut driver, 1, 1);
    ask(&mut driver, 2, 2);
    driver.submit(3, &prompt(3, 100), 12);
    driver.wake(Time::MAX);
    driver.submit(4, &prompt(1, 100), 1);
    driver.run();
    let (f3, f4) = (driver.finished[&3], driver.finished[&4]);
    assert_eq!((f4.cached, rounded(f4.first_token.unwrap().since(f3.last_token.unwrap()))), (96, 75.4));
}

#[test]
fn a_reset_forgets_the_tiers_too() {
    let mut driver = Driver::new(config(vec![tier(Medium::Host, 100)]));
    ask(&mut driver, 1, 1);
    driver.on(Event::ResetPrefixCache);
    assert_eq!(ask(&mut driver, 2, 1).0, 0);
}

/// Blocks found by a cache of `size` blocks that forgets the longest unused, over prompts asked one after the other.
fn lru_hits(order: &[u32], size: usize) -> u64 {
    let mut held: Vec<(u32, u32)> = Vec::new();
    let mut hits = 0;
    for family in order {
        let chain: Vec<(u32, u32)> = (0..6).map(|block| (*family, block)).collect();
        hits += chain.iter().take_while(|block| held.contains(block)).count() as u64;
        for block in chain.iter().rev() {
            held.retain(|other| other != block);
            held.push(*block);
        }
        let over = held.len().saturating_sub(size);
        held.drain(..over);
    }
    hits
}

/// Whatever the host's size: with it the replica finds exactly what a cache of that size would.
#[test]
fn offloading_raises_the_hit_ratio_to_that_of_a_cache_of_the_hosts_size() {
    let mut rng = Seed(3).stream("tiers");
    let order: Vec<u32> = (0..300).map(|_| (rng.unit() * rng.unit() * 20.0) as u32).collect();
    let mut last = 0;
    for blocks in [12, 30, 48, 72, 120] {
        let mut driver = Driver::new(config(vec![tier(Medium::Host, blocks)]));
        driver.check = false;
        for (id, family) in order.iter().enumerate() {
            ask(&mut driver, id as u64, *family);
        }
        let c = driver.engine.counters();
        let found = (c.prefix_hits + c.tier_hits[0]) / 16;
        assert_eq!(found, lru_hits(&order, blocks as usize), "{blocks} blocks");
        assert!(found > last);
        last = found;
    }
}
