use tailbound_record::Row;
use tailbound_stats::servers::Servers;
use tailbound_stats::{RunFacts, Summary, Verdict};

/// Everything a report is made from.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What was measured, by name.
    pub description: &'a Description,
    /// How it was asked for.
    pub facts: &'a RunFacts,
    /// What the rows say.
    pub summary: &'a Summary,
    /// Whether it counts.
    pub verdict: &'a Verdict,
    /// The rows themselves, in any order.
    pub rows: &'a [Row],
    /// Which latencies and percentiles to show.
    pub selection: &'a Selection,
    /// What came from elsewhere than the rows.
    pub extras: &'a Extras,
}

/// Names for the run and what it ran against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Local time of its end as `YYYYmmdd-HHMMSS`.
    pub date: String,
    /// The backend, as asked for.
    pub backend: String,
    /// The user's label.
    pub label: Option<String>,
    /// The model's id.
    pub model_id: String,
    /// The tokenizer's id, if there was one.
    pub tokenizer_id: Option<String>,
    /// The context length that prompts were held to (`--max-model-len`).
    pub max_model_len: Option<u32>,
    /// The version of HTTP spoken with the server (`HTTP/1.1`, `HTTP/2`); `None` where nothing was sent.
    pub protocol: Option<&'static str>,
    /// Prompts asked for (a data set may have given fewer).
    pub num_prompts: usize,
    /// The user's own KEY=VALUE pairs.
    pub metadata: Vec<(String, String)>,
}

/// Which latencies and percentiles to show in the vLLM block and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The latencies (`--percentile-metrics`).
    pub metrics: Vec<Selected>,
    /// The percentiles, 0–100 (`--metric-percentiles`), in the order asked for.
    pub percentiles: Vec<f64>,
    /// Whether lines about tokens are shown: vLLM leaves them and TTFT, TPOT, ITL out without a tokenizer.
    pub token_lines: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            metrics: vec![Selected::Ttft, Selected::Tpot, Selected::Itl],
            percentiles: vec![99.0],
            token_lines: true,
        }
    }
}

/// A latency as vLLM names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Time to first token.
    Ttft,
    /// Time per output token, over n − 1.
    Tpot,
    /// Gaps between events.
    Itl,
    /// End-to-end latency.
    E2el,
    /// The wait for a place under the cap.
    ClientQueueTime,
    /// That and the end-to-end latency.
    E2elIncludingClientQueue,
}

/// A name that `--percentile-metrics` does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric `{0}`; known are ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue")]
pub struct ParseMetricError(pub String);

impl Selected {
    /// All of them, in the order in which they are printed.
    pub const ALL: [Selected; 6] = [
        Selected::Ttft,
        Selected::Tpot,
        Selected::Itl,
        Selected::E2el,
        Selected::ClientQueueTime,
        Selected::E2elIncludingClientQueue,
    ];

    /// Its key.
    pub fn name(self) -> &'static str {
        match self {
            Selected::Ttft => "ttft",
            Selected::Tpot => "tpot",
            Selected::Itl => "itl",
            Selected::E2el => "e2el",
            Selected::ClientQueueTime => "client_queue_time",
            Selected::E2elIncludingClientQueue => "e2el_including_client_queue",
        }
    }
}

impl std::str::FromStr for Selected {
    type Err = ParseMetricError;
    fn from_str(text: &str) -> Result<Selected, ParseMetricError> {
        let name = text.trim();
        Selected::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| ParseMetricError(name.to_owned()))
    }
}

/// What a report may hold that does not come from the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// The probes beside the load.
    pub probes: Option<Probes>,
    /// When a ramp reached each whole rate.
    pub rate_changes: Vec<RateChange>,
    /// Speculative decoding, by the server's counters.
    pub spec_decode: Option<SpecDecode>,
    /// What servers said of themselves.
    pub servers: Option<Servers>,
    /// What must hold over the run, and whether it did.
    pub thresholds: Vec<ThresholdOutcome>,
    /// Diffusion decoding, by the server's counters.
    pub diffusion: Option<Diffusion>,
    /// Seconds of audio sent by completed requests.
    pub audio_s: f64,
    /// What became of the rows of a replayed trace.
    pub trace: Option<TraceAccount>,
    /// The requests by class, by client and by turn, where they are told apart.
    pub groups: Vec<Grouping>,
    /// Queue time and TTFT as the server itself stated them, by request id; empty if it never does.
    pub server_times: Vec<ServerTimes>,
}

/// Something that must hold over a run, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdOutcome {
    /// `failed`, `ttft`, `tpot` or `e2el`.
    pub metric: &'static str,
    /// Which percentile of it (0–100, nearest rank); `None` for a share of requests.
    pub percentile: Option<f64>,
    /// Over which class; `None`: all requests.
    pub class: Option<String>,
    /// What it must stay below: s, or a share.
    pub below: f64,
    /// What it was; infinite where failures reach the percentile, `None` if it was never seen.
    pub value: Option<f64>,
    /// Whether it held. What was never seen doesn't hold.
    pub held: bool,
    /// All that in words.
    pub sentence: String,
}

/// The run's requests, told apart by one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// By what: `class`, `client`, `turn`.
    pub by: &'static str,
    /// Name and figures of each.
    pub groups: Vec<(String, tailbound_stats::Group)>,
}

