use super::part::{Part, bad, empty, read, time};
use super::{Complaint, PluginSpec, params as p};
use crate::flow::{Detector, Fairness, Ordering, UsageLimit};
use tailbound_clock::Dur;

/// What decides who waits, and who goes first.
pub(super) fn flow_part(spec: &PluginSpec) -> Result<Option<Part>, Complaint> {
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
