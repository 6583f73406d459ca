//! `stats::compare` on engines whose difference is known. The full figures: `benches/compare.md`.

use crate::one_engine::Case;
use crate::trial::{Setting, Trial, trial};

/// 400 requests a side with short answers, so that it is over in a moment.
fn short(setting: Setting, slower: f64, seed: u64) -> Trial {
    let case = Case { requests: 400, rate: 20.0, answer: 20.0, prompt: 200.0, ..Case::default() };
    trial(setting, case, slower, seed, vec!["p99_ttft".parse().unwrap()])
}

/// 12 comparisons of an engine with itself: more than 3 claims at 5 % happen once in 400 such tests, and the seeds are fixed.
#[test]
fn an_engine_rarely_differs_from_itself() {
    let trials: Vec<Trial> = (0..12).map(|seed| short(Setting::Rounds, 1.0, seed)).collect();
    for measure in ["p99_ttft", "mean_tpot"] {
        let claims = trials.iter().filter(|t| t.claims(measure)).count();
        assert!(claims <= 3, "{measure}: {claims} of 12");
    }
}

#[test]
fn decoding_that_is_five_percent_slower_is_found() {
    let found = (0..6).filter(|seed| short(Setting::Pairs, 1.05, *seed).claims("mean_tpot")).count();
    assert!(found >= 5, "{found} of 6");
}
