//! `result_summary.json`: whether its figures agree with each other and with the point.

use serde_json::Value;

use super::Findings;
use super::doc::{at, number, text, whole};
use super::point::{Point, drifting};
use crate::loadgen::endpoints::regions::{Regions, ULTRA_LOW_MAX};

/// The least completed samples by data set: one pass.
const MIN_QUERIES: [(&str, i128); 10] = [
    ("open_orca", 24_576),
    ("cnn_dailymail", 13_368),
    ("aime25", 30),
    ("gpqa", 198),
    ("livecodebench", 880),
    ("shopify_product_catalogue", 48_289),
    ("shopify_product_catalogue_8k", 8_000),
    ("mlperf_gpt_oss_performance", 6_396),
    ("mlperf_gpt_oss_accuracy", 4_395),
    ("math500", 500),
];
/// How far a stored figure may be from the derived one.
const TOLERANCE: f64 = 0.01;

/// Problems that make the file unusable.
pub(super) fn schema(doc: &Value) -> Vec<String> {
    let mut bad = Vec::new();
    if whole(doc, "n_samples_completed").is_none() {
        bad.push("n_samples_completed must be a whole number".to_owned());
    }
    if number(doc, "duration_ns").is_none() {
        bad.push("duration_ns must be a number".to_owned());
    }
    for name in ["ttft", "tpot", "latency", "output_sequence_lengths"] {
        let percentiles = at(doc, &format!("{name}.percentiles")).and_then(Value::as_object);
        let mut seen: Vec<(f64, &Value)> = Vec::new();
        for (key, value) in percentiles.into_iter().flatten() {
            let Some(p) = key.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)) else {
                bad.push(format!("{name}.percentiles has the key {key:?}: write a number from 0 to 100"));
                continue;
            };
            if seen.iter().any(|(q, v)| *q == p && v.as_f64() != value.as_f64()) {
                bad.push(format!("{name}.percentiles has two values for percentile {p}: keep one"));
            }
            seen.push((p, value));
        }
    }
    bad
}

/// A percentile of a metric, whether its key is `90` or `90.0`.
pub(super) fn percentile(doc: &Value, metric: &str, p: f64) -> Option<f64> {
    let all = at(doc, &format!("{metric}.percentiles"))?.as_object()?;
    all.iter().find(|(k, _)| k.parse() == Ok(p)).and_then(|(_, v)| v.as_f64())
}

/// Output tokens a second.
pub(super) fn system_tps(doc: &Value) -> f64 {
    let seconds = number(doc, "duration_ns").unwrap_or(0.0) / 1e9;
    let tokens = libm::trunc(number(doc, "output_sequence_lengths.total").unwrap_or(0.0));
    if seconds > 0.0 { tokens / seconds } else { 0.0 }
}

/// The rules over a point and its result.
pub(super) fn check(p: &Point, doc: &Value, path: &str, regions: Option<&Regions>, found: &mut Findings) {
    duration(p, doc, path, regions, found);
    basis(p, path, found);
    let completed = whole(doc, "n_samples_completed").unwrap_or(0);
    let dataset = text(&p.doc, "dataset").unwrap_or("");
    if let Some((_, least)) = MIN_QUERIES.iter().find(|(name, least)| *name == dataset && completed < *least) {
        let message =
            format!("{completed} completed samples are less than one pass over {dataset}, {least}: issue whole passes");
        found.error("min-query-count", path, message);
    }
    accounting(doc, path, found);
    stored(doc, "system_tps", system_tps(doc), "metric-consistency-system-tps", path, found);
    speed(p, doc, path, found);
    interactivity(doc, path, found);
}

fn duration(p: &Point, doc: &Value, path: &str, regions: Option<&Regions>, found: &mut Findings) {
    let Some(region) = regions.and_then(|r| r.place(p.concurrency.try_into().ok()?)) else { return };
    let needed_ms = match (p.concurrency <= i128::from(ULTRA_LOW_MAX), p.agentic()) {
        (true, _) => 600_000.0,
        (false, false) => 1_200_000.0,
        (false, true) => 2_400_000.0,
    };
    let window = number(&p.doc, "steady_state.window.duration_s").map(|s| s * 1000.0);
    let (ms, what) = window.map_or_else(
        || (number(doc, "duration_ns").unwrap_or(0.0) / 1e6, "the whole run"),
        |ms| (ms, "the steady-state window"),
    );
    if ms < needed_ms {
        let message = format!(
            "{what} lasts {ms:.0} ms, {} needs {needed_ms:.0} ms at this concurrency: issue more passes",
            region.name()
        );
        found.warning("point-duration", path, message);
    }
}

