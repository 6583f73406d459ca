use super::params as p;
use super::quantity::duration;
use super::{Complaint, PluginSpec};
use crate::disagg::Decider;
use crate::endpoint::Role;
use crate::flow::{Detector, Fairness, Ordering, UsageLimit};
use crate::pick::{AttributeRule, Dynamo, Filter, LatencyScore, Level, Picker, PrefixAffinity, Range, Scorer, SloTier};
use crate::prefix::{ApproxConfig, BurstConfig, HashInput, PreciseConfig, TierWeights};
use crate::table::Wanted;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tailbound_clock::Dur;

/// What one plugin is.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Filter(Filter),
    Scorer(Scorer),
    /// Rates, and takes away too.
    Both(Filter, Scorer),
    Picker(Picker),
    Handler(HandlerSpec),
    Decider(Decider),
    Detector {
        detector: Detector,
        headroom: f64,
    },
    Admitter(super::Admitter),
    Fairness(Fairness),
    Ordering(Ordering),
    Limit(UsageLimit),
    /// Something that is known of prefixes; where it is referred to as a scorer, what it knows is scored.
    Producer,
    Media,
    Predictor {
        slo_buffer: f64,
    },
    /// What flow control does to requests in flight.
    Eviction,
    /// What fetches or reads something: the driver's business.
    Outside,
}

/// A profile handler, by the names of profiles and deciders.
#[derive(Clone, Debug)]
pub(super) enum HandlerSpec {
    Single,
    DataParallel { primary_port: Option<u16> },
    Disagg(p::Disagg),
}

/// Plugins that fetch or parse for the router; a driver that has none of them loses nothing here.
const OUTSIDE: &[&str] = &[
    "metrics-data-source",
    "core-metrics-extractor",
    "model-server-protocol-metrics",
    "endpoint-notification-source",
    "k8s-notification-source",
    "token-producer",
    "tokenizer",
    "dcgm-data-source",
    "dcgm-extractor",
    "models-data-source",
    "models-data-extractor",
    "zmq-metrics-data-source",
    "topology-extractor",
    "label-extractor",
    "file-discovery",
    "openai-parser",
    "vllmgrpc-parser",
    "passthrough-parser",
    "inflight-load-producer",
    "in-flight-load-producer",
    "session-id-producer",
    "agent-identity",
    "destination-endpoint-served-verifier",
    "disagg-headers-handler",
    "prefill-header-handler",
];

/// The chains of one configuration: the place of each producer by name.
pub(super) struct Producers<'a>(pub(super) &'a [(String, super::ProducerConfig)]);

impl Producers<'_> {
    /// The one of that name, else the best-informed.
    fn named(&self, plugin: &str, name: Option<&str>) -> Result<Option<usize>, Complaint> {
        let Some(name) = name.filter(|n| !n.is_empty()) else { return Ok((!self.0.is_empty()).then_some(0)) };
        match self.0.iter().position(|(n, _)| n == name) {
            Some(place) => Ok(Some(place)),
            None => Err(Complaint::new(
                format!("plugin `{plugin}`"),
                format!(
                    "`prefixMatchInfoProducerName` is `{name}`, but no plugin of that name produces prefix matches"
                ),
            )),
        }
    }

    /// Of a plugin that is nothing without one.
    fn needed(&self, plugin: &str, name: Option<&str>) -> Result<usize, Complaint> {
        let none = || Complaint::new(format!("plugin `{plugin}`"), "no plugin produces prefix matches for it to read");
        self.named(plugin, name)?.ok_or_else(none)
    }
}

/// The parameters of a plugin.
fn read<T: DeserializeOwned + Default>(spec: &PluginSpec) -> Result<T, Complaint> {
    let value = match &spec.parameters {
        None | Some(Value::Null) => return Ok(T::default()),
        Some(value) => value.clone(),
    };
    serde_json::from_value(value)
        .map_err(|e| Complaint::new(format!("plugin `{}`", spec.name()), format!("parameters: {e}")))
}

