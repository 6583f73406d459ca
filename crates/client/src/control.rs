use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use tailbound_record::Why;

/// The handle by which the rest of the program stops a run and watches it. Shared between threads; everything in it is atomic.
#[derive(Debug, Default)]
pub struct Control {
    phase: AtomicU8,
    why: AtomicU8,
    pub(crate) sent: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) chunks: AtomicU64,
    pub(crate) tokens: AtomicU64,
    pub(crate) connections: AtomicU64,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests written (or failed before that).
    pub sent: u64,
    /// Requests whose whole answer came.
    pub done: u64,
    /// Requests that failed or were cancelled.
    pub failed: u64,
    /// Output events of ended requests.
    pub chunks: u64,
    /// Output tokens of ended requests.
    pub tokens: u64,
    /// Connections open now.
    pub connections: u64,
}

impl Progress {
    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.done + self.failed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Run,
    Drain,
    Abort,
}

impl Control {
    /// One for a run about to start.
    pub fn new() -> Control {
        Control::default()
    }

    /// Send nothing more; requests in flight go on, for the configured grace at most. (The first Ctrl-C.)
    pub fn stop(&self, why: Why) {
        let _ = self.why.compare_exchange(0, code(why), Relaxed, Relaxed);
        self.phase.fetch_max(Phase::Drain as u8, Relaxed);
    }

    /// End now: requests in flight are cancelled. (The second Ctrl-C.)
    pub fn abort(&self, why: Why) {
        let _ = self.why.compare_exchange(0, code(why), Relaxed, Relaxed);
        self.phase.fetch_max(Phase::Abort as u8, Relaxed);
    }

    /// Where the run stands.
    pub fn progress(&self) -> Progress {
        Progress {
            sent: self.sent.load(Relaxed),
            done: self.done.load(Relaxed),
            failed: self.failed.load(Relaxed),
            chunks: self.chunks.load(Relaxed),
            tokens: self.tokens.load(Relaxed),
            connections: self.connections.load(Relaxed),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Run,
            1 => Phase::Drain,
            _ => Phase::Abort,
        }
    }

    pub(crate) fn why(&self) -> Why {
        match self.why.load(Relaxed) {
            2 => Why::Duration,
            3 => Why::Rule,
            4 => Why::Planned,
            5 => Why::Session,
            _ => Why::Interrupted,
        }
    }
}

fn code(why: Why) -> u8 {
    match why {
        Why::Interrupted => 1,
        Why::Duration => 2,
        Why::Rule => 3,
        Why::Planned => 4,
        Why::Session => 5,
    }
}
