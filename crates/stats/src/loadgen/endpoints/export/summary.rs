//! `result_summary.json`: a point's figures over the whole run, as the reference client writes them.

use serde_json::{Map, Value, json};

use crate::loadgen::endpoints::client::{GRID, early_stopping_estimate, percentile};
use crate::loadgen::endpoints::point::Answered;

/// The figures of a point; times in ns. `None` without a completed sample.
pub(in crate::loadgen::endpoints) fn of(
    samples: &[Answered],
    failed: u64,
    version: &str,
    started_at_ms: u64,
) -> Option<Value> {
    let completed = samples.iter().filter(|s| s.seen.done_ns.is_some()).count() as u64;
    let first = samples.iter().map(|s| s.seen.issued_ns).min()?;
    let last = samples.iter().filter_map(|s| s.seen.done_ns).max()?;
    let duration_ns = last - first;
    let seconds = duration_ns as f64 / 1e9;
    let done = || samples.iter().filter_map(|s| Some((s, s.seen.done_ns?)));
    let ttft = done().filter_map(|(s, _)| Some(s.seen.first_ns? - s.seen.issued_ns)).collect();
    let latency = done().map(|(s, end)| end - s.seen.issued_ns).collect();
    let tpot = done().filter_map(|(s, end)| {
        let tokens = s.seen.tokens_after_first as i64;
        let after = end - s.seen.first_ns?;
        (tokens > 0 && after > 0).then(|| after / tokens)
    });
    let lengths: Vec<i64> = done().map(|(s, _)| s.output_tokens as i64).collect();
    let tokens: i64 = lengths.iter().sum();
    Some(json!({
        "version": version,
        "test_started_at": started_at_ms,
        "n_samples_issued": completed + failed,
        "n_samples_completed": completed,
        "n_samples_failed": failed,
        "duration_ns": duration_ns,
        "state": "complete",
        "complete": true,
        "qps": completed as f64 / seconds,
        "tps": tokens as f64 / seconds,
        "ttft": metric(ttft, true),
        "tpot": metric(tpot.collect(), true),
        "latency": metric(latency, true),
        "output_sequence_lengths": metric(lengths, false),
    }))
}

fn metric(mut values: Vec<i64>, early_stopping: bool) -> Value {
    values.sort_unstable();
    let n = values.len() as f64;
    let total: i64 = values.iter().sum();
    let avg = total as f64 / n;
    let variance = values.iter().map(|&v| (v as f64 - avg) * (v as f64 - avg)).sum::<f64>() / n;
    let by_percentile = |of: fn(&[i64], f64) -> Option<i64>| -> Map<String, Value> {
        GRID.iter().rev().map(|&p| (format!("{p:.1}"), of(&values, p).map_or(Value::Null, Value::from))).collect()
    };
    let mut fields = json!({
        "total": total,
        "min": values.first(),
        "max": values.last(),
        // Of nothing there is no mean: null, never 0.
        "avg": (n > 0.0).then_some(avg),
        "std_dev": (n > 0.0).then(|| libm::sqrt(variance)),
        "median": percentile(&values, 50.0),
        "percentiles": if values.is_empty() { Map::new() } else { by_percentile(percentile) },
        "histogram": histogram(&values),
    });
    if early_stopping && !values.is_empty() {
        fields["early_stopping_percentiles"] = Value::Object(by_percentile(early_stopping_estimate));
    }
    fields
}

/// Twenty bins of equal ratio from the smallest to the largest value.
fn histogram(sorted: &[i64]) -> Value {
    const BINS: usize = 20;
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
        return json!({ "buckets": [], "counts": [] });
    };
    if low <= 0 || low == high {
        return json!({ "buckets": [[low, high]], "counts": [sorted.len()] });
    }
    let ratio = high as f64 / low as f64;
    let edge = |i: usize| low as f64 * libm::pow(ratio, i as f64 / BINS as f64);
    let under = |x: f64| sorted.partition_point(|&v| (v as f64) < x);
    let buckets: Vec<[f64; 2]> = (0..BINS).map(|i| [edge(i), edge(i + 1)]).collect();
    let counts: Vec<usize> = (0..BINS)
        .map(|i| {
            let end = if i + 1 == BINS { sorted.len() } else { under(edge(i + 1)) };
            end - if i == 0 { 0 } else { under(edge(i)) }
        })
        .collect();
    json!({ "buckets": buckets, "counts": counts })
}
