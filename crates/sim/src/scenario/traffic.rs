use serde::Deserialize;
use std::path::PathBuf;

/// One class of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// What the report calls it.
    pub name: String,
    /// The model its requests name; `model`, if not given.
    pub model: Option<String>,
    /// How many adapters it asks for in place of the model; each request one of them.
    pub adapters: u32,
    /// How unevenly they are asked for: the k-th with weight k^−s; 0 for all alike.
    pub adapter_zipf: f64,
    /// Higher goes first; negative may be shed.
    pub priority: i32,
    /// Whose fair share it counts against.
    pub tenant: Option<String>,
    /// How many tenants send it, one after the other; their names end in a number.
    pub tenants: Option<u32>,
    /// Latency that requests ask for.
    pub objective: Option<Objective>,
    /// How long a request may wait in the queue, in milliseconds.
    pub patience_ms: Option<f64>,
    /// Clients that leave before they are answered.
    pub leaving: Option<Leaving>,
    /// Whether sessions have names that the router may keep together.
    pub affinity: bool,
    /// When requests come.
    pub arrivals: Option<Arrivals>,
    /// Prompts in groups with a beginning in common.
    pub shared_prefix: Option<SharedPrefix>,
    /// Prompts and answers of drawn lengths.
    pub lengths: Option<Lengths>,
    /// Requests of a trace.
    pub trace: Option<Trace>,
    /// Requests composed from a ServeGen pool.
    pub servegen: Option<ServeGen>,
}

/// Latency that requests ask for, and what to do when nobody can keep it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Objective {
    /// Time to the first token, from arrival.
    pub ttft_ms: Option<f64>,
    /// Time per output token.
    pub tpot_ms: Option<f64>,
    /// What to do with a request that can't be served in time.
    pub otherwise: Otherwise,
}

/// What becomes of a request whose objective no replica can keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    /// It is refused at once.
    Refuse,
    /// It waits for a replica that can.
    Wait,
    /// It is served as if it had none.
    #[default]
    Downgrade,
}

/// Clients that leave.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaving {
    /// Which share of them, 0 to 1.
    pub share: f64,
    /// When, in milliseconds after arrival: drawn exponentially with this mean.
    pub after_ms: f64,
}

/// When requests come: by a law, in stages, or as many at a time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arrivals {
    /// A law such as `poisson:20/s`, `gamma:5/s,cv=3` or `diurnal:5/s,swing=0.6,peak=15h`.
    pub law: Option<String>,
    /// (requests per second, seconds), one after the other.
    pub stages: Vec<(f64, f64)>,
    /// Gaps within stages drawn exponentially, rather than all alike.
    pub poisson: bool,
    /// A stage begins once the one before it has been answered, as in `inference-perf`, and not before its time.
    pub drain: bool,
    /// At most so many requests in flight; without a law, each answer brings the next request.
    pub concurrency: Option<u32>,
    /// How many requests.
    pub requests: Option<u32>,
    /// For how many seconds.
    pub for_s: Option<f64>,
    /// When it begins, in seconds.
    pub start_s: f64,
}

/// Prompts in groups with a beginning in common, in tokens: `inference-perf`'s `shared_prefix`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPrefix {
    /// Groups.
    pub groups: u32,
    /// Different prompts of each.
    pub prompts_per_group: u32,
    /// Tokens in common.
    pub system: u32,
    /// Tokens of a prompt's own.
    pub question: u32,
    /// Tokens of the answer.
    pub output: u32,
}

/// Laws of lengths, as `tailbound workload generate` reads them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Tokens of a prompt behind the beginning it shares; of what a turn adds.
    pub input: String,
    /// Tokens of an answer.
    pub output: String,
    /// Beginnings that requests have in common.
    pub prefix: Option<Prefix>,
    /// Conversations; arrivals are then their beginnings.
    pub turns: Option<Turns>,
}

/// Beginnings that prompts have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// How many there are.
    pub groups: u32,
    /// Tokens of each.
    pub tokens: u32,
    /// The k-th comes with weight k^−s; 0 for all alike.
    #[serde(default)]
    pub zipf: f64,
}

/// Conversations: each turn's prompt is everything said before, and what it adds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// How many, as a law.
    pub count: String,
    /// Seconds from an answer's end to the next turn, as a law.
    pub think_s: String,
}

/// Requests of a trace, in any format that `tailbound workload describe` reads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file.
    pub file: PathBuf,
    /// Its format, where its content doesn't tell.
    pub format: Option<String>,
    /// From this second …
    pub from_s: Option<f64>,
    /// … to this one.
    pub to_s: Option<f64>,
    /// Times stretched so that this many requests come in a second on average.
    pub rate: Option<f64>,
    /// Only so many requests.
    pub requests: Option<usize>,
    /// Tokens of an answer whose length the trace doesn't tell.
    pub output: Option<u32>,
}

/// Requests composed from a ServeGen pool, client by client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeGen {
    /// The pool's folder.
    pub pool: PathBuf,
    /// From this second of the pool's time …
    #[serde(default)]
    pub from_s: u32,
    /// … to this one.
    pub to_s: u32,
    /// Requests per second; the pool's own, if not given.
    pub rate: Option<f64>,
    /// Rank correlation of input and output within a client.
    #[serde(default)]
    pub rank_correlation: f64,
}
