use super::chain::{HashInput, Hashing, hash_chain};
use super::index::Index;
use super::matches::Matches;
use crate::request::Arrival;
use crate::table::Table;

/// The approximate index: what a replica was sent, it is believed to have, until its cache must have forgotten it.
#[derive(Debug)]
pub(crate) struct Approx {
    config: ApproxConfig,
    index: Index,
    block_tokens: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApproxConfig {
    pub(crate) input: HashInput,
    pub(crate) block_tokens: u32,
    /// Take block size and capacity from the engines, where they say them.
    pub(crate) auto_tune: bool,
    pub(crate) most_blocks: usize,
    pub(crate) capacity: u32,
    /// Entries of all replicas together.
    pub(crate) max_entries: usize,
}

impl Approx {
    pub(crate) fn new(config: ApproxConfig) -> Approx {
        Approx { config, index: Index::default(), block_tokens: config.block_tokens }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn chain(&self, model: &str, arrival: &Arrival, out: &mut Vec<u64>) {
        let how =
            Hashing { input: self.config.input, block_tokens: self.block_tokens, most_blocks: self.config.most_blocks };
        hash_chain(&how, model, arrival.salt, arrival.prompt, out);
    }

    pub(crate) fn find(&mut self, chain: &[u64], slots: usize, out: &mut Matches) {
        self.index.find(chain, slots, self.block_tokens, out);
    }

    /// A replica is sent this prompt.
    pub(crate) fn sent(&mut self, slot: u32, chain: &[u64]) {
        self.index.hold_chain(slot, chain, 1, |_| (), |_, _| ());
    }

    pub(crate) fn left(&mut self, slot: u32) {
        self.index.forget(slot, |_| ());
        self.index.limit(slot, 0, |_| ());
    }

    /// Replicas came, went, or said how large their caches are.
    pub(crate) fn fit(&mut self, table: &Table) {
        if self.config.auto_tune {
            let sizes = table.live.iter().filter_map(|s| table.block_size[*s as usize]);
            self.block_tokens = sizes.min().unwrap_or(self.config.block_tokens);
        }
        let share = self.config.max_entries / table.live.len().max(1);
        for slot in &table.live {
            let s = *slot as usize;
            let blocks = match (self.config.auto_tune, table.blocks[s], table.block_size[s]) {
                (true, Some(blocks), size) => {
                    let tokens = u64::from(blocks) * u64::from(size.unwrap_or(self.block_tokens));
                    tokens / u64::from(self.block_tokens)
                }
                _ => u64::from(self.config.capacity),
            };
            self.index.limit(*slot, blocks.min(share as u64) as u32, |_| ());
        }
    }
}
