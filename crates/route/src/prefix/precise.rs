use super::follow::Stream;
use super::index::{Gone, Index, Name};
use super::matches::Matches;
use crate::names::{Key, Map};
use crate::request::Arrival;
use crate::table::Table;
use std::collections::VecDeque;
use tailbound_clock::{Dur, Time};
use tailbound_kv::BlockHash;
use tailbound_kv::vllm::{self, Batch};

/// The precise index: what engines say they have, in KV events.
///
/// An engine's names for its blocks (its keys) depend on its algorithm and seed; ours are made from the tokens that come with
/// an event. The index is by our keys, and each replica's keys lead to them.
#[derive(Debug)]
pub(crate) struct Precise {
    pub(super) config: PreciseConfig,
    pub(super) index: Index,
    /// (replica, engine's key) → the block's entry.
    keys: Map<(u32, u64), u32>,
    pub(super) streams: Vec<Stream>,
    /// What was sent and not yet confirmed, and until when that is believed.
    speculative: VecDeque<(Time, Name)>,
    block_tokens: u32,
    pub(super) mismatched: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreciseConfig {
    /// `None`: what the first event says.
    pub(crate) block_tokens: Option<u32>,
    pub(crate) speculative: Option<Dur>,
    pub(crate) weights: TierWeights,
    pub(crate) max_entries: usize,
    /// After so long without events from a replica that must have had some, what it said is no longer believed.
    pub(crate) silence: Dur,
}

/// What a cached block counts, by where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TierWeights {
    pub(crate) gpu: f64,
    pub(crate) cpu: f64,
    pub(crate) disk: f64,
    pub(crate) other: f64,
}

impl Default for TierWeights {
    fn default() -> TierWeights {
        TierWeights { gpu: 1.0, cpu: 0.8, disk: 0.5, other: 0.5 }
    }
}

const GPU: u8 = 1;
const CPU: u8 = 2;
const DISK: u8 = 4;
const OTHER: u8 = 8;
const SPECULATIVE: u8 = 128;

