//! Prompt blocks: which are shared, and which are a prompt's own.

use crate::error::Error;
use crate::generate::{Law, Pdf};
use tailbound_clock::Rng;

/// Prompt heads shared by groups of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefixes {
    /// How many different heads.
    pub groups: u32,
    /// Tokens of a head, drawn once a group.
    pub tokens: Law,
    /// How often each is used.
    pub popularity: Popularity,
    /// The share of requests that have one at all, 0 to 1.
    pub share: f64,
}

/// How often each group comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// The k-th with weight k^−s; 0 for all alike.
    Zipf(f64),
    /// One after the other, so that each comes equally often to within one.
    InTurn,
}

/// The next new block's id, and the groups' heads.
pub(super) struct Blocks {
    block: Option<u32>,
    next_id: u64,
    heads: Vec<Head>,
    popularity: Option<Pdf>,
    turn: usize,
}

/// A head: its tokens, and the ids of the blocks it fills wholly.
#[derive(Clone)]
struct Head {
    tokens: u32,
    ids: Vec<u64>,
}

/// A prompt that grows: ids of the blocks filled so far, and all its tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    filled: Vec<u64>,
    tokens: u64,
}

impl Context {
    pub(super) fn grow(&mut self, by: u32) {
        self.tokens += u64::from(by);
    }

    pub(super) fn tokens(&self) -> u32 {
        self.tokens.min(u64::from(u32::MAX)) as u32
    }
}

impl Blocks {
    pub(super) fn new(block: Option<u32>) -> Blocks {
        Blocks { block, next_id: 0, heads: Vec::new(), popularity: None, turn: 0 }
    }

    pub(super) fn share(&mut self, prefixes: &Prefixes, rng: &mut Rng) -> Result<(), Error> {
        if prefixes.groups == 0 || !(0.0..=1.0).contains(&prefixes.share) {
            return Err(Error::Asked("shared prefixes need a group or more, and a share between 0 and 1".into()));
        }
        for _ in 0..prefixes.groups {
            let tokens = prefixes.tokens.count(0, rng);
            let whole = self.block.map_or(0, |b| tokens / b);
            let ids = (0..whole).map(|_| self.fresh()).collect();
            self.heads.push(Head { tokens, ids });
        }
        if let Popularity::Zipf(s) = prefixes.popularity {
            let weights = (0..prefixes.groups).map(|k| (f64::from(k), libm::pow(f64::from(k + 1), -s))).collect();
            self.popularity = Some(Pdf::new(weights).ok_or_else(|| Error::Asked("zipf: every weight is zero".into()))?);
        }
        Ok(())
    }

    /// A prompt with no more than a head, if it has one.
    pub(super) fn begin(&mut self, prefixes: Option<&Prefixes>, rng: &mut Rng) -> Context {
        let Some(prefixes) = prefixes else { return Context::default() };
        if prefixes.share < 1.0 && rng.unit() >= prefixes.share {
            return Context::default();
        }
        let group = match &self.popularity {
            Some(pdf) => pdf.at(rng.unit()) as usize,
            None => {
                self.turn += 1;
                (self.turn - 1) % self.heads.len()
            }
        };
        let head = self.heads[group].clone();
        Context { filled: head.ids, tokens: u64::from(head.tokens) }
    }

    /// The prompt's blocks, the last of which may be filled partly. Blocks filled wholly stay the context's own; the rest of a
    /// head that ends inside a block becomes part of the prompt's own text.
    pub(super) fn of(&mut self, context: &mut Context) -> Vec<u64> {
        let Some(block) = self.block.map(u64::from) else { return Vec::new() };
        while (context.filled.len() as u64 + 1) * block <= context.tokens {
            let id = self.fresh();
            context.filled.push(id);
        }
        let mut ids = context.filled.clone();
        if !context.tokens.is_multiple_of(block) {
            ids.push(self.fresh());
        }
        ids
    }

    fn fresh(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}
