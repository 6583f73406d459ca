//! Following a replica's KV events by their numbers: what is missed is asked for again, and what can't be had is forgotten.

use super::precise::Precise;
use tailbound_clock::Time;
use tailbound_kv::vllm::Batch;

/// One replica's events.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// The number the next message must have.
    pub(super) next: Option<u64>,
    pub(super) state: State,
    pub(super) last: Option<Time>,
    pub(super) batches: u64,
    pub(super) gaps: u64,
    pub(super) restarts: u64,
    pub(super) orphans: u64,
    pub(super) undecodable: u64,
    /// Requests sent since the last message that must have stored blocks, and when the first of them was.
    pub(super) owed: u32,
    pub(super) owed_since: Option<Time>,
    /// The highest number of a live message while catching up, and from where on was asked last.
    pub(super) latest: u64,
    pub(super) asked: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Following,
    /// Messages were missed, and asked for again; those that come meanwhile will be among them.
    Replaying,
}

/// What is to be done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// Ask for the messages from this number on.
    Replay(u64),
}

impl Precise {
    /// A message came, live or as part of a replay.
    pub(crate) fn message(&mut self, now: Time, slot: u32, seq: u64, batch: &Batch, replayed: bool) -> Next {
        let stream = self.stream(slot);
        stream.batches += 1;
        stream.last = Some(now);
        stream.owed = 0;
        stream.owed_since = None;
        let wanted = stream.next.unwrap_or(0);
        match (stream.state, replayed) {
            (State::Following, true) if seq != wanted => return Next::Nothing,
            (State::Following, _) if seq > wanted => {
                stream.gaps += u64::from(stream.next.is_some());
                stream.latest = seq;
                return stream.replay(wanted);
            }
            (State::Following, _) if seq < wanted => return self.restarted(now, slot, seq, batch),
            (State::Replaying, false) if seq < stream.latest => return self.restarted(now, slot, seq, batch),
            (State::Replaying, false) => {
                stream.latest = seq;
                return Next::Nothing;
            }
            (State::Replaying, true) if seq < wanted => return Next::Nothing,
            // The engine no longer has all that was missed: what was removed meanwhile is unknown.
            (State::Replaying, true) if seq > wanted => self.forget(slot),
            _ => {}
        }
        self.stream(slot).next = Some(seq + 1);
        self.apply(slot, batch);
        Next::Nothing
    }

    /// The numbers began anew: another process, with an empty cache.
    fn restarted(&mut self, now: Time, slot: u32, seq: u64, batch: &Batch) -> Next {
        self.forget(slot);
        let stream = self.stream(slot);
        stream.restarts += 1;
        stream.state = State::Following;
        stream.next = None;
        self.message(now, slot, seq, batch, false)
    }

    /// The replay that was asked for is over. If it wasn't there to be had, what the replica has is unknown.
    pub(crate) fn replay_ended(&mut self, slot: u32, complete: bool) -> Next {
        let stream = self.stream(slot);
        if stream.state != State::Replaying {
            return Next::Nothing;
        }
        let next = stream.next.unwrap_or(0);
        let progress = stream.asked != Some(next);
        if complete && next > stream.latest {
            stream.state = State::Following;
            return Next::Nothing;
        }
        if complete && progress {
            return stream.replay(next);
        }
        stream.state = State::Following;
        stream.next = Some(stream.latest + 1);
        self.forget(slot);
        Next::Nothing
    }

    /// The connection was lost: what is missed, and whether it is the same process after it, is unknown.
    pub(crate) fn lost(&mut self, slot: u32) -> Next {
        self.forget(slot);
        let stream = self.stream(slot);
        stream.next = None;
        stream.latest = 0;
        stream.replay(0)
    }

    /// A message came that nobody can read. Its number is taken as missed when the next one comes.
    pub(crate) fn garbled(&mut self, slot: u32) {
        self.stream(slot).undecodable += 1;
    }
}

impl Stream {
    fn replay(&mut self, from: u64) -> Next {
        self.state = State::Replaying;
        self.asked = Some(from);
        Next::Replay(from)
    }
}