fn bad(spec: &PluginSpec, what: impl Into<String>) -> Complaint {
    Complaint::new(format!("plugin `{}`", spec.name()), what)
}

fn time(spec: &PluginSpec, field: &str, text: Option<&str>, default: Dur) -> Result<Dur, Complaint> {
    let Some(text) = text else { return Ok(default) };
    duration(text).ok_or_else(|| bad(spec, format!("`{field}` is `{text}`, which is no duration such as `200ms`")))
}

/// What a plugin tells of prefixes, if that is what it does.
pub(super) fn producer(spec: &PluginSpec) -> Result<Option<super::ProducerConfig>, Complaint> {
    Ok(Some(match spec.kind.as_str() {
        "approx-prefix-cache-producer" => {
            let q: p::ApproxProducer = read(spec)?;
            let block = q.block_size_tokens.unwrap_or(16);
            let by_tokens = q.max_prefix_tokens_to_match / block.max(1) as usize;
            approx(
                spec,
                HashInput::Tokens,
                block,
                q.auto_tune,
                q.max_prefix_blocks_to_match.min(by_tokens),
                q.lru_capacity_per_server,
            )?
        }
        "prefix-cache-scorer" => {
            let q: p::PrefixScorer = read(spec)?;
            if q.prefix_match_info_producer_name.is_some() {
                return Ok(None);
            }
            let block = q.block_size_tokens.or(q.block_size.map(|chars| chars / 4)).unwrap_or(16);
            let most = q.max_prefix_tokens_to_match.map_or(q.max_prefix_blocks_to_match, |t| t / block.max(1) as usize);
            approx(spec, HashInput::Chars, block, q.auto_tune, most, q.lru_capacity_per_server)?
        }
        "precise-prefix-cache-producer" | "precise-prefix-cache-scorer" => precise(spec)?,
        "burst-prefix-cache-producer" => burst(spec)?,
        _ => return Ok(None),
    }))
}

fn approx(
    spec: &PluginSpec,
    input: HashInput,
    block_tokens: u32,
    auto_tune: bool,
    most_blocks: usize,
    capacity: usize,
) -> Result<super::ProducerConfig, Complaint> {
    if block_tokens == 0 {
        return Err(bad(spec, "the block size must be at least one token"));
    }
    let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
    let max_entries = super::policy::MAX_ENTRIES;
    Ok(super::ProducerConfig::Approx(ApproxConfig {
        input,
        block_tokens,
        auto_tune,
        most_blocks,
        capacity,
        max_entries,
    }))
}

fn precise(spec: &PluginSpec) -> Result<super::ProducerConfig, Complaint> {
    let q: p::PreciseProducer = read(spec)?;
    let processors = [&q.token_processor_config, &q.indexer_config.token_processor_config];
    let block_tokens = processors.iter().find_map(|t| t.block_size.or(t.block_size_tokens));
    if block_tokens == Some(0) {
        return Err(bad(spec, "the block size must be at least one token"));
    }
    let mut weights = TierWeights::default();
    for backend in &q.indexer_config.kv_cache_backend_configs {
        *match backend.name.to_ascii_lowercase().as_str() {
            "gpu" => &mut weights.gpu,
            "cpu" => &mut weights.cpu,
            "disk" | "storage" => &mut weights.disk,
            _ => &mut weights.other,
        } = backend.weight;
    }
    let ttl = time(spec, "speculativeTTL", q.speculative_ttl.as_deref(), Dur::from_secs(2))?;
    Ok(super::ProducerConfig::Precise(PreciseConfig {
        block_tokens,
        speculative: q.speculative_indexing.then_some(ttl),
        weights,
        max_entries: super::policy::MAX_ENTRIES,
        silence: Dur::from_secs(30),
    }))
}

