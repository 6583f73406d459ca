//! The figures that `vllm bench serve` 0.33 defines in its own way, kept so for comparison: its start is our first byte written,
//! its windows are calendar seconds from the first successful start, and what has no value is 0.

use crate::request::{output_tokens, tpot_vllm_ns};
use crate::{Dist, ObjectiveMetric, RunFacts};
use tailbound_clock::Time;
use tailbound_record::{Moment, Row};

/// vLLM's own figures. Latencies under its names are in [`crate::Latencies`]: its ITL is our ICL, its TPOT our `tpot_vllm`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vllm {
    /// Sum of prompt tokens over completed requests, 0 where unknown.
    pub total_input_tokens: u64,
    /// Sum of output tokens over completed requests.
    pub total_output_tokens: u64,
    /// Completed requests per second of the run, drain included.
    pub request_throughput: f64,
    /// Output tokens per second of the run.
    pub output_throughput: f64,
    /// Prompt and output tokens per second of the run.
    pub total_token_throughput: f64,
    /// Completed requests that met every objective, per second, all counted from the write. `None` without objectives.
    pub request_goodput: Option<f64>,
    /// Most token *events* in one second counted from the first successful start.
    pub max_output_tokens_per_s: f64,
    /// Most requests that touched one such second.
    pub max_concurrent_requests: u64,
    /// Release − scheduled arrival of completed requests, ns.
    pub client_queue_time: Dist,
    /// That plus the end-to-end latency, ns.
    pub e2el_including_client_queue: Dist,
}

impl Vllm {
    pub(crate) fn of(rows: &[Row], facts: &RunFacts) -> Vllm {
        let completed = || rows.iter().filter(|r| r.ok());
        let seconds = facts.duration().ns() as f64 / 1e9;
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let total_input_tokens: u64 = completed().filter_map(|r| r.prompt_tokens()).map(u64::from).sum();
        let total_output_tokens: u64 = completed().map(|r| u64::from(output_tokens(r).0)).sum();
        let good = completed().filter(|r| good(r, facts)).count() as u64;
        let (max_output_tokens_per_s, max_concurrent_requests) = busiest_seconds(rows);
        Vllm {
            total_input_tokens,
            total_output_tokens,
            request_throughput: per_second(completed().count() as u64),
            output_throughput: per_second(total_output_tokens),
            total_token_throughput: per_second(total_input_tokens + total_output_tokens),
            request_goodput: (!facts.objectives.is_empty()).then(|| per_second(good)),
            max_output_tokens_per_s: max_output_tokens_per_s as f64,
            max_concurrent_requests,
            client_queue_time: Dist::new(completed().map(queue_ns).collect()),
            e2el_including_client_queue: Dist::new(
                completed().filter_map(|r| Some(r.e2e()?.ns() as f64 + queue_ns(r))).collect(),
            ),
        }
    }
}

fn queue_ns(row: &Row) -> f64 {
    row.at.between(Moment::Scheduled, Moment::Released).map_or(0.0, |d| d.ns() as f64)
}

/// vLLM's test: an answer of one token has TPOT 0, and so meets any.
fn good(row: &Row, facts: &RunFacts) -> bool {
    facts.objectives.of(row.class).iter().all(|objective| {
        let value = match objective.metric {
            ObjectiveMetric::Ttft => row.ttft().map(|d| d.ns() as f64),
            ObjectiveMetric::Tpot => Some(tpot_vllm_ns(row).unwrap_or(0.0)),
            ObjectiveMetric::E2el => row.e2e().map(|d| d.ns() as f64),
        };
        value.is_some_and(|v| v <= objective.limit_ns())
    })
}

fn busiest_seconds(rows: &[Row]) -> (u64, u64) {
    let span = |row: &Row| {
        let from = row.at.get(Moment::WriteStart)?;
        Some((from, row.at.get(Moment::LastToken)?.max(from)))
    };
    let completed = || rows.iter().filter(|r| r.ok());
    let Some(first) = completed().filter_map(span).map(|s| s.0).min() else { return (0, 0) };
    let last = completed().filter_map(span).map(|s| s.1).max().unwrap_or(first);
    let second = |t: Time| (t.since(first).ns() / 1_000_000_000) as usize;

    let mut events = vec![0u64; second(last) + 1];
    // Requests that begin in, or end before, each second: their running sum is vLLM's count.
    let mut touching = vec![0i64; events.len() + 1];
    for row in completed() {
        let Some((from, until)) = span(row) else { continue };
        touching[second(from)] += 1;
        touching[second(until) + 1] -= 1;
        for chunk in row.chunks.as_slice() {
            if let Some(n) = events.get_mut(second(chunk.at)) {
                *n += 1;
            }
        }
    }
    let mut now = 0i64;
    let most = touching
        .iter()
        .map(|change| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0);
    (events.into_iter().max().unwrap_or(0), most as u64)
}
