use crate::lookup::Lookup;
use std::collections::VecDeque;
use tailbound_kv::BlockHash;

/// The blocks of the KV cache: who is used how often, who can be found by hash, who is to be taken next.
///
/// A block without a user is free. One that nobody can find lies on a stack and is taken first; one that can be found
/// stands in a queue and is taken when it is the longest unused. Used blocks are never given out.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// Free blocks without a hash.
    plain: Vec<u32>,
    /// Free blocks with a hash, the longest unused in front. A block that is used again leaves its entry behind, which
    /// its turn number tells from a valid one.
    cached: VecDeque<(u32, u32)>,
    /// Free blocks.
    free: u32,
    lookup: Lookup,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    hash: Option<BlockHash>,
    users: u32,
    /// How often it was taken back from the queue out of turn.
    turn: u32,
}

impl Blocks {
    pub(crate) fn new(count: u32) -> Blocks {
        Blocks {
            blocks: vec![Block { hash: None, users: 0, turn: 0 }; count as usize],
            plain: (0..count).rev().collect(),
            cached: VecDeque::with_capacity(2 * count as usize),
            free: count,
            lookup: Lookup::new(count),
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    pub(crate) fn findable(&self) -> u32 {
        self.lookup.len() as u32
    }

    pub(crate) fn find(&self, hash: BlockHash) -> Option<u32> {
        self.lookup.get(hash, |block| self.blocks[block as usize].hash == Some(hash))
    }

    pub(crate) fn is_used(&self, block: u32) -> bool {
        self.blocks[block as usize].users > 0
    }

    /// Takes a free block; if it had a hash, that is forgotten and returned.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(u32, Option<BlockHash>)> {
        if let Some(block) = self.plain.pop() {
            self.blocks[block as usize].users = 1;
            self.free -= 1;
            return Some((block, None));
        }
        while let Some((number, turn)) = self.cached.pop_front() {
            let block = &mut self.blocks[number as usize];
            if block.turn != turn {
                continue;
            }
            block.users = 1;
            self.free -= 1;
            let evicted = block.hash.take();
            if let Some(hash) = evicted {
                self.lookup.remove(hash, number);
            }
            return Some((number, evicted));
        }
        None
    }

    /// Brings the next `count` blocks to be taken near: they were last touched long ago, and waiting for them one after
    /// the other would cost more than all the rest.
    pub(crate) fn warm(&self, count: u32) {
        let next = || self.cached.iter().take((count as usize).saturating_sub(self.plain.len()));
        let mut sum = 0;
        for &(number, _) in next() {
            sum ^= self.blocks[number as usize].users;
        }
        for &(number, _) in next() {
            sum ^= self.blocks[number as usize].hash.map_or(0, |hash| self.lookup.peek(hash));
        }
        std::hint::black_box(sum);
    }

    /// Brings near where these hashes would be found.
    pub(crate) fn warm_hashes(&self, hashes: &[BlockHash]) {
        std::hint::black_box(hashes.iter().fold(0, |sum, hash| sum ^ self.lookup.peek(*hash)));
    }

    /// One user more of a block that was found.
    pub(crate) fn share(&mut self, block: u32) {
        let block = &mut self.blocks[block as usize];
        if block.users == 0 {
            block.turn = block.turn.wrapping_add(1);
            self.free -= 1;
        }
        block.users += 1;
    }

    /// One user fewer.
    #[inline]
    pub(crate) fn release(&mut self, number: u32) {
        let block = &mut self.blocks[number as usize];
        debug_assert!(block.users > 0, "block {number} is released more often than it was used");
        block.users -= 1;
        if block.users > 0 {
            return;
        }
        self.free += 1;
        if block.hash.is_none() {
            return self.plain.push(number);
        }
        let entry = (number, block.turn);
        if self.cached.len() == self.cached.capacity() {
            self.sweep();
        }
        self.cached.push_back(entry);
    }

    /// Drops the entries left behind; at most half of the queue is valid, so this is rare.
    fn sweep(&mut self) {
        let blocks = &self.blocks;
        self.cached.retain(|&(number, turn)| blocks[number as usize].turn == turn);
    }

    /// Makes a block findable. `false`: another block already holds the same, and this one stays private.
    #[inline]
    pub(crate) fn publish(&mut self, block: u32, hash: BlockHash) -> bool {
        if self.find(hash).is_some() {
            return false;
        }
        self.lookup.insert(hash, block);
        self.blocks[block as usize].hash = Some(hash);
        true
    }

    /// Forgets every hash, if no block is in use.
    pub(crate) fn forget(&mut self) -> bool {
        if self.free < self.count() {
            return false;
        }
        for block in &mut self.blocks {
            block.hash = None;
        }
        self.lookup.clear();
        self.cached.clear();
        self.plain.clear();
        self.plain.extend((0..self.free).rev());
        true
    }

    /// What must hold of the blocks alone; `users` counts, per block, the living sequences that hold it.
    pub(crate) fn check(&self, users: &[u32]) -> Result<(), String> {
        let mut listed = vec![0u32; users.len()];
        let valid = |&&(number, turn): &&(u32, u32)| self.blocks[number as usize].turn == turn;
        for &(number, _) in self.cached.iter().filter(valid) {
            listed[number as usize] += 1;
            if self.blocks[number as usize].hash.is_none() {
                return Err(format!("block {number} is queued as cached, but has no hash"));
            }
        }
        for &number in &self.plain {
            listed[number as usize] += 1;
            if self.blocks[number as usize].hash.is_some() {
                return Err(format!("block {number} is on the stack, but has a hash"));
            }
        }
        for (number, block) in self.blocks.iter().enumerate() {
            if block.users != users[number] {
                return Err(format!("block {number} has {} users but counts {}", users[number], block.users));
            }
            if listed[number] != u32::from(block.users == 0) {
                return Err(format!("block {number} has {} users and is free {} times", block.users, listed[number]));
            }
            if block.hash.is_some_and(|h| self.find(h) != Some(number as u32)) {
                return Err(format!("block {number} can't be found by its hash"));
            }
        }
        let free = users.iter().filter(|u| **u == 0).count();
        if free != self.free as usize {
            return Err(format!("{free} blocks are free, but {} are counted", self.free));
        }
        let hashed = self.blocks.iter().filter(|b| b.hash.is_some()).count();
        if hashed != self.lookup.len() {
            return Err(format!("{hashed} blocks have a hash, but {} can be found", self.lookup.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_a_used_block_never() {
        let mut blocks = Blocks::new(3);
        let taken: Vec<u32> = (0..3).map(|_| blocks.take().unwrap().0).collect();
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
        blocks.check(&[1, 1, 1]).unwrap();
    }

    #[test]
    fn a_block_nobody_can_find_is_taken_before_a_cached_one() {
        let mut blocks = Blocks::new(2);
        let (a, _) = blocks.take().unwrap();
        let (b, _) = blocks.take().unwrap();
        assert!(blocks.publish(a, BlockHash::new(5)));
        assert!(!blocks.publish(b, BlockHash::new(5)), "the second of two equal blocks stays private");
        blocks.release(a);
        blocks.release(b);
        assert_eq!(blocks.take(), Some((b, None)));
    }

    #[test]
    fn hits_that_leave_entries_behind_do_not_grow_the_queue() {
        let mut blocks = Blocks::new(2);
        let (a, _) = blocks.take().unwrap();
        assert!(blocks.publish(a, BlockHash::new(5)));
        let room = blocks.cached.capacity();
        for _ in 0..100 {
            blocks.release(a);
            blocks.check(&[0, 0]).unwrap();
            blocks.share(a);
        }
        assert_eq!(blocks.cached.capacity(), room);
        assert!(blocks.cached.len() <= room);
    }
}
