//! The keys that vLLM's Rust client (`vllm-rs bench serve` 0.33) adds to those of the Python one.

use crate::{Run, Selected};
use serde::ser::SerializeMap;
use serde_json::{Value, json};
use tailbound_stats::{Dist, Steady};

/// Its own name for each of them, so that the user's metadata can't take them.
pub(super) const KEYS: &[&str] = &["input_throughput", "max_model_len", "steady_state"];

pub(super) fn entries<M: SerializeMap>(run: &Run<'_>, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("max_model_len", &run.description.max_model_len)?;
    map.serialize_entry("input_throughput", &run.summary.throughput.input_tokens_per_s.unwrap_or(0.0))?;
    if !run.selection.percentiles.contains(&90.0) {
        for metric in Selected::ALL.into_iter().filter(|m| run.shows(*m)) {
            let p90 = run.sample(metric).percentile(90.0).unwrap_or(0.0) * 1e-6;
            map.serialize_entry(&format!("p90_{}_ms", metric.name()), &p90)?;
        }
    }
    map.serialize_entry("steady_state", &steady(run))
}

/// It reports a steady state for closed loops only; so is ours here (that of open loops stands under `tailbound`).
fn steady(run: &Run<'_>) -> Value {
    let Some(steady) =
        run.summary.steady.as_ref().filter(|_| !run.facts.open_loop() && run.facts.max_concurrency.is_some())
    else {
        return Value::Null;
    };
    let since_start = |at: tailbound_clock::Time| at.since(run.facts.start).secs();
    let input = steady.input_tokens_per_s;
    json!({
        "window": {
            "start_s": since_start(steady.from),
            "end_s": since_start(steady.until),
            "duration_s": steady.until.since(steady.from).secs(),
            "target_concurrency": steady.target,
            "observed_peak": run.summary.concurrency.peak,
            "requests_total": run.summary.requests.planned,
            "warning": steady.short.then_some("the window is short"),
        },
        "request_throughput": steady.requests_per_s,
        "input_throughput": input,
        "output_throughput": steady.output_tokens_per_s,
        "total_token_throughput": input.map(|input| input + steady.output_tokens_per_s),
        "mean_ttft_ms": ms(steady, |s| s.ttft.mean()),
        "median_ttft_ms": ms(steady, |s| s.ttft.median()),
        "percentiles_ttft_ms": percentiles(&steady.ttft, &run.selection.percentiles),
        "mean_tpot_ms": ms(steady, |s| s.tpot.mean()),
        "median_tpot_ms": ms(steady, |s| s.tpot.median()),
        "p90_tpot_ms": ms(steady, |s| s.tpot.percentile(90.0)),
        "p99_tpot_ms": ms(steady, |s| s.tpot.percentile(99.0)),
    })
}

fn ms(steady: &Steady, figure: fn(&Steady) -> Option<f64>) -> Option<f64> {
    figure(steady).map(|ns| ns * 1e-6)
}

fn percentiles(dist: &Dist, wanted: &[f64]) -> Vec<(f64, Option<f64>)> {
    wanted.iter().map(|&p| (p, dist.percentile(p).map(|ns| ns * 1e-6))).collect()
}
