//! The search for the highest rate that still meets the constraints.
//!
//! LoadGen doubles the rate until a run fails and then bisects, looking only at the latency constraint: not at early
//! stopping, the run's length, or whether the backlog grew. With 250 queries it so finds a peak 19 % over what a system
//! can physically do. The certified search walks the same way with a stricter test, [`certified`], and reports what was
//! completed instead of what was asked for.

use super::number::fixed;
use super::score::Score;

/// Which test a rate must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Criterion {
    /// LoadGen's: the latency constraint.
    #[default]
    Constraints,
    /// Ours: every check of a valid run, and no backlog.
    Certified,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Run at this rate.
    Test {
        /// Queries per second.
        qps: f64,
        /// Whether the sample set is loaded anew first, as LoadGen does while it looks for boundaries.
        load: bool,
    },
    /// The highest rate that passed.
    Found(f64),
    /// Not even the base rate passes.
    BaseFails,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Peak {
    low: f64,
    high: f64,
    factor: f64,
    scale: f64,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Base,
    Boundaries,
    Bisection,
}

impl Peak {
    /// A search from `base` queries per second that grows by `step_size` (1 doubles) and ends at `decimals` of precision.
    pub fn new(base: f64, step_size: f64, decimals: i64) -> Peak {
        let scale = libm::pow(10.0, decimals as f64);
        Peak { low: base, high: base, factor: 1.0 + step_size, scale, phase: Phase::Base }
    }

    /// The first run; what LoadGen logs goes to `messages`.
    pub fn first(&self, messages: &mut Vec<String>) -> Step {
        messages.push(format!("FindPeakPerformance: Check validity of the base settings field: {}", six(self.low)));
        Step::Test { qps: self.low, load: true }
    }

    /// The run last asked for passed, or not.
    pub fn tested(&mut self, passed: bool, messages: &mut Vec<String>) -> Step {
        match (self.phase, passed) {
            (Phase::Base, false) => return Step::BaseFails,
            (Phase::Base, true) => self.phase = Phase::Boundaries,
            (Phase::Boundaries, true) => self.low = self.high,
            (Phase::Boundaries, false) => {
                messages.push(format!(
                    "FindPeakPerformance: Found boundaries: [{}, {})",
                    six(self.low),
                    six(self.high)
                ));
                self.phase = Phase::Bisection;
                return self.bisect(true, messages);
            }
            (Phase::Bisection, true) => self.low = self.middle(),
            (Phase::Bisection, false) => self.high = self.middle(),
        }
        if self.phase == Phase::Bisection {
            return self.bisect(false, messages);
        }
        self.high = self.low * self.factor;
        messages.push(format!("FindBoundaries: Checking fields [{}, {})", six(self.low), six(self.high)));
        Step::Test { qps: self.high, load: true }
    }

    fn middle(&self) -> f64 {
        self.low + (self.high - self.low) / 2.0
    }

    fn bisect(&self, load: bool, messages: &mut Vec<String>) -> Step {
        if libm::floor(self.low * self.scale) + 1.0 >= libm::floor(self.high * self.scale) {
            messages.push(format!("FindPeakPerformance: Found peak performance field: {}", six(self.low)));
            return Step::Found(self.low);
        }
        let qps = self.middle();
        messages.push(format!(
            "FindPeakPerformanceBinarySearch: Testing the mid value of bounds [{}, {}): {}",
            six(self.low),
            six(self.high),
            six(qps)
        ));
        Step::Test { qps, load }
    }
}

fn six(value: f64) -> String {
    fixed(value, 6)
}

/// The share of the scheduled rate that a certified run must complete: what is missing is backlog.
pub const KEEPS_UP: f64 = 0.98;

/// Whether a run is one to stand by: VALID in every check, and completions kept up with arrivals.
pub fn certified(score: &Score) -> bool {
    score.decision.valid() && score.rates.completed >= KEEPS_UP * score.rates.scheduled
}

/// The rate a certified run shows: the lower of what was scheduled and what was completed.
pub fn shown(score: &Score) -> f64 {
    score.rates.completed.min(score.rates.scheduled)
}
