//! Which of two or more systems is faster, and whether that can be told at all.
//!
//! Each side has runs; the k-th runs of all sides are a *round*, measured next to each other (A B, then B A, …). Where a round's sides were
//! sent the same requests at the same times, they are paired request by request. One figure is primary: it is tested by itself. All
//! others are tested together, so that looking at many of them claims nothing more often.
//!
//! Requests are not independent: they share queues and batches. So it is stretches of a run that are resampled (of a length its own
//! correlations ask for), for all its requests or windows of time alike, and never single requests. What differs from run to run is not
//! in one run at all: it comes from the rounds. The interval stated is the wider of the two.

mod agreement;
mod claim;
mod contrast;
mod effect;
mod measure;
mod segments;
mod series;
mod words;

pub use agreement::{Agreement, agreement};
pub use claim::{Claim, Finding, Regression};
pub use contrast::{Contrast, requests_for};
pub use effect::{Estimate, holm};
pub use measure::{Latency, Measure, ParseMeasureError, Scale, Stat};
pub use series::block_length;
pub use words::{load, number, value};

use crate::RunFacts;
use tailbound_clock::Seed;
use tailbound_record::Row;

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Its rows, in any order.
    pub rows: &'a [Row],
    /// How it was asked for.
    pub facts: &'a RunFacts,
    /// Whether it counts.
    pub valid: bool,
}

/// One system, with its runs in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// What it is called.
    pub name: &'a str,
    /// At least one.
    pub runs: Vec<Run<'a>>,
}

/// What the runs of a round have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairing {
    /// Nothing: sides may differ in their number of runs.
    None,
    /// They were made next to each other in time.
    Rounds,
    /// And sent the same requests (by number) at the same times.
    Requests,
}

impl Pairing {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Pairing::None => "none",
            Pairing::Rounds => "rounds",
            Pairing::Requests => "requests",
        }
    }
}

/// How sides are compared.
#[derive(Clone, Debug)]
pub struct Design {
    /// The figure that decides.
    pub primary: Measure,
    /// The other figures.
    pub secondary: Vec<Measure>,
    /// What the runs of a round have in common.
    pub pairing: Pairing,
    /// The chance of a false claim about the primary figure, and of any about the others together; 0–1.
    pub alpha: f64,
    /// By which share latencies and rates may differ and still count as the same.
    pub margin: f64,
    /// By how much shares (attainment, completed) may differ and still count as the same.
    pub share_margin: f64,
    /// Bootstrap replicates; at least 100.
    pub replicates: usize,
    /// Where resampling draws from.
    pub seed: Seed,
}

impl Design {
    /// Everything against the first side at 5 %, headline figures, the same within 5 % (shares: one point).
    pub fn new(primary: Measure, pairing: Pairing) -> Design {
        Design {
            primary,
            secondary: Measure::headlines().into_iter().filter(|m| *m != primary).collect(),
            pairing,
            alpha: 0.05,
            margin: 0.05,
            share_margin: 0.01,
            replicates: 4000,
            seed: Seed(0),
        }
    }
}

/// Rounds from which their spread says something about what differs from run to run.
pub const ROUNDS_THAT_TELL: usize = 3;

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Every side but the first against the first.
    pub contrasts: Vec<Contrast>,
    /// Runs that are INVALID: side and round. While there is one, nothing is claimed.
    pub invalid: Vec<(usize, usize)>,
}

/// Compares every side with the first. Nothing is claimed while any run is INVALID.
///
/// # Panics
/// With fewer than two sides, or a side without runs.
pub fn compare(sides: &[Side<'_>], design: &Design) -> Comparison {
    assert!(sides.len() >= 2 && sides.iter().all(|s| !s.runs.is_empty()), "two sides with runs");
    let numbered = |side: usize| sides[side].runs.iter().enumerate().filter(|r| !r.1.valid).map(move |r| (side, r.0));
    let invalid: Vec<(usize, usize)> = (0..sides.len()).flat_map(numbered).collect();
    let mut contrasts: Vec<Contrast> = (1..sides.len()).map(|other| contrast::contrast(sides, other, design)).collect();
    claim::settle(&mut contrasts, design, invalid.is_empty());
    Comparison { contrasts, invalid }
}
