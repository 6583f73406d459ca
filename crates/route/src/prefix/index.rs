use super::holders::{Holders, Sets, bits};
use super::matches::Matches;
use crate::names::Map;
use tailbound_clock::Time;

/// Which replica has which blocks, each replica's in the order of their last use.
///
/// Bounded: a replica has at most its limit, and the limits together are the bound. An entry (a block at a replica) has
/// tiers, as bits; what none of them holds any more is gone.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_hash: Map<u64, u32>,
    blocks: Vec<Block>,
    free_blocks: Vec<u32>,
    by_place: Map<u64, u32>,
    entries: Vec<Entry>,
    free_entries: Vec<u32>,
    queues: Vec<Queue>,
    sets: Sets,
    weights: Weights,
    alive: Alive,
    /// Places of a chain's blocks, looked up together before any of them is read.
    places: Vec<u32>,
}

/// One cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Block {
    hash: u64,
    holders: Holders,
    /// Holders whose best tier counts less than 1.
    slow: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    block: u32,
    slot: u32,
    before: u32,
    after: u32,
    /// How often the place was used for another entry.
    pub(super) generation: u32,
    pub(super) tiers: u8,
    /// The engine's own name of the block, if known.
    pub(super) engine: Option<u64>,
    /// Until when a speculative tier is believed.
    pub(super) until: Time,
}

/// One replica's entries, the longest unused first.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
    len: u32,
    limit: u32,
}

const NONE: u32 = u32::MAX;
/// Blocks of a chain looked up together.
const LOOKED_UP: usize = 32;

/// What an entry counts, by its tiers.
#[derive(Clone, Debug)]
struct Weights([f64; 256]);

impl Default for Weights {
    fn default() -> Weights {
        Weights([1.0; 256])
    }
}

/// Who still has every block so far.
#[derive(Debug, Default)]
struct Alive {
    few: Vec<u32>,
    many: Vec<u64>,
}

