//! `stats::compare` on engines whose difference is known. The full figures: `benches/compare.md`.

use crate::trial::{Setting, trial};

/// 20 comparisons of an engine with itself: more than 4 claims at 5 % happen once in 400 such tests, and the seeds are fixed.
#[test]
fn an_engine_rarely_differs_from_itself() {
    let mut claims = [0; 2];
    for seed in 0..20 {
        let trial = trial(Setting::Rounds, 20.0, 1.0, 600, seed);
        claims[0] += usize::from(trial.claims("p99_ttft"));
        claims[1] += usize::from(trial.claims("mean_tpot"));
    }
    assert!(claims.iter().all(|n| *n <= 4), "p99 TTFT, mean TPOT: {claims:?}");
}

#[test]
fn decoding_that_is_five_percent_slower_is_found() {
    let found = (0..10).filter(|seed| trial(Setting::Pairs, 8.0, 1.05, 600, *seed).claims("mean_tpot")).count();
    assert!(found >= 9, "{found} of 10");
}
