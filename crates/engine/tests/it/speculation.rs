//! Speculative decoding.

use crate::driver::{Driver, constant, prompt};
use tailbound_clock::Dur;
use tailbound_engine::*;

fn run(tokens: u32, acceptance: f64) -> Driver {
    let speculation = Some(Speculation { tokens, acceptance, draft_time: Dur::from_ms(2) });
    let mut driver = Driver::new(Config { speculation, ..Config::new(constant(), 1000, 16_000) });
    driver.submit(1, &prompt(1, 10), 10_001);
    driver.run();
    driver
}

#[test]
fn accepted_tokens_come_in_one_output() {
    let driver = run(3, 1.0);
    assert!(driver.tokens[&1][1..].iter().all(|(_, _, tokens, _)| *tokens == 4));
    assert_eq!(driver.times(1)[..3], [11.0, 23.0, 35.0], "drafting adds its time, but not to the first step");
    let c = driver.engine.counters();
    assert_eq!((c.drafts, c.draft_tokens, c.accepted_tokens, c.generated), (2500, 7500, 7500, 10_001));
}

#[test]
fn none_accepted_is_plain_decoding() {
    let driver = run(3, 0.0);
    assert_eq!(driver.tokens[&1].len(), 10_001);
    assert_eq!(driver.engine.counters().accepted_tokens, 0);
}

/// A draft token counts only if those before it did: at place i with chance αⁱ⁺¹, so that a step gives
/// (1 − αᵏ⁺¹)/(1 − α) tokens on average.
#[test]
fn acceptance_falls_off_along_the_draft() {
    let (k, alpha) = (4, 0.7f64);
    let driver = run(k, alpha);
    let c = driver.engine.counters();
    for i in 0..k as usize {
        let share = c.accepted_per_position[i] as f64 / c.drafts as f64;
        assert!((share - alpha.powi(i as i32 + 1)).abs() < 0.03, "place {i}: {share}");
    }
    let per_step = 10_000.0 / c.drafts as f64;
    let expected = (1.0 - alpha.powi(k as i32 + 1)) / (1.0 - alpha);
    assert!((per_step / expected - 1.0).abs() < 0.03, "{per_step} against {expected}");
}
