use super::part::{Part, Producers, bad, empty, read};
use super::{Complaint, PluginSpec, params as p};
use crate::endpoint::Role;
use crate::pick::{AttributeRule, Filter, LatencyScore, Level, PrefixAffinity, Range, Scorer, SloTier};
use crate::table::Wanted;

/// What takes candidates away, or rates them.
pub(super) fn filter_or_scorer(
    spec: &PluginSpec,
    producers: &Producers,
    wanted: &mut Wanted,
) -> Result<Option<Part>, Complaint> {
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
