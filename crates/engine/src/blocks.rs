use crate::lookup::Lookup;
use tailbound_kv::BlockHash;

/// The blocks of the KV cache: who is used how often, who can be found by hash, who is to be taken next.
///
/// A block with no user is in the free list, from which blocks are taken at the front. One that can still be found by its
/// hash went in at the back (least recently used goes first); one that can't went in at the front. A used block is never
/// in the list, so it can't be evicted.
#[derive(Debug)]
pub(crate) struct Blocks {
    users: Vec<u32>,
    hashes: Vec<Option<BlockHash>>,
    /// A ring through the free blocks; the last index is its head.
    ring: Vec<Link>,
    free: u32,
    lookup: Lookup,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

impl Blocks {
    pub(crate) fn new(count: u32) -> Blocks {
        let ring = count + 1;
        Blocks {
            users: vec![0; count as usize],
            hashes: vec![None; count as usize],
            ring: (0..ring).map(|i| Link { prev: (i + ring - 1) % ring, next: (i + 1) % ring }).collect(),
            free: count,
            lookup: Lookup::new(count),
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.users.len() as u32
    }

    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    pub(crate) fn find(&self, hash: BlockHash) -> Option<u32> {
        self.lookup.get(hash)
    }

    pub(crate) fn is_used(&self, block: u32) -> bool {
        self.users[block as usize] > 0
    }

    /// Takes the free block that was used longest ago; its hash, if it had one, is forgotten and returned.
    pub(crate) fn take(&mut self) -> Option<(u32, Option<BlockHash>)> {
        if self.free == 0 {
            return None;
        }
        let block = self.ring[self.head()].next;
        self.unlink(block);
        self.users[block as usize] = 1;
        let evicted = self.hashes[block as usize].take();
        if let Some(hash) = evicted {
            self.lookup.remove(hash);
        }
        Some((block, evicted))
    }

    /// One user more of a block that was found.
    pub(crate) fn share(&mut self, block: u32) {
        if self.users[block as usize] == 0 {
            self.unlink(block);
        }
        self.users[block as usize] += 1;
    }

    /// One user fewer.
    pub(crate) fn release(&mut self, block: u32) {
        let users = &mut self.users[block as usize];
        debug_assert!(*users > 0, "block {block} is released more often than it was used");
        *users -= 1;
        if *users > 0 {
            return;
        }
        let head = self.head() as u32;
        match self.hashes[block as usize] {
            Some(_) => self.link(self.ring[head as usize].prev, block, head),
            None => self.link(head, block, self.ring[head as usize].next),
        }
    }

    /// Makes a block findable. `false`: another block already holds the same, and this one stays private.
    pub(crate) fn publish(&mut self, block: u32, hash: BlockHash) -> bool {
        if self.lookup.get(hash).is_some() {
            return false;
        }
        self.lookup.insert(hash, block);
        self.hashes[block as usize] = Some(hash);
        true
    }

    /// Forgets every hash, if no block is in use.
    pub(crate) fn forget(&mut self) -> bool {
        if self.free < self.count() {
            return false;
        }
        self.hashes.fill(None);
        self.lookup.clear();
        true
    }

    /// What must hold of the blocks alone; `users` counts, per block, the living sequences that hold it.
    pub(crate) fn check(&self, users: &[u32]) -> Result<(), String> {
        if let Some(b) = (0..users.len()).find(|&b| users[b] != self.users[b]) {
            return Err(format!("block {b} has {} users but counts {}", users[b], self.users[b]));
        }
        let mut listed = vec![false; users.len()];
        let (mut at, mut n) = (self.ring[self.head()].next, 0);
        while at as usize != self.head() {
            if std::mem::replace(&mut listed[at as usize], true) {
                return Err(format!("block {at} is twice in the free list"));
            }
            if self.ring[self.ring[at as usize].next as usize].prev != at {
                return Err(format!("the free list is torn after block {at}"));
            }
            at = self.ring[at as usize].next;
            n += 1;
        }
        if n != self.free {
            return Err(format!("{n} blocks in the free list, but {} counted", self.free));
        }
        if let Some(b) = (0..users.len()).find(|&b| listed[b] == (users[b] > 0)) {
            return Err(format!("block {b} has {} users and is{} free", users[b], if listed[b] { "" } else { " not" }));
        }
        let hashed = self.hashes.iter().flatten().count();
        if hashed != self.lookup.len() {
            return Err(format!("{hashed} blocks have a hash, but {} can be found", self.lookup.len()));
        }
        for (b, hash) in self.hashes.iter().enumerate() {
            if hash.is_some_and(|h| self.lookup.get(h) != Some(b as u32)) {
                return Err(format!("block {b} can't be found by its hash"));
            }
        }
        Ok(())
    }

    fn head(&self) -> usize {
        self.users.len()
    }

    fn unlink(&mut self, block: u32) {
        let Link { prev, next } = self.ring[block as usize];
        self.ring[prev as usize].next = next;
        self.ring[next as usize].prev = prev;
        self.free -= 1;
    }

    fn link(&mut self, prev: u32, block: u32, next: u32) {
        self.ring[block as usize] = Link { prev, next };
        self.ring[prev as usize].next = block;
        self.ring[next as usize].prev = block;
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_a_used_block_never() {
        let mut blocks = Blocks::new(3);
        let taken: Vec<u32> = (0..3).map(|_| blocks.take().expect("three are free").0).collect();
        assert_eq!(blocks.take(), None);
        for (i, &b) in taken.iter().enumerate() {
            assert!(blocks.publish(b, BlockHash::new(10 + i as u64)));
        }
        blocks.release(taken[1]);
        blocks.release(taken[0]);
        blocks.share(taken[1]);
        assert_eq!(blocks.take(), Some((taken[0], Some(BlockHash::new(10)))));
        assert_eq!(blocks.take(), None);
        assert_eq!(blocks.find(BlockHash::new(10)), None);
        assert_eq!(blocks.find(BlockHash::new(11)), Some(taken[1]));
        blocks.check(&[1, 1, 1]).expect("sound");
    }

    #[test]
    fn a_block_nobody_can_find_is_taken_before_a_cached_one() {
        let mut blocks = Blocks::new(2);
        let (a, _) = blocks.take().expect("free");
        let (b, _) = blocks.take().expect("free");
        assert!(blocks.publish(a, BlockHash::new(5)));
        assert!(!blocks.publish(b, BlockHash::new(5)), "the second of two equal blocks stays private");
        blocks.release(a);
        blocks.release(b);
        assert_eq!(blocks.take(), Some((b, None)));
    }
}
