use crate::tail;
use crate::{Emit, Finish, Finished, SeqId, Submit};
use tailbound_clock::Time;
use tailbound_kv::BlockHash;

/// What every step touches of a running sequence, apart from the rest so that a step walks little memory in order.
///
/// A sequence that decodes goes from one step to the next with one token more, and nothing else happens to it until it
/// needs a block, fills one, or ends. Until then its counts are a matter of the step's number alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub id: SeqId,
    /// The number of the step in which it needs care; 0: in every step, and [`Running`] holds the truth.
    pub due: u64,
    /// Tokens known before step s are this plus s (wrapping).
    known_base: u32,
    /// The index of the token that step s puts out is this plus s (wrapping).
    first_base: u32,
    pub cached: u32,
}

impl Lane {
    /// One that needs care in every step.
    pub fn careful(id: SeqId, cached: u32) -> Lane {
        Lane { id, due: 0, known_base: 0, first_base: 0, cached }
    }

    /// One that has `r`'s counts before step `next`, decodes from there on, and needs care when it gets or fills a block
    /// or ends.
    pub fn steady(r: &Running, next: u64) -> Lane {
        let care_at = (r.capacity + 1).min(r.publish_at).min(r.end - 1);
        let known_base = r.known.wrapping_sub(next as u32);
        Lane {
            id: r.id,
            due: next + u64::from(care_at.saturating_sub(r.known)),
            known_base,
            first_base: known_base.wrapping_sub(r.prompt),
            cached: r.cached,
        }
    }

    #[inline]
    pub fn known(&self, step: u64) -> u32 {
        self.known_base.wrapping_add(step as u32)
    }

    /// What it puts out in a step in which it needs no care.
    #[inline]
    pub fn emit(&self, step: u64) -> Emit {
        let first = self.first_base.wrapping_add(step as u32);
        Emit { id: self.id, first, tokens: 1, cached: self.cached, finish: None }
    }
}

/// What scheduling needs of a running sequence that gets individual care.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub id: SeqId,
    /// Its place in [`Sequences`].
    pub slot: u32,
    /// Tokens whose keys and values are in the cache.
    pub computed: u32,
    /// Tokens there are: prompt and generated.
    pub known: u32,
    /// Tokens being computed in the step in flight, drafts included.
    pub scheduled: u32,
    /// Drafts among them.
    pub drafts: u32,
    /// Tokens its blocks have room for.
    pub capacity: u32,
    /// How many tokens must be computed for its next block to be full; past reach without prefix caching.
    pub publish_at: u32,
    /// `known` at which it is done.
    pub end: u32,
    pub prompt: u32,
    pub cached: u32,
    /// When its last output came out; meaningless before the first.
    pub last_token: Time,
}

impl Running {
    /// How many of its tokens are computed or are being computed in the step in flight, drafts apart.
    pub fn reached(&self) -> u32 {
        (self.computed + self.scheduled).min(self.known)
    }
}

/// The rest of a living sequence.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub id: SeqId,
    pub priority: i32,
    /// Its number in order of arrival.
    pub arrival: u64,
    pub queued: Time,
    pub scheduled: Option<Time>,
    pub first_token: Option<Time>,
    /// Up to date only while it waits.
    pub last_token: Option<Time>,
    /// The prompt, then the answer as far as it was given; of the prompt only what follows its full blocks, unless more
    /// than their hashes will be asked for.
    pub tokens: Vec<u32>,
    /// How many tokens of the prompt are left out in front.
    pub skipped: u32,
    pub prompt: u32,
    /// Up to date only while it waits.
    pub known: u32,
    pub end: u32,
    pub finish: Finish,
    pub salt: Option<u64>,
    pub lora: Option<u32>,
    /// Prompt tokens whose keys and values can be fetched from another replica.
    pub remote: u32,
    /// Whether its blocks outlive it.
    pub hold: bool,
    /// When what was to be read ahead for it is there.
    pub prefetched: Option<Time>,
    /// Prompt tokens found in the cache when first scheduled.
    pub cached: u32,
    pub preemptions: u32,
    /// Hashes of its full blocks, as far as they were needed.
    pub hashes: Vec<BlockHash>,
    /// Its blocks, in order, but for those of its tail.
    pub blocks: Vec<u32>,
    /// The tail it holds, or [`tail::NONE`].
    pub tail: u32,
    /// The tail's blocks, whether full or not.
    pub late: u32,
    pub place: Place,
}

/// Where a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    Waiting,
    /// It has its blocks, and what was computed elsewhere is on its way into them.
    Loading,
    Running,
    /// It has ended, and its blocks are kept.
    Held,
}

