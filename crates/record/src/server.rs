//! What a server says of itself at a moment, in words that all kinds of servers share: who they are and what they call it is left behind
//! where their words are read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};

/// Whose names a page of metrics was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// vLLM, and whatever takes its names.
    Vllm,
    /// SGLang.
    Sglang,
    /// Text Generation Inference.
    Tgi,
    /// llama.cpp's server.
    LlamaCpp,
    /// TensorRT-LLM's own server.
    TrtLlm,
    /// Triton, with or without TensorRT-LLM behind it.
    Triton,
    /// NVIDIA's exporter for GPUs.
    Dcgm,
    /// Prometheus' exporter for machines.
    Node,
}

impl System {
    /// Its name as its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            System::Vllm => "vLLM",
            System::Sglang => "SGLang",
            System::Tgi => "TGI",
            System::LlamaCpp => "llama.cpp",
            System::TrtLlm => "TensorRT-LLM",
            System::Triton => "Triton",
            System::Dcgm => "DCGM",
            System::Node => "node exporter",
        }
    }
}

/// A figure that servers state. Gauges hold at a moment; counters only grow, until a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Requests being worked on.
    Running,
    /// Requests waiting to be.
    Waiting,
    /// Share of the KV cache in use, 0–1; the mean of several engines.
    KvUse,
    /// Share of prompt tokens found in the prefix cache lately, 0–1, as the server reckons it.
    PrefixHitShare,
    /// Tokens drafted and accepted lately, as a share of those drafted, 0–1, as the server reckons it.
    AcceptanceShare,
    /// Share of time in which GPUs were busy, 0–1; the mean of several.
    GpuUse,
    /// Power drawn by all GPUs, W.
    GpuPower,
    /// The hottest GPU, °C.
    GpuTemperature,
    /// Memory of all GPUs in use, bytes.
    GpuMemory,
    /// Share of time in which CPUs were busy, 0–1.
    CpuUse,
    /// Memory of the machine, bytes.
    MemoryTotal,
    /// Memory that could be had, bytes.
    MemoryAvailable,
    /// Prompt tokens taken in.
    PromptTokens,
    /// Tokens generated.
    GeneratedTokens,
    /// Prompt tokens looked up in the prefix cache.
    PrefixQueries,
    /// Prompt tokens found there.
    PrefixHits,
    /// Requests that lost their memory and had to begin again.
    Preemptions,
    /// Requests that ended.
    Finished,
    /// Drafts made.
    Drafts,
    /// Tokens drafted.
    DraftTokens,
    /// Drafted tokens that were right.
    AcceptedTokens,
    /// CPU time of the process that answers, s.
    ProcessCpu,
    /// Time of all CPUs, s.
    CpuTime,
    /// Time of all CPUs with nothing to do, s.
    CpuIdle,
    /// Energy of all GPUs, J.
    GpuEnergy,
}

impl Measure {
    /// All of them, gauges first.
    pub const ALL: [Measure; 25] = [
        Measure::Running,
        Measure::Waiting,
        Measure::KvUse,
        Measure::PrefixHitShare,
        Measure::AcceptanceShare,
        Measure::GpuUse,
        Measure::GpuPower,
        Measure::GpuTemperature,
        Measure::GpuMemory,
        Measure::CpuUse,
        Measure::MemoryTotal,
        Measure::MemoryAvailable,
        Measure::PromptTokens,
        Measure::GeneratedTokens,
        Measure::PrefixQueries,
        Measure::PrefixHits,
        Measure::Preemptions,
        Measure::Finished,
        Measure::Drafts,
        Measure::DraftTokens,
        Measure::AcceptedTokens,
        Measure::ProcessCpu,
        Measure::CpuTime,
        Measure::CpuIdle,
        Measure::GpuEnergy,
    ];

    /// Its key, with the unit.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Running => "running",
            Measure::Waiting => "waiting",
            Measure::KvUse => "kv_use",
            Measure::PrefixHitShare => "prefix_hit_share",
            Measure::AcceptanceShare => "acceptance_share",
            Measure::GpuUse => "gpu_use",
            Measure::GpuPower => "gpu_power_w",
            Measure::GpuTemperature => "gpu_temperature_c",
            Measure::GpuMemory => "gpu_memory_bytes",
            Measure::CpuUse => "cpu_use",
            Measure::MemoryTotal => "memory_total_bytes",
            Measure::MemoryAvailable => "memory_available_bytes",
            Measure::PromptTokens => "prompt_tokens",
            Measure::GeneratedTokens => "generated_tokens",
            Measure::PrefixQueries => "prefix_query_tokens",
            Measure::PrefixHits => "prefix_hit_tokens",
            Measure::Preemptions => "preemptions",
            Measure::Finished => "finished_requests",
            Measure::Drafts => "drafts",
            Measure::DraftTokens => "draft_tokens",
            Measure::AcceptedTokens => "accepted_tokens",
            Measure::ProcessCpu => "process_cpu_s",
            Measure::CpuTime => "cpu_time_s",
            Measure::CpuIdle => "cpu_idle_s",
            Measure::GpuEnergy => "gpu_energy_j",
        }
    }

    /// Whether it only grows.
    pub fn counts(self) -> bool {
        self >= Measure::PromptTokens
    }
}

