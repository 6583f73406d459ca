use tailbound_clock::{Dur, Time};

/// One stream event that carried output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When the bytes that completed it were received.
    pub at: Time,
    /// Which read of this request's connection it came in; events that share a read share `at`.
    pub read: u32,
    /// How many tokens it carried; 0 if nobody said.
    pub tokens: u16,
    /// Whether a user would see any of it.
    pub visible: bool,
}

/// The output events of one request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks(Vec<Chunk>);

impl Chunks {
    /// Room for `n` events without a further allocation.
    pub fn with_capacity(n: usize) -> Chunks {
        Chunks(Vec::with_capacity(n))
    }

    /// Appends an event. `tokens` is 0 where the count is unknown.
    #[inline] // once per token, from other crates
    pub fn push(&mut self, at: Time, read: u32, tokens: u16, visible: bool) {
        self.0.push(Chunk { at, read, tokens, visible });
    }

    /// The events.
    pub fn as_slice(&self) -> &[Chunk] {
        &self.0
    }

    /// The last event, to add to its token count once it is known.
    pub fn last_mut(&mut self) -> Option<&mut Chunk> {
        self.0.last_mut()
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them, as a retry must.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives back unused room, once the request has ended.
    pub fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Gaps between successive events: what the field calls inter-token latency, though an event may carry several tokens.
    pub fn gaps(&self) -> impl Iterator<Item = Dur> + '_ {
        self.0.windows(2).map(|pair| pair[1].at.since(pair[0].at))
    }

    /// The tokens of all events, where every one of them said how many it carried.
    pub fn stated_tokens(&self) -> Option<u32> {
        if self.0.is_empty() || self.0.iter().any(|chunk| chunk.tokens == 0) {
            return None;
        }
        Some(self.0.iter().map(|chunk| u32::from(chunk.tokens)).sum())
    }

    /// How many events came in the same read as the one before: their own arrival is known only to lie between the two reads.
    pub fn coalesced(&self) -> usize {
        self.0.windows(2).filter(|pair| pair[1].read == pair[0].read).count()
    }
}
