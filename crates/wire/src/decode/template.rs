//! The chunks of one stream are alike: most differ in one string alone. A chunk that equals the last one but for that string means
//! the same, so its JSON need not be read again.
//!
//! This is exact, not a guess: what stands before the string brings the reader into the same place, the string's body is checked
//! by the reader's own rules, and from its closing quote on everything is the same.

use super::Event;
use crate::json::Str;

/// Where the text of an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    Choice(u32),
    Reasoning,
}

/// The one string that made an event output, if it was a single one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Only {
    /// Where it begins in memory, and its length: turned into an offset at once.
    address: usize,
    length: usize,
    sink: Sink,
}

impl Only {
    pub fn new(text: Str<'_>, sink: Sink) -> Only {
        Only { address: text.raw().as_ptr() as usize, length: text.raw().len(), sink }
    }
}

/// The last event of its kind.
#[derive(Debug, Default)]
pub(super) struct Template {
    name: Vec<u8>,
    data: Vec<u8>,
    /// The string's body lies here in `data`.
    start: usize,
    end: usize,
    found: Option<(Event, Sink)>,
    misses: u32,
}

/// After so many misses in a row only one event in [`RETRY`] is kept: the chunks of this stream aren't alike.
const GIVE_UP: u32 = 8;
const RETRY: u32 = 64;

impl Template {
    /// What the event is, if it is like the last one.
    #[inline]
    pub fn find<'a>(&self, name: &[u8], data: &'a [u8]) -> Option<(Event, Sink, Str<'a>)> {
        let (event, sink) = self.found?;
        let before = &self.data[..self.start];
        let after = &self.data[self.end..];
        let body_end = data.len().checked_sub(after.len()).filter(|end| *end > before.len())?;
        if !data.ends_with(after) || !data.starts_with(before) || name != self.name {
            return None;
        }
        Some((event, sink, Str::of_body(&data[before.len()..body_end])?))
    }

    /// Keeps an event that was read in full, if it is of the kind.
    pub fn keep(&mut self, name: &[u8], data: &[u8], event: &Event, only: Option<Only>) {
        self.misses = self.misses.wrapping_add(1);
        if self.misses > GIVE_UP && !self.misses.is_multiple_of(RETRY) {
            return;
        }
        self.found = None;
        let (Some(only), Some(output)) = (only, event.output) else { return };
        let plain = Event { output: Some(output), ..Event::default() };
        let start = only.address.wrapping_sub(data.as_ptr() as usize);
        if *event != plain || output.tokens.is_some() || start > data.len() || only.length > data.len() - start {
            return;
        }
        self.name.clear();
        self.name.extend_from_slice(name);
        self.data.clear();
        self.data.extend_from_slice(data);
        self.start = start;
        self.end = start + only.length;
        self.found = Some((*event, only.sink));
    }

    pub fn hit(&mut self) {
        self.misses = 0;
    }
}
