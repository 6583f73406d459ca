use crate::goodput::excused;
use crate::{Concurrency, Dist, FailureGroup, Goodput, Latencies, Lengths, RunFacts, Steady, Tokens, Vllm};
use tailbound_clock::Dur;
use tailbound_record::{Blame, Cause, End, Row};

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
    /// etalon's fluidity; `None` without deadlines.
    pub fluidity: Option<crate::fluidity::Figures>,
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
    /// Of those, the ones that are nobody's miss: the run was stopped by somebody, or they were never due.
    pub never_due: usize,
    /// Of the failed, those on this client's side.
    pub failed_here: usize,
    /// Of those, for want of files, ports or memory.
    pub local_limit: usize,
}

impl RequestCounts {
    /// Takes in how one more request ended (of those planned).
    pub(crate) fn count(&mut self, row: &Row) {
        match &row.end {
            End::Done(_) => self.completed += 1,
            End::Failed { blame, cause, .. } => {
                self.failed += 1;
                self.failed_here += usize::from(*blame == Blame::Client);
                self.local_limit += usize::from(*cause == Cause::LocalLimit);
            }
            End::Cancelled(_) => self.cancelled += 1,
            End::NeverSent(_) => {
                self.never_sent += 1;
                self.never_due += usize::from(excused(row));
            }
        }
    }
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

    /// Requests that count as infinitely slow beside a sample of completed ones: failed, and never sent though they were due.
    pub fn misses(&self) -> usize {
        self.requests.failed + self.requests.never_sent - self.requests.never_due
    }
}
