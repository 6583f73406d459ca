/// What each replica has of one prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matches {
    /// Blocks from the start on without a gap, each counted by the weight of its tier; by slot.
    pub(super) weighted: Vec<f64>,
    pub(super) blocks: Vec<u32>,
    /// Slots that have something, or were found to have nothing: all others have nothing.
    touched: Vec<u32>,
    pub(super) total: u32,
    pub(super) block_tokens: u32,
    pub(super) any: bool,
}

impl Matches {
    /// Nobody has anything of a prompt of `total` blocks.
    pub(super) fn begin(&mut self, slots: usize, total: usize, block_tokens: u32) {
        for slot in self.touched.drain(..) {
            self.weighted[slot as usize] = 0.0;
            self.blocks[slot as usize] = 0;
        }
        self.weighted.resize(slots, 0.0);
        self.blocks.resize(slots, 0);
        self.total = total as u32;
        self.block_tokens = block_tokens;
        self.any = false;
    }

    /// Once a slot.
    pub(super) fn set(&mut self, slot: u32, blocks: u32) {
        self.blocks[slot as usize] = blocks;
        self.weighted[slot as usize] += f64::from(blocks);
        self.any |= blocks > 0;
        self.touched.push(slot);
    }

    /// One block more, which counts in full.
    pub(super) fn add(&mut self, slot: u32) {
        if self.blocks[slot as usize] == 0 {
            self.touched.push(slot);
        }
        self.blocks[slot as usize] += 1;
        self.weighted[slot as usize] += 1.0;
        self.any = true;
    }

    /// Slots of all that have something, and perhaps of others.
    pub(crate) fn touched(&self) -> &[u32] {
        &self.touched
    }

    /// Whether anybody has anything.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// The share of the prompt's blocks that are there, weighted.
    pub(crate) fn ratio(&self, slot: u32) -> f64 {
        match self.total {
            0 => 0.0,
            total => self.weighted(slot) / f64::from(total),
        }
    }

    /// Weighted blocks, by slot.
    pub(crate) fn column(&self) -> &[f64] {
        &self.weighted
    }

    /// Blocks of the prompt.
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    pub(crate) fn weighted(&self, slot: u32) -> f64 {
        self.weighted.get(slot as usize).copied().unwrap_or(0.0)
    }

    /// Tokens that are there.
    pub(crate) fn tokens(&self, slot: u32) -> u64 {
        let blocks = self.blocks.get(slot as usize).copied().unwrap_or(0);
        u64::from(blocks) * u64::from(self.block_tokens)
    }

    pub(crate) fn block_tokens(&self) -> u32 {
        self.block_tokens
    }
}
