use crate::{Phase, Ramp, Sessions};
use serde::{Deserialize, Serialize};
use std::fmt;
use tailbound_clock::{Dur, Seed};

/// A load as the user wrote it: one field per flag, nothing checked. [`Spec::plan`] checks it and draws the schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// `--num-prompts`: how many requests. Not given: all of `schedule`, else as many as fit into `duration`, else 1000.
    pub num_prompts: Option<u64>,
    /// `--request-rate` in requests/s; not given or infinite: all at once.
    pub request_rate: Option<f64>,
    /// `--burstiness`: the shape of the gamma distribution of the gaps. 1 (the default) is Poisson, infinite is a constant gap.
    pub burstiness: Option<f64>,
    /// `--ramp-up-strategy`.
    pub ramp_up_strategy: Option<Ramp>,
    /// `--ramp-up-start-rps` in requests/s.
    pub ramp_up_start_rps: Option<f64>,
    /// `--ramp-up-end-rps` in requests/s.
    pub ramp_up_end_rps: Option<f64>,
    /// `--arrival-normalize`.
    pub arrival_normalize: Normalize,
    /// Explicit arrivals, in order, from the start of the schedule (a trace's own times).
    pub schedule: Option<Vec<Dur>>,
    /// Which requests follow from which. The law (or the schedule) then says when sessions begin.
    pub sessions: Option<Sessions>,
    /// A scenario's: the load as phases, instead of one law.
    pub phases: Option<Vec<Phase>>,
    /// `--max-concurrency`: at most so many requests in flight.
    pub max_concurrency: Option<i64>,
    /// `--num-warmups`: requests before the schedule starts, under the same cap, not measured.
    pub num_warmups: i64,
    /// `--duration`: nothing is sent this long after the schedule's start, or later.
    pub duration: Option<Dur>,
    /// `--probe-request-rate`: tiny requests per second beside the load, outside the cap; 0 for none.
    pub probe_request_rate: f64,
    /// `--seed`.
    pub seed: Seed,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            num_prompts: None,
            request_rate: None,
            burstiness: None,
            ramp_up_strategy: None,
            ramp_up_start_rps: None,
            ramp_up_end_rps: None,
            arrival_normalize: Normalize::None,
            schedule: None,
            sessions: None,
            phases: None,
            max_concurrency: None,
            num_warmups: 0,
            duration: None,
            probe_request_rate: 0.0,
            seed: Seed(0),
        }
    }
}

/// Whether a random schedule is stretched so that its last arrival falls exactly on n/rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// As drawn: the number of requests in a given time varies as the law says.
    #[default]
    None,
    /// As vLLM does: every arrival is multiplied by the same factor. Ramps are left alone there, and here.
    Vllm,
}

/// What is wrong with a [`Spec`], and at which flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The flag, as typed on the command line (`--max-concurrency`).
    pub flag: &'static str,
    /// Its value, if the value is what's wrong.
    pub value: Option<String>,
    /// What is wrong, as a lower-case fragment.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.flag)?;
        if let Some(value) = &self.value {
            write!(f, " {value}")?;
        }
        write!(f, ": {}", self.problem)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}
