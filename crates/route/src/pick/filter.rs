use super::affinity::Level;
use super::{Case, Memory, Scratch};
use crate::endpoint::Role;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A filter. None of them invents a candidate: they only take away.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// `decode-filter`, `prefill-filter`, `encode-filter`.
    Role(Role),
    /// `by-label`.
    Label { label: String, values: Vec<String>, unlabelled: bool },
    /// `by-label-selector`.
    Selector(BTreeMap<String, String>),
    /// `context-length-aware` with filtering.
    ContextLength { label: usize },
    /// `endpoint-attribute-filter`.
    Attribute(AttributeRule),
    /// `prefix-cache-affinity-filter`.
    PrefixAffinity(PrefixAffinity),
    /// `slo-headroom-tier-filter`.
    SloTier(SloTier),
    /// `topology-affinity-filter`.
    Topology(Level),
    /// `session-affinity-filter`.
    Session,
    /// `utilization-detector` as a filter.
    Unsaturated { queue: f64, kv: f64 },
    /// `concurrency-detector` as a filter.
    BelowConcurrency { limit: f64, tokens: bool },
}

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Compare {
    /// <
    LessThan,
    /// ≤
    LessThanOrEqual,
    /// >
    GreaterThan,
    /// ≥
    GreaterThanOrEqual,
    /// =
    Equal,
    /// ≠
    NotEqual,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeRule {
    pub(crate) attribute: usize,
    pub(crate) compare: Compare,
    pub(crate) value: f64,
    pub(crate) keep_missing: bool,
    pub(crate) fall_back: bool,
}

/// Keep to the replicas that have the prompt, until they are too slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefixAffinity {
    pub(crate) producer: usize,
    pub(crate) threshold: f64,
    pub(crate) exploration: f64,
    /// Milliseconds; 0: no limit.
    pub(crate) max_penalty_ms: f64,
    /// Tokens per second; `None`: the predictor says how long.
    pub(crate) throughput: Option<f64>,
}

/// Keep to the replicas that are predicted to keep the SLO, but for an exploring few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SloTier {
    pub(crate) exploration: f64,
}

impl Filter {
    pub(super) fn apply(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        let t = case.table;
        match self {
            Filter::Role(role) => scratch.candidates.retain(|s| t.roles[*s as usize].has(*role)),
            Filter::Label { label, values, unlabelled } => {
                scratch.candidates.retain(|s| match t.info[*s as usize].label(label) {
                    Some(value) => values.iter().any(|v| v == value),
                    None => *unlabelled,
                });
            }
            Filter::Selector(labels) => scratch.candidates.retain(|s| {
                let info = &t.info[*s as usize];
                labels.iter().all(|(name, value)| info.label(name) == Some(value))
            }),
            Filter::ContextLength { label } => {
                let tokens = u64::from(case.request.prompt_tokens);
                scratch
                    .candidates
                    .retain(|s| t.ranges[*s as usize][*label].is_none_or(|(min, max)| (min..=max).contains(&tokens)));
            }
            Filter::Attribute(rule) => {
                rule_filter(scratch, rule.fall_back, |s| rule.keeps(t.attributes[s as usize][rule.attribute]));
            }
            Filter::PrefixAffinity(affinity) => affinity.apply(case, memory, scratch),
            Filter::SloTier(tier) => tier.apply(case, memory, scratch),
            Filter::Topology(level) => {
                let Some(peer) = case.peer else { return };
                let peer = &t.info[peer as usize];
                scratch.candidates.retain(|s| Level::between(&t.info[*s as usize], peer) >= *level);
            }
            Filter::Session => {
                let sticky = case.request.sticky.and_then(|id| t.slot(id));
                rule_filter(scratch, true, |s| Some(s) == sticky);
            }
            Filter::Unsaturated { queue, kv } => {
                rule_filter(scratch, true, |s| t.queue[s as usize] < *queue && t.kv_now[s as usize] < *kv);
            }
            Filter::BelowConcurrency { limit, tokens } => rule_filter(scratch, true, |s| {
                let load = &t.load[s as usize];
                let used = if *tokens { load.kv_tokens as f64 } else { f64::from(load.requests) };
                used < *limit
            }),
        }
    }
}

/// Keeps what `keep` says; `fall_back`: all, if that is none.
fn rule_filter(scratch: &mut Scratch, fall_back: bool, keep: impl Fn(u32) -> bool) {
    scratch.kept.clear();
    scratch.kept.extend(scratch.candidates.iter().copied().filter(|s| keep(*s)));
    if !(scratch.kept.is_empty() && fall_back) {
        std::mem::swap(&mut scratch.kept, &mut scratch.candidates);
    }
}

impl AttributeRule {
    fn keeps(&self, value: f64) -> bool {
        if value.is_nan() {
            return self.keep_missing;
        }
        match self.compare {
            Compare::LessThan => value < self.value,
            Compare::LessThanOrEqual => value <= self.value,
            Compare::GreaterThan => value > self.value,
            Compare::GreaterThanOrEqual => value >= self.value,
            Compare::Equal => value == self.value,
            Compare::NotEqual => value != self.value,
        }
    }
}

impl PrefixAffinity {
    fn apply(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        if self.exploration > 0.0 && memory.rng.unit() < self.exploration {
            return;
        }
        let matches = &case.matches[self.producer];
        let sticky = |s: &u32| matches.ratio(*s) >= self.threshold;
        let best = |wanted: bool| {
            let of_kind = scratch.candidates.iter().filter(|s| sticky(s) == wanted);
            of_kind.filter_map(|s| self.ttft_ms(case, *s)).reduce(f64::min)
        };
        if self.max_penalty_ms > 0.0
            && let (Some(with), Some(without)) = (best(true), best(false))
            && with - without > self.max_penalty_ms
        {
            return;
        }
        rule_filter(scratch, true, |s| sticky(&s));
    }

    fn ttft_ms(&self, case: &Case, slot: u32) -> Option<f64> {
        match self.throughput {
            Some(rate) => Some(case.table.load[slot as usize].prefill_tokens as f64 / rate * 1e3),
            None => case.forecast.of(slot).map(|f| f.ttft_ms),
        }
    }
}

impl SloTier {
    fn apply(&self, case: &Case, memory: &mut Memory, scratch: &mut Scratch) {
        let positive =
            |s: u32| case.forecast.of(s).is_none_or(|f| f.headroom_ttft_ms >= 0.0 && f.headroom_tpot_ms >= 0.0);
        let explore = self.exploration > 0.0 && memory.rng.unit() < self.exploration;
        rule_filter(scratch, true, |s| positive(s) != explore);
    }
}
