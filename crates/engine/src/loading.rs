use crate::sequence::Place;
use crate::{Batch, Engine};
use tailbound_clock::{Dur, Time};

/// A sequence that has its blocks while what was computed elsewhere is on its way into them (vLLM's
/// `WAITING_FOR_REMOTE_KVS`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loading {
    pub slot: u32,
    /// When it is there.
    pub ready: Time,
    /// Tokens that are computed then.
    pub computed: u32,
    /// Blocks in front that could be found when it set out.
    hits: u32,
}

/// What a waiting sequence would find elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Far {
    /// In another replica's cache: so many tokens, computed then up to so many.
    Remote { tokens: u32, computed: u32 },
    /// In tiers: blocks in each of the first two, and how long it takes.
    Tiers { blocks: [u32; 2], time: Dur },
}

impl Far {
    /// Blocks that can be found in tiers.
    pub(crate) fn blocks(&self) -> u32 {
        match self {
            Far::Remote { .. } => 0,
            Far::Tiers { blocks, .. } => blocks[0] + blocks[1],
        }
    }
}

impl Engine {
    /// What could be fetched of a waiting sequence after the `hits` blocks that are here; at most up to block `usable`.
    pub(crate) fn far(&mut self, slot: u32, hits: u32, usable: u32, now: Time) -> Option<Far> {
        let size = self.config.block_size;
        let seq = &self.sequences[slot];
        if self.config.transfer.is_some() && seq.remote > hits * size {
            // The last token is computed here in any case, or there would be nothing to sample from.
            return Some(Far::Remote { tokens: seq.remote - hits * size, computed: seq.remote.min(seq.known - 1) });
        }
        if self.tiers.is_empty() {
            return None;
        }
        let mut blocks = [0u32; 2];
        // Read ahead: it is in the tier above by now, or will be at that moment.
        let mut after = now;
        for hash in seq.hashes.iter().take(usable as usize).skip(hits as usize) {
            let Some(tier) = self.tiers.find(*hash) else { break };
            match seq.prefetched {
                Some(at) if tier > 0 && self.config.tiers[tier].prefetch => {
                    after = after.max(at);
                    blocks[0] += 1;
                }
                _ => blocks[tier.min(1)] += 1,
            }
        }
        if blocks == [0; 2] {
            return None;
        }
        let block_bytes = self.config.kv_bytes_per_token * f64::from(size);
        let read = self.config.tiers.iter().zip(blocks).map(|(tier, n)| tier.read(n, block_bytes));
        // What is still being read ahead goes on to the GPU as it comes.
        let time = read.fold(Dur::ZERO, |sum, dur| sum + dur).max(after.since(now));
        Some(Far::Tiers { blocks, time })
    }

    /// A request has come: what the lower tiers have of it is read ahead, where they do that.
    pub(crate) fn prefetch(&mut self, slot: u32, now: Time) {
        if !self.config.tiers.iter().any(|t| t.prefetch) {
            return;
        }
        let block_bytes = self.config.kv_bytes_per_token * f64::from(self.config.block_size);
        let mut blocks = vec![0; self.config.tiers.len()];
        for hash in &self.sequences[slot].hashes {
            // What the GPU has needs no reading, but what follows it may.
            match self.tiers.find(*hash) {
                Some(tier) if self.blocks.find(*hash).is_none() => blocks[tier] += 1,
                None if self.blocks.find(*hash).is_none() => break,
                _ => {}
            }
        }
        let ahead = self.config.tiers.iter().zip(blocks).skip(1).filter(|(tier, _)| tier.prefetch);
        let time = ahead.map(|(tier, n)| tier.read(n, block_bytes)).fold(Dur::ZERO, |sum, dur| sum + dur);
        self.sequences[slot].prefetched = (time > Dur::ZERO).then_some(now + time);
    }

    /// The first `blocks` blocks of a sequence are used: so are their copies in the tiers, the first one last, so that a
    /// prompt is forgotten from its end.
    pub(crate) fn use_tiers(&mut self, slot: u32, blocks: u32) {
        if self.tiers.is_empty() {
            return;
        }
        for hash in self.sequences[slot].hashes.iter().take(blocks as usize).rev() {
            self.tiers.store(*hash);
        }
    }

    /// What a sequence with its blocks lacks sets out.
    pub(crate) fn set_out(&mut self, slot: u32, hits: u32, far: &Far, now: Time) -> Loading {
        let seq = &mut self.sequences[slot];
        seq.place = Place::Loading;
        let queried = u64::from(seq.known - hits * self.config.block_size);
        match *far {
            Far::Remote { tokens, computed } => {
                let time = self.config.transfer.map_or(Dur::ZERO, |t| t.time(tokens, self.config.kv_bytes_per_token));
                // It comes once: the other replica keeps it no longer.
                seq.remote = 0;
                self.counters.transferred += u64::from(tokens);
                Loading { slot, ready: now + time, computed, hits }
            }
            Far::Tiers { blocks, time } => {
                let size = self.config.block_size;
                self.counters.tier_queries += queried;
                for (hits, n) in self.counters.tier_hits.iter_mut().zip(blocks) {
                    *hits += u64::from(n * size);
                }
                Loading { slot, ready: now + time, computed: (hits + far.blocks()) * size, hits }
            }
        }
    }

    /// Those whose keys and values have come join, in the order in which they set out.
    pub(crate) fn join_loaded(&mut self, start: Time, budget: &mut u32, batch: &mut Batch) {
        let mut i = 0;
        while i < self.loading.len() && *budget > 0 && self.running.len() < self.config.max_num_seqs as usize {
            let Loading { slot, ready, computed, hits } = self.loading[i];
            let ahead = self.ahead(slot, computed);
            let n = ahead.min(*budget);
            let whole = self.config.chunked_prefill || n == ahead;
            if ready > start || !whole || !self.adapter_has_room(slot) {
                i += 1;
                continue;
            }
            self.loading.remove(i);
            let joined = self.begin(slot, computed, hits, n, start);
            self.join(joined, budget, batch);
        }
    }

    /// Tokens of a sequence that may be computed in one step, once `computed` are.
    pub(crate) fn ahead(&self, slot: u32, computed: u32) -> u32 {
        let longest = self.config.long_prefill_token_threshold.unwrap_or(u32::MAX);
        (self.sequences[slot].known - computed).min(longest)
    }

    /// Whether a sequence's adapter finds a place among those that run.
    pub(crate) fn adapter_has_room(&self, slot: u32) -> bool {
        let Some(lora) = &self.config.lora else { return true };
        self.sequences[slot].lora.is_none_or(|a| self.adapters.has_room(lora, a))
    }

    pub(crate) fn join_adapter(&mut self, slot: u32) {
        if let (Some(lora), Some(adapter)) = (&self.config.lora, self.sequences[slot].lora) {
            self.adapter_time += self.adapters.join(lora, adapter);
            self.counters.lora_loads = self.adapters.loads;
        }
    }

    pub(crate) fn leave_adapter(&mut self, slot: u32) {
        if let (Some(_), Some(adapter)) = (&self.config.lora, self.sequences[slot].lora) {
            self.adapters.leave(adapter);
        }
    }
}
