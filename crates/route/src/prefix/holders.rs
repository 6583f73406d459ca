//! The replicas that have one block: a few by name, many as a set of bits.

const FEW: usize = 10;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Holders {
    few: [u32; FEW],
    len: u32,
    /// Place of the set of bits, once there were more than a few.
    wide: u32,
}

/// The sets of bits, used again when given back.
#[derive(Debug, Default)]
pub(super) struct Sets {
    sets: Vec<Vec<u64>>,
    free: Vec<u32>,
}

impl Default for Holders {
    fn default() -> Holders {
        Holders { few: [NONE; FEW], len: 0, wide: NONE }
    }
}

impl Holders {
    /// As many as are kept by name.
    pub(super) const FEW: usize = FEW;

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `slot` must not be there yet.
    pub(super) fn add(&mut self, slot: u32, sets: &mut Sets) {
        if self.wide == NONE && (self.len as usize) < FEW {
            self.few[self.len as usize] = slot;
        } else {
            if self.wide == NONE {
                self.wide = sets.take();
                for s in self.few {
                    sets.insert(self.wide, s);
                }
            }
            sets.insert(self.wide, slot);
        }
        self.len += 1;
    }

    /// `slot` must be there. Its place among the names, which the last one has taken now, if it had one.
    pub(super) fn remove(&mut self, slot: u32, sets: &mut Sets) -> Option<usize> {
        self.len -= 1;
        if self.wide != NONE {
            sets.remove(self.wide, slot);
            // Back to names only when well below, so that one who comes and goes costs nothing.
            if self.len as usize <= FEW / 2 {
                self.few = [NONE; FEW];
                for (place, s) in self.few.iter_mut().zip(bits(sets.of(self.wide))) {
                    *place = s;
                }
                sets.give_back(self.wide);
                self.wide = NONE;
            }
            return None;
        }
        let last = self.len as usize;
        let place = self.few.iter().position(|s| *s == slot)?;
        self.few[place] = self.few[last];
        self.few[last] = NONE;
        Some(place)
    }

    pub(super) fn has(&self, slot: u32, sets: &Sets) -> bool {
        match self.names() {
            Some(few) => few.contains(&slot),
            None => sets.has(self.wide, slot),
        }
    }

    /// By name, if they are few.
    pub(super) fn names(&self) -> Option<&[u32]> {
        (self.wide == NONE).then(|| &self.few[..self.len as usize])
    }

    /// The names they had just before they became too many.
    pub(super) fn renounced(&self) -> &[u32] {
        &self.few
    }

    /// As bits, if they are many.
    pub(super) fn set<'a>(&self, sets: &'a Sets) -> &'a [u64] {
        sets.of(self.wide)
    }
}

impl Sets {
    fn take(&mut self) -> u32 {
        match self.free.pop() {
            Some(set) => set,
            None => {
                self.sets.push(Vec::new());
                self.sets.len() as u32 - 1
            }
        }
    }

    fn give_back(&mut self, set: u32) {
        self.sets[set as usize].fill(0);
        self.free.push(set);
    }

    fn insert(&mut self, set: u32, slot: u32) {
        let words = &mut self.sets[set as usize];
        let word = slot as usize / 64;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (slot % 64);
    }

    fn remove(&mut self, set: u32, slot: u32) {
        if let Some(word) = self.sets[set as usize].get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    fn has(&self, set: u32, slot: u32) -> bool {
        self.of(set).get(slot as usize / 64).is_some_and(|w| w >> (slot % 64) & 1 == 1)
    }

    fn of(&self, set: u32) -> &[u64] {
        &self.sets[set as usize]
    }
}

/// The slots of a set.
pub(super) fn bits(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    words.iter().enumerate().flat_map(|(i, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros();
                left &= left - 1;
                i as u32 * 64 + bit
            })
        })
    })
}
