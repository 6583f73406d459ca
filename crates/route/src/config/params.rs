//! The parameters of each plugin, with the defaults of the published programs.

use serde::Deserialize;
use serde_json::Value;

macro_rules! params {
    ($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident : $kind:ty = $default:expr),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub(super) struct $name { $($(#[$attr])* pub(super) $field: $kind),* }
        impl Default for $name {
            fn default() -> $name { $name { $($field: $default),* } }
        }
    };
}

params!(Empty {});
params!(PickerParams {
    max_num_of_endpoints: usize = 1,
    /// Among how many of the best one is drawn; the newer spelling of the same idea.
    top_k: Option<usize> = Option::None,
});
params!(ActiveRequest { idle_threshold: u32 = 0, max_busy_score: f64 = 1.0 });
params!(TokenLoad { queue_threshold_tokens: f64 = 4_194_304.0 });
params!(LoadAware { threshold: f64 = 128.0 });
params!(ContextLength { label: String = "llm-d.ai/context-length-range".into(), enable_filtering: bool = false });
params!(NoHitLru {
    lru_size: usize = 1024,
    prefix_match_info_producer_name: Option<String> = Option::None,
    prefix_plugin_name: Option<String> = Option::None,
    prefix_plugin_type: Option<String> = Option::None,
});
params!(PrefixScorer {
    block_size_tokens: Option<u32> = Option::None,
    /// An older spelling, in characters.
    block_size: Option<u32> = Option::None,
    auto_tune: bool = true,
    max_prefix_blocks_to_match: usize = 256,
    max_prefix_tokens_to_match: Option<usize> = Option::None,
    lru_capacity_per_server: usize = 31_250,
    prefix_match_info_producer_name: Option<String> = Option::None,
});
params!(ApproxProducer {
    block_size_tokens: Option<u32> = Option::None,
    auto_tune: bool = true,
    max_prefix_blocks_to_match: usize = 2048,
    max_prefix_tokens_to_match: usize = 131_072,
    lru_capacity_per_server: usize = 31_250,
});
params!(PreciseProducer {
    token_processor_config: TokenProcessor = TokenProcessor::default(),
    indexer_config: Indexer = Indexer::default(),
    kv_events_config: Option<Value> = Option::None,
    speculative_indexing: bool = true,
    #[serde(rename = "speculativeTTL")]
    speculative_ttl: Option<String> = Option::None,
});
params!(TokenProcessor {
    block_size: Option<u32> = Option::None,
    block_size_tokens: Option<u32> = Option::None,
    hash_seed: Option<String> = Option::None,
});
params!(Indexer {
    token_processor_config: TokenProcessor = TokenProcessor::default(),
    kv_block_index_config: Option<Value> = Option::None,
    kv_cache_backend_configs: Vec<Backend> = Vec::new(),
    prefix_store_config: Option<Value> = Option::None,
    tokenizers_pool_config: Option<Value> = Option::None,
});
params!(Backend { name: String = String::new(), weight: f64 = 1.0 });
params!(BurstProducer {
    window_duration_ms: u64 = 100,
    max_per_replica: i64 = -1,
    block_size_tokens: u32 = 64,
    max_prefix_tokens_to_match: usize = 0,
    min_colocate_blocks: usize = 0,
    max_batch_size: i64 = 1000,
    balance_by: String = "requests".into(),
});
params!(MediaProducer {
    #[serde(rename = "cacheSizeInMB")]
    cache_size_in_mb: u64 = 2048
});
params!(PrefixAffinity {
    affinity_threshold: f64 = 0.80,
    exploration_probability: f64 = 0.0,
    #[serde(rename = "maxTTFTPenaltyMs")]
    max_ttft_penalty_ms: f64 = 18_000.0,
    ttft_source: String = "prefillThroughput".into(),
    peak_prefill_throughput: f64 = 15_928.0,
    prefix_match_info_producer_name: Option<String> = Option::None,
    in_flight_load_producer_name: Option<String> = Option::None,
});
params!(SloTier { exploration_probability: f64 = 0.01 });
params!(Latency {
    strategy: String = "least".into(),
    headroom_selection_strategy: Option<String> = Option::None,
    ttft_weight: f64 = 0.8,
    tpot_weight: f64 = 0.2,
});
params!(PredictedLatency { slo_buffer_factor: f64 = 1.0, sampling_mean: f64 = 1000.0 });
params!(ByLabel {
    label: String = String::new(),
    valid_values: Vec<String> = Vec::new(),
    allows_no_label: bool = false,
});
params!(Selector { match_labels: std::collections::BTreeMap<String, String> = Default::default() });
params!(AttributeFilter {
    attribute: String = String::new(),
    producer: Option<String> = Option::None,
    on_missing: OnMissing = OnMissing::Pass,
    fallback_on_empty: bool = false,
    algorithm: Option<FilterAlgorithm> = Option::None,
});

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum OnMissing {
    Pass,
    Fail,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilterAlgorithm {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) threshold: Threshold,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threshold {
    pub(super) operator: crate::pick::Compare,
    pub(super) value: f64,
}

params!(AttributeScorer {
    attribute_key: String = String::new(),
    producer: Option<String> = Option::None,
    algorithm: Option<ScorerAlgorithm> = Option::None,
});

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScorerAlgorithm {
    #[serde(rename = "type")]
    pub(super) kind: Linear,
    #[serde(default)]
    pub(super) normalization: Normalization,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Linear {
    #[serde(rename = "linear_lower_is_better")]
    LowerIsBetter,
    #[serde(rename = "linear_higher_is_better")]
    HigherIsBetter,
}

params!(Normalization { adaptive_range: Option<Value> = Option::None, fixed_range: Option<FixedRange> = Option::None });
params!(FixedRange { min: f64 = 0.0, max: f64 = 1.0 });
params!(Topology { topology_producer_name: Option<String> = Option::None, min_affinity: String = "zone".into() });
params!(UtilizationDetector {
    queue_depth_threshold: f64 = 5.0,
    kv_cache_util_threshold: f64 = 0.8,
    metrics_staleness_threshold: Option<String> = Option::None,
    headroom: f64 = 0.0,
});
params!(ConcurrencyDetector {
    max_concurrency: f64 = 100.0,
    max_token_concurrency: f64 = 1_000_000.0,
    concurrency_mode: String = "requests".into(),
    headroom: f64 = 0.0,
});
params!(ProbabilisticAdmitter { power: f64 = 5.0, k: f64 = 300.0 });
params!(Holdback { max_ceiling: f64 = 1.0, min_ceiling: f64 = 0.5 });
params!(ProgramAware {
    strategy: String = "las".into(),
    weight_service: f64 = 0.8,
    weight_service_head_wait: f64 = 0.2,
    service_half_life_seconds: f64 = 60.0,
    eviction_ttl_seconds: f64 = 3600.0,
    eviction_sweep_seconds: f64 = 300.0,
});
params!(PdDecider { non_cached_tokens: u32 = 0, prefix_match_info_producer_name: Option<String> = Option::None });
params!(Disagg {
    deciders: Deciders = Deciders::default(),
    decider_plugin_name: Option<String> = Option::None,
    profiles: Option<Value> = Option::None,
    decode_profile: String = "decode".into(),
    prefill_profile: String = "prefill".into(),
    encode_profile: String = "encode".into(),
});
// The handler before it, which knew of prefill alone. `threshold` is older still: characters of the prompt that aren't cached.
params!(PdProfile {
    decode_profile: String = "decode".into(),
    prefill_profile: String = "prefill".into(),
    prefix_plugin_type: Option<String> = Option::None,
    prefix_plugin_name: Option<String> = Option::None,
    primary_port: Option<u16> = Option::None,
    decider_plugin_name: Option<String> = Option::None,
    threshold: Option<u32> = Option::None,
    hash_block_size: Option<u32> = Option::None,
});
params!(Deciders { encode: Option<String> = Option::None, prefill: Option<String> = Option::None });
params!(DataParallel { primary_port: Option<u16> = Option::None });

// Tailbound's own pickers.
params!(DynamoPicker {
    prefill_load_scale: f64 = 1.0,
    overlap_credit: f64 = 1.0,
    host_credit: f64 = 0.75,
    disk_credit: f64 = 0.25,
    decode_active_request_weight: f64 = 0.0,
    temperature: f64 = 0.0,
    block_size_tokens: u32 = 16,
    prefix_match_info_producer_name: Option<String> = Option::None,
});
params!(CacheAware {
    cache_threshold: f64 = 0.5,
    balance_abs_threshold: u32 = 32,
    balance_rel_threshold: f64 = 1.1,
    prefix_match_info_producer_name: Option<String> = Option::None,
});
params!(ConsistentHash { virtual_nodes: u32 = 150, load_factor: f64 = 1.25 });
