//! A request being answered.

use std::collections::VecDeque;

use tailbound_clock::{Dur, Time};
use tailbound_engine::{Emit, Finish};

use crate::fault::{Fate, Trouble};
use crate::stream::Stream;
use crate::truth::Record;

/// The name of a request in flight: its place in the slab, and how often that place was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub slot: u32,
    pub generation: u32,
}

impl Key {
    pub(super) fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(super) fn unpack(id: u64) -> Key {
        Key { slot: id as u32, generation: (id >> 32) as u32 }
    }
}

pub(super) struct Live {
    pub conn: usize,
    pub rank: usize,
    pub stream: Stream,
    pub record: Record,
    /// The prompt and what else the engine gets, until it gets it.
    pub waiting: Option<Waiting>,
    pub keep_alive: bool,
    pub old: bool,
    pub request_id: Option<String>,
    /// Draws the answer's words.
    pub seed: u64,
    /// Where its visible text ends, and why.
    pub plan: Plan,
    pub max_tokens: u32,
    /// Bytes of text so far, visible or not.
    pub said: usize,
    pub last_output: Option<Time>,
    pub fate: Fate,
    /// Outputs held back by a stall that goes on.
    pub held: Option<Vec<Emit>>,
    /// Tokens written and not yet taken by the kernel.
    pub unsent: VecDeque<Unsent>,
    /// The engine is done with it.
    pub ended: bool,
}

/// What the engine is going to be told.
pub(super) struct Waiting {
    pub prompt: Vec<u32>,
    pub priority: i32,
    pub salt: Option<u64>,
}

/// Tokens whose bytes wait in our own buffer.
#[derive(Clone, Copy)]
pub(super) struct Unsent {
    pub tokens: u32,
    pub planned: Time,
    /// They are gone when the connection has flushed this many bytes.
    pub at: u64,
}

/// How an answer will go: known beforehand, since nothing is computed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Tokens, the end-of-text token included if there is one.
    pub tokens: u32,
    pub finish: Finish,
    /// The last token has no text.
    pub ends_silently: bool,
    /// Text after so many bytes is not shown: a stop string began there.
    pub visible: usize,
    /// That string.
    pub stop: Option<String>,
}

impl Live {
    /// Whether a stall begins with this output.
    pub(super) fn stalls_at(&mut self, emit: &Emit) -> Option<Dur> {
        match self.fate.trouble {
            Some(Trouble::Stall(at, length)) if self.held.is_none() && at < emit.first + emit.tokens => {
                self.fate.trouble = None;
                self.record.fault = Some(Trouble::Stall(at, length).name());
                Some(length)
            }
            _ => None,
        }
    }

    /// Whether the connection is cut instead of sending this output.
    pub(super) fn is_cut_at(&self, emit: &Emit) -> bool {
        matches!(self.fate.trouble, Some(Trouble::Cut(at)) if at < emit.first + emit.tokens)
    }
}

/// Requests in flight, by place.
#[derive(Default)]
pub(super) struct Slab {
    slots: Vec<(u32, Option<Live>)>,
    free: Vec<u32>,
    count: usize,
}

impl Slab {
    pub(super) fn insert(&mut self, live: Live) -> Key {
        self.count += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.0 = place.0.wrapping_add(1);
        place.1 = Some(live);
        Key { slot, generation: place.0 }
    }

    pub(super) fn get(&mut self, key: Key) -> Option<&mut Live> {
        self.slots.get_mut(key.slot as usize).filter(|s| s.0 == key.generation)?.1.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Live> {
        let live = self.slots.get_mut(key.slot as usize).filter(|s| s.0 == key.generation)?.1.take()?;
        self.free.push(key.slot);
        self.count -= 1;
        Some(live)
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        let used = self.slots.iter().enumerate().filter(|(_, s)| s.1.is_some());
        used.map(|(i, s)| Key { slot: i as u32, generation: s.0 }).collect()
    }
}