/// What became of every row of a replayed trace: `rows_read + repeated` is the sum of all the others.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TraceAccount {
    /// Where the rows came from.
    pub source: String,
    /// The format they were read as.
    pub format: String,
    /// Requests in the trace.
    pub rows_read: u64,
    /// Those that can't be used: why, how many, and the first such row.
    pub dropped: Vec<(String, u64, u64)>,
    /// Outside the window asked for.
    pub outside_window: u64,
    /// Of sessions that the sample left out.
    pub not_sampled: u64,
    /// After the number of requests asked for.
    pub beyond_count: u64,
    /// After the run's time.
    pub beyond_duration: u64,
    /// Rows that were sent again, since more were asked for than there are.
    pub repeated: u64,
    /// What was left: the requests of the plan.
    pub rows_planned: u64,
    /// Sessions among them, if rows follow one another.
    pub sessions: Option<u64>,
    /// By what factor it was replayed faster than recorded.
    pub speed: Option<f64>,
}

impl TraceAccount {
    /// The invariant.
    pub fn adds_up(&self) -> bool {
        let dropped: u64 = self.dropped.iter().map(|(_, count, _)| count).sum();
        let left = self.outside_window + self.not_sampled + self.beyond_count + self.beyond_duration;
        self.rows_read + self.repeated == dropped + left + self.rows_planned
    }
}

/// One request's times as its server stated them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerTimes {
    /// Time in the server's queue, s.
    pub queue_s: Option<f64>,
    /// Time to first token, s.
    pub ttft_s: Option<f64>,
}

/// Probes beside the load. Absent latencies: none completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probes {
    /// How many were answered.
    pub completed: usize,
    /// How many were not.
    pub failed: usize,
    /// Median latency, ms.
    pub median_e2e_ms: f64,
    /// 99th percentile, ms.
    pub p99_e2e_ms: f64,
    /// Largest, ms.
    pub max_e2e_ms: f64,
}

/// A ramp's rate reached a whole number.
#[derive(Clone, Debug, PartialEq)]
pub struct RateChange {
    /// Requests per second.
    pub rps: u64,
    /// Local time, ISO 8601.
    pub timestamp: String,
}

/// Differences of the server's speculative decoding counters over the run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpecDecode {
    /// Drafts.
    pub drafts: u64,
    /// Tokens drafted.
    pub draft_tokens: u64,
    /// Of those, accepted.
    pub accepted_tokens: u64,
    /// Accepted at each position.
    pub accepted_per_position: Vec<u64>,
}

impl SpecDecode {
    /// Accepted of drafted tokens, %.
    pub fn acceptance_rate(&self) -> f64 {
        ratio(self.accepted_tokens, self.draft_tokens) * 100.0
    }

    /// Tokens per step: 1 + accepted / drafts.
    pub fn acceptance_length(&self) -> f64 {
        if self.drafts == 0 { 0.0 } else { 1.0 + ratio(self.accepted_tokens, self.drafts) }
    }

    /// Share of drafts accepted at each position, 0–1.
    pub fn per_position(&self) -> Vec<f64> {
        self.accepted_per_position.iter().map(|n| ratio(*n, self.drafts)).collect()
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Diffusion decoding over the run, from the server's counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diffusion {
    /// Committed tokens per second.
    pub committed_throughput: f64,
    /// Denoising steps per canvas.
    pub steps_per_canvas: f64,
    /// Tokens committed per denoising step.
    pub committed_per_step: f64,
    /// Tokens committed.
    pub committed_tokens: u64,
    /// Denoising steps, commit steps left out.
    pub denoising_steps: u64,
    /// Canvas positions evaluated.
    pub canvas_positions: u64,
}

/// Rows by request number.
pub fn ordered(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|r| r.id);
    rows
}

impl Run<'_> {
    /// Whether a selected latency has anything to show in this run, by vLLM's rules.
    pub(crate) fn shows(&self, metric: Selected) -> bool {
        let capped = self.facts.max_concurrency.is_some();
        self.selection.metrics.contains(&metric)
            && match metric {
                Selected::Ttft | Selected::Tpot | Selected::Itl => self.selection.token_lines,
                Selected::E2el => true,
                Selected::ClientQueueTime => capped,
                Selected::E2elIncludingClientQueue => capped && self.facts.request_rate.is_some(),
            }
    }

    /// The sample behind a selected latency, ns.
    pub(crate) fn sample(&self, metric: Selected) -> &tailbound_stats::Dist {
        let latency = &self.summary.latency;
        match metric {
            Selected::Ttft => &latency.ttft,
            Selected::Tpot => &latency.tpot_vllm,
            Selected::Itl => &latency.icl,
            Selected::E2el => &latency.e2e,
            Selected::ClientQueueTime => &self.summary.vllm.client_queue_time,
            Selected::E2elIncludingClientQueue => &self.summary.vllm.e2el_including_client_queue,
        }
    }

    /// Audio seconds per second of the run.
    pub(crate) fn rtfx(&self) -> f64 {
        let seconds = self.summary.duration.ns() as f64 / 1e9;
        if seconds > 0.0 { self.extras.audio_s / seconds } else { 0.0 }
    }
}

/// `99` or `99.9`: a percentile as vLLM writes it.
pub(crate) fn percentile_word(p: f64) -> String {
    if p.fract() == 0.0 { format!("{}", p as i64) } else { format!("{p}") }
}