fn burst(spec: &PluginSpec) -> Result<super::ProducerConfig, Complaint> {
    let q: p::BurstProducer = read(spec)?;
    if !(1..=10_000).contains(&q.window_duration_ms) {
        return Err(bad(spec, "`windowDurationMs` must be from 1 to 10000"));
    }
    let block = q.block_size_tokens.max(1);
    let most = if q.max_prefix_tokens_to_match == 0 { 2048 } else { q.max_prefix_tokens_to_match / block as usize };
    Ok(super::ProducerConfig::Burst(BurstConfig {
        window: Dur::from_ms(q.window_duration_ms),
        per_replica: u32::try_from(q.max_per_replica).ok(),
        block_tokens: block,
        most_blocks: most,
        colocate: q.min_colocate_blocks,
        most_groups: usize::try_from(q.max_batch_size).unwrap_or(100_000),
    }))
}

/// What a plugin is.
pub(super) fn part(spec: &PluginSpec, producers: &Producers, wanted: &mut Wanted) -> Result<Part, Complaint> {
    let name = spec.name();
    if let Some(part) = filter_or_scorer(spec, producers, wanted)? {
        return Ok(part);
    }
    if let Some(part) = flow_part(spec)? {
        return Ok(part);
    }
    let count = |q: p::PickerParams| q.max_num_of_endpoints.clamp(1, crate::event::MAX_TARGETS);
    Ok(match spec.kind.as_str() {
        "max-score-picker" => {
            let q: p::PickerParams = read(spec)?;
            Part::Picker(Picker::MaxScore { among: q.top_k.unwrap_or(1), count: count(q) })
        }
        "random-picker" => Part::Picker(Picker::Random { count: count(read(spec)?) }),
        "weighted-random-picker" => Part::Picker(Picker::WeightedRandom { count: count(read(spec)?) }),
        "round-robin-picker" => empty(spec, Part::Picker(Picker::RoundRobin))?,
        "least-load-picker" => empty(spec, Part::Picker(Picker::LeastLoad))?,
        "power-of-two-picker" => empty(spec, Part::Picker(Picker::PowerOfTwo))?,
        "consistent-hash-picker" => {
            let q: p::ConsistentHash = read(spec)?;
            Part::Picker(Picker::ConsistentHash { load_factor: q.load_factor.max(1.0) })
        }
        "dynamo-cost-picker" => {
            let q: p::DynamoPicker = read(spec)?;
            Part::Picker(Picker::Dynamo(Dynamo {
                producer: producers.named(name, q.prefix_match_info_producer_name.as_deref())?,
                prefill_load_scale: q.prefill_load_scale,
                overlap_credit: q.overlap_credit,
                active_request_weight: q.decode_active_request_weight,
                temperature: q.temperature,
                block_tokens: q.block_size_tokens.max(1),
            }))
        }
        "single-profile-handler" => empty(spec, Part::Handler(HandlerSpec::Single))?,
        "data-parallel-profile-handler" => {
            let q: p::DataParallel = read(spec)?;
            Part::Handler(HandlerSpec::DataParallel { primary_port: q.primary_port })
        }
        "disagg-profile-handler" => Part::Handler(HandlerSpec::Disagg(read(spec)?)),
        "always-disagg-pd-decider" => empty(spec, Part::Decider(Decider::Always))?,
        "always-disagg-multimodal-decider" => empty(spec, Part::Decider(Decider::Media))?,
        "prefix-based-pd-decider" => {
            let q: p::PdDecider = read(spec)?;
            producers.named(name, q.prefix_match_info_producer_name.as_deref())?;
            Part::Decider(Decider::Uncached { tokens: q.non_cached_tokens })
        }
        "approx-prefix-cache-producer" | "precise-prefix-cache-producer" | "burst-prefix-cache-producer" => {
            Part::Producer
        }
        "mm-embeddings-cache-producer" => {
            let _: p::MediaProducer = read(spec)?;
            Part::Media
        }
        "predicted-latency-producer" => {
            let q: p::PredictedLatency = read(spec)?;
            Part::Predictor { slo_buffer: q.slo_buffer_factor }
        }
        kind if OUTSIDE.contains(&kind) => Part::Outside,
        kind => return Err(Complaint::new(format!("plugin `{name}`"), format!("no plugin of type `{kind}` is known"))),
    })
}

