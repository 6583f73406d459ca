//! What a test was asked to do, and what LoadGen makes of it.

use serde::{Deserialize, Serialize};

/// The four ways load arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scenario {
    /// One sample at a time, the next when the last is done.
    SingleStream,
    /// N samples at a time, the next N when the last are done.
    MultiStream,
    /// Poisson arrivals, one sample each.
    Server,
    /// Every sample at once.
    Offline,
}

impl Scenario {
    /// All four, in LoadGen's order.
    pub const ALL: [Scenario; 4] = [Scenario::SingleStream, Scenario::MultiStream, Scenario::Server, Scenario::Offline];

    /// The name as logs and configuration files spell it.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::SingleStream => "SingleStream",
            Scenario::MultiStream => "MultiStream",
            Scenario::Server => "Server",
            Scenario::Offline => "Offline",
        }
    }

    /// The scenario of that name.
    pub fn named(name: &str) -> Option<Scenario> {
        Scenario::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Accuracy, then performance.
    SubmissionRun,
    /// Every sample once, answers logged, nothing timed.
    AccuracyOnly,
    /// Timed.
    PerformanceOnly,
    /// A search for the highest rate that meets the constraints (Server alone).
    FindPeakPerformance,
}

impl Mode {
    /// The name as logs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::SubmissionRun => "SubmissionRun",
            Mode::AccuracyOnly => "AccuracyOnly",
            Mode::PerformanceOnly => "PerformanceOnly",
            Mode::FindPeakPerformance => "FindPeakPerformance",
        }
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Mode> {
        [Mode::SubmissionRun, Mode::AccuracyOnly, Mode::PerformanceOnly, Mode::FindPeakPerformance]
            .into_iter()
            .find(|m| m.name() == name)
    }
}

/// LoadGen's `TestSettings`, field by field, with its names (those of its Python binding), units and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names are LoadGen's own
pub struct Settings {
    pub scenario: Scenario,
    pub mode: Mode,
    pub single_stream_expected_latency_ns: f64,
    pub single_stream_target_latency_percentile: f64,
    pub multi_stream_expected_latency_ns: f64,
    pub multi_stream_target_latency_percentile: f64,
    pub multi_stream_samples_per_query: u64,
    pub server_target_qps: f64,
    pub server_target_latency_ns: u64,
    pub server_target_latency_percentile: f64,
    pub server_coalesce_queries: bool,
    pub server_find_peak_qps_decimals_of_precision: i64,
    pub server_find_peak_qps_boundary_step_size: f64,
    pub server_max_async_queries: u64,
    pub server_num_issue_query_threads: u64,
    pub offline_expected_qps: f64,
    /// Equal issue: every sample of the set as often as every other.
    pub sample_concatenate_permutation: bool,
    pub min_duration_ms: u64,
    /// 0 is without limit.
    pub max_duration_ms: u64,
    pub min_query_count: u64,
    /// 0 is without limit.
    pub max_query_count: u64,
    pub qsl_rng_seed: u64,
    pub sample_index_rng_seed: u64,
    pub schedule_rng_seed: u64,
    pub accuracy_log_rng_seed: u64,
    pub accuracy_log_probability: f64,
    pub accuracy_log_sampling_target: u64,
    pub test05: bool,
    pub test05_qsl_rng_seed: u64,
    pub test05_sample_index_rng_seed: u64,
    pub test05_schedule_rng_seed: u64,
    pub print_timestamps: bool,
    pub performance_issue_unique: bool,
    pub performance_issue_same: bool,
    pub performance_issue_same_index: u64,
    pub performance_sample_count_override: u64,
    pub accuracy_sample_count_override: u64,
    pub use_token_latencies: bool,
    /// The TTFT bound in ns.
    pub ttft_latency: u64,
    /// The TPOT bound in ns.
    pub tpot_latency: u64,
    pub infer_token_latencies: bool,
    pub token_latency_scaling_factor: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scenario: Scenario::SingleStream,
            mode: Mode::PerformanceOnly,
            single_stream_expected_latency_ns: 1e6,
            single_stream_target_latency_percentile: 0.90,
            multi_stream_expected_latency_ns: 8e6,
            multi_stream_target_latency_percentile: 0.99,
            multi_stream_samples_per_query: 8,
            server_target_qps: 1.0,
            server_target_latency_ns: 100_000_000,
            server_target_latency_percentile: 0.99,
            server_coalesce_queries: false,
            server_find_peak_qps_decimals_of_precision: 1,
            server_find_peak_qps_boundary_step_size: 1.0,
            server_max_async_queries: 0,
            server_num_issue_query_threads: 0,
            offline_expected_qps: 1.0,
            sample_concatenate_permutation: false,
            min_duration_ms: 10_000,
            max_duration_ms: 0,
            min_query_count: 100,
            max_query_count: 0,
            qsl_rng_seed: 0,
            sample_index_rng_seed: 0,
            schedule_rng_seed: 0,
            accuracy_log_rng_seed: 0,
            accuracy_log_probability: 0.0,
            accuracy_log_sampling_target: 0,
            test05: false,
            test05_qsl_rng_seed: 0,
            test05_sample_index_rng_seed: 0,
            test05_schedule_rng_seed: 0,
            print_timestamps: false,
            performance_issue_unique: false,
            performance_issue_same: false,
            performance_issue_same_index: 0,
            performance_sample_count_override: 0,
            accuracy_sample_count_override: 0,
            use_token_latencies: false,
            ttft_latency: 100_000_000,
            tpot_latency: 100_000_000,
            infer_token_latencies: false,
            token_latency_scaling_factor: 1,
        }
    }
}

/// The sizes of the sample library (LoadGen's QSL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// All samples.
    pub total: u64,
    /// How many fit in memory at once, the set of a performance run.
    pub performance: u64,
}
