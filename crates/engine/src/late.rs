use crate::{Config, Engine, KvEvents, SeqId, tail};

/// Whether blocks may wait for somebody to come near them (see [`crate::tail`]).
///
/// A tail is sound as long as nobody can have passed by its anchor, or left a block of the tail in the cache, before the
/// anchor was there. Who passed by holds its own block with the anchor's tokens, and had to keep it private because a third
/// held the same: if that never happened, every tail is sound. If it did, one of invented tokens still is, unless
/// somebody knew them before they were generated.
#[derive(Debug)]
pub(crate) struct Late {
    wanted: bool,
    /// A block stayed private.
    doubled: bool,
    /// One of given tokens did, and the next holds given tokens too.
    given_doubled: bool,
    /// One with an invented token did.
    invented_doubled: bool,
    /// The largest name of a sequence so far.
    newest: Option<SeqId>,
    /// A name was not larger than all before: it may have been used before, with the same tokens invented.
    renamed: bool,
}

impl Late {
    pub(crate) fn new(config: &Config) -> Late {
        Late {
            // KV events and tiers need the hashes at once. Drafts fill blocks several tokens at a time.
            wanted: config.prefix_caching
                && config.kv_events == KvEvents::Off
                && config.tiers.is_empty()
                && config.speculation.is_none(),
            doubled: false,
            given_doubled: false,
            invented_doubled: false,
            newest: None,
            renamed: false,
        }
    }

    /// Whether a tail may hang on a block with an `invented` token, or on one without.
    #[inline]
    pub(crate) fn allowed(&self, invented: bool) -> bool {
        let sound = !(self.given_doubled || self.invented_doubled && self.renamed);
        self.wanted && if invented { sound } else { !self.doubled }
    }

    /// A sequence was taken in.
    pub(crate) fn named(&mut self, id: SeqId) {
        self.renamed |= self.newest.is_some_and(|newest| id <= newest);
        self.newest = self.newest.max(Some(id));
    }

    /// Block `index` of a sequence with `given` tokens that are not invented stayed private.
    pub(crate) fn doubled(&mut self, index: u32, given: u32, block_size: u32) {
        self.doubled = true;
        self.given_doubled |= (index + 2) * block_size <= given;
        self.invented_doubled |= (index + 1) * block_size > given;
    }

    /// The cache is empty and nobody holds a block.
    pub(crate) fn forget(&mut self) {
        self.doubled = false;
        self.given_doubled = false;
        self.invented_doubled = false;
    }
}

impl Engine {
    /// From here on the `i`-th running sequence's blocks are only counted; that of `index` was just published.
    pub(crate) fn start_tail(&mut self, i: usize, index: usize) {
        let r = &mut self.running[i];
        let seq = &mut self.sequences[r.slot];
        seq.tail = self.blocks.hang(r.slot, seq.blocks[index], seq.id);
        for block in seq.blocks.drain(index + 1..) {
            self.blocks.drop_number(block);
            seq.late += 1;
        }
        r.publish_at = u32::MAX;
    }

    /// How many blocks of a held tail are full when `reached` tokens are computed.
    pub(crate) fn full_of_tail(&self, slot: u32, reached: u32) -> u32 {
        reached / self.config.block_size - self.sequences[slot].blocks.len() as u32
    }

    /// Computes the hashes of the full blocks of a held tail, if there is one: its sequence will look for them.
    pub(crate) fn hash_tail(&mut self, slot: u32, reached: u32) {
        let size = self.config.block_size;
        let seq = &mut self.sequences[slot];
        if seq.tail == tail::NONE {
            return;
        }
        for index in seq.hashes.len()..(reached / size) as usize {
            let hash = seq.parent(index).child(seq.block_tokens(index, size as usize, &mut self.scratch));
            seq.hashes.push(hash);
        }
    }

    /// Frees the tail that a sequence holds, if it does; `reached` of its tokens are computed.
    pub(crate) fn release_tail(&mut self, slot: u32, reached: u32) {
        let size = self.config.block_size;
        let seq = &self.sequences[slot];
        if seq.tail == tail::NONE {
            return;
        }
        let from = seq.blocks.len();
        let full = self.full_of_tail(slot, reached);
        // What it takes to know the hashes when the sequence is gone.
        let given = seq.given().div_ceil(size).min(reached / size).max(from as u32);
        self.hash_tail(slot, given * size);
        let seq = &mut self.sequences[slot];
        let tail = &mut self.blocks.tails[seq.tail];
        tail.hashes.extend_from_slice(&seq.hashes[from..given as usize]);
        tail.first = (given * size).saturating_sub(seq.prompt);
        self.blocks.release_tail(seq.tail, seq.late, full);
        seq.tail = tail::NONE;
        seq.late = 0;
    }

    /// Gives a tail's blocks numbers and hashes: somebody has come to its anchor. `scheduled` of those that run are
    /// already in the step that is being scheduled.
    pub(crate) fn uncover(&mut self, tail: u32, scheduled: usize) {
        let slot = self.blocks.tails[tail].slot;
        if slot == tail::NONE {
            return self.blocks.uncover(tail, self.config.block_size, &mut self.scratch);
        }
        let i = self.running.iter().position(|r| r.slot == slot).expect("only who runs holds a tail");
        self.attend(i);
        let r = self.running[i];
        let reached = if i < scheduled { r.reached() } else { r.computed };
        self.hash_tail(slot, reached);
        let seq = &mut self.sequences[slot];
        let from = seq.blocks.len();
        seq.blocks.extend((0..seq.late).map(|_| self.blocks.number()));
        for (index, &hash) in seq.hashes.iter().enumerate().take((reached / self.config.block_size) as usize).skip(from)
        {
            let entered = self.blocks.publish(seq.blocks[index], hash);
            debug_assert!(entered.is_ok(), "somebody else came to the anchor unseen");
        }
        self.running[i].publish_at = (reached / self.config.block_size + 1) * self.config.block_size;
        seq.late = 0;
        seq.tail = tail::NONE;
        self.blocks.tails.end(tail);
    }
}