fn empty(spec: &PluginSpec, part: Part) -> Result<Part, Complaint> {
    read::<p::Empty>(spec).map(|_| part)
}

fn filter_or_scorer(spec: &PluginSpec, producers: &Producers, wanted: &mut Wanted) -> Result<Option<Part>, Complaint> {
    let name = spec.name();
    let role = |role| empty(spec, Part::Filter(Filter::Role(role)));
    let scorer = |scorer| empty(spec, Part::Scorer(scorer));
    Ok(Some(match spec.kind.as_str() {
        "decode-filter" => role(Role::Decode)?,
        "prefill-filter" => role(Role::Prefill)?,
        "encode-filter" => role(Role::Encode)?,
        "by-label" | "by-label-filter" | "label-filter" => {
            let q: p::ByLabel = read(spec)?;
            if q.label.is_empty() {
                return Err(bad(spec, "`label` must say which label"));
            }
            Part::Filter(Filter::Label { label: q.label, values: q.valid_values, unlabelled: q.allows_no_label })
        }
        "by-label-selector" | "label-selector-filter" => {
            let q: p::Selector = read(spec)?;
            Part::Filter(Filter::Selector(q.match_labels))
        }
        "session-affinity-filter" => Part::Filter(Filter::Session),
        "endpoint-attribute-filter" => attribute_filter(spec, wanted)?,
        "endpoint-attribute-scorer" => attribute_scorer(spec, wanted)?,
        "prefix-cache-affinity-filter" => {
            let q: p::PrefixAffinity = read(spec)?;
            let throughput = match q.ttft_source.as_str() {
                "prefillThroughput" if q.peak_prefill_throughput > 0.0 => Some(q.peak_prefill_throughput),
                "prefillThroughput" => return Err(bad(spec, "`peakPrefillThroughput` must be above 0")),
                "latencyPredictor" => None,
                other => {
                    return Err(bad(
                        spec,
                        format!("`ttftSource` is `{other}`, not prefillThroughput or latencyPredictor"),
                    ));
                }
            };
            Part::Filter(Filter::PrefixAffinity(PrefixAffinity {
                producer: producers.needed(name, q.prefix_match_info_producer_name.as_deref())?,
                threshold: q.affinity_threshold,
                exploration: q.exploration_probability,
                max_penalty_ms: q.max_ttft_penalty_ms,
                throughput,
            }))
        }
        "slo-headroom-tier-filter" => {
            let q: p::SloTier = read(spec)?;
            Part::Filter(Filter::SloTier(SloTier { exploration: q.exploration_probability }))
        }
        "topology-affinity-filter" => {
            let q: p::Topology = read(spec)?;
            let level = Level::named(&q.min_affinity);
            let unknown =
                || bad(spec, format!("`minAffinity` is `{}`, not host, rack, zone or region", q.min_affinity));
            Part::Filter(Filter::Topology(level.ok_or_else(unknown)?))
        }
        "topology-affinity-scorer" => {
            let _: p::Topology = read(spec)?;
            Part::Scorer(Scorer::Topology)
        }
        "queue-scorer" | "queue-depth-scorer" => scorer(Scorer::Queue)?,
        "running-requests-size-scorer" => scorer(Scorer::Running)?,
        "kv-cache-utilization-scorer" => scorer(Scorer::KvUse)?,
        "load-aware-scorer" => {
            let q: p::LoadAware = read(spec)?;
            Part::Scorer(Scorer::LoadAware { threshold: q.threshold.max(1.0) })
        }
        "active-request-scorer" => {
            let q: p::ActiveRequest = read(spec)?;
            Part::Scorer(Scorer::ActiveRequest { idle: q.idle_threshold, max_busy: q.max_busy_score })
        }
        "token-load-scorer" => {
            let q: p::TokenLoad = read(spec)?;
            Part::Scorer(Scorer::TokenLoad { capacity: q.queue_threshold_tokens.max(1.0) })
        }
        "lora-affinity-scorer" => scorer(Scorer::LoraAffinity)?,
        "session-affinity-scorer" => Part::Scorer(Scorer::Session),
        "context-length-aware" => {
            let q: p::ContextLength = read(spec)?;
            let label = wanted.range(&q.label);
            let score = Scorer::ContextLength { label };
            if q.enable_filtering { Part::Both(Filter::ContextLength { label }, score) } else { Part::Scorer(score) }
        }
        "no-hit-lru-scorer" => {
            let q: p::NoHitLru = read(spec)?;
            let producer = producers.named(name, q.prefix_match_info_producer_name.as_deref())?;
            Part::Scorer(Scorer::NoHitLru { producer })
        }
        "prefix-cache-scorer" => {
            let q: p::PrefixScorer = read(spec)?;
            let own = producers.0.iter().position(|(n, _)| n == name);
            let producer = match q.prefix_match_info_producer_name.as_deref() {
                None if own.is_some() => own,
                None => producers.0.iter().position(|(_, c)| matches!(c, super::ProducerConfig::Approx(_))),
                named => producers.named(name, named)?,
            };
            let producer = producer.ok_or_else(|| bad(spec, "no plugin produces prefix matches for it to read"))?;
            Part::Scorer(Scorer::Prefix { producer })
        }
        "precise-prefix-cache-scorer" => Part::Scorer(Scorer::Prefix { producer: producers.needed(name, Some(name))? }),
        "mm-embeddings-cache-scorer" => Part::Scorer(Scorer::Media),
        "latency-scorer" => {
            let q: p::Latency = read(spec)?;
            let strategy = q.headroom_selection_strategy.as_deref().unwrap_or(&q.strategy);
            let most = match strategy {
                "least" => false,
                "most" => true,
                other => return Err(bad(spec, format!("`strategy` is `{other}`, not least or most"))),
            };
            if q.ttft_weight + q.tpot_weight <= 0.0 {
                return Err(bad(spec, "`ttftWeight` and `tpotWeight` must not both be 0"));
            }
            let (ttft_weight, tpot_weight) = (q.ttft_weight, q.tpot_weight);
            Part::Scorer(Scorer::Latency(LatencyScore { ttft_weight, tpot_weight, most }))
        }
        _ => return Ok(None),
    }))
}

