use tailbound_kv::BlockHash;

/// Which block holds which hash: open addressing with linear probing at no more than half load, of a fixed size, so that
/// nothing is ever allocated or moved far.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// `None` is an empty place.
    places: Vec<(Option<BlockHash>, u32)>,
    mask: usize,
    len: usize,
}

impl Lookup {
    pub(crate) fn new(blocks: u32) -> Lookup {
        let size = (blocks as usize * 2).next_power_of_two().max(2);
        Lookup { places: vec![(None, 0); size], mask: size - 1, len: 0 }
    }

    pub(crate) fn get(&self, hash: BlockHash) -> Option<u32> {
        self.find(hash).map(|place| self.places[place].1)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// `hash` must not be there yet, nor may more blocks be entered than there are.
    pub(crate) fn insert(&mut self, hash: BlockHash, block: u32) {
        let mut place = self.home(hash);
        while self.places[place].0.is_some() {
            place = (place + 1) & self.mask;
        }
        self.places[place] = (Some(hash), block);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: BlockHash) {
        let Some(mut hole) = self.find(hash) else { return };
        self.len -= 1;
        // Close the gap: whatever was pushed past the hole moves back into it.
        let mut next = (hole + 1) & self.mask;
        while let Some(other) = self.places[next].0 {
            let from_home = next.wrapping_sub(self.home(other)) & self.mask;
            let from_hole = next.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        self.places[hole].0 = None;
    }

    pub(crate) fn clear(&mut self) {
        self.places.fill((None, 0));
        self.len = 0;
    }

    fn find(&self, hash: BlockHash) -> Option<usize> {
        let mut place = self.home(hash);
        loop {
            match self.places[place].0 {
                None => return None,
                Some(h) if h == hash => return Some(place),
                Some(_) => place = (place + 1) & self.mask,
            }
        }
    }

    fn home(&self, hash: BlockHash) -> usize {
        (hash.get() >> 20) as usize & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_as_a_map(ops in prop::collection::vec((0u64..24, any::<bool>()), 0..400)) {
            let mut lookup = Lookup::new(24);
            let mut map = BTreeMap::new();
            // Few homes: chains of neighbours, wrapped around the end, are what can go wrong.
            let hash = |k: u64| BlockHash::new(((k % 3 + 29) << 20) | (k + 1));
            for (n, (k, add)) in ops.into_iter().enumerate() {
                if add && !map.contains_key(&k) {
                    lookup.insert(hash(k), n as u32);
                    map.insert(k, n as u32);
                } else if !add {
                    lookup.remove(hash(k));
                    map.remove(&k);
                }
                for k in 0..24 {
                    prop_assert_eq!(lookup.get(hash(k)), map.get(&k).copied());
                }
                prop_assert_eq!(lookup.len(), map.len());
            }
        }
    }
}
