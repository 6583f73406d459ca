use super::holders::{Holders, Sets, bits};
use super::matches::Matches;
use super::order::{Order, Queue};
use crate::names::Map;
use tailbound_clock::Time;

/// Which replica has which blocks, each replica's in the order of their last use.
///
/// Bounded: a replica has at most its limit, and the limits together are the bound. An entry (a block at a replica) has
/// tiers, as bits; what none of them holds any more is gone.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_hash: Map<u64, u32>,
    pub(super) blocks: Vec<Block>,
    /// Beside `blocks`: the entry of each holder that is kept by name.
    named: Vec<[u32; Holders::FEW]>,
    /// The entries of the others, by block and replica.
    by_place: Map<u64, u32>,
    free_blocks: Vec<u32>,
    entries: Vec<Entry>,
    free_entries: Vec<u32>,
    order: Order,
    pub(super) sets: Sets,
    weights: Weights,
    /// Blocks with a holder whose best tier counts less than 1.
    slow: usize,
    /// Entries whose replica has lost the block before theirs.
    holes: usize,
    pub(super) room: super::find::Room,
}

/// One cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Block {
    hash: u64,
    pub(super) holders: Holders,
    /// Holders whose best tier counts less than 1.
    pub(super) slow: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    block: u32,
    slot: u32,
    /// How often it was used, in whatever life of its place.
    turn: u32,
    /// How often the place was used for another entry.
    pub(super) generation: u32,
    pub(super) tiers: u8,
    /// The engine's own name of the block, if known.
    pub(super) engine: Option<u64>,
    /// Until when a speculative tier is believed.
    pub(super) until: Time,
    /// The entry of the block before, if that is kept track of.
    before: Option<Name>,
    /// Entries of which this one is the entry before.
    after: u32,
}

/// An entry in one life of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) entry: u32,
    pub(crate) generation: u32,
}

/// What an entry counts, by its tiers.
#[derive(Clone, Debug)]
struct Weights([f64; 256]);

impl Default for Weights {
    fn default() -> Weights {
        Weights([1.0; 256])
    }
}

/// What an entry was, when it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) slot: u32,
    pub(crate) engine: Option<u64>,
}