fn basis(p: &Point, path: &str, found: &mut Findings) {
    const RULE: &str = "steady-state-basis";
    if at(&p.doc, "steady_state").is_none() {
        found.warning(
            RULE,
            path,
            "point.yaml has no steady_state block, so whole-run figures count: run the detector and add it",
        );
        return;
    }
    let status = text(&p.doc, "steady_state.status");
    if status != Some("windowable") {
        found.warning(
            RULE,
            path,
            format!("the steady-state status is {status:?}, so whole-run figures count: run longer"),
        );
    }
    if let Some(verdict) = text(&p.doc, "steady_state.verdict").filter(|v| v.starts_with("drifting_")) {
        found.warning(RULE, path, format!("the run is {verdict} ({}): it never settled", drifting(p).join(", ")));
    }
}

fn accounting(doc: &Value, path: &str, found: &mut Findings) {
    let count = |name: &str| whole(doc, name).unwrap_or(0);
    let duration = number(doc, "duration_ns").unwrap_or(0.0);
    if duration <= 0.0 {
        found.error("metric-consistency-duration", path, format!("duration_ns is {duration}: it must be above 0"));
    }
    let (issued, completed, failed) =
        (count("n_samples_issued"), count("n_samples_completed"), count("n_samples_failed"));
    if issued > 0 && completed + failed != issued {
        let message = format!(
            "{completed} completed and {failed} failed samples do not make the {issued} issued: every sample must end"
        );
        found.error("metric-consistency-accounting", path, message);
    }
    let tokens = number(doc, "output_sequence_lengths.total").unwrap_or(0.0);
    if tokens < 0.0 {
        found.error(
            "metric-consistency-output-tokens",
            path,
            format!("the output token total is {tokens}: it cannot be negative"),
        );
    }
}

fn stored(doc: &Value, name: &str, derived: f64, rule: &'static str, path: &str, found: &mut Findings) {
    let Some(stored) = number(doc, name) else { return };
    if (stored - derived).abs() / derived.abs().max(1e-9) > TOLERANCE {
        found.error(
            rule,
            path,
            format!("{name} is {stored}, but its own figures give {derived:.4}: correct or leave it out"),
        );
    }
}

fn speed(p: &Point, doc: &Value, path: &str, found: &mut Findings) {
    if p.dedicated() {
        return;
    }
    const RULE: &str = "metric-consistency-tpot-p90";
    match percentile(doc, "tpot", 90.0).map(|ns| ns / 1e6) {
        None => {
            found.error(RULE, path, "tpot.percentiles has no 90: tokens/s/user is 1000 / TPOT P90 and nothing else")
        }
        Some(ms) if !(ms > 0.0 && ms.is_finite()) => {
            found.error(RULE, path, format!("TPOT P90 is {ms} ms: it must be above 0"));
        }
        Some(ms) => stored(doc, "tps_per_user", 1000.0 / ms, "metric-consistency-tps-per-user", path, found),
    }
}

fn interactivity(doc: &Value, path: &str, found: &mut Findings) {
    const RULE: &str = "agentic-metric-consistency";
    let explicit = (number(doc, "output_tokens_per_turn_total"), number(doc, "e2e_turn_time_seconds_total"));
    let (tokens, seconds) = match explicit {
        (None, None) if whole(doc, "n_samples_failed").unwrap_or(0) == 0 => {
            let total = |name: &str| number(doc, name).unwrap_or(0.0);
            (Some(total("output_sequence_lengths.total")), Some(total("latency.total") / 1e9))
        }
        other => other,
    };
    match tokens.zip(seconds.filter(|&s| s > 0.0)) {
        Some((tokens, seconds)) => stored(doc, "e2e_avg_interactivity", tokens / seconds, RULE, path, found),
        None if at(doc, "e2e_avg_interactivity").is_some() => {
            found.error(RULE, path, "e2e_avg_interactivity is stored without the totals it comes from: add them");
        }
        None => {}
    }
}
