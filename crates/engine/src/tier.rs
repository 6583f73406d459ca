use crate::engine::IdHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use tailbound_clock::Dur;
use tailbound_kv::BlockHash;

/// A store of KV blocks below the GPU's own cache: host memory, or a disk.
///
/// Whatever the GPU computes is also written to the first tier, and the longest unused goes on from there to the next; what
/// the last has no room for is lost. Writing costs no time: it happens beside the steps (copies over PCIe use none of what
/// steps wait for). Reading does: see [`Tier::read`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tier {
    /// What it is.
    pub medium: Medium,
    /// Blocks it holds.
    pub blocks: u32,
    /// Bytes per second at which blocks come back to the GPU, of one replica.
    pub rate: f64,
    /// What every reading takes besides.
    pub latency: Dur,
    /// Whether a waiting request's blocks are read ahead into the tier above while it waits.
    pub prefetch: bool,
}

/// What a tier is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// Host memory (`cpu` in events).
    Host,
    /// A disk.
    Disk,
}

impl Tier {
    /// How long reading so many blocks of so many bytes takes.
    pub fn read(&self, blocks: u32, block_bytes: f64) -> Dur {
        match blocks {
            0 => Dur::ZERO,
            _ => self.latency + Dur::from_secs_f64(f64::from(blocks) * block_bytes / self.rate),
        }
    }
}

/// What the tiers hold, each in the order of use.
#[derive(Debug, Default)]
pub(crate) struct Tiers(Vec<Lru>);

impl Tiers {
    pub(crate) fn new(tiers: &[Tier]) -> Tiers {
        Tiers(tiers.iter().map(|t| Lru::new(t.blocks)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A block was computed or read: it is the last used of the first tier.
    pub(crate) fn store(&mut self, hash: BlockHash) {
        let mut going = Some(hash);
        for lru in &mut self.0 {
            let Some(hash) = going else { return };
            going = lru.touch(hash);
        }
    }

    /// The nearest tier that holds a block.
    pub(crate) fn find(&self, hash: BlockHash) -> Option<usize> {
        self.0.iter().position(|lru| lru.holds(hash))
    }

    /// Blocks a tier holds.
    pub(crate) fn len(&self, tier: usize) -> u32 {
        self.0[tier].index.len() as u32
    }

    pub(crate) fn clear(&mut self) {
        for lru in &mut self.0 {
            *lru = Lru::new(lru.most);
        }
    }
}

/// Blocks in the order of their last use, as a ring of links around place 0.
#[derive(Debug)]
struct Lru {
    most: u32,
    index: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u64,
    before: u32,
    after: u32,
}

impl Lru {
    fn new(most: u32) -> Lru {
        Lru { most, index: HashMap::default(), links: vec![Link { hash: 0, before: 0, after: 0 }] }
    }

    fn holds(&self, hash: BlockHash) -> bool {
        self.index.contains_key(&hash.get())
    }

    /// Makes a block the last used, entering it if need be; returns the one that had to go for it.
    fn touch(&mut self, hash: BlockHash) -> Option<BlockHash> {
        if self.most == 0 {
            return Some(hash);
        }
        if let Some(&place) = self.index.get(&hash.get()) {
            self.unlink(place);
            self.link(place);
            return None;
        }
        if self.index.len() < self.most as usize {
            self.links.push(Link { hash: hash.get(), before: 0, after: 0 });
            let place = self.links.len() as u32 - 1;
            self.index.insert(hash.get(), place);
            self.link(place);
            return None;
        }
        let oldest = self.links[0].after;
        let gone = self.links[oldest as usize].hash;
        self.index.remove(&gone);
        self.unlink(oldest);
        self.links[oldest as usize].hash = hash.get();
        self.index.insert(hash.get(), oldest);
        self.link(oldest);
        Some(BlockHash::new(gone))
    }

    /// Places a link last: before the ring's place 0.
    fn link(&mut self, place: u32) {
        let last = self.links[0].before;
        self.links[last as usize].after = place;
        self.links[0].before = place;
        let link = &mut self.links[place as usize];
        (link.before, link.after) = (last, 0);
    }

    fn unlink(&mut self, place: u32) {
        let Link { before, after, .. } = self.links[place as usize];
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(blocks: u32) -> Tier {
        Tier { medium: Medium::Host, blocks, rate: 1e9, latency: Dur::from_ms(1), prefetch: false }
    }

    fn h(n: u64) -> BlockHash {
        BlockHash::new(n)
    }

    #[test]
    fn what_one_tier_has_no_room_for_is_in_the_next_and_then_lost() {
        let mut tiers = Tiers::new(&[tier(2), tier(1)]);
        (1..=3).for_each(|n| tiers.store(h(n)));
        assert_eq!([1, 2, 3].map(|n| tiers.find(h(n))), [Some(1), Some(0), Some(0)]);
        tiers.store(h(2)); // used again
        tiers.store(h(4)); // 3 goes down, 1 is lost
        assert_eq!([1, 2, 3, 4].map(|n| tiers.find(h(n))), [None, Some(0), Some(1), Some(0)]);
        assert_eq!((tiers.len(0), tiers.len(1)), (2, 1));
        tiers.clear();
        assert_eq!(tiers.find(h(2)), None);
    }

    #[test]
    fn a_tier_without_room_passes_everything_on() {
        let mut tiers = Tiers::new(&[tier(0), tier(1)]);
        tiers.store(h(1));
        assert_eq!(tiers.find(h(1)), Some(1));
    }

    #[test]
    fn reading_takes_its_bytes_over_its_rate() {
        assert_eq!(tier(1).read(0, 1e6), Dur::ZERO);
        assert_eq!(tier(1).read(3, 1e6), Dur::from_ms(4));
    }
}
