//! The largest load at which the objectives hold, with an interval and a reason.
//!
//! A *probe* is one run at one load. What is asked of a load is a list of [`Requirement`]s: of the requests each one judges, at least
//! a share must meet it. DistServe's goodput, MLPerf's server QPS, etalon's capacity and percentile limits of any metric are all of that
//! form ([`Criterion`]). From the probes so far [`next`] says what to do: run another probe, or stop with an [`Answer`].
//! It is a pure function of its arguments, so a search that was cut off goes on where it was, and live and virtual searches are the same.
//!
//! How it searches, and why:
//! - *Bracket.* Short probes double or halve the load until one side is plainly clear and the other plainly hopeless. A probe ends as
//!   soon as its [`Watch`] knows which, or sees the system fall behind. That costs a few hundred requests.
//! - *Dwell.* All other requests go where they tell most: into longer probes at the load at which attainment is believed to cross the share,
//!   a little above and below it in turn. The first part of each is left out, since a system that starts empty flatters itself; and each runs
//!   to its end, since those that are let off early are the luckiest and the unluckiest.
//! - *Control.* What chance had in their arrivals is told by a toy that is fed with them, and taken off (`control.rs`).
//! - *Fit.* Attainment is fitted over all probes at once by a logistic curve in the logarithm of the load, falling by construction, near
//!   probes counting most ([`fit`](self::fit)). An isotonic fit would be monotone too, but it sees only which probe is above which and not how far away,
//!   so its root lies on a probe's load and its error shrinks with the cube root of the requests instead of the square root.
//! - *Interval.* Misses cluster: behind one long queue everybody is late. So blocks of consecutive requests, longer than
//!   the misses' memory, are drawn again (block bootstrap: what each leaves unexplained, added to the fit), and the root of every redrawn fit is one
//!   draw of the answer.
//!
//! A single run per point, bisected, is off by 7–9 % at 300 requests a point, by 3.5–4.7 % at 1,000, and says so nowhere.

mod answer;
mod blocks;
mod certify;
mod control;
mod criterion;
mod expect;
pub mod fit;
mod interval;
mod search;
mod watch;

pub use answer::{Answer, Expected, Reason};
pub use criterion::{Criterion, FirstToken, Threshold};
pub use interval::{Band, Interval, curve};
pub use search::{Step, next};
use serde::{Deserialize, Serialize};
use tailbound_clock::{Seed, Time};
pub use watch::{End, Seen, Watch};

/// A share of the requests it judges that must meet it, for the load to count as borne.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// What people call it: `ttft:500 and tpot:50`, `class chat` …
    pub name: String,
    /// The share, in (0, 1).
    pub share: f64,
}

/// What the load is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests a second, arriving whatever the system does.
    Rate,
    /// Requests in flight, a whole number.
    Concurrency,
}

/// What is searched for, and how much it may cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// At least one, at most 32.
    pub requirements: Vec<Requirement>,
    /// What the load is measured in.
    pub unit: Unit,
    /// The load of the first probe.
    pub first: f64,
    /// The search ends once its interval reaches no further than this to either side, as a share of the answer.
    pub precision: f64,
    /// Confidence of the interval, e.g. 0.95.
    pub confidence: f64,
    /// Requests that all probes may take together.
    pub budget: u64,
    /// Requests of a long probe.
    pub probe_requests: u64,
    /// The load that is asked about: then only yes or no is sought.
    pub expect: Option<f64>,
    /// Whether the answer must be certified, as MLPerf's server scenario would: by runs at the interval's lower end, until one passes early
    /// stopping in every requirement and leaves no backlog.
    pub certify: bool,
    /// Gamma shape of the gaps between arrivals (1 is Poisson) if they, and the requests' sizes, are each drawn independently of one another;
    /// `None` of a trace, whose order is its own. Then what chance had in the arrivals is taken off.
    #[serde(default)]
    pub burstiness: Option<f64>,
    /// Of the bootstrap's draws.
    pub seed: Seed,
}

/// A probe to be run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Its number, from 0: the seed of its arrivals should differ by it.
    pub number: u32,
    /// Its load.
    pub load: f64,
    /// Requests at most.
    pub requests: u64,
    /// So many of the first are not judged.
    pub settle: u64,
    /// Whether it runs to its end, however plain it is.
    #[serde(default)]
    pub whole: bool,
    /// Whether it is to certify its load, and not to search.
    #[serde(default)]
    pub certifies: bool,
}

/// How one request fared: bit `k` of `judged` if requirement `k` judges it, bit `k` of `met` if it met it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When it arrived by the plan, or left.
    pub at: Time,
    /// By whom it is judged.
    pub judged: u32,
    /// Whose requirement it met.
    pub met: u32,
    /// Tokens of its prompt, if they are known.
    #[serde(default)]
    pub prompt: Option<u32>,
    /// Tokens of its output that were asked for, if that was said.
    #[serde(default)]
    pub output: Option<u32>,
}

/// A probe that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// As it was asked for.
    pub probe: Probe,
    /// Requests it took, the unjudged ones too.
    pub requests: u64,
    /// The judged requests in the order of their arrivals.
    pub marks: Vec<Mark>,
    /// How it ended.
    pub end: End,
    /// Whether its load is a rate.
    pub open: bool,
    /// Mean number of requests in flight: under a tenth, requests hardly ever meet, and less load can't help.
    pub in_flight: f64,
    /// Requests a second that it completed, as a share of those that arrived: what is missing is backlog.
    pub kept_up: f64,
    /// Why it doesn't count, if it was INVALID: what is wrong with it was this client's doing, or it wasn't the load asked for.
    pub invalid: Option<String>,
}

impl Probed {
    /// Whether the search goes by it.
    pub fn counts(&self) -> bool {
        self.invalid.is_none() && !self.probe.certifies
    }

    /// The logarithm of its load. Of a rate, of the one at which its judged requests did arrive: random arrivals are never quite as many
    /// as planned, attainment goes with those that came, and by how much is the very slope of the curve (of gaps from a family
    /// with a scale, as Poisson's and the gamma law's, the slope *is* the covariance over the variance of the count). That alone
    /// takes a third off the answer's error.
    pub fn x(&self) -> f64 {
        libm::log(self.arrived(&self.marks).unwrap_or(self.probe.load))
    }

    /// The rate at which some of its requests arrived; `None` where that is not random or not to be told.
    fn arrived(&self, marks: &[Mark]) -> Option<f64> {
        let (first, last) = (marks.first()?, marks.last()?);
        let seconds = last.at.since(first.at).secs();
        (self.open && marks.len() >= 10 && seconds > 0.0).then(|| (marks.len() - 1) as f64 / seconds)
    }

    /// Requests that a requirement judged, and those of them that met it.
    pub fn counts_of(&self, requirement: usize) -> (usize, usize) {
        let bit = 1u32 << requirement;
        let judged = self.marks.iter().filter(|m| m.judged & bit != 0);
        (judged.clone().count(), judged.filter(|m| m.met & bit != 0).count())
    }

    /// Share met of those judged; `None` of nothing.
    pub fn attainment(&self, requirement: usize) -> Option<f64> {
        let (judged, met) = self.counts_of(requirement);
        (judged > 0).then(|| met as f64 / judged as f64)
    }
}
