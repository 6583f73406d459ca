//! One pick: filters thin the candidates, scorers rate them, a picker takes one (or a few).

mod affinity;
mod filter;
mod picker;
mod ring;
mod score;

pub(crate) use affinity::Level;
pub(crate) use filter::{AttributeRule, Filter, PrefixAffinity, SloTier};
pub(crate) use picker::{CacheAware, Dynamo, Picker};
pub(crate) use ring::Ring;
pub(crate) use score::{LatencyScore, Range, Scorer};

pub use filter::Compare;

use crate::predict::Forecast;
use crate::prefix::Matches;
use crate::request::Request;
use crate::table::Table;
use tailbound_clock::Rng;

/// What a request is put through.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) filters: Vec<Filter>,
    pub(crate) scorers: Vec<Weighted>,
    pub(crate) picker: Picker,
}

/// A scorer of a profile.
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    pub(crate) name: String,
    pub(crate) weight: f64,
    pub(crate) scorer: Scorer,
}

/// What is known when a request is to be placed.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) table: &'a Table,
    pub(crate) request: &'a Request,
    /// Per prefix index, what of the prompt each replica has.
    pub(crate) matches: &'a [Matches],
    pub(crate) media: &'a Matches,
    pub(crate) forecast: &'a Forecast,
    /// The replica an earlier profile chose.
    pub(crate) peer: Option<u32>,
}

impl Case<'_> {
    /// Prompt tokens that a replica would have to compute, as far as the best-informed index knows.
    pub(crate) fn uncached(&self, slot: u32) -> u64 {
        let cached = self.matches.first().map_or(0, |m| m.tokens(slot));
        u64::from(self.request.prompt_tokens).saturating_sub(cached)
    }
}

/// What picks remember, beyond the table.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) rng: Rng,
    /// Where round robin stands.
    pub(crate) turn: u64,
    pub(crate) ring: Ring,
    /// Slots in the order of their last cold request, the oldest first.
    pub(crate) cold: Vec<u32>,
    pub(crate) cold_limit: usize,
}

impl Memory {
    /// A cold request went to `slot`.
    pub(crate) fn went_cold(&mut self, slot: u32) {
        self.cold.retain(|s| *s != slot);
        if self.cold.len() >= self.cold_limit.max(1) {
            self.cold.remove(0);
        }
        self.cold.push(slot);
    }
}

/// Room for one pick's work, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) candidates: Vec<u32>,
    pub(crate) kept: Vec<u32>,
    pub(crate) total: Vec<f64>,
    /// One column per scorer, beside `candidates`.
    pub(crate) parts: Vec<Vec<f64>>,
    /// Places in `candidates`, best first.
    pub(crate) picked: Vec<u32>,
    pub(crate) values: Vec<f64>,
}

impl Profile {
    /// Places in `scratch.candidates` of the chosen, best first, in `scratch.picked`; none if no candidate is left.
    /// The candidates to start with are in `scratch.candidates`.
    pub(crate) fn run(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        scratch.picked.clear();
        for filter in &self.filters {
            if scratch.candidates.is_empty() {
                return;
            }
            filter.apply(case, memory, scratch);
        }
        if scratch.candidates.is_empty() {
            return;
        }
        scratch.total.clear();
        scratch.total.resize(scratch.candidates.len(), 0.0);
        if scratch.parts.len() < self.scorers.len() {
            scratch.parts.resize_with(self.scorers.len(), Vec::new);
        }
        let all = case.table.is_all(&scratch.candidates);
        for (nth, weighted) in self.scorers.iter().enumerate() {
            weighted.scorer.add(weighted.weight, case, memory, scratch, all, nth);
        }
        self.picker.pick(case, memory, scratch);
    }
}
