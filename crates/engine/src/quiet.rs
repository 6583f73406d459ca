//! Steps in which nothing happens that a driver must hear of at once, taken many at a time.
//!
//! Most steps of a busy replica only add a token to every running answer. Which steps these will be, and when they will
//! end, is known beforehand as long as nobody comes or leaves: a driver of many replicas need not be woken by each of
//! them. It waits for [`Engine::next_news`] instead of [`Engine::next_wake`], and calls [`Engine::pass`] before every
//! event it hands in, and whenever it wants counters to be up to date. What comes out is the same to the bit.

use crate::sequence::{Lane, Running};
use crate::{Batch, Engine, SeqId, Step};
use tailbound_clock::Time;

/// Steps planned ahead at most: an event in between makes the rest of the plan worthless.
const MOST: u32 = 64;

/// What is known of the steps to come.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// When the step in flight will end and those after it, the last of which is the first with news.
    ends: Vec<Time>,
    /// Those of them that were passed already.
    passed: usize,
    /// Changes of the prefix cache told up to each of the passed.
    told: Vec<usize>,
}

impl Ahead {
    /// Something happens: what was planned no longer holds.
    pub(crate) fn forget(&mut self) {
        self.ends.clear();
        self.passed = 0;
        self.told.clear();
    }
}

/// Quiet steps that ended: each put out one token of every running sequence.
#[derive(Debug)]
pub struct Quiet<'a> {
    /// When they ended; empty, if none did.
    pub ends: &'a [Time],
    /// How many of [`Engine::kv`]'s events were told up to the end of each of them.
    pub told: &'a [usize],
    lanes: &'a [Lane],
    step: u64,
}

impl Quiet<'_> {
    /// The sequences in the order of the batch, with the index of the token that the first of the steps put out.
    pub fn sequences(&self) -> impl Iterator<Item = (SeqId, u32)> + '_ {
        // Who is due for care holds its counts elsewhere; who isn't, in its lane.
        self.lanes.iter().map(|lane| (lane.id, lane.emit(self.step).first))
    }
}

impl Engine {
    /// The end of the first step to come of which a driver must hear at once, which is then to be called with
    /// [`crate::Event::Wake`]; `None`: not before another event.
    pub fn next_news(&mut self) -> Option<Time> {
        if self.ahead.ends.len() == self.ahead.passed {
            self.look_ahead();
        }
        self.ahead.ends.last().copied().or_else(|| self.next_wake())
    }

    /// Ends the quiet steps that end before `until`. As with [`Engine::on`], what the engine lends is valid until the
    /// next call.
    pub fn pass(&mut self, until: Time) -> Quiet<'_> {
        self.emitted.clear();
        self.finished.clear();
        self.log.clear();
        self.ahead.told.clear();
        let (from, step) = (self.ahead.passed, self.step_no);
        while let [end, _, ..] = self.ahead.ends[self.ahead.passed..]
            && end < until
        {
            let passed = self.pass_alike(until);
            if passed == 0 {
                self.pass_one();
            }
            let passed = passed.max(1);
            self.ahead.passed += passed;
            self.ahead.told.resize(self.ahead.told.len() + passed, self.log.events().len());
        }
        self.counters.blocks_used = self.blocks.count() - self.blocks.free();
        Quiet { ends: &self.ahead.ends[from..self.ahead.passed], told: &self.ahead.told, lanes: &self.lanes, step }
    }

    /// Ends as many steps as may be in which nobody needs a block or fills one: they change nothing but the count of tokens.
    /// Returns how many.
    fn pass_alike(&mut self, until: Time) -> usize {
        let due = self.lanes.iter().map(|lane| lane.due).min().unwrap_or(0);
        let most = due.saturating_sub(self.step_no + 1) as usize;
        let ends = &self.ahead.ends[self.ahead.passed..];
        let passed = ends[..ends.len() - 1].iter().take(most).take_while(|end| **end < until).count();
        if passed == 0 {
            return 0;
        }
        let (start, end) = (ends[passed - 1], ends[passed]);
        let decodes = self.lanes.len() as u32;
        self.step = Some(Step { start, end, prefill_tokens: 0, decodes, emitted_tokens: 0, preempted: 0 });
        self.began = start;
        self.step_no += passed as u64;
        self.counters.generated += u64::from(decodes) * passed as u64;
        self.counters.steps += passed as u64;
        passed
    }

    fn pass_one(&mut self) {
        let step = self.step.take().expect("a step that was planned is in flight");
        let next = self.step_no + 1;
        for (lane, r) in self.lanes.iter_mut().zip(&mut self.running) {
            if lane.due == 0 {
                debug_assert!(r.scheduled == 1 && r.computed + 1 == r.known && r.known + 1 < r.end);
                r.computed = r.known;
                r.known += 1;
                r.last_token = step.end;
                *lane = Lane::steady(r, next);
            }
        }
        self.counters.generated += self.lanes.len() as u64;
        self.counters.steps += 1;
        let scheduled = self.schedule(step.end);
        debug_assert_eq!(
            scheduled.end,
            self.ahead.ends[self.ahead.passed + 1],
            "a step took another time than planned"
        );
        self.step = Some(scheduled);
    }

    fn look_ahead(&mut self) {
        self.ahead.forget();
        let Some(step) = self.step else { return };
        self.ahead.ends.push(step.end);
        let quiet = self.quiet_steps();
        let decodes = self.lanes.len() as u32;
        let mut decode_context = self.contexts().sum();
        let shared = self.shared();
        let mut end = step.end;
        for _ in 0..quiet {
            decode_context += u64::from(decodes);
            end +=
                self.duration(&Batch { decodes, decode_tokens: decodes, decode_context, shared, ..Batch::default() });
            self.ahead.ends.push(end);
        }
    }

    /// How many steps from the one in flight on will be quiet, at least.
    fn quiet_steps(&self) -> u32 {
        let Some(step) = self.step.filter(|s| s.prefill_tokens == 0 && s.decodes as usize == self.lanes.len()) else {
            return 0;
        };
        if step.decodes == 0 || self.config.speculation.is_some() || !self.loading.is_empty() || self.may_admit() {
            return 0;
        }
        // A first token is news (the last token of a prompt is computed as an answer's are), and so is an end, and whoever
        // loses its blocks.
        let until_news =
            |(known, r): (u64, &Running)| if known as u32 == r.prompt { 0 } else { r.end - known as u32 - 1 };
        let left = self.contexts().zip(&self.running).map(until_news).min().unwrap_or(0);
        let room = self.blocks.free() / step.decodes * self.config.block_size;
        left.min(room).min(MOST)
    }

    /// The tokens each running sequence has in the step in flight.
    fn contexts(&self) -> impl Iterator<Item = u64> + '_ {
        let known = |(lane, r): (&Lane, &Running)| match lane.due {
            0 => r.known,
            _ => lane.known(self.step_no),
        };
        self.lanes.iter().zip(&self.running).map(known).map(u64::from)
    }

    /// Whether somebody who waits might get in though nobody leaves.
    fn may_admit(&self) -> bool {
        let Some(first) = self.waiting.at(0) else { return false };
        let full = self.running.len() >= self.config.max_num_seqs as usize;
        !full && self.blocked != Some((self.changes, first))
    }
}
