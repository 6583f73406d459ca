//! What a driver and a test tell each other.

use tailbound_clock::{Dur, Time};

use super::detail::Identity;
use super::peak::Criterion;
use super::round::{Issue, Outcome};
use super::schedule::SetChoice;
use super::score::Score;

/// What a driver tells the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Begin.
    Start,
    /// The samples of the last [`Effect::Load`] are in memory.
    Loaded,
    /// The moment of [`Test::next_wake`](super::scenario::Test::next_wake) has come.
    Wake,
    /// A query left at `at`; without this event it left when it was asked for, or when it was due if that was later.
    Issued {
        /// Which query.
        query: u64,
        /// When its bytes were written.
        at: Time,
    },
    /// A sample's first token came.
    FirstToken {
        /// Which.
        sample: u64,
    },
    /// A sample's answer is complete.
    Completed {
        /// Which.
        sample: u64,
        /// Output tokens, in token mode.
        tokens: Option<i64>,
    },
    /// A sample's answer is complete, with the moments of it, for drivers that hear of them later than they were. Issued and answered
    /// moments are the sample's own, also where its query has many.
    Answered {
        /// Which.
        sample: u64,
        /// When its bytes were written, where that is known.
        issued: Option<Time>,
        /// When its first token came, if it was reported.
        first_token: Option<Time>,
        /// When its last token came.
        at: Time,
        /// Output tokens, in token mode.
        tokens: Option<i64>,
    },
    /// A sample will not be answered (a failed request). LoadGen knows no such thing; it is counted.
    Lost {
        /// Which.
        sample: u64,
    },
    /// Stop issuing and end once what is outstanding is answered.
    Stop,
}

/// What the test asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Load these library samples, drop earlier ones, answer with [`Event::Loaded`].
    Load(Vec<u32>),
    /// Send these queries. More than one only where the Server scenario coalesces.
    Issue(Vec<Issue>),
    /// No more queries will come in this round: a system that batches should send what it holds.
    Flush,
    /// The test is over.
    Finished,
}

/// Choices that are not LoadGen settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which samples a performance set holds.
    pub set_choice: SetChoice,
    /// How long before its due time a Server query is handed out.
    pub ahead: Dur,
    /// MultiStream by the rules of 2020: queries come at this fixed interval, and one that comes while the last is still being answered is
    /// put off by whole intervals. `None`: LoadGen's rule, the next when the last is done.
    pub interval: Option<Dur>,
    /// How long a sample may stay unanswered after everything was issued; `None` waits for ever, as LoadGen does.
    pub lost_after: Option<Dur>,
    /// Milliseconds since 1970 (UTC) at [`Time::ZERO`].
    pub wall_at_zero_ms: i64,
    /// How FindPeakPerformance judges a rate.
    pub criterion: Criterion,
    /// Warnings to log before the settings (an audit configuration was applied …).
    pub warnings: Vec<String>,
    /// Names and versions; an empty `datetime` is filled in.
    pub identity: Identity,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            set_choice: SetChoice::FirstN,
            ahead: Dur::ZERO,
            interval: None,
            lost_after: None,
            wall_at_zero_ms: 0,
            criterion: Criterion::Constraints,
            warnings: Vec::new(),
            identity: Identity::default(),
        }
    }
}

/// A performance round and its score.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened.
    pub outcome: Outcome,
    /// What it scored; `None` if no sample was completed.
    pub score: Option<Score>,
}

/// A rate a peak search tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Queries per second asked for.
    pub qps: f64,
    /// Whether it passed the criterion.
    pub passed: bool,
    /// Whether early stopping was satisfied.
    pub stopping: bool,
    /// Queries issued.
    pub queries: u64,
}