/// The id of the `index`-th generated token of a sequence whose answer was not given: below 2³¹, and the same only for the
/// same sequence and index (but for chance).
pub fn invented_token(id: SeqId, index: u32) -> u32 {
    let mixed = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(index).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) as u32
}

impl Sequence {
    fn empty() -> Sequence {
        Sequence {
            id: SeqId(0),
            priority: 0,
            arrival: 0,
            queued: Time::ZERO,
            scheduled: None,
            first_token: None,
            last_token: None,
            tokens: Vec::new(),
            skipped: 0,
            prompt: 0,
            known: 0,
            end: 0,
            finish: Finish::Length,
            salt: None,
            lora: None,
            remote: 0,
            hold: false,
            prefetched: None,
            cached: 0,
            preemptions: 0,
            hashes: Vec::new(),
            blocks: Vec::new(),
            tail: tail::NONE,
            late: 0,
            place: Place::Nowhere,
        }
    }

    /// Tokens of it that were given, not invented.
    pub fn given(&self) -> u32 {
        self.skipped + self.tokens.len() as u32
    }

    /// The chain's hash before block `index`.
    pub fn parent(&self, index: usize) -> BlockHash {
        match index.checked_sub(1) {
            Some(before) => self.hashes[before],
            None => BlockHash::root(self.salt, self.lora),
        }
    }

    /// The tokens of block `index`; `scratch` holds them where they are not known in one piece.
    pub fn block_tokens<'a>(&'a self, index: usize, block_size: usize, scratch: &'a mut Vec<u32>) -> &'a [u32] {
        let from = index * block_size - self.skipped as usize;
        let to = from + block_size;
        if let Some(tokens) = self.tokens.get(from..to) {
            return tokens;
        }
        scratch.clear();
        scratch.extend_from_slice(self.tokens.get(from..).unwrap_or(&[]));
        let before = (from + scratch.len()) as u32 + self.skipped - self.prompt;
        let missing = (block_size - scratch.len()) as u32;
        scratch.extend((before..before + missing).map(|i| invented_token(self.id, i)));
        scratch
    }

    /// Its record, ending in `finish` with `known` tokens.
    pub fn record(&self, finish: Finish, known: u32, last_token: Option<Time>) -> Finished {
        Finished {
            id: self.id,
            finish,
            queued: self.queued,
            scheduled: self.scheduled,
            first_token: self.first_token,
            last_token,
            prompt: self.prompt,
            cached: self.cached,
            generated: known - self.prompt,
            preemptions: self.preemptions,
        }
    }
}

/// The living sequences, in slots that are used again with the memory they hold.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    slots: Vec<Sequence>,
    vacant: Vec<u32>,
}

impl Sequences {
    /// Takes a request in; `end` is the number of tokens at which it is done, `skip` how many tokens in front it need not
    /// remember.
    pub fn insert(&mut self, s: &Submit<'_>, arrival: u64, queued: Time, end: u32, finish: Finish, skip: u32) -> u32 {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Sequence::empty());
            self.slots.len() as u32 - 1
        });
        let seq = &mut self.slots[slot as usize];
        debug_assert_eq!(seq.place, Place::Nowhere);
        let prompt = s.prompt.len() as u32;
        let answer = s.answer.len().min((end - prompt) as usize);
        seq.tokens.clear();
        seq.tokens.extend_from_slice(&s.prompt[skip as usize..]);
        seq.tokens.extend_from_slice(&s.answer[..answer]);
        seq.hashes.clear();
        seq.blocks.clear();
        *seq = Sequence {
            id: s.id,
            priority: s.priority,
            arrival,
            queued,
            prompt,
            known: prompt,
            end,
            finish,
            salt: s.salt,
            lora: s.lora,
            remote: s.remote.min(prompt),
            hold: s.hold,
            place: Place::Waiting,
            skipped: skip,
            tokens: std::mem::take(&mut seq.tokens),
            hashes: std::mem::take(&mut seq.hashes),
            blocks: std::mem::take(&mut seq.blocks),
            ..Sequence::empty()
        };
        slot
    }

    /// Gives a slot back.
    pub fn remove(&mut self, slot: u32) {
        let seq = &mut self[slot];
        debug_assert!(seq.blocks.is_empty());
        seq.place = Place::Nowhere;
        self.vacant.push(slot);
    }

    /// The living.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Sequence)> {
        self.slots.iter().enumerate().filter(|(_, s)| s.place != Place::Nowhere).map(|(i, s)| (i as u32, s))
    }
}

impl std::ops::Index<u32> for Sequences {
    type Output = Sequence;
    fn index(&self, slot: u32) -> &Sequence {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Sequences {
    fn index_mut(&mut self, slot: u32) -> &mut Sequence {
        &mut self.slots[slot as usize]
    }
}
