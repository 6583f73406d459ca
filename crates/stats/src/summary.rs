use crate::peak::TokenEvents;
use crate::{Concurrency, Dist, FailureGroup, Goodput, Latencies, Lengths, RunFacts, Steady, Tokens, Vllm, failures};
use tailbound_clock::{Dur, Time};
use tailbound_record::{Blame, Cause, End, Moment, Row, StampSource};

/// Above this share of events that came in the same read as the one before, gaps and percentiles are not to be trusted as they are.
pub(crate) const COALESCED_BOUND: f64 = 0.01;

/// Everything a run's rows say.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How the requests ended.
    pub requests: RequestCounts,
    /// From start to end, drain included.
    pub duration: Dur,
    /// Token totals of completed requests.
    pub tokens: Tokens,
    /// Lengths that came against lengths asked for.
    pub lengths: Lengths,
    /// Rates over the whole run.
    pub throughput: Throughput,
    /// Latency distributions.
    pub latency: Latencies,
    /// Goodput and attainment; `None` without objectives.
    pub goodput: Option<Goodput>,
    /// Requests in flight.
    pub concurrency: Concurrency,
    /// The part of the run without ramp-up and drain; `None` where there is none.
    pub steady: Option<Steady>,
    /// Events that shared a read.
    pub coalesced: Coalesced,
    /// Who took the receive times.
    pub stamps: StampMix,
    /// Failures by kind, the most frequent first.
    pub failures: Vec<FailureGroup>,
    /// Requests sent again because a kept-alive connection turned out closed.
    pub retries: u64,
    /// Share of all time between scheduled arrival and last token that completed requests spent waiting in this client for a place
    /// under the cap.
    pub queued_share: Option<f64>,
    /// The same run as vLLM would have put it.
    pub vllm: Vllm,
}

/// How the requests ended; the five add up to what was planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests planned: all rows.
    pub planned: usize,
    /// The whole answer came.
    pub completed: usize,
    /// Went wrong.
    pub failed: usize,
    /// Given up by us.
    pub cancelled: usize,
    /// Planned and never sent.
    pub never_sent: usize,
    /// Of the failed, those on this client's side.
    pub failed_here: usize,
    /// Of those, for want of files, ports or memory.
    pub local_limit: usize,
}

/// Rates over the whole run, drain included. `None` for a run without length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Completed requests per second.
    pub requests_per_s: Option<f64>,
    /// Prompt tokens of completed requests per second; `None` where prompts are unknown.
    pub input_tokens_per_s: Option<f64>,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Both; `None` where prompts are unknown.
    pub total_tokens_per_s: Option<f64>,
    /// Most output tokens within any second, wherever it begins.
    pub peak_output_tokens_per_s: Option<f64>,
    /// Scheduled arrivals per second, from the first to the last; `None` unless there are two at different times.
    pub scheduled_per_s: Option<f64>,
    /// Departures per second, likewise.
    pub sent_per_s: Option<f64>,
}

/// Events that came in the same read as the one before them. Their own arrival is only known to lie between the previous stamp
/// and theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coalesced {
    /// Events of completed requests after the first of each.
    pub events: u64,
    /// Those that shared the previous one's read.
    pub shared: u64,
    /// Completed requests whose first token shared its read with a later event.
    pub first_tokens: u64,
    /// Median gap between events of different reads, ns; only made where more than 1 % of events are shared.
    pub median_read_gap: Option<f64>,
    /// Gaps that end in a read of their own, ns; only made where more than 1 % of events are shared.
    pub clean_gaps: Option<Dist>,
}

impl Coalesced {
    /// Share of events that shared a read; `None` without events.
    pub fn share(&self) -> Option<f64> {
        (self.events > 0).then(|| self.shared as f64 / self.events as f64)
    }
}

/// Who took the receive times: completed requests by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampMix {
    /// All by the kernel.
    pub kernel: usize,
    /// Some by the kernel.
    pub mixed: usize,
    /// By this process.
    pub user: usize,
    /// Simulated.
    pub virtual_time: usize,
}

impl StampMix {
    /// In a word or two: `kernel`, `user space`, `virtual`, `mixed`, `none`.
    pub fn name(&self) -> &'static str {
        match (self.kernel, self.mixed, self.user, self.virtual_time) {
            (0, 0, 0, 0) => "none",
            (_, 0, 0, 0) => "kernel",
            (0, 0, _, 0) => "user space",
            (0, 0, 0, _) => "virtual",
            _ => "mixed",
        }
    }
}

/// Sums up a run. Rows may come in any order.
pub fn summarize(rows: &[Row], facts: &RunFacts) -> Summary {
    let completed = || rows.iter().filter(|r| r.ok());
    let latency = Latencies::of(rows);
    let concurrency = Concurrency::of(rows, facts);
    let events = TokenEvents::of(completed(), facts.start);
    let tokens = Tokens::of(completed());
    let requests = count(rows);
    let steady = Steady::of(rows, facts, &concurrency, &latency.e2e, &events);
    Summary {
        throughput: throughput(rows, facts, &requests, &tokens, &events),
        requests,
        duration: facts.duration(),
        tokens,
        lengths: Lengths::of(completed()),
        goodput: Goodput::of(rows, facts),
        steady,
        coalesced: coalesced(rows),
        stamps: stamps(completed()),
        failures: failures::group(rows),
        retries: rows.iter().map(|r| u64::from(r.net.retries)).sum(),
        queued_share: queued_share(completed()),
        vllm: Vllm::of(rows, facts),
        latency,
        concurrency,
    }
}

