//! The figures that `vllm bench serve` 0.33 defines in its own way, kept so for comparison: its start is our first byte written,
//! its windows are calendar seconds from the first successful start, and what has no value is 0.

use crate::peak::TokenEvents;
use crate::request::tpot_vllm_ns;
use crate::{Dist, ObjectiveMetric, RunFacts, Tokens};
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
    /// Release − scheduled arrival of completed requests, ns. Empty without a cap.
    pub client_queue_time: Dist,
    /// That plus the end-to-end latency, ns.
    pub e2el_including_client_queue: Dist,
}

/// Its figures while they are taken.
pub(crate) struct Tally<'a> {
    facts: &'a RunFacts,
    completed: u64,
    good: u64,
    queue: Vec<f64>,
    e2el_and_queue: Vec<f64>,
    /// First byte written and last token.
    spans: Vec<(Time, Time)>,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(facts: &'a RunFacts) -> Tally<'a> {
        Tally { facts, completed: 0, good: 0, queue: Vec::new(), e2el_and_queue: Vec::new(), spans: Vec::new() }
    }

    /// Adds a completed request.
    pub(crate) fn add(&mut self, row: &Row) {
        self.completed += 1;
        self.good += u64::from(good(row, self.facts));
        if self.facts.max_concurrency.is_some() {
            self.queue.push(queue_ns(row));
            self.e2el_and_queue.extend(row.e2e().map(|d| d.ns() as f64 + queue_ns(row)));
        }
        if let (Some(from), Some(until)) = (row.at.get(Moment::WriteStart), row.at.get(Moment::LastToken)) {
            self.spans.push((from, until.max(from)));
        }
    }

    pub(crate) fn finish(self, tokens: &Tokens, events: &TokenEvents) -> Vllm {
        let seconds = self.facts.duration().ns() as f64 / 1e9;
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let total_input_tokens = tokens.input.unwrap_or(0);
        let (max_output_tokens_per_s, max_concurrent_requests) = busiest_seconds(&self.spans, events);
        Vllm {
            total_input_tokens,
            total_output_tokens: tokens.output,
            request_throughput: per_second(self.completed),
            output_throughput: per_second(tokens.output),
            total_token_throughput: per_second(total_input_tokens + tokens.output),
            request_goodput: (!self.facts.objectives.is_empty()).then(|| per_second(self.good)),
            max_output_tokens_per_s: max_output_tokens_per_s as f64,
            max_concurrent_requests,
            client_queue_time: Dist::new(self.queue),
            e2el_including_client_queue: Dist::new(self.e2el_and_queue),
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

fn busiest_seconds(spans: &[(Time, Time)], events: &TokenEvents) -> (u64, u64) {
    let Some(first) = spans.iter().map(|s| s.0).min() else { return (0, 0) };
    let last = spans.iter().map(|s| s.1).max().unwrap_or(first);
    let second = |t: Time| (t.since(first).ns() / 1_000_000_000) as usize;

    let mut tokens = vec![0u64; second(last) + 1];
    for at in events.moments() {
        if let Some(n) = tokens.get_mut(second(at)) {
            *n += 1;
        }
    }
    // Requests that begin in, or end before, each second: their running sum is vLLM's count.
    let mut touching = vec![0i64; tokens.len() + 1];
    for (from, until) in spans {
        touching[second(*from)] += 1;
        touching[second(*until) + 1] -= 1;
    }
    let mut now = 0i64;
    let running = touching.iter().map(|change| {
        now += change;
        now
    });
    let most = running.max().unwrap_or(0);
    (tokens.into_iter().max().unwrap_or(0), most as u64)
}
