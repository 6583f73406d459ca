use crate::adapters::Adapters;
use crate::blocks::Blocks;
use crate::late::Late;
use crate::loading::Loading;
use crate::quiet::Ahead;
use crate::sequence::{Lane, Place, Running, Sequences};
use crate::tail;
use crate::tier::Tiers;
use crate::waiting::{self, Waiting};
use crate::{
    Batch, Config, ConfigError, Counters, Effect, Emit, Event, Finish, Finished, KvEvents, Policy, SeqId, Step, Submit,
    WhyRejected,
};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tailbound_clock::{Dur, Rng, Time};
use tailbound_kv::Log;

/// One replica.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) blocks: Blocks,
    pub(crate) sequences: Sequences,
    pub(crate) slots: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
    /// In the order in which they were taken: the order of the batch.
    pub(crate) running: Vec<Running>,
    /// Beside `running`.
    pub(crate) lanes: Vec<Lane>,
    pub(crate) waiting: Waiting,
    /// Whose keys and values are on their way, in the order in which they set out.
    pub(crate) loading: Vec<Loading>,
    /// Sequences that ended and keep their blocks.
    held: u32,
    pub(crate) tiers: Tiers,
    pub(crate) adapters: Adapters,
    /// What adapters brought to the GPU add to the step that is being scheduled.
    pub(crate) adapter_time: Dur,
    /// The step in flight; its `end` is when it will come out.
    pub(crate) step: Option<Step>,
    /// What the last step that was scheduled computes.
    pub(crate) batch: Batch,
    /// The number of the last step begun, from 1.
    pub(crate) step_no: u64,
    /// When the last step began.
    pub(crate) began: Time,
    /// When the queue was last found non-empty without a step in flight.
    ready_at: Time,
    /// Before this it doesn't begin a step.
    opens: Time,
    /// The queue was looked at, and all must wait for blocks on their way.
    stalled: bool,
    arrivals: u64,
    pub(crate) counters: Counters,
    pub(crate) emitted: Vec<Emit>,
    pub(crate) finished: Vec<Finished>,
    pub(crate) log: Log,
    pub(crate) rng: Rng,
    pub(crate) scratch: Vec<u32>,
    pub(crate) late: Late,
    /// Grows whenever a waiting sequence might fit that did not before.
    pub(crate) changes: u64,
    /// `changes` when the head of the queue was last found not to fit, and whose slot that was.
    pub(crate) blocked: Option<(u64, u32)>,
    pub(crate) ahead: Ahead,
}

