use crate::fluidity::Deadlines;
use tailbound_clock::{Dur, Time};

/// What the rows alone don't tell: how the run was asked for, and when it began and ended.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Just before the first arrival could leave. Warm-ups and ready checks lie before it and are not in the rows.
    pub start: Time,
    /// When the last request had ended (the drain included).
    pub end: Time,
    /// Requests per second asked for; `None` if all were to leave at once (vLLM's `inf`).
    pub request_rate: Option<f64>,
    /// Gamma shape of the arrivals: 1 is Poisson, infinity is constant gaps.
    pub burstiness: f64,
    /// The rate's ramp, if it had one (then `request_rate` is `None`).
    pub ramp: Option<Ramp>,
    /// Whether the arrivals came from timestamps in the data.
    pub self_timed: bool,
    /// At most so many requests in flight.
    pub max_concurrency: Option<u32>,
    /// What a request must meet to count as good.
    pub objectives: Objectives,
    /// When tokens are due for somebody who reads along (etalon's fluidity-index), if that is asked.
    pub deadlines: Option<Deadlines>,
    /// Whether the server was told to generate exactly the length asked for (`ignore_eos`).
    pub output_forced: bool,
    /// Whether the prompts' asked lengths were counted with the model's tokenizer (then the server must agree).
    pub prompt_lengths_exact: bool,
    /// Whether the server puts a chat template around each prompt, so that it counts more than was sent.
    pub templated: bool,
    /// Tokens a chat template may add to each prompt.
    pub prompt_overhead: u32,
    /// Whether somebody stopped the run before its end.
    pub interrupted: bool,
}

impl RunFacts {
    /// A run from `start` to `end` with everything sent at once, no cap, no objectives.
    pub fn new(start: Time, end: Time) -> RunFacts {
        RunFacts {
            start,
            end,
            request_rate: None,
            burstiness: 1.0,
            ramp: None,
            self_timed: false,
            max_concurrency: None,
            objectives: Objectives::default(),
            deadlines: None,
            output_forced: false,
            prompt_lengths_exact: false,
            templated: false,
            prompt_overhead: 0,
            interrupted: false,
        }
    }

    /// How long the run took, drain included.
    pub fn duration(&self) -> Dur {
        self.end.since(self.start)
    }

    /// Whether arrivals follow a schedule of their own, whatever the server does. Latency then counts from the schedule.
    pub fn open_loop(&self) -> bool {
        self.request_rate.is_some() || self.ramp.is_some() || self.self_timed
    }
}

/// A rate that changes over the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Its shape.
    pub law: RampLaw,
    /// Requests per second at the start.
    pub start_rps: f64,
    /// Requests per second at the end.
    pub end_rps: f64,
}

/// The shape of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampLaw {
    /// start + (end − start)·p
    Linear,
    /// start · (end/start)^p
    Exponential,
}

impl RampLaw {
    /// vLLM's word for it.
    pub fn name(self) -> &'static str {
        match self {
            RampLaw::Linear => "linear",
            RampLaw::Exponential => "exponential",
        }
    }
}

/// Which latency an objective is about; the names are vLLM's `--goodput` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectiveMetric {
    /// Time to first token.
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// End-to-end latency.
    E2el,
}

impl ObjectiveMetric {
    /// Its key: `ttft`, `tpot`, `e2el`.
    pub fn name(self) -> &'static str {
        match self {
            ObjectiveMetric::Ttft => "ttft",
            ObjectiveMetric::Tpot => "tpot",
            ObjectiveMetric::E2el => "e2el",
        }
    }
}

/// A latency limit that a request meets or misses. A limit equal to the value is met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// What it limits.
    pub metric: ObjectiveMetric,
    /// The limit in milliseconds.
    pub limit_ms: f64,
}

impl Objective {
    /// The limit in nanoseconds.
    pub fn limit_ns(&self) -> f64 {
        self.limit_ms * 1e6
    }
}

impl std::fmt::Display for Objective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.metric.name(), self.limit_ms)
    }
}

/// Why a `KEY:MS` objective could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseObjectiveError {
    /// No colon.
    #[error("objective `{0}` is not of the form KEY:MILLISECONDS, e.g. ttft:500")]
    NoColon(String),
    /// Not a metric that requests can be held to.
    #[error("objective `{0}` names `{1}`; it must be one of ttft, tpot, e2el")]
    UnknownMetric(String, String),
    /// Not a number of milliseconds, or a negative one.
    #[error("objective `{0}` needs a number of milliseconds that is not negative, not `{1}`")]
    BadLimit(String, String),
}

impl std::str::FromStr for Objective {
    type Err = ParseObjectiveError;
    fn from_str(text: &str) -> Result<Objective, ParseObjectiveError> {
        let (key, limit) = text.split_once(':').ok_or_else(|| ParseObjectiveError::NoColon(text.into()))?;
        let metric = match key.trim() {
            "ttft" => ObjectiveMetric::Ttft,
            "tpot" => ObjectiveMetric::Tpot,
            "e2el" | "e2e" => ObjectiveMetric::E2el,
            other => return Err(ParseObjectiveError::UnknownMetric(text.into(), other.into())),
        };
        let bad = || ParseObjectiveError::BadLimit(text.into(), limit.into());
        let limit_ms: f64 = limit.trim().trim_end_matches("ms").trim_end().parse().map_err(|_| bad())?;
        if !limit_ms.is_finite() || limit_ms < 0.0 {
            return Err(bad());
        }
        Ok(Objective { metric, limit_ms })
    }
}

/// What makes a request good, and how many must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Objectives {
    /// For every class that has none of its own. Empty: no objectives.
    pub all: Vec<Objective>,
    /// For single request classes (`Row::class`), instead of `all`.
    pub by_class: Vec<(u16, Vec<Objective>)>,
    /// The share of scheduled requests that must meet theirs for the run to meet its objectives.
    pub required_share: f64,
}

impl Default for Objectives {
    fn default() -> Objectives {
        Objectives { all: Vec::new(), by_class: Vec::new(), required_share: 0.99 }
    }
}

impl Objectives {
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_class.iter().all(|(_, own)| own.is_empty())
    }

    /// Those of one class.
    pub fn of(&self, class: u16) -> &[Objective] {
        self.by_class.iter().find(|(c, _)| *c == class).map_or(&self.all, |(_, own)| own)
    }
}
