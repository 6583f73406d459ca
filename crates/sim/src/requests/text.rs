//! Prompts as token ids: numbers that equal texts have in common, and different ones haven't.

use crate::scenario::SharedPrefix;
use std::sync::Arc;
use tailbound_clock::Rng;

/// What a prompt says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text {
    /// One of the prompts that are kept, since they are asked again and again.
    Kept(u32),
    /// A beginning that others have too (of so many tokens, perhaps none), and words of its own.
    Own { head: u32, head_tokens: u32 },
    /// A conversation so far: what is asked later begins with what was asked and answered before.
    Session { session: u32, head: u32, head_tokens: u32 },
    /// Blocks that a trace names, from the list of all.
    Blocks { from: u32, count: u32, block_tokens: u32 },
}

impl Text {
    /// The conversation it belongs to.
    pub(crate) fn session(self) -> Option<u32> {
        match self {
            Text::Session { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// What texts are made of.
#[derive(Default)]
pub(crate) struct Texts {
    kept: Vec<Arc<[u32]>>,
    blocks: Vec<u64>,
    /// How many conversations and beginnings have been numbered.
    sessions: u32,
    heads: u32,
}

/// Kinds of text, so that their numbers have nothing in common.
const HEAD: u64 = 1 << 60;
const OWN: u64 = 2 << 60;
const SESSION: u64 = 3 << 60;

impl Texts {
    /// Keeps all prompts of a class; gives the number of the first.
    pub(super) fn keep(&mut self, of: &SharedPrefix) -> u32 {
        let first = self.kept.len() as u32;
        let (heads, sessions) = (self.new_heads(of.groups), self.new_sessions(of.groups * of.prompts_per_group));
        let prompt = |i: u32| {
            let (head, own) = (HEAD + u64::from(heads + i / of.prompts_per_group), SESSION + u64::from(sessions + i));
            (0..of.system).map(|at| token(head, at)).chain((0..of.question).map(|at| token(own, at))).collect()
        };
        self.kept.extend((0..of.groups * of.prompts_per_group).map(prompt));
        first
    }

    pub(super) fn new_heads(&mut self, n: u32) -> u32 {
        self.heads += n;
        self.heads - n
    }

    pub(super) fn new_sessions(&mut self, n: u32) -> u32 {
        self.sessions += n;
        self.sessions - n
    }

    pub(super) fn add_blocks(&mut self, ids: &[u64], block_tokens: u32) -> Text {
        let from = self.blocks.len() as u32;
        self.blocks.extend_from_slice(ids);
        Text::Blocks { from, count: ids.len() as u32, block_tokens }
    }

    /// The prompt of request `number`.
    pub(crate) fn prompt(&self, number: u64, text: Text, tokens: u32) -> Arc<[u32]> {
        let said = |head: u32, head_tokens: u32, own: u64| {
            let head_tokens = head_tokens.min(tokens);
            let beginning = (0..head_tokens).map(|at| token(HEAD + u64::from(head), at));
            beginning.chain((head_tokens..tokens).map(|at| token(own, at))).collect()
        };
        match text {
            Text::Kept(which) => Arc::clone(&self.kept[which as usize]),
            Text::Own { head, head_tokens } => said(head, head_tokens, OWN + number),
            Text::Session { session, head, head_tokens } => said(head, head_tokens, SESSION + u64::from(session)),
            Text::Blocks { from, count, block_tokens } => {
                let ids = &self.blocks[from as usize..(from + count) as usize];
                let of = |at: u32| match ids.get((at / block_tokens) as usize) {
                    Some(id) => token(mix(*id) >> 4, at % block_tokens),
                    None => token(OWN + number, at),
                };
                (0..tokens).map(of).collect()
            }
        }
    }

    /// What is answered, where that is asked again.
    pub(crate) fn answer(&self, text: Text, input: u32, output: u32, out: &mut Vec<u32>) {
        out.clear();
        if let Text::Session { session, .. } = text {
            out.extend((input..input + output).map(|at| token(SESSION + u64::from(session), at)));
        }
    }
}

/// The order in which kept prompts are asked.
pub(super) fn order(first: u32, n: u32, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (first..first + n).collect();
    rng.shuffle(&mut order);
    order
}

fn token(text: u64, place: u32) -> u32 {
    let wide = (text ^ (u64::from(place) << 32 | u64::from(place))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (wide >> 47) as u32
}

fn mix(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