/// As long as more are alive, they are kept as bits.
const FEW_ALIVE: usize = 8;

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
        self.by_place.len()
    }

    /// Different blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.by_hash.len()
    }

    /// Entries of a replica.
    pub(crate) fn len_of(&self, slot: u32) -> u32 {
        self.queues.get(slot as usize).map_or(0, |q| q.len)
    }

    /// A replica may have so many. What is too many goes, the longest unused first.
    pub(crate) fn limit(&mut self, slot: u32, limit: u32, mut gone: impl FnMut(Gone)) {
        self.queue(slot).limit = limit;
        while self.queues[slot as usize].len > limit {
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
        let mut gone = gone;
        let block = self.by_hash.get(&hash).copied();
        if let Some(entry) = block.and_then(|b| self.by_place.get(&place(b, slot)).copied()) {
            self.retier(entry, self.entries[entry as usize].tiers | tiers);
            self.unlink(entry);
            self.link(entry);
            return Some(entry);
        }
        if self.queue(slot).limit == 0 {
            return None;
        }
        if self.queues[slot as usize].len >= self.queues[slot as usize].limit
            && let Some(g) = self.evict(slot)
        {
            gone(g);
        }
        // Evicting may have taken the block itself.
        let block = self.by_hash.get(&hash).copied().unwrap_or_else(|| self.add_block(hash));
        let entry = self.add_entry(block, slot, tiers);
        self.by_place.insert(place(block, slot), entry);
        let b = &mut self.blocks[block as usize];
        b.holders.add(slot, &mut self.sets);
        b.slow += u32::from(self.weights.0[tiers as usize] < 1.0);
        self.link(entry);
        Some(entry)
    }

    pub(crate) fn entry(&self, entry: u32) -> &Entry {
        &self.entries[entry as usize]
    }

    pub(super) fn name(&mut self, entry: u32, engine: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut self.entries[entry as usize].engine, engine)
    }

    pub(super) fn until(&mut self, entry: u32, until: Time) {
        self.entries[entry as usize].until = until;
    }

    pub(super) fn entry_of(&self, slot: u32, hash: u64) -> Option<u32> {
        let block = self.by_hash.get(&hash)?;
        self.by_place.get(&place(*block, slot)).copied()
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

    /// For each replica, how much of the chain it has from the start on without a gap.
    pub(crate) fn find(&mut self, chain: &[u64], slots: usize, block_tokens: u32, out: &mut Matches) {
        out.begin(slots, chain.len(), block_tokens);
        let mut alive = std::mem::take(&mut self.alive);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        for some in chain.chunks(LOOKED_UP) {
            places.extend(some.iter().map(|h| self.by_hash.get(h).copied().unwrap_or(NONE)));
            if places.contains(&NONE) {
                break;
            }
        }
        self.follow(&places, chain, &mut alive, out);
        (self.alive, self.places) = (alive, places);
    }

    fn follow(&self, places: &[u32], chain: &[u64], alive: &mut Alive, out: &mut Matches) {
        let Some(first) = places.first().and_then(|p| self.blocks.get(*p as usize)) else { return };
        alive.start(&first.holders, &self.sets);
        for (depth, (place, hash)) in places.iter().zip(chain).enumerate() {
            let Some(block) = self.blocks.get(*place as usize) else {
                alive.each(|slot| out.set(slot, depth as u32));
                return;
            };
            alive.narrow(&block.holders, &self.sets, |slot| out.set(slot, depth as u32));
            if alive.is_empty() {
                return;
            }
            if block.slow > 0 {
                alive.each(|slot| out.weighted[slot as usize] -= 1.0 - self.weight(*hash, slot));
            }
        }
        alive.each(|slot| out.set(slot, chain.len() as u32));
    }

    /// For each replica, how many of these it has, in whatever order.
    pub(crate) fn count(&self, hashes: &[u64], slots: usize, out: &mut Matches) {
        out.begin(slots, hashes.len(), 1);
        let mut add = |slot: u32| {
            out.blocks[slot as usize] += 1;
            out.weighted[slot as usize] += 1.0;
            out.any = true;
        };
        for block in hashes.iter().filter_map(|h| self.block(*h)) {
            match block.holders.names() {
                Some(few) => few.iter().for_each(|s| add(*s)),
                None => bits(block.holders.set(&self.sets)).for_each(&mut add),
            }
        }
    }

    fn weight(&self, hash: u64, slot: u32) -> f64 {
        self.entry_of(slot, hash).map_or(0.0, |e| self.weights.0[self.entries[e as usize].tiers as usize])
    }

    fn block(&self, hash: u64) -> Option<&Block> {
        self.by_hash.get(&hash).map(|b| &self.blocks[*b as usize])
    }

    fn retier(&mut self, entry: u32, tiers: u8) {
        let e = &mut self.entries[entry as usize];
        let slow = |t: u8| u32::from(self.weights.0[t as usize] < 1.0);
        let block = &mut self.blocks[e.block as usize];
        block.slow = block.slow + slow(tiers) - slow(e.tiers);
        e.tiers = tiers;
    }

    fn evict(&mut self, slot: u32) -> Option<Gone> {
        let first = self.queues.get(slot as usize)?.first;
        (first != NONE).then(|| self.remove(first))
    }

    fn remove(&mut self, entry: u32) -> Gone {
        self.unlink(entry);
        let Entry { block, slot, tiers, engine, .. } = self.entries[entry as usize];
        self.by_place.remove(&place(block, slot));
        self.entries[entry as usize].generation += 1;
        self.free_entries.push(entry);
        let b = &mut self.blocks[block as usize];
        b.slow -= u32::from(self.weights.0[tiers as usize] < 1.0);
        b.holders.remove(slot, &mut self.sets);
        if b.holders.is_empty() {
            self.by_hash.remove(&b.hash);
            self.free_blocks.push(block);
        }
        Gone { slot, engine }
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
                self.blocks.len() as u32 - 1
            }
        };
        self.by_hash.insert(hash, block);
        block
    }

    fn add_entry(&mut self, block: u32, slot: u32, tiers: u8) -> u32 {
        let fresh =
            Entry { block, slot, before: NONE, after: NONE, generation: 0, tiers, engine: None, until: Time::ZERO };
        match self.free_entries.pop() {
            Some(entry) => {
                let generation = self.entries[entry as usize].generation;
                self.entries[entry as usize] = Entry { generation, ..fresh };
                entry
            }
            None => {
                self.entries.push(fresh);
                self.entries.len() as u32 - 1
            }
        }
    }

    fn queue(&mut self, slot: u32) -> &mut Queue {
        let empty = Queue { first: NONE, last: NONE, len: 0, limit: 0 };
        if self.queues.len() <= slot as usize {
            self.queues.resize(slot as usize + 1, empty);
        }
        &mut self.queues[slot as usize]
    }

    fn link(&mut self, entry: u32) {
        let slot = self.entries[entry as usize].slot as usize;
        let last = self.queues[slot].last;
        self.entries[entry as usize].before = last;
        self.entries[entry as usize].after = NONE;
        match last {
            NONE => self.queues[slot].first = entry,
            last => self.entries[last as usize].after = entry,
        }
        self.queues[slot].last = entry;
        self.queues[slot].len += 1;
    }

    fn unlink(&mut self, entry: u32) {
        let Entry { slot, before, after, .. } = self.entries[entry as usize];
        let queue = &mut self.queues[slot as usize];
        queue.len -= 1;
        match before {
            NONE => queue.first = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.queues[slot as usize].last = before,
            after => self.entries[after as usize].before = before,
        }
    }
}

fn place(block: u32, slot: u32) -> u64 {
    u64::from(block) << 32 | u64::from(slot)
}

impl Alive {
    fn start(&mut self, holders: &Holders, sets: &Sets) {
        self.few.clear();
        self.many.clear();
        match holders.names() {
            Some(few) => self.few.extend_from_slice(few),
            None => self.many.extend_from_slice(holders.set(sets)),
        }
    }

    fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    fn each(&self, f: impl FnMut(u32)) {
        let mut f = f;
        self.few.iter().for_each(|s| f(*s));
        bits(&self.many).for_each(f);
    }

    /// Only those in `holders` stay; the others are dropped.
    fn narrow(&mut self, holders: &Holders, sets: &Sets, mut dropped: impl FnMut(u32)) {
        if self.many.is_empty() {
            self.few.retain(|slot| {
                let stays = holders.has(*slot, sets);
                if !stays {
                    dropped(*slot);
                }
                stays
            });
            return;
        }
        if let Some(names) = holders.names() {
            let many = &self.many;
            let alive = |s: &u32| many.get(*s as usize / 64).is_some_and(|w| w >> (s % 64) & 1 == 1);
            self.few.extend(names.iter().copied().filter(alive));
            bits(&self.many).filter(|s| !names.contains(s)).for_each(dropped);
            self.many.clear();
            return;
        }
        let set = holders.set(sets);
        let mut left = 0;
        for (i, word) in self.many.iter_mut().enumerate() {
            let stay = *word & set.get(i).copied().unwrap_or(0);
            if stay != *word {
                bits(&[*word & !stay]).for_each(|s| dropped(i as u32 * 64 + s));
                *word = stay;
            }
            left += stay.count_ones() as usize;
        }
        if left <= FEW_ALIVE {
            self.few.extend(bits(&self.many));
            self.many.clear();
        }
    }
}
