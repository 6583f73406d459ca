//! The LLM benchmarks of MLPerf Inference by name, with the limits their rules put on TTFT and TPOT.

use super::settings::{Scenario, Settings};

/// One benchmark's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// Its name in `mlperf.conf`; Interactive ones end in `-interactive`.
    pub model: &'static str,
    /// The TTFT limit in ns; `None` where only end-to-end latency counts.
    pub ttft_ns: Option<u64>,
    /// The TPOT limit in ns.
    pub tpot_ns: Option<u64>,
    /// The end-to-end limit in ns, where that is what counts.
    pub latency_ns: Option<u64>,
    /// Samples of its performance set.
    pub samples: u64,
}

/// Their names.
pub const LLMS: [&str; 14] = [
    "llama2-70b",
    "llama2-70b-interactive",
    "llama3_1-8b",
    "llama3_1-8b-edge",
    "llama3_1-8b-interactive",
    "llama3_1-405b",
    "llama3_1-405b-interactive",
    "mixtral-8x7b",
    "deepseek-r1",
    "deepseek-r1-interactive",
    "gpt-oss-120b",
    "gpt-oss-120b-interactive",
    "qwen3-vl-235b-a22b",
    "gptj",
];

/// The benchmark of that name, with the limits of `mlperf.conf`.
///
/// The rules text says 20 ms TPOT for gpt-oss-120b Interactive where `mlperf.conf`, which decides, says 15.
pub fn benchmark(name: &str) -> Option<Benchmark> {
    let model = LLMS.into_iter().find(|&m| m == name)?;
    let s = Settings::official(model, Scenario::Server);
    let timed = s.use_token_latencies && s.server_target_latency_ns == 0;
    Some(Benchmark {
        model,
        ttft_ns: timed.then_some(s.ttft_latency),
        tpot_ns: timed.then_some(s.tpot_latency),
        latency_ns: (!timed && !s.use_token_latencies).then_some(s.server_target_latency_ns),
        samples: s.performance_sample_count_override,
    })
}