impl Engine {
    /// An idle engine with an empty cache.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        config.validate()?;
        let seqs = config.max_num_seqs as usize;
        Ok(Engine {
            blocks: Blocks::new(config.num_blocks),
            sequences: Sequences::default(),
            // Twice what runs, and that at half load: a table that is fuller would grow now and then to get rid of gaps.
            slots: HashMap::with_capacity_and_hasher(4 * seqs, BuildHasherDefault::default()),
            running: Vec::with_capacity(seqs),
            lanes: Vec::with_capacity(seqs),
            waiting: Waiting::default(),
            loading: Vec::new(),
            held: 0,
            tiers: Tiers::new(&config.tiers),
            adapters: Adapters::default(),
            adapter_time: Dur::ZERO,
            step: None,
            batch: Batch::default(),
            step_no: 0,
            began: Time::ZERO,
            ready_at: Time::ZERO,
            opens: Time::ZERO,
            stalled: false,
            arrivals: 0,
            counters: Counters { blocks: config.num_blocks, ..Counters::default() },
            emitted: Vec::with_capacity(seqs),
            finished: Vec::with_capacity(seqs),
            log: Log::new(config.block_size),
            rng: config.seed.stream("speculation"),
            late: Late::new(&config),
            scratch: Vec::with_capacity(config.block_size as usize),
            changes: 0,
            blocked: None,
            ahead: Ahead::default(),
            config,
        })
    }

    /// Takes an event. Only [`Event::Wake`] begins or ends a step, at most one of each a call, so that everything of one
    /// moment can be submitted before the step that takes it; a wake before its time does nothing.
    pub fn on(&mut self, now: Time, event: Event<'_>, out: &mut Vec<Effect>) {
        self.emitted.clear();
        self.finished.clear();
        self.log.clear();
        self.ahead.forget();
        match event {
            Event::Wake => self.wake(now, out),
            Event::Submit(submit) => match self.submit(now, &submit) {
                Ok(()) => {}
                Err(why) => {
                    match why {
                        WhyRejected::QueueFull { .. } => self.counters.rejected_queue_full += 1,
                        _ => self.counters.rejected_invalid += 1,
                    }
                    out.push(Effect::Rejected { id: submit.id, why });
                }
            },
            Event::Abort(id) => self.abort(now, id, out),
            Event::Release(id) => self.let_go(now, id),
            Event::ResetPrefixCache => {
                let done = self.blocks.forget();
                if done {
                    self.late.forget();
                    self.tiers.clear();
                }
                if done && self.config.kv_events != KvEvents::Off {
                    self.log.cleared();
                }
                out.push(Effect::PrefixCacheReset { done });
            }
        }
        self.counters.running = self.running.len() as u32;
        self.counters.waiting = (self.waiting.len() + self.loading.len()) as u32;
        self.counters.blocks_used = self.blocks.count() - self.blocks.free();
    }

    /// When to call with [`Event::Wake`]; `None`: not before another event.
    pub fn next_wake(&self) -> Option<Time> {
        match &self.step {
            Some(step) => Some(step.end),
            None => {
                let queue = (!self.waiting.is_empty() && !self.stalled).then_some(self.ready_at);
                let loaded = self.loading.iter().map(|l| l.ready).min();
                queue.into_iter().chain(loaded).min().map(|at| at.max(self.opens))
            }
        }
    }

    /// What the step that just ended put out, in the order of the batch.
    pub fn emitted(&self) -> &[Emit] {
        &self.emitted
    }

    /// Who is in the batch, in its order.
    pub fn running(&self) -> impl Iterator<Item = SeqId> + '_ {
        self.lanes.iter().map(|lane| lane.id)
    }

    /// The sequences that just ended.
    pub fn finished(&self) -> &[Finished] {
        &self.finished
    }

    /// How the prefix cache just changed; empty unless [`Config::kv_events`] asks for it.
    pub fn kv(&self) -> &Log {
        &self.log
    }

    /// What a real engine exports.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Blocks that can be found by their hash, used or not.
    pub fn cached_blocks(&self) -> u32 {
        let in_use = self.running.iter().zip(&self.lanes).map(|(r, lane)| match self.sequences[r.slot].tail {
            tail::NONE => 0,
            _ if lane.due > 0 => self.full_of_tail(r.slot, lane.known(self.step_no)),
            _ => self.full_of_tail(r.slot, r.reached()),
        });
        self.blocks.findable() + in_use.sum::<u32>()
    }

    /// It is starting, and won't begin a step before `at` (see [`crate::Startup`]); requests may be submitted and wait.
    pub fn open_at(&mut self, at: Time) {
        self.opens = at;
    }

    /// Adapters of running sequences.
    pub fn running_adapters(&self) -> impl Iterator<Item = u32> {
        self.adapters.active()
    }

    /// Adapters that waiting requests want and no running sequence has, in the order of the queue, each once.
    pub fn waiting_adapters(&self) -> Vec<u32> {
        let mut wanted = Vec::new();
        for adapter in self.waiting.slots().filter_map(|slot| self.sequences[slot].lora) {
            if !wanted.contains(&adapter) && !self.adapters.active().any(|a| a == adapter) {
                wanted.push(adapter);
            }
        }
        wanted
    }

    /// Blocks that a tier holds, counted from the nearest, 0.
    pub fn tier_blocks(&self, tier: usize) -> u32 {
        self.tiers.len(tier)
    }

    /// Sequences that ended and whose blocks are kept until [`Event::Release`].
    pub fn held(&self) -> u32 {
        self.held
    }

    /// What it is.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn wake(&mut self, now: Time, out: &mut Vec<Effect>) {
        let begin = match self.step {
            // The next step begins when this one was planned to end: a driver that is late once stays on plan.
            Some(step) if step.end <= now => {
                self.step = None;
                self.complete(step, out);
                step.end
            }
            Some(_) => return,
            None if now < self.opens => return,
            None => now,
        };
        if self.running.is_empty() && self.waiting.is_empty() && self.loading.is_empty() {
            return;
        }
        let mut step = self.schedule(begin);
        if self.running.is_empty() && step.preempted > 0 {
            // The only one that ran lost its blocks to those kept or on their way: now the queue has its turn.
            step = self.schedule(begin);
        }
        // Nothing runs only if all that could is waiting for what is on its way.
        self.stalled = self.running.is_empty();
        self.step = (!self.stalled).then_some(step);
    }

    fn submit(&mut self, now: Time, s: &Submit<'_>) -> Result<(), WhyRejected> {
        let Config { max_model_len, max_num_queued_reqs, policy, block_size, kv_events, .. } = self.config;
        if s.prompt.is_empty() {
            return Err(WhyRejected::EmptyPrompt);
        }
        if s.output_tokens == 0 {
            return Err(WhyRejected::NoOutput);
        }
        if s.prompt.len() >= max_model_len as usize {
            return Err(WhyRejected::PromptTooLong { prompt: s.prompt.len(), max_model_len });
        }
        if self.slots.contains_key(&s.id.0) {
            return Err(WhyRejected::IdInUse);
        }
        let waiting = self.waiting.len() as u32;
        if max_num_queued_reqs.is_some_and(|most| waiting >= most) {
            return Err(WhyRejected::QueueFull { waiting });
        }

        let wanted = (s.prompt.len() as u32).saturating_add(s.output_tokens);
        let finish = if wanted > max_model_len { Finish::Length } else { s.finish };
        let prompt = s.prompt.len() as u32;
        let skip = if kv_events == KvEvents::Tokens { 0 } else { prompt - prompt % block_size };
        let slot = self.sequences.insert(s, self.arrivals, now, wanted.min(max_model_len), finish, skip);
        self.arrivals += 1;
        if self.config.prefix_caching {
            let seq = &mut self.sequences[slot];
            let mut parent = tailbound_kv::BlockHash::root(s.salt, s.lora);
            for block in s.prompt.chunks_exact(self.config.block_size as usize) {
                parent = parent.child(block);
                seq.hashes.push(parent);
            }
        }
        self.slots.insert(s.id.0, slot);
        self.late.named(s.id);
        if self.step.is_none() && self.waiting.is_empty() {
            self.ready_at = now;
            self.stalled = false;
        }
        self.prefetch(slot, now);
        let priority = if policy == Policy::Priority { s.priority } else { 0 };
        self.sequences[slot].priority = priority;
        self.waiting.insert(self.queue_place(slot));
        Ok(())
    }

    fn abort(&mut self, now: Time, id: SeqId, out: &mut Vec<Effect>) {
        let Some(&slot) = self.slots.get(&id.0) else { return };
        let mut reached = 0;
        let (mut known, mut last_token) = (self.sequences[slot].known, self.sequences[slot].last_token);
        match self.sequences[slot].place {
            Place::Waiting => self.waiting.remove(self.queue_place(slot)),
            Place::Loading => self.loading.retain(|l| l.slot != slot),
            Place::Held => return self.let_go(now, id),
            _ => {
                if let Some(at) = self.running.iter().position(|r| r.slot == slot) {
                    let r = self.take_out(at);
                    known = r.known;
                    reached = r.reached();
                    last_token = (known > r.prompt).then_some(r.last_token);
                }
            }
        }
        self.counters.finished_abort += 1;
        self.finished.push(self.sequences[slot].record(Finish::Abort, known, last_token));
        self.bury(slot, reached);
        if self.step.is_none() {
            self.ready_at = now;
            self.stalled = false;
        }
        out.push(Effect::Aborted { id });
    }

    /// Keeps an ended sequence's blocks; they get numbers first, as somebody else's may not be counted away.
    pub(crate) fn hold(&mut self, slot: u32) {
        if self.sequences[slot].tail != tail::NONE {
            self.uncover(self.sequences[slot].tail, 0);
        }
        self.sequences[slot].place = Place::Held;
        self.held += 1;
    }

    fn let_go(&mut self, now: Time, id: SeqId) {
        let Some(&slot) = self.slots.get(&id.0) else { return };
        if self.sequences[slot].place != Place::Held {
            return;
        }
        self.held -= 1;
        self.bury(slot, 0);
        if self.step.is_none() {
            self.ready_at = now;
            self.stalled = false;
        }
    }

    /// Brings [`Running`] up to date, as of the step in flight or being scheduled, and gives the sequence care in it.
    pub(crate) fn attend(&mut self, i: usize) {
        let lane = &mut self.lanes[i];
        if lane.due == 0 {
            return;
        }
        let r = &mut self.running[i];
        r.known = lane.known(self.step_no);
        r.computed = r.known - 1;
        r.scheduled = 1;
        r.drafts = 0;
        // Steady is who put out a token in the step before, and steps follow on each other.
        r.last_token = self.began;
        lane.due = 0;
    }

    /// Takes the `i`-th out of the batch.
    pub(crate) fn take_out(&mut self, i: usize) -> Running {
        self.attend(i);
        self.lanes.remove(i);
        let r = self.running.remove(i);
        self.leave_adapter(r.slot);
        r
    }

    /// Forgets an ended sequence, of which `reached` tokens are or are being computed, and frees what it holds.
    pub(crate) fn bury(&mut self, slot: u32, reached: u32) {
        self.release_blocks(slot, reached);
        self.slots.remove(&self.sequences[slot].id.0);
        self.sequences.remove(slot);
        self.changes += 1;
    }

    /// Its blocks are released from the last to the first: of one prompt, the beginning is evicted last.
    pub(crate) fn release_blocks(&mut self, slot: u32, reached: u32) {
        self.release_tail(slot, reached);
        while let Some(block) = self.sequences[slot].blocks.pop() {
            self.blocks.release(block);
        }
        self.changes += 1;
    }

    pub(crate) fn queue_place(&self, slot: u32) -> waiting::Place {
        let seq = &self.sequences[slot];
        waiting::Place { priority: seq.priority, arrival: seq.arrival, slot }
    }
}

/// Spreads ids that a driver may have numbered from 0; deterministic, unlike the standard hasher.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }
    fn write_u64(&mut self, x: u64) {
        let wide = u128::from(self.0 ^ x ^ 0x9e37_79b9_7f4a_7c15) * 0xd1b5_4a32_d192_ed03_u128;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
