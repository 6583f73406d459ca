//! What a prefix cache would have hit: every LRU size at once, by stack distances (Mattson et al. 1970).

use crate::describe::lengths::{Histogram, LengthFigures};
use crate::hash::FixedMap;
use serde::Serialize;

/// The cache sizes reported one by one, in blocks; `None` is infinite.
pub const CAPACITIES: [Option<u64>; 6] = [None, Some(100), Some(1000), Some(10_000), Some(30_000), Some(50_000)];

/// Prefix sharing of a trace with block ids.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrefixFigures {
    /// Tokens per block.
    pub block_tokens: u32,
    /// The ids themselves.
    pub hash_ids: IdFigures,
    /// Hits at [`CAPACITIES`].
    pub prefix_cache: Vec<CacheFigures>,
    /// Block hit ratio against cache size, at powers of two up to the number of distinct blocks.
    pub curve: Vec<(u64, f64)>,
    /// References to a block referenced before, wherever it stands in the prompt.
    pub block_reuse_any_position_infinite: f64,
    /// The share of requests that hold the most common block. At 1 every request shares a prompt head, and
    /// `requests_with_hit` says nothing.
    pub top_block_request_share: f64,
    /// The share of blocks referenced once.
    pub blocks_used_once_share: f64,
    /// Blocks that occur both partly filled (at a prompt's end) and filled otherwise: the shared tokens are fewer than the ids suggest.
    pub partial_block_conflicts: u64,
    /// The first request with such a block, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_partial_conflict_row: Option<u64>,
}

/// The ids of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct IdFigures {
    pub total: u64,
    pub distinct: u64,
    pub per_request: Option<LengthFigures>,
    /// Rows whose number of ids is not ceil(input / block).
    pub rows_len_ne_ceil: u64,
    pub rows_empty: u64,
    pub rows_with_duplicate_id: u64,
    pub max_id: Option<u64>,
}

/// What one cache size hits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct CacheFigures {
    pub capacity_blocks: Option<u64>,
    pub block_hits: u64,
    pub block_total: u64,
    pub block_hit_ratio: f64,
    pub token_hits: u64,
    pub token_total: u64,
    pub token_hit_ratio: Option<f64>,
    pub requests_with_hit: u64,
    pub requests_fully_hit: u64,
}

/// The simulation. A request hits the longest leading run of resident blocks; then all its blocks are inserted or refreshed,
/// first to last; least recently used out.
pub(crate) struct Prefix {
    block: u32,
    blocks: FixedMap<u64, Block>,
    /// Fenwick tree over access slots: 1 where a block's last access is.
    tree: Vec<u32>,
    next_slot: usize,
    requests: u64,
    /// Hits gained when the cache grows to this many blocks: by blocks, tokens, requests with any, requests wholly.
    gained: Vec<[u64; 4]>,
    per_request: Histogram,
    total: u64,
    token_total: u64,
    len_ne_ceil: u64,
    empty: u64,
    duplicate: u64,
    conflicts: u64,
    first_conflict: Option<u64>,
}

struct Block {
    slot: usize,
    refs: u32,
    requests: u32,
    last_request: u64,
    /// Tokens of it that were filled when last seen.
    fill: u32,
}

impl Prefix {
    pub(crate) fn new(block: u32) -> Prefix {
        Prefix {
            block: block.max(1),
            blocks: FixedMap::default(),
            tree: vec![0; 1 << 12],
            next_slot: 1,
            requests: 0,
            gained: Vec::new(),
            per_request: Histogram::default(),
            total: 0,
            token_total: 0,
            len_ne_ceil: 0,
            empty: 0,
            duplicate: 0,
            conflicts: 0,
            first_conflict: None,
        }
    }

    /// Takes the next request, in file order.
    pub(crate) fn request(&mut self, ids: &[u64], input: Option<u32>) {
        let n = ids.len() as u64;
        let block = u64::from(self.block);
        let tokens = input.map_or(n * block, u64::from);
        self.requests += 1;
        self.per_request.add(n);
        self.total += n;
        self.token_total += tokens;
        self.empty += u64::from(ids.is_empty());
        self.len_ne_ceil += u64::from(tokens.div_ceil(block) != n);
        self.hit(ids, tokens);
        self.insert(ids, tokens);
    }

    fn hit(&mut self, ids: &[u64], tokens: u64) {
        let block = u64::from(self.block);
        let mut deepest = 0;
        for (i, id) in ids.iter().enumerate() {
            let Some(known) = self.blocks.get(id) else { return };
            deepest = deepest.max(self.blocks.len() - self.live_before(known.slot));
            if self.gained.len() <= deepest {
                self.gained.resize(deepest + 1, [0; 4]);
            }
            let i = i as u64;
            let gained = &mut self.gained[deepest];
            gained[0] += 1;
            gained[1] += ((i + 1) * block).min(tokens) - (i * block).min(tokens);
            gained[2] += u64::from(i == 0);
            gained[3] += u64::from(i + 1 == ids.len() as u64);
        }
    }

    fn insert(&mut self, ids: &[u64], tokens: u64) {
        let block = u64::from(self.block);
        let mut twice = false;
        for (i, &id) in ids.iter().enumerate() {
            if self.next_slot >= self.tree.len() {
                self.compact();
            }
            let slot = self.next_slot;
            self.next_slot += 1;
            let fill = tokens.saturating_sub(i as u64 * block).min(block) as u32;
            let request = self.requests;
            let known = self.blocks.entry(id).or_insert(Block { slot: 0, refs: 0, requests: 0, last_request: 0, fill });
            twice |= known.last_request == request;
            known.requests += u32::from(known.last_request != request);
            known.last_request = request;
            known.refs += 1;
            if known.fill != fill {
                self.conflicts += 1;
                self.first_conflict.get_or_insert(request);
                known.fill = fill;
            }
            let before = std::mem::replace(&mut known.slot, slot);
            if before > 0 {
                self.mark(before, -1);
            }
            self.mark(slot, 1);
        }
        self.duplicate += u64::from(twice);
    }

