//! One seeded comparison of two engines.

use super::one_engine::{Case, run};
use std::collections::BTreeSet;
use tailbound_clock::Seed;
use tailbound_record::Row;
use tailbound_stats::RunFacts;
use tailbound_stats::compare::{Claim, Design, Measure, Pairing, Run, Side, compare};

/// How both sides were measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// One long run each, of independent arrivals and lengths.
    OneRun,
    /// Four rounds of independent arrivals and lengths, each run with a speed of its own, rounds too.
    Rounds,
    /// The same, but both sides of a round were sent the same.
    Pairs,
}

impl Setting {
    #[allow(dead_code, reason = "for the driver that prints all of them")]
    pub const ALL: [Setting; 3] = [Setting::OneRun, Setting::Rounds, Setting::Pairs];

    #[allow(dead_code, reason = "for the driver that prints all of them")]
    pub fn words(self) -> &'static str {
        match self {
            Setting::OneRun => "one run a side, other arrivals",
            Setting::Rounds => "4 rounds, other arrivals, noise 1 %/3 %",
            Setting::Pairs => "4 rounds, same requests, noise 1 %/3 %",
        }
    }
}

/// What a comparison claimed.
pub struct Trial {
    /// Measures whose own test, were each the primary one, claims a difference.
    claimed: BTreeSet<String>,
    /// Whether any secondary one was claimed.
    #[allow(dead_code, reason = "for the driver")]
    pub any_secondary: bool,
}

impl Trial {
    /// Whether a difference in this measure would have been claimed, had it been the primary one.
    pub fn claims(&self, measure: &str) -> bool {
        self.claimed.contains(measure)
    }
}

/// Speeds differ from run to run by this much (standard deviation) …
const RUN_NOISE: f64 = 0.01;
/// … and from round to round, for both sides alike, by this much.
const ROUND_NOISE: f64 = 0.03;

/// Compares an engine with one that decodes `slower` times as slowly: `case` a side, with its seed and its speeds to be drawn here.
pub fn trial(setting: Setting, case: Case, slower: f64, seed: u64, secondary: Vec<Measure>) -> Trial {
    let rounds = if setting == Setting::OneRun { 1 } else { 4 };
    let mut noise = Seed(seed).stream("noise");
    let mut runs: [Vec<(Vec<Row>, RunFacts)>; 2] = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        let shared = if rounds > 1 { ROUND_NOISE * noise.normal() } else { 0.0 };
        for (side, decode) in [1.0, slower].into_iter().enumerate() {
            let own = if rounds > 1 { RUN_NOISE * noise.normal() } else { 0.0 };
            let drawn = if setting == Setting::Pairs { round } else { 2 * round + side as u64 };
            let case = Case {
                requests: case.requests / rounds,
                decode,
                all: 1.0 + shared + own,
                seed: seed * 1000 + drawn,
                ..case
            };
            runs[side].push(run(&case));
        }
    }
    let sides = runs.each_ref().map(|runs| Side {
        name: "",
        runs: runs.iter().map(|(rows, facts)| Run { rows, facts, valid: true }).collect(),
    });
    let pairing = match setting {
        Setting::OneRun => Pairing::None,
        Setting::Rounds => Pairing::Rounds,
        Setting::Pairs => Pairing::Requests,
    };
    let design =
        Design { seed: Seed(seed), replicates: 1000, secondary, ..Design::new("mean_tpot".parse().unwrap(), pairing) };
    let comparison = compare(&sides, &design);
    let findings = &comparison.contrasts[0].findings;
    Trial {
        claimed: findings.iter().filter(|f| f.p.is_some_and(|p| p <= 0.05)).map(|f| f.measure.to_string()).collect(),
        any_secondary: findings.iter().skip(1).any(|f| matches!(f.claim, Claim::Lower | Claim::Higher)),
    }
}
