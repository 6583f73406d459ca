use crate::BlockHash;

/// A change of what an engine's prefix cache holds, one block at a time, in the order of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block became findable.
    Stored(Stored),
    /// A block was evicted.
    Removed {
        /// Which.
        hash: BlockHash,
    },
    /// Every block was forgotten.
    Cleared,
}

/// A block that became findable. On the wire, runs of these whose parents chain make one `BlockStored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Which block.
    pub hash: BlockHash,
    /// The block before it; `None` for the first of a prompt.
    pub parent: Option<BlockHash>,
    /// What separates caches of different tenants, if anything. On the wire only a chain's first block carries it.
    pub salt: Option<u64>,
    /// The adapter.
    pub lora: Option<u32>,
    /// Where its tokens stand in [`Log`]; `None` if the log keeps none.
    tokens: Option<u32>,
}

/// Events in order, with the tokens of stored blocks beside them: filled and cleared without giving back memory.
#[derive(Clone, Debug, Default)]
pub struct Log {
    events: Vec<Event>,
    tokens: Vec<u32>,
    block_size: u32,
}

impl Log {
    /// For blocks of `block_size` tokens.
    pub fn new(block_size: u32) -> Log {
        Log { block_size, ..Log::default() }
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The tokens of a stored block of this log, if they were kept.
    pub fn tokens(&self, stored: &Stored) -> Option<&[u32]> {
        let start = stored.tokens? as usize;
        self.tokens.get(start..start + self.block_size as usize)
    }

    /// Tokens in a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Notes a stored block; `tokens`, if given, are `block_size` many.
    pub fn stored(
        &mut self,
        hash: BlockHash,
        parent: Option<BlockHash>,
        salt: Option<u64>,
        lora: Option<u32>,
        tokens: Option<&[u32]>,
    ) {
        let at = tokens.map(|t| {
            debug_assert_eq!(t.len(), self.block_size as usize);
            let at = self.tokens.len() as u32;
            self.tokens.extend_from_slice(t);
            at
        });
        self.events.push(Event::Stored(Stored { hash, parent, salt, lora, tokens: at }));
    }

    /// Notes an evicted block.
    pub fn removed(&mut self, hash: BlockHash) {
        self.events.push(Event::Removed { hash });
    }

    /// Notes that everything was forgotten.
    pub fn cleared(&mut self) {
        self.events.push(Event::Cleared);
    }

    /// Forgets the events (not the cache they tell of).
    pub fn clear(&mut self) {
        self.events.clear();
        self.tokens.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_back_the_tokens_of_each_block() {
        let root = BlockHash::root(None, None);
        let mut log = Log::new(2);
        log.stored(root.child(&[1, 2]), None, None, None, Some(&[1, 2]));
        log.removed(root);
        log.stored(root.child(&[3, 4]), Some(root), Some(9), None, Some(&[3, 4]));
        log.stored(root.child(&[5, 6]), Some(root), None, Some(1), None);
        let tokens: Vec<_> = log
            .events()
            .iter()
            .filter_map(|e| match e {
                Event::Stored(s) => Some(log.tokens(s)),
                _ => None,
            })
            .collect();
        assert_eq!(tokens, [Some(&[1u32, 2][..]), Some(&[3, 4]), None]);
        log.clear();
        assert!(log.events().is_empty());
    }
}
