//! How queries are paced beside their settings, and the clock of MultiStream by the rules of 2020: a query at every tick, or none where
//! the last one is still being answered.

use tailbound_clock::{Dur, Time};

/// How a round is paced, beside its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Server queries are issued so long ahead of their time, for a pacer that does the rest.
    pub ahead: Dur,
    /// A sample without an answer so long after its issue is given up once nothing else can happen; `None` waits for ever, as
    /// LoadGen does.
    pub lost_after: Option<Dur>,
    /// MultiStream at a fixed interval; `None`: the next query when the last is done.
    pub interval: Option<Dur>,
}

/// A query that took longer than the fixed interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Which.
    pub query: u64,
    /// How many ticks passed without a query because of it.
    pub intervals: u32,
}

/// Ticks that have passed.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks {
    passed: u64,
    pub skips: Vec<Skip>,
}

impl Ticks {
    /// When the next one comes.
    pub fn next(&self, start: Time, interval: Dur) -> Time {
        start + Dur(interval.ns().saturating_mul(self.passed))
    }

    /// It has come, with a query or, where `late` was still being answered, without.
    pub fn pass(&mut self, late: Option<u64>) {
        self.passed += 1;
        let Some(query) = late else { return };
        match self.skips.last_mut().filter(|s| s.query == query) {
            Some(skip) => skip.intervals += 1,
            None => self.skips.push(Skip { query, intervals: 1 }),
        }
    }
}
