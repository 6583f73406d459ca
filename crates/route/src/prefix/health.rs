//! What tells "no events" from "no traffic".

use super::follow::{State, Stream};
use super::precise::Precise;
use tailbound_clock::Time;

/// How a replica's events are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvHealth {
    /// In one word.
    pub state: KvState,
    /// Messages taken.
    pub batches: u64,
    /// When the last one came.
    pub last: Option<Time>,
    /// Times messages were missing.
    pub gaps: u64,
    /// Times the numbering began anew: the engine is another process.
    pub restarts: u64,
    /// Blocks whose parent wasn't known: they can't be found.
    pub orphans: u64,
    /// Messages that couldn't be read.
    pub undecodable: u64,
    /// Entries of the index.
    pub entries: u32,
}

/// How a replica's events are doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvState {
    /// No events, and no traffic that should have caused any.
    NoTraffic,
    /// Requests with new blocks were sent there, and no event tells of them: the pipeline is broken.
    NoEvents,
    /// Events come.
    Live,
    /// Missed messages are being fetched.
    Replaying,
}

/// How the events of all replicas are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvPool {
    /// Replicas by [`KvState`].
    pub no_traffic: u32,
    /// … where the pipeline is broken.
    pub no_events: u32,
    /// … where events come.
    pub live: u32,
    /// … which are catching up.
    pub replaying: u32,
    /// Messages whose blocks have another size than the index.
    pub mismatched: u64,
    /// Entries of the index.
    pub entries: usize,
    /// Different blocks in it.
    pub blocks: usize,
}

/// So many requests without an event are no accident.
const OWED_MANY: u32 = 3;

impl Precise {
    pub(crate) fn health(&self, now: Time, slot: u32) -> KvHealth {
        let fresh = Stream::default();
        let s = self.streams.get(slot as usize).unwrap_or(&fresh);
        let state = match s.state {
            _ if self.is_silent(now, s) => KvState::NoEvents,
            State::Replaying => KvState::Replaying,
            State::Following if s.batches > 0 => KvState::Live,
            State::Following => KvState::NoTraffic,
        };
        KvHealth {
            state,
            batches: s.batches,
            last: s.last,
            gaps: s.gaps,
            restarts: s.restarts,
            orphans: s.orphans,
            undecodable: s.undecodable,
            entries: self.index.len_of(slot),
        }
    }

    pub(super) fn is_silent(&self, now: Time, stream: &Stream) -> bool {
        let since = stream.owed_since.map(|t| now.since(t));
        stream.owed >= OWED_MANY && since.is_some_and(|d| d > self.config.silence)
    }

    pub(crate) fn pool(&self, now: Time, live: &[u32]) -> KvPool {
        let mut pool = KvPool {
            mismatched: self.mismatched,
            entries: self.index.len(),
            blocks: self.index.blocks(),
            ..KvPool::default()
        };
        for slot in live {
            *match self.health(now, *slot).state {
                KvState::NoTraffic => &mut pool.no_traffic,
                KvState::NoEvents => &mut pool.no_events,
                KvState::Live => &mut pool.live,
                KvState::Replaying => &mut pool.replaying,
            } += 1;
        }
        pool
    }
}