impl Index {
    /// `weights[i]` is what tier `i` counts.
    pub(crate) fn with_weights(weights: &[f64; 8]) -> Index {
        let mut index = Index::default();
        for (tiers, weight) in index.weights.0.iter_mut().enumerate() {
            let held = (0..8).filter(|i| tiers >> i & 1 == 1).map(|i| weights[i]);
            *weight = held.fold(0.0, f64::max);
        }
        index
    }

    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free_entries.len()
    }

    /// Different blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.by_hash.len()
    }

    /// Entries of a replica.
    pub(crate) fn len_of(&self, slot: u32) -> u32 {
        self.order.len_of(slot)
    }

    /// A replica may have so many. What is too many goes, the longest unused first.
    pub(crate) fn limit(&mut self, slot: u32, limit: u32, mut gone: impl FnMut(Gone)) {
        self.order.queue(slot).limit = limit;
        while self.order.len_of(slot) > limit {
            if let Some(g) = self.evict(slot) {
                gone(g);
            }
        }
    }

    /// A replica has nothing any more.
    pub(crate) fn forget(&mut self, slot: u32, mut gone: impl FnMut(Gone)) {
        while let Some(g) = self.evict(slot) {
            gone(g);
        }
    }

    /// A replica has (or uses again) a block, in these tiers too. The entry's place, unless its limit is 0.
    pub(crate) fn hold(&mut self, slot: u32, hash: u64, tiers: u8, gone: impl FnMut(Gone)) -> Option<u32> {
        let block = self.by_hash.get(&hash).copied();
        self.hold_at(slot, hash, block, tiers, gone)
    }

    /// A replica has (or uses again) a prompt's blocks. The last is used first, so that a chain is forgotten from its end.
    /// `held` gets each one's entry, unless the replica's limit is 0.
    pub(crate) fn hold_chain(
        &mut self,
        slot: u32,
        chain: &[u64],
        tiers: u8,
        mut gone: impl FnMut(Gone),
        mut held: impl FnMut(&mut Index, u32),
    ) {
        let mut places = std::mem::take(&mut self.room.places);
        places.clear();
        // Looked up together, so that waiting for the memory of one is waiting for all.
        places.extend(chain.iter().map(|h| self.by_hash.get(h).copied().unwrap_or(NONE)));
        for (hash, place) in chain.iter().zip(&places).rev() {
            // Making room for one may have taken another away.
            let there = self.blocks.get(*place as usize).filter(|b| b.hash == *hash && !b.holders.is_empty());
            let block = if there.is_some() { Some(*place) } else { self.by_hash.get(hash).copied() };
            let Some(entry) = self.hold_at(slot, *hash, block, tiers, &mut gone) else { break };
            held(self, entry);
        }
        self.room.places = places;
    }

    fn hold_at(
        &mut self,
        slot: u32,
        hash: u64,
        block: Option<u32>,
        tiers: u8,
        mut gone: impl FnMut(Gone),
    ) -> Option<u32> {
        if let Some(entry) = block.and_then(|b| self.entry_at(b, slot)) {
            self.retier(entry, self.entries[entry as usize].tiers | tiers);
            self.use_again(entry);
            return Some(entry);
        }
        let Queue { limit, len, .. } = *self.order.queue(slot);
        if limit == 0 {
            return None;
        }
        let mut block = block;
        if len >= limit
            && let Some(g) = self.evict(slot)
        {
            gone(g);
            // That may have taken the block itself.
            block = self.by_hash.get(&hash).copied();
        }
        let block = block.unwrap_or_else(|| self.add_block(hash));
        let entry = self.add_entry(block, slot, tiers);
        self.order.queue(slot).len += 1;
        self.use_again(entry);
        Some(entry)
    }

    pub(crate) fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry as usize]
    }

    /// The block's hash.
    pub(super) fn hash_of(&self, entry: u32) -> u64 {
        self.blocks[self.entries[entry as usize].block as usize].hash
    }

    pub(super) fn name(&self, entry: u32) -> Name {
        Name { entry, generation: self.entries[entry as usize].generation }
    }

    /// The engine calls the block by another name now. What it called it before.
    pub(super) fn rename(&mut self, entry: u32, engine: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut self.entries[entry as usize].engine, engine)
    }

    pub(super) fn until(&mut self, entry: u32, until: Time) {
        self.entries[entry as usize].until = until;
    }

    pub(super) fn entry_of(&self, slot: u32, hash: u64) -> Option<u32> {
        self.entry_at(*self.by_hash.get(&hash)?, slot)
    }

    fn entry_at(&self, block: u32, slot: u32) -> Option<u32> {
        match self.blocks[block as usize].holders.names() {
            Some(few) => few.iter().position(|s| *s == slot).map(|i| self.named[block as usize][i]),
            None => self.by_place.get(&place(block, slot)).copied(),
        }
    }

    fn is_alive(&self, name: Name) -> bool {
        self.entries[name.entry as usize].generation == name.generation
    }

    /// Two blocks of one replica follow on each other in a prompt. Whoever says so of every block that isn't a prompt's
    /// first may have them removed in any order; whoever doesn't must remove none before those that follow on it.
    pub(super) fn link(&mut self, before: Name, after: Name) {
        if !self.is_alive(after) || self.entries[after.entry as usize].before == Some(before) {
            return;
        }
        self.unlink(after.entry);
        self.entries[after.entry as usize].before = Some(before);
        match self.is_alive(before) {
            true => self.entries[before.entry as usize].after += 1,
            false => self.holes += 1,
        }
    }

    fn unlink(&mut self, entry: u32) {
        let Some(before) = self.entries[entry as usize].before.take() else { return };
        match self.is_alive(before) {
            true => self.entries[before.entry as usize].after -= 1,
            false => self.holes -= 1,
        }
    }

    /// Whether every replica has, of each block it has, the one before it too, and all count the same.
    pub(super) fn is_plain(&self) -> bool {
        self.holes == 0 && self.slow == 0
    }

    /// The entry is in these tiers no longer.
    pub(crate) fn drop_tiers(&mut self, entry: u32, tiers: u8) -> Option<Gone> {
        let left = self.entries[entry as usize].tiers & !tiers;
        if left == 0 {
            return Some(self.remove(entry));
        }
        self.retier(entry, left);
        None
    }

    /// For each replica, how many of these it has, in whatever order.
    pub(crate) fn count(&self, hashes: &[u64], slots: usize, out: &mut Matches) {
        out.begin(slots, hashes.len(), 1);
        for block in hashes.iter().filter_map(|h| self.by_hash.get(h)).map(|b| &self.blocks[*b as usize]) {
            match block.holders.names() {
                Some(few) => few.iter().for_each(|s| out.add(*s)),
                None => bits(block.holders.set(&self.sets)).for_each(|s| out.add(s)),
            }
        }
    }

    pub(super) fn weight(&self, hash: u64, slot: u32) -> f64 {
        self.entry_of(slot, hash).map_or(0.0, |e| self.weights.0[self.entries[e as usize].tiers as usize])
    }

    /// Where a block is kept, or [`NONE`].
    pub(super) fn place_of(&self, hash: u64) -> u32 {
        self.by_hash.get(&hash).copied().unwrap_or(NONE)
    }

    fn is_slow(&self, tiers: u8) -> bool {
        self.weights.0[tiers as usize] < 1.0
    }

    fn retier(&mut self, entry: u32, tiers: u8) {
        let Entry { block, tiers: before, .. } = self.entries[entry as usize];
        if before == tiers {
            return;
        }
        self.count_slow(block, self.is_slow(before), self.is_slow(tiers));
        self.entries[entry as usize].tiers = tiers;
    }

    fn count_slow(&mut self, block: u32, before: bool, after: bool) {
        let block = &mut self.blocks[block as usize];
        self.slow -= usize::from(block.slow > 0);
        block.slow = block.slow + u32::from(after) - u32::from(before);
        self.slow += usize::from(block.slow > 0);
    }

    fn evict(&mut self, slot: u32) -> Option<Gone> {
        let first = self.order.first(slot, |entry| self.entries[entry as usize].turn)?;
        Some(self.remove(first))
    }

    fn use_again(&mut self, entry: u32) {
        let e = &mut self.entries[entry as usize];
        e.turn = e.turn.wrapping_add(1);
        let (slot, turn) = (e.slot, e.turn);
        self.order.push(slot, entry, turn, |entry| self.entries[entry as usize].turn);
    }

    fn remove(&mut self, entry: u32) -> Gone {
        self.unlink(entry);
        let Entry { block, slot, tiers, engine, after, .. } = self.entries[entry as usize];
        self.holes += after as usize;
        self.order.queue(slot).len -= 1;
        let e = &mut self.entries[entry as usize];
        e.generation += 1;
        e.turn = e.turn.wrapping_add(1);
        self.free_entries.push(entry);
        self.count_slow(block, self.is_slow(tiers), false);
        self.let_go(block, slot);
        Gone { slot, engine }
    }

    /// `slot` has `block` no longer.
    fn let_go(&mut self, block: u32, slot: u32) {
        let b = &mut self.blocks[block as usize];
        let was_wide = b.holders.names().is_none();
        let named = &mut self.named[block as usize];
        if let Some(hole) = b.holders.remove(slot, &mut self.sets) {
            named[hole] = named[b.holders.len()];
        } else if was_wide {
            self.by_place.remove(&place(block, slot));
            if let Some(few) = b.holders.names() {
                for (entry, slot) in named.iter_mut().zip(few) {
                    *entry = self.by_place.remove(&place(block, *slot)).expect("every holder has an entry");
                }
            }
        }
        if b.holders.is_empty() {
            self.by_hash.remove(&b.hash);
            self.free_blocks.push(block);
        }
    }

    fn add_block(&mut self, hash: u64) -> u32 {
        let fresh = Block { hash, ..Block::default() };
        let block = match self.free_blocks.pop() {
            Some(block) => {
                self.blocks[block as usize] = fresh;
                block
            }
            None => {
                self.blocks.push(fresh);
                self.named.push([NONE; Holders::FEW]);
                self.blocks.len() as u32 - 1
            }
        };
        self.by_hash.insert(hash, block);
        block
    }

    fn add_entry(&mut self, block: u32, slot: u32, tiers: u8) -> u32 {
        let (turn, generation) = (0, 0);
        let (engine, until, before, after) = (None, Time::ZERO, None, 0);
        let fresh = Entry { block, slot, turn, generation, tiers, engine, until, before, after };
        let entry = match self.free_entries.pop() {
            Some(entry) => {
                let Entry { turn, generation, .. } = self.entries[entry as usize];
                self.entries[entry as usize] = Entry { turn, generation, ..fresh };
                entry
            }
            None => {
                self.entries.push(fresh);
                self.entries.len() as u32 - 1
            }
        };
        self.count_slow(block, false, self.is_slow(tiers));
        let b = &mut self.blocks[block as usize];
        let named = &mut self.named[block as usize];
        let before = b.holders.names().map(<[u32]>::len);
        b.holders.add(slot, &mut self.sets);
        match (before, b.holders.names()) {
            (Some(n), Some(_)) => named[n] = entry,
            (Some(_), None) => {
                for (s, e) in b.holders.renounced().iter().zip(named.iter()) {
                    self.by_place.insert(place(block, *s), *e);
                }
                self.by_place.insert(place(block, slot), entry);
            }
            (None, _) => {
                self.by_place.insert(place(block, slot), entry);
            }
        }
        entry
    }
}

pub(super) const NONE: u32 = u32::MAX;

fn place(block: u32, slot: u32) -> u64 {
    u64::from(block) << 32 | u64::from(slot)
}