impl Precise {
    pub(crate) fn new(config: PreciseConfig) -> Precise {
        let w = config.weights;
        let weights = [w.gpu, w.cpu, w.disk, w.other, 0.0, 0.0, 0.0, w.gpu];
        Precise {
            index: Index::with_weights(&weights),
            keys: Map::default(),
            streams: Vec::new(),
            speculative: VecDeque::new(),
            block_tokens: config.block_tokens.unwrap_or(DEFAULT_BLOCK),
            mismatched: 0,
            config,
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Our keys of a prompt's full blocks.
    pub(crate) fn chain(&self, arrival: &Arrival, out: &mut Vec<u64>) {
        out.clear();
        let mut last = root(arrival.salt, arrival.lora);
        for block in arrival.prompt.tokens.chunks_exact(self.block_tokens as usize) {
            last = last.child(block);
            out.push(last.get());
        }
    }

    pub(crate) fn find(&mut self, now: Time, chain: &[u64], slots: usize, out: &mut Matches) {
        self.expire(now);
        self.index.find(chain, slots, self.block_tokens, out);
    }

    /// A request was sent: its blocks will be there soon, and until an event says so they are believed to be for a while.
    pub(crate) fn sent(&mut self, now: Time, slot: u32, chain: &[u64], matched: u64) {
        self.stream(slot);
        if self.is_silent(now, &self.streams[slot as usize]) {
            self.forget(slot);
        }
        let blocks_matched = (matched / u64::from(self.block_tokens)) as usize;
        if chain.len() > blocks_matched {
            let stream = self.stream(slot);
            stream.owed += 1;
            stream.owed_since.get_or_insert(now);
        }
        let Some(ttl) = self.config.speculative else { return };
        self.expire(now);
        let Precise { config, keys, speculative, index, .. } = self;
        let mut after = None;
        let held = |index: &mut Index, entry: u32| {
            index.until(entry, now + ttl);
            let name = index.name(entry);
            if let Some(after) = after.replace(name) {
                index.link(name, after);
            }
            if speculative.len() >= config.max_entries {
                speculative.pop_front();
            }
            speculative.push_back((now + ttl, name));
        };
        index.hold_chain(slot, chain, SPECULATIVE, |g| drop_key(keys, g), held);
    }

    fn expire(&mut self, now: Time) {
        while let Some((until, name)) = self.speculative.front().copied().filter(|(t, _)| *t <= now) {
            self.speculative.pop_front();
            if self.index.name(name.entry) != name || self.index.entry(name.entry).until > until {
                continue;
            }
            if let Some(gone) = self.index.drop_tiers(name.entry, SPECULATIVE) {
                drop_key(&mut self.keys, gone);
            }
        }
    }

    pub(super) fn apply(&mut self, slot: u32, batch: &Batch) {
        for event in &batch.events {
            match event {
                vllm::Event::Stored(s) if s.group.unwrap_or(0) == 0 => self.stored(slot, s),
                vllm::Event::Removed(r) if r.group.unwrap_or(0) == 0 => {
                    let tier = tier(r.medium.as_deref());
                    r.hashes.iter().for_each(|engine| self.removed(slot, *engine, tier));
                }
                vllm::Event::Cleared => self.forget(slot),
                _ => {}
            }
        }
    }

    fn stored(&mut self, slot: u32, s: &vllm::Stored) {
        if s.block_size != self.block_tokens {
            if self.config.block_tokens.is_some() || self.index.len() > 0 {
                self.mismatched += 1;
                return;
            }
            self.block_tokens = s.block_size;
        }
        let lora = s.lora_name.as_deref();
        let first = match s.parent {
            None => Some((root(salt(s, lora), lora), None)),
            Some(parent) => self.keys.get(&(slot, parent)).map(|entry| {
                let hash = BlockHash::new(self.index.hash_of(*entry));
                (hash, Some(self.index.name(*entry)))
            }),
        };
        let whole = s.tokens.len() == s.hashes.len() * s.block_size as usize;
        let Some((mut last, mut before)) = first.filter(|_| whole) else {
            self.stream(slot).orphans += s.hashes.len() as u64;
            return;
        };
        let tier = tier(s.medium.as_deref());
        let keys = &mut self.keys;
        for (i, (engine, tokens)) in s.hashes.iter().zip(s.tokens.chunks_exact(s.block_size as usize)).enumerate() {
            last = with_media(last.child(tokens), s, i);
            let Some(entry) = self.index.hold(slot, last.get(), tier, |g| drop_key(keys, g)) else { return };
            self.index.drop_tiers(entry, SPECULATIVE);
            let name = self.index.name(entry);
            if let Some(before) = before.replace(name) {
                self.index.link(before, name);
            }
            let called = self.index.rename(entry, Some(*engine));
            if let Some(called) = called.filter(|c| c != engine) {
                keys.remove(&(slot, called));
            }
            keys.insert((slot, *engine), entry);
        }
    }

    fn removed(&mut self, slot: u32, engine: u64, tier: u8) {
        let Some(entry) = self.keys.get(&(slot, engine)).copied() else { return };
        if let Some(gone) = self.index.drop_tiers(entry, tier) {
            drop_key(&mut self.keys, gone);
        }
    }

    pub(super) fn forget(&mut self, slot: u32) {
        let keys = &mut self.keys;
        self.index.forget(slot, |g| drop_key(keys, g));
    }

    pub(crate) fn left(&mut self, slot: u32) {
        self.forget(slot);
        self.index.limit(slot, 0, |_| ());
        *self.stream(slot) = Stream::default();
    }

    /// Replicas came or went.
    pub(crate) fn fit(&mut self, table: &Table) {
        let share = (self.config.max_entries / table.live.len().max(1)) as u32;
        let keys = &mut self.keys;
        for slot in &table.live {
            self.index.limit(*slot, share, |g| drop_key(keys, g));
        }
    }

    pub(super) fn stream(&mut self, slot: u32) -> &mut Stream {
        if self.streams.len() <= slot as usize {
            self.streams.resize(slot as usize + 1, Stream::default());
        }
        &mut self.streams[slot as usize]
    }

    /// What must hold: for every key an entry, so that the keys are bounded as the entries are.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        assert!(self.keys.len() <= self.index.len(), "{} keys, {} entries", self.keys.len(), self.index.len());
        assert!(self.index.len() <= self.config.max_entries, "{} entries", self.index.len());
    }
}

/// Tokens in a block, as long as nobody says otherwise.
const DEFAULT_BLOCK: u32 = 16;

fn root(salt: Option<&str>, lora: Option<&str>) -> BlockHash {
    BlockHash::root(salt.map(|s| Key::of(s).0), lora.map(|l| Key::of(l).0 as u32))
}

/// The first block's extra keys are the adapter, media, and the salt; media are written in parentheses.
fn salt<'a>(s: &'a vllm::Stored, lora: Option<&str>) -> Option<&'a str> {
    let mut extra = s.extra_keys.first()?.iter().map(String::as_str);
    extra.rfind(|e| Some(*e) != lora && !e.starts_with('('))
}

/// A block with media in it is another block.
fn with_media(block: BlockHash, s: &vllm::Stored, i: usize) -> BlockHash {
    let extra = s.extra_keys.get(i).map_or(&[][..], |e| e);
    let media = extra.iter().filter(|e| e.starts_with('('));
    media.fold(block, |b, m| BlockHash::new(b.get() ^ Key::of(m).0))
}

fn tier(medium: Option<&str>) -> u8 {
    match medium {
        None => GPU,
        Some(m) if m.eq_ignore_ascii_case("gpu") => GPU,
        Some(m) if m.eq_ignore_ascii_case("cpu") => CPU,
        Some(m) if m.eq_ignore_ascii_case("disk") || m.eq_ignore_ascii_case("storage") => DISK,
        Some(_) => OTHER,
    }
}

fn drop_key(keys: &mut Map<(u32, u64), u32>, gone: Gone) {
    if let Some(engine) = gone.engine {
        keys.remove(&(gone.slot, engine));
    }
}