impl Summary {
    /// TTFT as headlines and verdicts use it: from the scheduled arrival in an open loop, else from the write.
    pub fn headline_ttft(&self, facts: &RunFacts) -> &Dist {
        if facts.open_loop() { &self.latency.ttft_scheduled } else { &self.latency.ttft }
    }

    /// End-to-end latency likewise.
    pub fn headline_e2e(&self, facts: &RunFacts) -> &Dist {
        if facts.open_loop() { &self.latency.e2e_scheduled } else { &self.latency.e2e }
    }

    /// Gaps between events that a verdict may use: all of them, or only those not blurred by shared reads where there are many.
    pub fn trusted_gaps(&self) -> &Dist {
        self.coalesced.clean_gaps.as_ref().unwrap_or(&self.latency.icl)
    }

    /// Requests that count as infinitely slow beside a sample of completed ones: failed and never sent.
    pub fn misses(&self) -> usize {
        self.requests.failed + self.requests.never_sent
    }
}

fn count(rows: &[Row]) -> RequestCounts {
    let mut c = RequestCounts { planned: rows.len(), ..RequestCounts::default() };
    for row in rows {
        match &row.end {
            End::Done(_) => c.completed += 1,
            End::Failed { blame, cause, .. } => {
                c.failed += 1;
                c.failed_here += usize::from(*blame == Blame::Client);
                c.local_limit += usize::from(*cause == Cause::LocalLimit);
            }
            End::Cancelled(_) => c.cancelled += 1,
            End::NeverSent(_) => c.never_sent += 1,
        }
    }
    c
}

fn throughput(rows: &[Row], facts: &RunFacts, n: &RequestCounts, tokens: &Tokens, events: &TokenEvents) -> Throughput {
    let seconds = facts.duration().ns() as f64 / 1e9;
    let per_second = |n: u64| (seconds > 0.0).then(|| n as f64 / seconds);
    Throughput {
        requests_per_s: per_second(n.completed as u64),
        input_tokens_per_s: tokens.input.and_then(per_second),
        output_tokens_per_s: per_second(tokens.output),
        total_tokens_per_s: tokens.input.and_then(|input| per_second(input + tokens.output)),
        peak_output_tokens_per_s: events.peak_per_second().map(|n| n as f64),
        scheduled_per_s: rate(rows.iter().filter_map(|r| r.at.get(Moment::Scheduled))),
        sent_per_s: rate(rows.iter().filter_map(crate::departure)),
    }
}

/// Events per second from the first to the last.
fn rate(moments: impl Iterator<Item = Time>) -> Option<f64> {
    let (mut n, mut first, mut last) = (0u64, Time::MAX, Time::ZERO);
    for at in moments {
        n += 1;
        first = first.min(at);
        last = last.max(at);
    }
    let span = last.since(first).ns() as f64 / 1e9;
    (n > 1 && span > 0.0).then(|| (n - 1) as f64 / span)
}

fn coalesced(rows: &[Row]) -> Coalesced {
    let mut c = Coalesced::default();
    for row in rows.iter().filter(|r| r.ok()) {
        let events = row.chunks.as_slice();
        c.events += events.len().saturating_sub(1) as u64;
        c.shared += row.chunks.coalesced() as u64;
        c.first_tokens += u64::from(events.get(1).is_some_and(|second| second.read == events[0].read));
    }
    let many = c.share().is_some_and(|share| share > COALESCED_BOUND);
    if !many {
        return c;
    }
    let (mut clean, mut between_reads) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|r| r.ok()) {
        let events = row.chunks.as_slice();
        for (i, pair) in events.windows(2).enumerate() {
            if pair[0].read == pair[1].read {
                continue;
            }
            let gap = pair[1].at.since(pair[0].at).ns() as f64;
            between_reads.push(gap);
            let alone = events.get(i + 2).is_none_or(|next| next.read != pair[1].read);
            if alone {
                clean.push(gap);
            }
        }
    }
    c.median_read_gap = Dist::new(between_reads).median();
    c.clean_gaps = Some(Dist::new(clean));
    c
}

fn stamps<'a>(completed: impl Iterator<Item = &'a Row>) -> StampMix {
    let mut mix = StampMix::default();
    for row in completed {
        match row.stamps {
            StampSource::Kernel => mix.kernel += 1,
            StampSource::Mixed => mix.mixed += 1,
            StampSource::User => mix.user += 1,
            StampSource::Virtual => mix.virtual_time += 1,
        }
    }
    mix
}

fn queued_share<'a>(completed: impl Iterator<Item = &'a Row>) -> Option<f64> {
    let (mut queued, mut whole) = (0.0, 0.0);
    for row in completed {
        let Some(total) = row.e2e_scheduled() else { continue };
        whole += total.ns() as f64;
        queued += row.at.between(Moment::Scheduled, Moment::Released).map_or(0.0, |d| d.ns() as f64);
    }
    (whole > 0.0).then(|| queued / whole)
}