    fn mark(&mut self, mut slot: usize, by: i32) {
        while slot < self.tree.len() {
            self.tree[slot] = self.tree[slot].wrapping_add_signed(by);
            slot += slot & slot.wrapping_neg();
        }
    }

    /// Blocks whose last access lies before that slot.
    fn live_before(&self, slot: usize) -> usize {
        let (mut at, mut sum) = (slot - 1, 0);
        while at > 0 {
            sum += self.tree[at] as usize;
            at &= at - 1;
        }
        sum
    }

    /// Renumbers the slots of the live blocks when they have run out.
    fn compact(&mut self) {
        let mut order: Vec<(usize, u64)> =
            self.blocks.iter().filter(|(_, b)| b.slot > 0).map(|(&id, b)| (b.slot, id)).collect();
        order.sort_unstable();
        self.tree = vec![0; (order.len() * 4).max(1 << 12)];
        for (i, (_, id)) in order.iter().enumerate() {
            if let Some(block) = self.blocks.get_mut(id) {
                block.slot = i + 1;
            }
        }
        self.next_slot = order.len() + 1;
        for slot in 1..self.next_slot {
            self.mark(slot, 1);
        }
    }

    pub(crate) fn figures(&self) -> Option<PrefixFigures> {
        if self.total == 0 {
            return None;
        }
        let distinct = self.blocks.len() as u64;
        let mut upto: Vec<[u64; 4]> = self.gained.clone();
        let mut sum = [0; 4];
        for gained in &mut upto {
            sum.iter_mut().zip(gained.iter()).for_each(|(s, g)| *s += g);
            *gained = sum;
        }
        let at = |capacity: Option<u64>| match (capacity, upto.last()) {
            (_, None) => [0; 4],
            (None, Some(&all)) => all,
            (Some(c), Some(&all)) => upto.get(c as usize).copied().unwrap_or(all),
        };
        let cache = |capacity: Option<u64>| {
            let [blocks, tokens, any, whole] = at(capacity);
            CacheFigures {
                capacity_blocks: capacity,
                block_hits: blocks,
                block_total: self.total,
                block_hit_ratio: blocks as f64 / self.total as f64,
                token_hits: tokens,
                token_total: self.token_total,
                token_hit_ratio: (self.token_total > 0).then(|| tokens as f64 / self.token_total as f64),
                requests_with_hit: any,
                requests_fully_hit: whole,
            }
        };
        let sizes = (0..63).map(|p| 1u64 << p).take_while(|c| *c < distinct * 2);
        let top = self.blocks.values().map(|b| b.requests).max().unwrap_or(0);
        let once = self.blocks.values().filter(|b| b.refs == 1).count();
        Some(PrefixFigures {
            block_tokens: self.block,
            hash_ids: IdFigures {
                total: self.total,
                distinct,
                per_request: self.per_request.figures(),
                rows_len_ne_ceil: self.len_ne_ceil,
                rows_empty: self.empty,
                rows_with_duplicate_id: self.duplicate,
                max_id: self.blocks.keys().copied().max(),
            },
            prefix_cache: CAPACITIES.into_iter().map(cache).collect(),
            curve: sizes.map(|c| (c, cache(Some(c)).block_hit_ratio)).collect(),
            block_reuse_any_position_infinite: 1.0 - distinct as f64 / self.total as f64,
            top_block_request_share: f64::from(top) / self.requests as f64,
            blocks_used_once_share: once as f64 / distinct as f64,
            partial_block_conflicts: self.conflicts,
            first_partial_conflict_row: self.first_conflict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    /// The rule, word by word, with one cache of one size.
    fn naive(requests: &[(Vec<u64>, u32)], capacity: usize, block: u64) -> [u64; 4] {
        let mut cache: Vec<u64> = Vec::new();
        let mut out = [0; 4];
        for (ids, input) in requests {
            let run = ids.iter().take_while(|id| cache.contains(id)).count() as u64;
            out[0] += run;
            out[1] += (run * block).min(u64::from(*input));
            out[2] += u64::from(run > 0);
            out[3] += u64::from(!ids.is_empty() && run == ids.len() as u64);
            for id in ids {
                cache.retain(|c| c != id);
                cache.insert(0, *id);
                cache.truncate(capacity);
            }
        }
        out
    }

    #[test]
    fn all_sizes_at_once_equal_one_cache_each() {
        for seed in 0..20 {
            let mut rng = Seed(seed).stream("prefix");
            let requests: Vec<(Vec<u64>, u32)> = (0..300)
                .map(|_| {
                    let n = rng.below(8);
                    let ids: Vec<u64> = (0..n).map(|i| i * 10 + rng.below(1 + i * 2)).collect();
                    let input = (n * 4).saturating_sub(rng.below(4)) as u32;
                    (ids, input)
                })
                .collect();
            let mut prefix = Prefix::new(4);
            prefix.tree = vec![0; 64]; // compact often
            requests.iter().for_each(|(ids, input)| prefix.request(ids, Some(*input)));
            let sizes = [1, 2, 3, 5, 8, 20, 100];
            for size in sizes {
                let mut got = [0; 4];
                for gained in prefix.gained.iter().take(size + 1) {
                    (0..4).for_each(|k| got[k] += gained[k]);
                }
                assert_eq!(got, naive(&requests, size, 4), "seed {seed} size {size}");
            }
        }
    }
}
