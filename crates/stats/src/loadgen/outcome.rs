//! What a round of queries leaves behind.

use tailbound_clock::Time;

use super::pacing::Skip;
use super::samples::{Ending, Sample};
use super::stop::Stop;

/// What a finished round leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completed samples in completion order.
    pub samples: Vec<Sample>,
    /// Its ending; `None` if nothing was issued.
    pub ending: Option<Ending>,
    /// Why issuing ended.
    pub stop: Stop,
    /// Samples without an answer.
    pub lost: Vec<u64>,
    /// Queries that made others wait for whole intervals (MultiStream at a fixed interval).
    pub skips: Vec<Skip>,
    /// LoadGen's errors about answers.
    pub errors: Vec<String>,
    /// When it started.
    pub start: Time,
    /// When the last answer came.
    pub last_done: Time,
}
