//! What servers call the figures that they share.

use super::{NotMetrics, Sample, samples};
use std::collections::BTreeMap;
use tailbound_record::server::{Buckets, Measure, Reading, System};

/// How a figure comes about. Where several rules give the same measure, the first that finds anything on the page wins: the others are
/// older names of the same thing.
struct Rule {
    /// The figures' names; all of them are taken together.
    names: &'static [&'static str],
    /// Only those with this label.
    only: Option<(&'static str, &'static str)>,
    measure: Measure,
    /// From the server's unit to ours.
    scale: f64,
}

const fn rule(measure: Measure, names: &'static [&'static str]) -> Rule {
    Rule { names, only: None, measure, scale: 1.0 }
}

const fn scaled(measure: Measure, scale: f64, names: &'static [&'static str]) -> Rule {
    Rule { names, only: None, measure, scale }
}

const fn only(measure: Measure, name: &'static [&'static str], label: (&'static str, &'static str)) -> Rule {
    Rule { names: name, only: Some(label), measure, scale: 1.0 }
}

/// A system's names.
struct Known {
    system: System,
    rules: &'static [Rule],
    /// The histogram of times to first token, and its unit in s.
    ttft: Option<(&'static str, f64)>,
}

use Measure as M;

const VLLM: &[Rule] = &[
    rule(M::Running, &["vllm:num_requests_running"]),
    rule(M::Waiting, &["vllm:num_requests_waiting"]),
    rule(M::KvUse, &["vllm:kv_cache_usage_perc"]),
    rule(M::KvUse, &["vllm:gpu_cache_usage_perc"]),
    rule(M::PrefixQueries, &["vllm:prefix_cache_queries_total"]),
    rule(M::PrefixQueries, &["vllm:gpu_prefix_cache_queries_total"]),
    rule(M::PrefixHits, &["vllm:prefix_cache_hits_total"]),
    rule(M::PrefixHits, &["vllm:gpu_prefix_cache_hits_total"]),
    rule(M::Preemptions, &["vllm:num_preemptions_total"]),
    rule(M::PromptTokens, &["vllm:prompt_tokens_total"]),
    rule(M::GeneratedTokens, &["vllm:generation_tokens_total"]),
    rule(M::Finished, &["vllm:request_success_total"]),
    rule(M::Drafts, &["vllm:spec_decode_num_drafts_total"]),
    rule(M::DraftTokens, &["vllm:spec_decode_num_draft_tokens_total"]),
    rule(M::AcceptedTokens, &["vllm:spec_decode_num_accepted_tokens_total"]),
];

const SGLANG: &[Rule] = &[
    rule(M::Running, &["sglang:num_running_reqs"]),
    rule(M::Waiting, &["sglang:num_queue_reqs"]),
    rule(M::KvUse, &["sglang:token_usage"]),
    rule(M::PrefixHitShare, &["sglang:cache_hit_rate"]),
    rule(M::AcceptanceShare, &["sglang:spec_accept_rate"]),
    rule(M::PromptTokens, &["sglang:prompt_tokens_total"]),
    rule(M::GeneratedTokens, &["sglang:generation_tokens_total"]),
    rule(M::PrefixQueries, &["sglang:prompt_tokens_total"]),
    rule(M::PrefixHits, &["sglang:cached_tokens_total"]),
    rule(M::Preemptions, &["sglang:num_retracted_requests_total"]),
    rule(M::Preemptions, &["sglang:num_retractions_total"]),
    rule(M::Finished, &["sglang:num_requests_total"]),
];

const TGI: &[Rule] = &[
    rule(M::Running, &["tgi_batch_current_size"]),
    rule(M::Waiting, &["tgi_queue_size"]),
    rule(M::PromptTokens, &["tgi_request_input_length_sum"]),
    rule(M::GeneratedTokens, &["tgi_request_generated_tokens_sum"]),
    rule(M::Finished, &["tgi_request_success"]),
];

/// llama.cpp leaves cached tokens out of its prompt tokens.
const LLAMA_CPP: &[Rule] = &[
    rule(M::Running, &["llamacpp:requests_processing"]),
    rule(M::Waiting, &["llamacpp:requests_deferred"]),
    rule(M::KvUse, &["llamacpp:kv_cache_usage_ratio"]),
    rule(M::PromptTokens, &["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"]),
    rule(M::PrefixQueries, &["llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"]),
    rule(M::PrefixHits, &["llamacpp:prompt_tokens_cached_total"]),
    rule(M::GeneratedTokens, &["llamacpp:tokens_predicted_total"]),
    rule(M::Drafts, &["llamacpp:spec_decode_num_drafts_total"]),
    rule(M::DraftTokens, &["llamacpp:spec_decode_num_draft_tokens_total"]),
    rule(M::AcceptedTokens, &["llamacpp:spec_decode_num_accepted_tokens_total"]),
];

const TRT_LLM: &[Rule] = &[
    rule(M::Running, &["trtllm_num_requests_running"]),
    rule(M::Waiting, &["trtllm_num_requests_waiting"]),
    rule(M::KvUse, &["trtllm_kv_cache_utilization"]),
    rule(M::PrefixHitShare, &["trtllm_kv_cache_hit_rate"]),
    rule(M::Finished, &["trtllm_request_success_total"]),
];

const TRITON: &[Rule] = &[
    only(M::Running, &["nv_trt_llm_request_metrics"], ("request_type", "scheduled")),
    only(M::Waiting, &["nv_trt_llm_request_metrics"], ("request_type", "waiting")),
    rule(M::Waiting, &["nv_inference_pending_request_count"]),
    only(M::KvUse, &["nv_trt_llm_kv_cache_block_metrics"], ("kv_cache_block_type", "fraction")),
    rule(M::Finished, &["nv_inference_request_success"]),
    rule(M::GpuUse, &["nv_gpu_utilization"]),
    rule(M::GpuPower, &["nv_gpu_power_usage"]),
    rule(M::GpuMemory, &["nv_gpu_memory_used_bytes"]),
    rule(M::GpuEnergy, &["nv_energy_consumption"]),
    rule(M::CpuUse, &["nv_cpu_utilization"]),
];

const DCGM: &[Rule] = &[
    scaled(M::GpuUse, 0.01, &["DCGM_FI_DEV_GPU_UTIL"]),
    rule(M::GpuUse, &["DCGM_FI_PROF_GR_ENGINE_ACTIVE"]),
    rule(M::GpuPower, &["DCGM_FI_DEV_POWER_USAGE"]),
    rule(M::GpuTemperature, &["DCGM_FI_DEV_GPU_TEMP"]),
    scaled(M::GpuMemory, 1_048_576.0, &["DCGM_FI_DEV_FB_USED"]),
    scaled(M::GpuEnergy, 1e-3, &["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]),
];

const NODE: &[Rule] = &[
    rule(M::CpuTime, &["node_cpu_seconds_total"]),
    only(M::CpuIdle, &["node_cpu_seconds_total"], ("mode", "idle")),
    rule(M::MemoryTotal, &["node_memory_MemTotal_bytes"]),
    rule(M::MemoryAvailable, &["node_memory_MemAvailable_bytes"]),
];

const KNOWN: [Known; 8] = [
    Known { system: System::Vllm, rules: VLLM, ttft: Some(("vllm:time_to_first_token_seconds", 1.0)) },
    Known { system: System::Sglang, rules: SGLANG, ttft: Some(("sglang:time_to_first_token_seconds", 1.0)) },
    Known { system: System::Tgi, rules: TGI, ttft: None },
    Known { system: System::LlamaCpp, rules: LLAMA_CPP, ttft: None },
    Known { system: System::TrtLlm, rules: TRT_LLM, ttft: Some(("trtllm_time_to_first_token_seconds", 1.0)) },
    Known { system: System::Triton, rules: TRITON, ttft: Some(("nv_inference_first_response_histogram_ms", 1e-3)) },
    Known { system: System::Dcgm, rules: DCGM, ttft: None },
    Known { system: System::Node, rules: NODE, ttft: None },
];

const ACCEPTED_AT: &str = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
const STARTED: &str = "process_start_time_seconds";
const PROCESS_CPU: &str = "process_cpu_seconds_total";
/// No draft is longer; a position beyond this is no position.
const LONGEST_DRAFT: usize = 1024;

/// What a page of metrics says.
///
/// # Errors
/// It is no such page, or none of a system known here.
pub fn reading(page: &[u8]) -> Result<Reading, NotMetrics> {
    let mut found = Found::default();
    samples(page, |sample| found.take(&sample))?;
    found.reading().ok_or(NotMetrics::Unknown)
}

/// One measure on its way: by system and rule.
#[derive(Default)]
struct Found {
    values: BTreeMap<(usize, usize), Joined>,
    ttft: BTreeMap<usize, Vec<(f64, f64)>>,
    count: BTreeMap<usize, f64>,
    sum: BTreeMap<usize, f64>,
    accepted_at: Vec<f64>,
    started: Option<f64>,
    process_cpu: Option<f64>,
}

#[derive(Default)]
struct Joined {
    sum: f64,
    most: f64,
    n: f64,
}

impl Found {
    fn take(&mut self, sample: &Sample<'_>) {
        if !sample.value.is_finite() {
            return;
        }
        match sample.name {
            STARTED => self.started = Some(self.started.unwrap_or(sample.value).max(sample.value)),
            PROCESS_CPU => *self.process_cpu.get_or_insert(0.0) += sample.value,
            ACCEPTED_AT => self.accepted(sample),
            _ => {}
        }
        let Some((k, known)) = KNOWN.iter().enumerate().find(|(_, known)| known.owns(sample.name)) else { return };
        if again(sample) {
            return;
        }
        for (r, rule) in known.rules.iter().enumerate().filter(|(_, rule)| rule.names.contains(&sample.name)) {
            if rule.only.is_none_or(|(label, value)| sample.labels.get(label).is_some_and(|v| v == value)) {
                let joined = self.values.entry((k, r)).or_default();
                joined.most = if joined.n == 0.0 { sample.value } else { joined.most.max(sample.value) };
                joined.sum += sample.value;
                joined.n += 1.0;
            }
        }
        let Some(part) = known.ttft.and_then(|(name, _)| sample.name.strip_prefix(name)) else { return };
        match part {
            "_bucket" => {
                let bound = sample.labels.get("le").and_then(|le| le.parse::<f64>().ok());
                let Some(bound) = bound.filter(|b| b.is_finite()) else { return };
                let buckets = self.ttft.entry(k).or_default();
                match buckets.iter_mut().find(|(b, _)| *b == bound) {
                    Some((_, count)) => *count += sample.value,
                    None => buckets.push((bound, sample.value)),
                }
            }
            "_count" => *self.count.entry(k).or_default() += sample.value,
            "_sum" => *self.sum.entry(k).or_default() += sample.value,
            _ => {}
        }
    }

    fn accepted(&mut self, sample: &Sample<'_>) {
        let position = sample.labels.get("position").and_then(|p| p.parse::<usize>().ok());
        let Some(position) = position.filter(|p| *p < LONGEST_DRAFT) else { return };
        if self.accepted_at.len() <= position {
            self.accepted_at.resize(position + 1, 0.0);
        }
        self.accepted_at[position] += sample.value;
    }

    fn reading(mut self) -> Option<Reading> {
        // A page may show several systems (Triton its GPUs, say): the first serving one names it.
        let system = self.values.keys().map(|(k, _)| *k).min()?;
        let mut values = BTreeMap::new();
        for ((k, r), joined) in &self.values {
            let rule = &KNOWN[*k].rules[*r];
            values.entry(rule.measure).or_insert(joined.value(rule.measure) * rule.scale);
        }
        values.extend(self.process_cpu.map(|s| (M::ProcessCpu, s)));
        let ttft = self.ttft.remove(&system).zip(self.count.get(&system)).map(|(mut buckets, &count)| {
            let unit = KNOWN[system].ttft.map_or(1.0, |(_, unit)| unit);
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (bounds, counts) = buckets.into_iter().map(|(bound, n)| (bound * unit, n)).unzip();
            Buckets { bounds, counts, count, sum: self.sum.get(&system).copied().unwrap_or(0.0) * unit }
        });
        Some(Reading {
            system: Some(KNOWN[system].system),
            started: self.started,
            values,
            accepted_at: self.accepted_at,
            ttft,
        })
    }
}

impl Known {
    fn owns(&self, name: &str) -> bool {
        self.rules.iter().any(|rule| rule.names.contains(&name))
            || self.ttft.is_some_and(|(ttft, _)| name.starts_with(ttft))
    }
}

/// Whether the same is said by another rank of the same engine: ranks of tensor and pipeline parallelism run the same requests.
fn again(sample: &Sample<'_>) -> bool {
    ["tp_rank", "pp_rank"].iter().any(|rank| sample.labels.get(rank).is_some_and(|rank| rank != "0"))
}

impl Joined {
    fn value(&self, measure: Measure) -> f64 {
        match measure {
            M::KvUse | M::PrefixHitShare | M::AcceptanceShare | M::GpuUse | M::CpuUse => self.sum / self.n,
            M::GpuTemperature => self.most,
            _ => self.sum,
        }
    }
}
