use crate::{SeqId, invented_token};
use tailbound_kv::BlockHash;

/// No tail, or no block.
pub(crate) const NONE: u32 = u32::MAX;

/// The ends of sequences whose blocks have no number and stand in no look-up.
///
/// Most blocks that nobody had before are never asked for again, so they are only counted. A tail is what follows the first
/// such block of a sequence, its anchor. Whoever wants a block of the tail has all the tokens before it, hence looks for
/// the anchor first; only then do the tail's blocks get numbers and are entered. That works because an anchor is never
/// evicted before its tail, which is released before it and which nobody else can use.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    tails: Vec<Tail>,
    vacant: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// The slot of the sequence while that holds the tail.
    pub slot: u32,
    /// The block it hangs on; [`NONE`] once it needs none.
    pub anchor: u32,
    pub hash: BlockHash,
    pub id: SeqId,
    /// The hashes of its first blocks, those with tokens that were given; filled when it is released.
    pub hashes: Vec<BlockHash>,
    /// The index in the answer of the first token after those.
    pub first: u32,
    /// Blocks left of it in the queue of free blocks, without numbers.
    pub left: u32,
    /// The same once they have numbers, with their turns as in the queue; the last goes first.
    pub blocks: Vec<(u32, u32)>,
}

impl Tails {
    /// A tail without blocks, held by the sequence in `slot`.
    pub fn start(&mut self, slot: u32, anchor: u32, hash: BlockHash, id: SeqId) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            let (hashes, blocks) = (Vec::new(), Vec::new());
            self.tails.push(Tail { slot: NONE, anchor: NONE, hash, id, hashes, first: 0, left: 0, blocks });
            self.tails.len() as u32 - 1
        });
        let tail = &mut self.tails[number as usize];
        tail.slot = slot;
        tail.anchor = anchor;
        tail.hash = hash;
        tail.id = id;
        number
    }

    /// Forgets a tail.
    pub fn end(&mut self, number: u32) {
        let tail = &mut self.tails[number as usize];
        tail.anchor = NONE;
        tail.left = 0;
        tail.hashes.clear();
        tail.blocks.clear();
        self.vacant.push(number);
    }

    /// Forgets those that wait in the queue, all there are when no block is in use.
    pub fn clear(&mut self) {
        self.vacant.clear();
        for number in 0..self.tails.len() as u32 {
            self.end(number);
        }
    }

    /// `number`, if it is a tail that hangs on `block`.
    #[inline]
    pub fn on(&self, block: u32, number: u32) -> Option<u32> {
        self.tails.get(number as usize).filter(|tail| tail.anchor == block).map(|_| number)
    }
}

impl Tail {
    /// The hash of its block `index`, which follows on that with the hash `parent`.
    pub fn hash_after(&self, parent: BlockHash, index: u32, block_size: u32, scratch: &mut Vec<u32>) -> BlockHash {
        if let Some(&hash) = self.hashes.get(index as usize) {
            return hash;
        }
        let first = self.first + (index - self.hashes.len() as u32) * block_size;
        scratch.clear();
        scratch.extend((first..first + block_size).map(|i| invented_token(self.id, i)));
        parent.child(scratch)
    }
}

impl std::ops::Index<u32> for Tails {
    type Output = Tail;
    fn index(&self, number: u32) -> &Tail {
        &self.tails[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Tails {
    fn index_mut(&mut self, number: u32) -> &mut Tail {
        &mut self.tails[number as usize]
    }
}