fn attribute_filter(spec: &PluginSpec, wanted: &mut Wanted) -> Result<Part, Complaint> {
    let q: p::AttributeFilter = read(spec)?;
    let algorithm = q.algorithm.ok_or_else(|| bad(spec, "`algorithm` is missing"))?;
    if q.attribute.is_empty() {
        return Err(bad(spec, "`attribute` must say which figure"));
    }
    if algorithm.kind != "threshold" {
        return Err(bad(spec, format!("`algorithm.type` is `{}`, not threshold", algorithm.kind)));
    }
    Ok(Part::Filter(Filter::Attribute(AttributeRule {
        attribute: wanted.attribute(&q.attribute),
        compare: algorithm.threshold.operator,
        value: algorithm.threshold.value,
        keep_missing: q.on_missing == p::OnMissing::Pass,
        fall_back: q.fallback_on_empty,
    })))
}

fn attribute_scorer(spec: &PluginSpec, wanted: &mut Wanted) -> Result<Part, Complaint> {
    let q: p::AttributeScorer = read(spec)?;
    let algorithm = q.algorithm.ok_or_else(|| bad(spec, "`algorithm` is missing"))?;
    if q.attribute_key.is_empty() {
        return Err(bad(spec, "`attributeKey` must say which figure"));
    }
    let range = algorithm.normalization.fixed_range.map(|r| Range { min: r.min, max: r.max });
    if range.is_some_and(|r| r.min >= r.max) {
        return Err(bad(spec, "`fixedRange.min` must be below `fixedRange.max`"));
    }
    Ok(Part::Scorer(Scorer::Attribute {
        attribute: wanted.attribute(&q.attribute_key),
        lower_is_better: algorithm.kind == p::Linear::LowerIsBetter,
        range,
    }))
}

