use super::index::{Gone, Index};
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
    config: PreciseConfig,
    index: Index,
    /// (replica, engine's key) → our key.
    keys: Map<(u32, u64), u64>,
    streams: Vec<Stream>,
    /// What was sent and not yet confirmed: until when, which entry, in which life of its place.
    speculative: VecDeque<(Time, u32, u32)>,
    block_tokens: u32,
    mismatched: u64,
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

/// One replica's events.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// The number the next message must have.
    next: Option<u64>,
    state: State,
    last: Option<Time>,
    batches: u64,
    gaps: u64,
    restarts: u64,
    orphans: u64,
    undecodable: u64,
    /// Requests sent since the last message that must have stored blocks, and when the first of them was.
    owed: u32,
    owed_since: Option<Time>,
    /// The highest number of a live message while catching up, and from where on was asked last.
    latest: u64,
    asked: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Following,
    /// Messages were missed, and asked for again; those that come meanwhile will be among them.
    Replaying,
}

/// How a replica's events are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvHealth {
    /// In one word.
    pub state: KvState,
    /// Messages taken.
    pub batches: u64,
    /// When the last one came.
    pub last: Option<Time>,
    /// Times messages were missing.
    pub gaps: u64,
    /// Times the numbering began anew: the engine is another process.
    pub restarts: u64,
    /// Blocks whose parent wasn't known: they can't be found.
    pub orphans: u64,
    /// Messages that couldn't be read.
    pub undecodable: u64,
    /// Entries of the index.
    pub entries: u32,
}

/// How a replica's events are doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvState {
    /// No events, and no traffic that should have caused any.
    NoTraffic,
    /// Requests with new blocks were sent there, and no event tells of them: the pipeline is broken.
    NoEvents,
    /// Events come.
    Live,
    /// Missed messages are being fetched.
    Replaying,
}

/// How the events of all replicas are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvPool {
    /// Replicas by [`KvState`].
    pub no_traffic: u32,
    /// … where the pipeline is broken.
    pub no_events: u32,
    /// … where events come.
    pub live: u32,
    /// … which are catching up.
    pub replaying: u32,
    /// Messages whose blocks have another size than the index.
    pub mismatched: u64,
    /// Entries of the index.
    pub entries: usize,
    /// Different blocks in it.
    pub blocks: usize,
}

/// What is to be done about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// Ask for the messages from this number on.
    Replay(u64),
}

