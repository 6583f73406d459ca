use super::flow_part::flow_part;
use super::params as p;
use super::quantity::duration;
use super::rating::filter_or_scorer;
use super::{Complaint, PluginSpec};
use crate::disagg::Decider;
use crate::flow::{Detector, Fairness, Ordering, UsageLimit};
use crate::pick::{CacheAware, Dynamo, Filter, Picker, Scorer};
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
    Pd(p::PdProfile),
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
    pub(super) fn named(&self, plugin: &str, name: Option<&str>) -> Result<Option<usize>, Complaint> {
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
    pub(super) fn needed(&self, plugin: &str, name: Option<&str>) -> Result<usize, Complaint> {
        let none = || Complaint::new(format!("plugin `{plugin}`"), "no plugin produces prefix matches for it to read");
        self.named(plugin, name)?.ok_or_else(none)
    }
}

/// The parameters of a plugin.
pub(super) fn read<T: DeserializeOwned + Default>(spec: &PluginSpec) -> Result<T, Complaint> {
    let value = match &spec.parameters {
        None | Some(Value::Null) => return Ok(T::default()),
        Some(value) => value.clone(),
    };
    serde_json::from_value(value)
        .map_err(|e| Complaint::new(format!("plugin `{}`", spec.name()), format!("parameters: {e}")))
}

pub(super) fn bad(spec: &PluginSpec, what: impl Into<String>) -> Complaint {
    Complaint::new(format!("plugin `{}`", spec.name()), what)
}

pub(super) fn time(spec: &PluginSpec, field: &str, text: Option<&str>, default: Dur) -> Result<Dur, Complaint> {
    let Some(text) = text else { return Ok(default) };
    duration(text).ok_or_else(|| bad(spec, format!("`{field}` is `{text}`, which is no duration such as `200ms`")))
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
        "cache-aware-picker" => {
            let q: p::CacheAware = read(spec)?;
            Part::Picker(Picker::CacheAware(CacheAware {
                producer: producers.needed(name, q.prefix_match_info_producer_name.as_deref())?,
                threshold: q.cache_threshold,
                apart: q.balance_abs_threshold,
                times: q.balance_rel_threshold,
            }))
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
        "pd-profile-handler" => Part::Handler(HandlerSpec::Pd(read(spec)?)),
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

pub(super) fn empty(spec: &PluginSpec, part: Part) -> Result<Part, Complaint> {
    read::<p::Empty>(spec).map(|_| part)
}
