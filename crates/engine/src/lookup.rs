use tailbound_kv::BlockHash;

/// Most blocks an engine may have: what fits beside the tag in an entry.
pub(crate) const MAX_BLOCKS: u32 = (1 << BLOCK_BITS) - 1;

const BLOCK_BITS: u32 = 22;
const BLOCK_MASK: u32 = (1 << BLOCK_BITS) - 1;
/// Entries in a bucket: a cache line of them.
const WAYS: usize = 16;

/// Which block holds which hash. Simulated caches are larger than the machine's own, so a look-up must touch one cache
/// line: buckets of 16 small entries, of a fixed number, at two thirds load. An entry is nine bits of the hash and
/// the block's number plus one; zero is an empty place. What finds its bucket full goes to the next one that is not, and
/// every bucket counts how many passed it by.
#[derive(Debug)]
pub(crate) struct Lookup {
    buckets: Vec<Bucket>,
    passed: Vec<u16>,
    len: usize,
}

/// Aligned, or it would lie across two lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket([u32; WAYS]);

impl Lookup {
    pub(crate) fn new(blocks: u32) -> Lookup {
        let size = (blocks as usize * 3 / 2).div_ceil(WAYS).max(1);
        Lookup { buckets: vec![Bucket([0; WAYS]); size], passed: vec![0; size], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The block whose hash agrees with `hash` in its tag and which `is` accepts.
    #[inline]
    pub(crate) fn get(&self, hash: BlockHash, is: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        let mut at = self.home(hash);
        loop {
            let bucket = &self.buckets[at].0;
            let mut alike = 0u32;
            for (i, entry) in bucket.iter().enumerate() {
                alike |= u32::from(entry ^ tag <= BLOCK_MASK) << i;
            }
            while alike != 0 {
                let block = (bucket[alike.trailing_zeros() as usize] & BLOCK_MASK) - 1;
                if is(block) {
                    return Some(block);
                }
                alike &= alike - 1;
            }
            if self.passed[at] == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// `block` must not be there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: BlockHash, block: u32) {
        let mut at = self.home(hash);
        loop {
            if let Some(place) = self.buckets[at].0.iter().position(|e| *e == 0) {
                self.buckets[at].0[place] = tag(hash) | (block + 1);
                self.len += 1;
                return;
            }
            self.passed[at] += 1;
            at = self.after(at);
        }
    }

    /// `block` must be there, under `hash`.
    #[inline]
    pub(crate) fn remove(&mut self, hash: BlockHash, block: u32) {
        let entry = tag(hash) | (block + 1);
        let mut at = self.home(hash);
        loop {
            if let Some(place) = self.buckets[at].0.iter().position(|e| *e == entry) {
                self.buckets[at].0[place] = 0;
                self.len -= 1;
                return;
            }
            self.passed[at] -= 1;
            at = self.after(at);
        }
    }

    /// Something of the line that `hash` would be in, to have it at hand soon.
    #[inline]
    pub(crate) fn peek(&self, hash: BlockHash) -> u32 {
        self.buckets[self.home(hash)].0[0]
    }

    pub(crate) fn clear(&mut self) {
        self.buckets.fill(Bucket([0; WAYS]));
        self.passed.fill(0);
        self.len = 0;
    }

    #[inline]
    fn home(&self, hash: BlockHash) -> usize {
        let bits = (hash.get() >> 8) & 0xffff_ffff;
        ((bits * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() { 0 } else { bucket + 1 }
    }
}

/// Never zero, so that an empty place is like no tag.
#[inline]
fn tag(hash: BlockHash) -> u32 {
    ((hash.get() >> 32) as u32 | 1 << BLOCK_BITS) & !BLOCK_MASK
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_as_a_map(ops in prop::collection::vec((0u64..60, any::<bool>()), 0..600)) {
            let mut lookup = Lookup::new(60);
            let mut map = BTreeMap::new();
            // One home for most, the last bucket: what overflows, around the end, is what can go wrong.
            let hash = |k: u64| BlockHash::new(0xff << 32 | (k % 3) << 38 | (k % 5) << 60 | (k + 1));
            for (k, add) in ops {
                let block = k as u32;
                if add && map.insert(k, block).is_none() {
                    lookup.insert(hash(k), block);
                } else if !add && map.remove(&k).is_some() {
                    lookup.remove(hash(k), block);
                }
                prop_assert_eq!(lookup.len(), map.len());
            }
            for k in 0..60 {
                prop_assert_eq!(lookup.get(hash(k), |b| u64::from(b) == k), map.get(&k).copied());
            }
            for (k, block) in map {
                lookup.remove(hash(k), block);
            }
            prop_assert!(lookup.passed.iter().all(|n| *n == 0));
        }
    }
}