/// So many requests without an event are no accident.
const OWED_MANY: u32 = 3;

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
        let keys = &mut self.keys;
        for hash in chain.iter().rev() {
            let Some(entry) = self.index.hold(slot, *hash, SPECULATIVE, |g| drop_key(keys, g)) else { return };
            self.index.until(entry, now + ttl);
            if self.speculative.len() >= self.config.max_entries {
                self.speculative.pop_front();
            }
            self.speculative.push_back((now + ttl, entry, self.index.entry(entry).generation));
        }
    }

    fn expire(&mut self, now: Time) {
        while let Some((until, entry, generation)) = self.speculative.front().copied().filter(|(t, ..)| *t <= now) {
            self.speculative.pop_front();
            let e = self.index.entry(entry);
            if e.generation != generation || e.until > until {
                continue;
            }
            if let Some(gone) = self.index.drop_tiers(entry, SPECULATIVE) {
                drop_key(&mut self.keys, gone);
            }
        }
    }

    /// A message came, live or as part of a replay.
    pub(crate) fn message(&mut self, now: Time, slot: u32, seq: u64, batch: &Batch, replayed: bool) -> Next {
        let stream = self.stream(slot);
        stream.batches += 1;
        stream.last = Some(now);
        stream.owed = 0;
        stream.owed_since = None;
        let wanted = stream.next.unwrap_or(0);
        match (stream.state, replayed) {
            (State::Following, true) if seq != wanted => return Next::Nothing,
            (State::Following, _) if seq > wanted => {
                stream.gaps += u64::from(stream.next.is_some());
                stream.latest = seq;
                return stream.replay(wanted);
            }
            (State::Following, _) if seq < wanted => return self.restarted(now, slot, seq, batch),
            (State::Replaying, false) if seq < stream.latest => return self.restarted(now, slot, seq, batch),
            (State::Replaying, false) => {
                stream.latest = seq;
                return Next::Nothing;
            }
            (State::Replaying, true) if seq < wanted => return Next::Nothing,
            // The engine no longer has all that was missed: what was removed meanwhile is unknown.
            (State::Replaying, true) if seq > wanted => self.forget(slot),
            _ => {}
        }
        self.stream(slot).next = Some(seq + 1);
        self.apply(slot, batch);
        Next::Nothing
    }

    /// The numbers began anew: another process, with an empty cache.
    fn restarted(&mut self, now: Time, slot: u32, seq: u64, batch: &Batch) -> Next {
        self.forget(slot);
        let stream = self.stream(slot);
        stream.restarts += 1;
        stream.state = State::Following;
        stream.next = None;
        self.message(now, slot, seq, batch, false)
    }

    /// The replay that was asked for is over. If it wasn't there to be had, what the replica has is unknown.
    pub(crate) fn replay_ended(&mut self, slot: u32, complete: bool) -> Next {
        let stream = self.stream(slot);
        if stream.state != State::Replaying {
            return Next::Nothing;
        }
        let next = stream.next.unwrap_or(0);
        let progress = stream.asked != Some(next);
        if complete && next > stream.latest {
            stream.state = State::Following;
            return Next::Nothing;
        }
        if complete && progress {
            return stream.replay(next);
        }
        stream.state = State::Following;
        stream.next = Some(stream.latest + 1);
        self.forget(slot);
        Next::Nothing
    }

    /// The connection was lost: what is missed, and whether it is the same process after it, is unknown.
    pub(crate) fn lost(&mut self, slot: u32) -> Next {
        self.forget(slot);
        let stream = self.stream(slot);
        stream.next = None;
        stream.latest = 0;
        stream.replay(0)
    }

    /// A message came that nobody can read. Its number is taken as missed when the next one comes.
    pub(crate) fn garbled(&mut self, slot: u32) {
        self.stream(slot).undecodable += 1;
    }

    fn apply(&mut self, slot: u32, batch: &Batch) {
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
            None => Some(root(salt(s, lora), lora)),
            Some(parent) => self.keys.get(&(slot, parent)).map(|k| BlockHash::new(*k)),
        };
        let whole = s.tokens.len() == s.hashes.len() * s.block_size as usize;
        let Some(mut last) = first.filter(|_| whole) else {
            self.stream(slot).orphans += s.hashes.len() as u64;
            return;
        };
        let tier = tier(s.medium.as_deref());
        let keys = &mut self.keys;
        for (i, (engine, tokens)) in s.hashes.iter().zip(s.tokens.chunks_exact(s.block_size as usize)).enumerate() {
            last = with_media(last.child(tokens), s, i);
            let Some(entry) = self.index.hold(slot, last.get(), tier, |g| drop_key(keys, g)) else { return };
            self.index.drop_tiers(entry, SPECULATIVE);
            let before = self.index.name(entry, Some(*engine));
            if before.is_some_and(|b| b != *engine) {
                keys.remove(&(slot, before.unwrap_or_default()));
            }
            keys.insert((slot, *engine), last.get());
        }
    }

    fn removed(&mut self, slot: u32, engine: u64, tier: u8) {
        let Some(key) = self.keys.get(&(slot, engine)).copied() else { return };
        let Some(entry) = self.index.entry_of(slot, key) else { return };
        if let Some(gone) = self.index.drop_tiers(entry, tier) {
            drop_key(&mut self.keys, gone);
        }
    }

    fn forget(&mut self, slot: u32) {
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

    fn stream(&mut self, slot: u32) -> &mut Stream {
        if self.streams.len() <= slot as usize {
            self.streams.resize(slot as usize + 1, Stream::default());
        }
        &mut self.streams[slot as usize]
    }

    pub(crate) fn health(&self, now: Time, slot: u32) -> KvHealth {
        let fresh = Stream::default();
        let s = self.streams.get(slot as usize).unwrap_or(&fresh);
        let state = match s.state {
            _ if self.is_silent(now, s) => KvState::NoEvents,
            State::Replaying => KvState::Replaying,
            State::Following if s.batches > 0 => KvState::Live,
            State::Following => KvState::NoTraffic,
        };
        KvHealth {
            state,
            batches: s.batches,
            last: s.last,
            gaps: s.gaps,
            restarts: s.restarts,
            orphans: s.orphans,
            undecodable: s.undecodable,
            entries: self.index.len_of(slot),
        }
    }

    fn is_silent(&self, now: Time, stream: &Stream) -> bool {
        let since = stream.owed_since.map(|t| now.since(t));
        stream.owed >= OWED_MANY && since.is_some_and(|d| d > self.config.silence)
    }

    pub(crate) fn pool(&self, now: Time, live: &[u32]) -> KvPool {
        let mut pool = KvPool {
            mismatched: self.mismatched,
            entries: self.index.len(),
            blocks: self.index.blocks(),
            ..KvPool::default()
        };
        for slot in live {
            *match self.health(now, *slot).state {
                KvState::NoTraffic => &mut pool.no_traffic,
                KvState::NoEvents => &mut pool.no_events,
                KvState::Live => &mut pool.live,
                KvState::Replaying => &mut pool.replaying,
            } += 1;
        }
        pool
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

impl Stream {
    fn replay(&mut self, from: u64) -> Next {
        self.state = State::Replaying;
        self.asked = Some(from);
        Next::Replay(from)
    }
}

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

fn drop_key(keys: &mut Map<(u32, u64), u64>, gone: Gone) {
    if let Some(engine) = gone.engine {
        keys.remove(&(gone.slot, engine));
    }
}
