use crate::SeqId;
use crate::lookup::Lookup;
use crate::tail::{self, Tails};
use std::collections::VecDeque;
use tailbound_kv::BlockHash;

/// The blocks of the KV cache: who is used how often, who can be found by hash, who is to be taken next.
///
/// A block without a user is free. One that nobody can find lies on a stack and is taken first; one that can be found
/// stands in a queue and is taken when it is the longest unused. Used blocks are never given out.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// Numbers that no block has: those of free blocks without a hash, and of blocks of [`Tails`].
    numbers: Vec<u32>,
    /// Free blocks that nobody can find.
    plain: u32,
    /// Free blocks with a hash, the longest unused in front. A block that is used again leaves its entry behind, which
    /// its turn number tells from a valid one. [`TAIL`] and a tail's number stand for what is left of that.
    cached: VecDeque<(u32, u32)>,
    /// Free blocks.
    free: u32,
    /// Users of all blocks, the first of each apart.
    shared: u32,
    /// Those of them that are left of tails and have no number.
    late: u32,
    lookup: Lookup,
    pub(crate) tails: Tails,
    /// Per block the tail that may hang on it; [`Tails::on`] knows whether it does.
    anchors: Vec<u32>,
}

/// Marks an entry of the queue as a tail's.
const TAIL: u32 = 1 << 31;