/// A histogram as servers keep it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Buckets {
    /// Upper bounds in s, ascending, finite.
    pub bounds: Vec<f64>,
    /// How many observations were no greater than each bound.
    pub counts: Vec<f64>,
    /// How many there were at all.
    pub count: f64,
    /// Their sum, s.
    pub sum: f64,
}

impl Buckets {
    /// Their mean, s; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// Between which bounds (above the first, at most the second; s) the percentile `p` (0–100, nearest rank) lies. The second is infinite
    /// for what passed the last bound; `None` without observations.
    pub fn percentile(&self, p: f64) -> Option<(f64, f64)> {
        if self.count < 1.0 {
            return None;
        }
        let rank = (p / 100.0 * self.count).ceil().max(1.0);
        let at = self.counts.iter().position(|&n| n >= rank).unwrap_or(self.bounds.len());
        let low = if at == 0 { 0.0 } else { self.bounds[at - 1] };
        Some((low, self.bounds.get(at).copied().unwrap_or(f64::INFINITY)))
    }

    /// What came since `before`. `None` if any count fell (the server began again), or the bounds differ.
    pub fn since(&self, before: &Buckets) -> Option<Buckets> {
        let fell = self.count < before.count || self.counts.iter().zip(&before.counts).any(|(now, then)| now < then);
        if fell || self.bounds != before.bounds {
            return None;
        }
        Some(Buckets {
            bounds: self.bounds.clone(),
            counts: self.counts.iter().zip(&before.counts).map(|(now, then)| now - then).collect(),
            count: self.count - before.count,
            sum: self.sum - before.sum,
        })
    }

    /// Both together. `None` if their bounds differ.
    pub fn with(&self, other: &Buckets) -> Option<Buckets> {
        (self.bounds == other.bounds).then(|| Buckets {
            bounds: self.bounds.clone(),
            counts: self.counts.iter().zip(&other.counts).map(|(a, b)| a + b).collect(),
            count: self.count + other.count,
            sum: self.sum + other.sum,
        })
    }
}

/// What one page of metrics says. All its series (engines, models, ranks, GPUs) are taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// By whose names; `None` where nothing was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// When the process began, s since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<f64>,
    /// What is stated. What isn't is absent, not 0.
    pub values: BTreeMap<Measure, f64>,
    /// Drafted tokens accepted at each position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_at: Vec<f64>,
    /// The server's own time to first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Buckets>,
}

/// One look at a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scrape {
    /// Whose: the address of its metrics.
    pub from: String,
    /// When, on the clock of the rows: the middle between asking and the answer.
    pub at: Time,
    /// How long the answer took.
    pub took: Dur,
    /// What it said; `None` if there was no answer.
    pub reading: Option<Reading>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(counts: [f64; 3], count: f64) -> Buckets {
        Buckets { bounds: vec![0.1, 0.5, 1.0], counts: counts.to_vec(), count, sum: count * 0.3 }
    }

    #[test]
    fn a_percentile_lies_between_two_bounds() {
        let b = buckets([1.0, 9.0, 9.0], 10.0);
        assert_eq!(b.percentile(10.0), Some((0.0, 0.1)));
        assert_eq!(b.percentile(50.0), Some((0.1, 0.5)));
        assert_eq!(b.percentile(90.0), Some((0.1, 0.5)));
        assert_eq!(b.percentile(99.0), Some((1.0, f64::INFINITY)));
        assert_eq!(buckets([0.0; 3], 0.0).percentile(50.0), None);
        assert_eq!(buckets([0.0; 3], 0.0).mean(), None);
    }

    #[test]
    fn growth_is_never_negative() {
        let (early, late) = (buckets([1.0, 2.0, 2.0], 3.0), buckets([1.0, 5.0, 6.0], 7.0));
        assert_eq!(late.since(&early).map(|b| (b.counts, b.count)), Some((vec![0.0, 3.0, 4.0], 4.0)));
        assert_eq!(early.since(&late), None);
        assert_eq!(late.with(&early).map(|b| b.count), Some(10.0));
        let other = Buckets { bounds: vec![1.0], ..Buckets::default() };
        assert_eq!((late.since(&other), late.with(&other)), (None, None));
    }

    #[test]
    fn every_measure_has_a_name_of_its_own_and_counters_come_last() {
        let names: std::collections::BTreeSet<&str> = Measure::ALL.iter().map(|m| m.name()).collect();
        assert_eq!(names.len(), Measure::ALL.len());
        assert!(Measure::ALL.is_sorted() && Measure::ALL.is_sorted_by_key(|m| m.counts()));
    }
}
