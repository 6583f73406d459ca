//! How much of a prompt each replica has.

use super::holders::{Holders, Sets, bits};
use super::index::{Index, NONE};
use super::matches::Matches;

/// Room for one look-up's work, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Room {
    alive: Alive,
    /// Where the blocks of a chain are kept.
    pub(super) places: Vec<u32>,
    #[cfg(debug_assertions)]
    walked: Matches,
}

/// Blocks of a chain looked up together.
const LOOKED_UP: usize = 32;
/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX - 1;

impl Index {
    /// For each replica, how much of the chain it has from the start on without a gap.
    pub(crate) fn find(&mut self, chain: &[u64], slots: usize, block_tokens: u32, out: &mut Matches) {
        out.begin(slots, chain.len(), block_tokens);
        let mut room = std::mem::take(&mut self.room);
        if self.is_plain() {
            self.leap(chain, &mut room, out);
            #[cfg(debug_assertions)]
            self.check(chain, slots, block_tokens, &mut room, out);
        } else {
            self.walk(chain, &mut room, out);
        }
        self.room = room;
    }

    /// Leaping finds what walking would.
    #[cfg(debug_assertions)]
    fn check(&self, chain: &[u64], slots: usize, block_tokens: u32, room: &mut Room, out: &Matches) {
        let mut walked = std::mem::take(&mut room.walked);
        walked.begin(slots, chain.len(), block_tokens);
        self.walk(chain, room, &mut walked);
        (0..slots as u32).for_each(|s| assert_eq!(out.weighted(s), walked.weighted(s), "of replica {s}"));
        room.walked = walked;
    }

    /// One block after the other.
    fn walk(&self, chain: &[u64], room: &mut Room, out: &mut Matches) {
        let Room { alive, places, .. } = room;
        places.clear();
        for some in chain.chunks(LOOKED_UP) {
            places.extend(some.iter().map(|h| self.place_of(*h)));
            if places.contains(&NONE) {
                break;
            }
        }
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

    /// From one block that somebody lacks who had the one before it to the next such.
    ///
    /// Where nobody has a block without the one before it, the holders only ever get fewer along a chain. So two blocks
    /// with as many holders have the same ones, all between them too, and where they get fewer is found by halving.
    fn leap(&self, chain: &[u64], room: &mut Room, out: &mut Matches) {
        let Room { alive, places, .. } = room;
        places.clear();
        places.resize(chain.len(), UNKNOWN);
        let mut holders = |i: usize| -> Option<&Holders> {
            if places[i] == UNKNOWN {
                places[i] = self.place_of(chain[i]);
            }
            self.blocks.get(places[i] as usize).map(|b| &b.holders)
        };
        let Some(last) = chain.len().checked_sub(1) else { return };
        let Some(first) = holders(0) else { return };
        alive.start(first, &self.sets);
        let (mut from, mut many) = (0, first.len());
        loop {
            let mut as_many = |i: usize| holders(i).is_some_and(|h| h.len() == many);
            if as_many(last) {
                return alive.each(|slot| out.set(slot, chain.len() as u32));
            }
            let mut to = last;
            while to - from > 1 {
                let middle = from + (to - from) / 2;
                if as_many(middle) {
                    from = middle;
                } else {
                    to = middle;
                }
            }
            let Some(fewer) = holders(to) else { return alive.each(|slot| out.set(slot, to as u32)) };
            alive.narrow(fewer, &self.sets, |slot| out.set(slot, to as u32));
            (from, many) = (to, fewer.len());
        }
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