/// What was in a block that was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    /// Nothing that could be found.
    Plain,
    /// A block of a tail.
    Late,
    /// What is forgotten now.
    Cached(BlockHash),
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
            numbers: (0..count).rev().collect(),
            plain: count,
            cached: VecDeque::with_capacity(2 * count as usize),
            free: count,
            shared: 0,
            late: 0,
            lookup: Lookup::new(count),
            tails: Tails::default(),
            anchors: vec![tail::NONE; count as usize],
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// How many users share blocks, the first user of each apart.
    pub(crate) fn shared(&self) -> u32 {
        self.shared
    }

    /// Blocks that can be found, but for those of tails in use.
    pub(crate) fn findable(&self) -> u32 {
        self.lookup.len() as u32 + self.late
    }

    pub(crate) fn find(&self, hash: BlockHash) -> Option<u32> {
        self.lookup.get(hash, |block| self.blocks[block as usize].hash == Some(hash))
    }

    pub(crate) fn is_used(&self, block: u32) -> bool {
        self.blocks[block as usize].users > 0
    }

    #[cfg(test)]
    fn take(&mut self) -> Option<(u32, Was)> {
        let was = self.take_unnumbered()?;
        Some((self.number(), was))
    }

    /// Gives a block that was taken a number.
    #[inline]
    pub(crate) fn number(&mut self) -> u32 {
        let number = self.numbers.pop().expect("as many numbers as blocks");
        self.blocks[number as usize].users = 1;
        number
    }

    /// Takes the number of a block that one sequence holds and nobody can find.
    pub(crate) fn drop_number(&mut self, number: u32) {
        self.blocks[number as usize].users = 0;
        self.numbers.push(number);
    }

    /// Takes a free block without giving it a number.
    #[inline]
    pub(crate) fn take_unnumbered(&mut self) -> Option<Was> {
        if self.plain > 0 {
            self.plain -= 1;
            self.free -= 1;
            return Some(Was::Plain);
        }
        while let Some(&(number, turn)) = self.cached.front() {
            let (number, turn) = if number < TAIL {
                self.cached.pop_front();
                (number, turn)
            } else {
                let tail = &mut self.tails[number - TAIL];
                if tail.left > 0 {
                    tail.left -= 1;
                    self.late -= 1;
                    self.free -= 1;
                    return Some(Was::Late);
                }
                let Some(block) = tail.blocks.pop() else {
                    self.cached.pop_front();
                    self.tails.end(number - TAIL);
                    continue;
                };
                block
            };
            let block = &mut self.blocks[number as usize];
            if block.turn != turn {
                continue;
            }
            self.free -= 1;
            self.numbers.push(number);
            let hash = block.hash.take().expect("what is in the queue has a hash");
            self.lookup.remove(hash, number);
            return Some(Was::Cached(hash));
        }
        None
    }

    /// Brings the next `count` blocks to be taken near: they were last touched long ago, and waiting for them one after
    /// the other would cost more than all the rest.
    pub(crate) fn warm(&self, count: u32) {
        let next = || {
            let next = self.cached.iter().take(count.saturating_sub(self.plain) as usize);
            next.filter(|(number, _)| *number < TAIL)
        };
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
        } else {
            self.shared += 1;
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
            self.shared -= 1;
            return;
        }
        self.free += 1;
        if block.hash.is_none() {
            self.plain += 1;
            return self.numbers.push(number);
        }
        let entry = (number, block.turn);
        self.queue(entry);
    }

    /// Frees a tail: `held` blocks, of which the first `full` can be found.
    pub(crate) fn release_tail(&mut self, number: u32, held: u32, full: u32) {
        debug_assert!(full <= held, "{full} of {held} blocks are full");
        self.free += held;
        self.plain += held - full;
        self.late += full;
        if full == 0 {
            return self.tails.end(number);
        }
        let tail = &mut self.tails[number];
        tail.slot = tail::NONE;
        tail.left = full;
        self.queue((TAIL | number, 0));
    }

    #[inline]
    fn queue(&mut self, entry: (u32, u32)) {
        if self.cached.len() == self.cached.capacity() {
            self.sweep();
        }
        self.cached.push_back(entry);
    }

    /// Drops the entries left behind; at most half of the queue is valid, so this is rare.
    fn sweep(&mut self) {
        let (blocks, tails) = (&self.blocks, &mut self.tails);
        let valid = |&(number, turn): &(u32, u32)| blocks[number as usize].turn == turn;
        self.cached.retain(|entry| {
            let Some(number) = entry.0.checked_sub(TAIL) else { return valid(entry) };
            let tail = &mut tails[number];
            tail.blocks.retain(valid);
            let some = tail.left > 0 || !tail.blocks.is_empty();
            if !some {
                tails.end(number);
            }
            some
        });
    }

    /// Makes a block findable. An error is another block that already holds the same; this one stays private.
    #[inline]
    pub(crate) fn publish(&mut self, block: u32, hash: BlockHash) -> Result<(), u32> {
        if let Some(other) = self.find(hash) {
            return Err(other);
        }
        self.lookup.insert(hash, block);
        self.blocks[block as usize].hash = Some(hash);
        Ok(())
    }

    /// Hangs a tail on a findable block.
    pub(crate) fn hang(&mut self, slot: u32, anchor: u32, id: SeqId) -> u32 {
        let hash = self.blocks[anchor as usize].hash.expect("an anchor can be found");
        let tail = self.tails.start(slot, anchor, hash, id);
        self.anchors[anchor as usize] = tail;
        tail
    }

    /// The tail that hangs on a block.
    #[inline]
    pub(crate) fn tail_on(&self, block: u32) -> Option<u32> {
        self.tails.on(block, self.anchors[block as usize])
    }

    /// Gives what is left of a tail in the queue numbers and hashes.
    pub(crate) fn uncover(&mut self, number: u32, block_size: u32, scratch: &mut Vec<u32>) {
        let tail = &mut self.tails[number];
        let mut hash = tail.hash;
        for index in 0..tail.left {
            hash = tail.hash_after(hash, index, block_size, scratch);
            let block = self.numbers.pop().expect("as many numbers as blocks");
            self.lookup.insert(hash, block);
            self.blocks[block as usize].hash = Some(hash);
            tail.blocks.push((block, self.blocks[block as usize].turn));
        }
        self.late -= tail.left;
        tail.left = 0;
        tail.anchor = tail::NONE;
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
        self.tails.clear();
        self.late = 0;
        self.plain = self.free;
        self.numbers.clear();
        self.numbers.extend((0..self.free).rev());
        true
    }

    /// What must hold of the blocks alone; `users` counts, per block, the living sequences that hold it, and `unnumbered`
    /// the blocks they hold without a number.
    pub(crate) fn check(&self, users: &[u32], unnumbered: u32) -> Result<(), String> {
        let mut listed = vec![0u32; users.len()];
        let valid = |&&(number, turn): &&(u32, u32)| self.blocks[number as usize].turn == turn;
        let mut late = 0;
        let mut queued = Vec::new();
        for entry in &self.cached {
            match entry.0.checked_sub(TAIL) {
                None => queued.push(*entry),
                Some(tail) => {
                    late += self.tails[tail].left;
                    queued.extend(&self.tails[tail].blocks);
                }
            }
        }
        let numberless = self.plain + late + unnumbered;
        if late != self.late || numberless as usize != self.numbers.len() {
            let (counted, numbers) = (self.late, self.numbers.len());
            return Err(format!(
                "{late} blocks of tails are free, but {counted} counted; {numberless} have no number of {numbers}"
            ));
        }
        for &(number, _) in queued.iter().filter(valid) {
            listed[number as usize] += 1;
            if self.blocks[number as usize].hash.is_none() {
                return Err(format!("block {number} is queued as cached, but has no hash"));
            }
        }
        for &number in &self.numbers {
            listed[number as usize] += 1;
            if self.blocks[number as usize].hash.is_some() {
                return Err(format!("nobody is number {number}, but it has a hash"));
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
        let shared: u32 = users.iter().map(|u| u.saturating_sub(1)).sum();
        if shared != self.shared {
            return Err(format!("{shared} users share blocks, but {} are counted", self.shared));
        }
        let free = users.iter().filter(|u| **u == 0).count() as u32 - unnumbered;
        if free != self.free {
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
            blocks.publish(b, BlockHash::new(10 + i as u64)).unwrap();
        }
        blocks.release(taken[1]);
        blocks.release(taken[0]);
        blocks.share(taken[1]);
        assert_eq!(blocks.take(), Some((taken[0], Was::Cached(BlockHash::new(10)))));
        assert_eq!(blocks.take(), None);
        assert_eq!(blocks.find(BlockHash::new(10)), None);
        assert_eq!(blocks.find(BlockHash::new(11)), Some(taken[1]));
        blocks.check(&[1, 1, 1], 0).unwrap();
    }

    #[test]
    fn a_block_nobody_can_find_is_taken_before_a_cached_one() {
        let mut blocks = Blocks::new(2);
        let (a, _) = blocks.take().unwrap();
        let (b, _) = blocks.take().unwrap();
        blocks.publish(a, BlockHash::new(5)).unwrap();
        assert_eq!(blocks.publish(b, BlockHash::new(5)), Err(a), "the second of two equal blocks stays private");
        blocks.release(a);
        blocks.release(b);
        assert_eq!(blocks.take(), Some((b, Was::Plain)));
    }

    #[test]
    fn hits_that_leave_entries_behind_do_not_grow_the_queue() {
        let mut blocks = Blocks::new(2);
        let (a, _) = blocks.take().unwrap();
        blocks.publish(a, BlockHash::new(5)).unwrap();
        let room = blocks.cached.capacity();
        for _ in 0..100 {
            blocks.release(a);
            blocks.check(&[0, 0], 0).unwrap();
            blocks.share(a);
        }
        assert_eq!(blocks.cached.capacity(), room);
        assert!(blocks.cached.len() <= room);
    }
}