fn flow_part(spec: &PluginSpec) -> Result<Option<Part>, Complaint> {
    let fairness = |f| empty(spec, Part::Fairness(f));
    let ordering = |o| empty(spec, Part::Ordering(o));
    Ok(Some(match spec.kind.as_str() {
        "utilization-detector" => {
            let q: p::UtilizationDetector = read(spec)?;
            let stale = q.metrics_staleness_threshold.as_deref();
            let stale = time(spec, "metricsStalenessThreshold", stale, super::policy::STALE)?;
            if q.queue_depth_threshold <= 0.0 || q.kv_cache_util_threshold <= 0.0 {
                return Err(bad(spec, "thresholds must be above 0"));
            }
            let detector =
                Detector::Utilization { queue: q.queue_depth_threshold, kv: q.kv_cache_util_threshold, stale };
            Part::Detector { detector, headroom: q.headroom }
        }
        "concurrency-detector" => {
            let q: p::ConcurrencyDetector = read(spec)?;
            let (limit, tokens) = match q.concurrency_mode.as_str() {
                "requests" => (q.max_concurrency, false),
                "tokens" => (q.max_token_concurrency, true),
                other => return Err(bad(spec, format!("`concurrencyMode` is `{other}`, not requests or tokens"))),
            };
            if limit <= 0.0 {
                return Err(bad(spec, "the limit must be above 0"));
            }
            Part::Detector { detector: Detector::Concurrency { limit, tokens }, headroom: q.headroom }
        }
        "probabilistic-admitter" => {
            let q: p::ProbabilisticAdmitter = read(spec)?;
            Part::Admitter(super::Admitter::Probabilistic { power: q.power, factor: q.k })
        }
        "latency-slo-admitter" => empty(spec, Part::Admitter(super::Admitter::LatencySlo))?,
        "global-strict-fairness-policy" => fairness(Fairness::GlobalStrict)?,
        "round-robin-fairness-policy" => fairness(Fairness::RoundRobin)?,
        "deficit-fairness-policy" => fairness(Fairness::Deficit { quantum: QUANTUM })?,
        "vtc-fairness-policy" => fairness(Fairness::Vtc)?,
        "program-aware-fairness" => {
            let q: p::ProgramAware = read(spec)?;
            Part::Fairness(match q.strategy.as_str() {
                "las" => Fairness::LeastAttained {
                    service: q.weight_service,
                    head_wait: q.weight_service_head_wait,
                    half_life: Dur::from_secs_f64(q.service_half_life_seconds),
                },
                "drr" => Fairness::Deficit { quantum: QUANTUM },
                "rr" => Fairness::RoundRobin,
                other => return Err(bad(spec, format!("`strategy` is `{other}`, not las, drr or rr"))),
            })
        }
        "fcfs-ordering-policy" => ordering(Ordering::Fcfs)?,
        "edf-ordering-policy" => ordering(Ordering::Edf)?,
        "slo-deadline-ordering-policy" => ordering(Ordering::SloDeadline)?,
        "wspt-ordering-policy" => ordering(Ordering::Wspt)?,
        "lcfs-ordering-policy" => ordering(Ordering::Lcfs)?,
        "static-usage-limit-policy" => {
            let q: StaticLimit = read(spec)?;
            Part::Limit(UsageLimit::Static(q.threshold))
        }
        "priority-holdback-policy" => {
            let q: p::Holdback = read(spec)?;
            Part::Limit(UsageLimit::Holdback { max: q.max_ceiling, min: q.min_ceiling })
        }
        "soft-reflective-ceiling-policy" => empty(spec, Part::Limit(UsageLimit::SoftReflective { asked: Vec::new() }))?,
        "sheddable-eviction-filter" | "priority-then-time-eviction-order-policy" => Part::Eviction,
        _ => return Ok(None),
    }))
}

/// Tokens per turn, in deficit round robin.
const QUANTUM: f64 = 8192.0;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct StaticLimit {
    threshold: f64,
}

impl Default for StaticLimit {
    fn default() -> StaticLimit {
        StaticLimit { threshold: 1.0 }
    }
}
