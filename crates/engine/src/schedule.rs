use crate::blocks::Was;
use crate::loading::Loading;
use crate::sequence::{Lane, Place, Running};
use crate::tail;
use crate::{Batch, Engine, KvEvents, Policy, Step};
use tailbound_clock::{Dur, Time};

impl Engine {
    /// Begins a step at `start`: decides what is computed in it and how long that takes.
    pub(crate) fn schedule(&mut self, start: Time) -> Step {
        self.step_no += 1;
        self.began = start;
        let mut batch = Batch::default();
        let mut budget = self.config.max_num_batched_tokens;
        self.blocks.warm(self.running.len() as u32 / self.config.block_size);
        let preempted = self.schedule_running(&mut budget, &mut batch);
        // A step that took blocks away does not give any to newcomers.
        if preempted == 0 {
            self.schedule_waiting(start, &mut budget, &mut batch);
        }
        let adapters = std::mem::take(&mut self.adapter_time);
        batch.shared = self.shared();
        self.batch = batch;
        Step {
            start,
            end: start + self.duration(&batch) + adapters,
            prefill_tokens: batch.prefill_tokens,
            decodes: batch.decodes,
            emitted_tokens: 0,
            preempted,
        }
    }

    /// Tokens that running sequences have in blocks which another has too, the first of each apart.
    pub(crate) fn shared(&self) -> u64 {
        u64::from(self.blocks.shared()) * u64::from(self.config.block_size)
    }

    /// How long a step takes that computes this.
    pub(crate) fn duration(&self, batch: &Batch) -> Dur {
        let took = self.config.law.duration(batch);
        match &self.config.speculation {
            Some(s) if batch.decode_tokens > batch.decodes => took + s.draft_time,
            _ => took,
        }
    }

    /// Those that run go first, in their order. Returns how many lost their blocks.
    fn schedule_running(&mut self, budget: &mut u32, batch: &mut Batch) -> u32 {
        let most_drafts = self.config.speculation.map_or(0, |s| s.tokens);
        let longest = self.config.long_prefill_token_threshold.unwrap_or(u32::MAX);
        let max_model_len = self.config.max_model_len;
        let mut preempted = 0;
        let mut i = 0;
        while i < self.running.len() {
            let lane = &self.lanes[i];
            if lane.due > self.step_no && *budget > 0 {
                batch.decodes += 1;
                batch.decode_tokens += 1;
                batch.decode_context += u64::from(lane.known(self.step_no));
                *budget -= 1;
                i += 1;
                continue;
            }
            self.attend(i);
            let r = &mut self.running[i];
            r.scheduled = 0;
            if *budget == 0 {
                i += 1;
                continue;
            }
            let ahead = r.known - r.computed;
            let drafts = if ahead == 1 && r.known > r.prompt { most_drafts.min(max_model_len - r.known) } else { 0 };
            let n = (ahead + drafts).min(longest).min(*budget);
            if r.computed + n > r.capacity && !self.make_room(&mut i, n, budget, batch, &mut preempted) {
                // The sequence itself was the least important: it is gone, and `i` is the next one's place.
                continue;
            }
            let r = &mut self.running[i];
            r.scheduled = n;
            r.drafts = n.saturating_sub(ahead);
            *budget -= n;
            batch.add(r);
            if r.publish_at <= (r.computed + n).min(r.known) {
                self.publish(i);
            }
            i += 1;
        }
        preempted
    }

    /// Gets blocks for `n` more tokens of the `i`-th running sequence, taking them from the least important one as often
    /// as needed. `false`: that was the sequence itself. `i` follows the sequence if an earlier one goes.
    fn make_room(&mut self, i: &mut usize, n: u32, budget: &mut u32, batch: &mut Batch, preempted: &mut u32) -> bool {
        let upto = self.running[*i].computed + n;
        while !self.grow(*i, upto) {
            let victim = self.least_important();
            self.attend(victim);
            if victim < *i {
                // It was already in this step: what it took is given back.
                let lost = &self.running[victim];
                *budget += lost.scheduled;
                batch.take_back(lost);
                let reached = lost.reached();
                *i -= 1;
                self.preempt(victim, reached);
                *preempted += 1;
                continue;
            }
            self.preempt(victim, self.running[victim].computed);
            *preempted += 1;
            if victim == *i {
                return false;
            }
        }
        true
    }

    fn least_important(&self) -> usize {
        let last = self.running.len() - 1;
        match self.config.policy {
            Policy::Fcfs => last,
            Policy::Priority => {
                let rank = |r: &Running| self.queue_place(r.slot);
                (0..=last).max_by_key(|&i| rank(&self.running[i])).unwrap_or(last)
            }
        }
    }

    /// Takes a running sequence's blocks and puts it back in the queue; it is computed again later, but what was
    /// generated stays known. `reached`: how many of its tokens are computed, or are to be in this step.
    fn preempt(&mut self, i: usize, reached: u32) {
        let r = self.take_out(i);
        self.hash_tail(r.slot, reached);
        self.release_blocks(r.slot, reached);
        let seq = &mut self.sequences[r.slot];
        seq.known = r.known;
        seq.last_token = (r.known > r.prompt).then_some(r.last_token);
        seq.preemptions += 1;
        seq.place = Place::Waiting;
        self.counters.preemptions += 1;
        self.waiting.insert(self.queue_place(r.slot));
    }

    /// Gives the `i`-th running sequence blocks for `upto` tokens; `false` if there are not enough.
    fn grow(&mut self, i: usize, upto: u32) -> bool {
        let r = &self.running[i];
        let need = (upto - r.capacity).div_ceil(self.config.block_size);
        if need > self.blocks.free() {
            return false;
        }
        self.take_blocks(r.slot, need);
        self.running[i].capacity += need * self.config.block_size;
        true
    }

    fn take_blocks(&mut self, slot: u32, count: u32) {
        if count > 1 {
            self.blocks.warm(count);
        }
        let seq = &mut self.sequences[slot];
        for _ in 0..count {
            let was = self.blocks.take_unnumbered().expect("the caller has counted the free blocks");
            if seq.tail == tail::NONE {
                seq.blocks.push(self.blocks.number());
            } else {
                seq.late += 1;
            }
            if was == Was::Plain {
                continue;
            }
            self.counters.evictions += 1;
            if let Was::Cached(hash) = was
                && self.config.kv_events != KvEvents::Off
            {
                self.log.removed(hash);
            }
        }
    }

    /// The queue's head joins as long as there are places, budget and blocks.
    fn schedule_waiting(&mut self, start: Time, budget: &mut u32, batch: &mut Batch) {
        self.join_loaded(start, budget, batch);
        // Those whose adapter finds no place let others by.
        let mut passed = 0;
        while *budget > 0 && self.running.len() < self.config.max_num_seqs as usize {
            let Some(slot) = self.waiting.at(passed) else { return };
            if self.blocked == Some((self.changes, slot)) {
                return;
            }
            if !self.adapter_has_room(slot) {
                passed += 1;
                continue;
            }
            match self.admit(slot, start, *budget) {
                Admitted::Not => return,
                Admitted::Loads(loading) => {
                    self.waiting.take(passed);
                    self.loading.push(loading);
                }
                Admitted::Joins(joined) => {
                    self.waiting.take(passed);
                    self.join(joined, budget, batch);
                }
            }
        }
    }

    /// One more sequence takes part in this step.
    pub(crate) fn join(&mut self, joined: Running, budget: &mut u32, batch: &mut Batch) {
        *budget -= joined.scheduled;
        batch.add(&joined);
        self.join_adapter(joined.slot);
        let upto = joined.computed + joined.scheduled;
        self.running.push(joined);
        self.lanes.push(Lane::careful(joined.id, joined.cached));
        if joined.publish_at <= upto {
            self.publish(self.running.len() - 1);
            self.changes += 1;
        }
    }

    /// Finds what is cached of a waiting sequence and gives it blocks for its first chunk, or for all of it if some of it
    /// must be fetched first.
    fn admit(&mut self, slot: u32, start: Time, budget: u32) -> Admitted {
        let size = self.config.block_size;
        // At least the last token is computed, or there would be nothing to sample from.
        let usable = ((self.sequences[slot].known - 1) / size) as usize;
        let (mut hits, mut hits_unused) = (0u32, 0u32);
        self.blocks.warm_hashes(&self.sequences[slot].hashes);
        while let Some(&hash) = self.sequences[slot].hashes[..].get(hits as usize)
            && (hits as usize) < usable
            && let Some(block) = self.blocks.find(hash)
        {
            hits += 1;
            self.sequences[slot].blocks.push(block);
            hits_unused += u32::from(!self.blocks.is_used(block));
            if let Some(tail) = self.blocks.tail_on(block) {
                self.uncover(tail, self.running.len());
            }
        }

        let far = self.far(slot, hits, usable as u32, start);
        let seq = &self.sequences[slot];
        let computed = hits * size;
        let ahead = seq.known - computed;
        let longest = self.config.long_prefill_token_threshold.unwrap_or(u32::MAX);
        let n = ahead.min(longest).min(budget);
        if !self.config.chunked_prefill && n < ahead && far.is_none() {
            self.sequences[slot].blocks.clear();
            return Admitted::Not;
        }
        let first = (computed + n).div_ceil(size) - hits;
        let whole = seq.known.div_ceil(size) - hits;
        let first = if far.is_some() { whole } else { first };
        let must_be_free = if self.config.reserve_full_prompt { whole } else { first };
        if must_be_free + hits_unused > self.blocks.free() {
            self.blocked = Some((self.changes, slot));
            self.sequences[slot].blocks.clear();
            return Admitted::Not;
        }

        for &block in &self.sequences[slot].blocks {
            self.blocks.share(block);
        }
        self.take_blocks(slot, first);
        self.use_tiers(slot, far.as_ref().map_or(hits, |far| (hits + far.blocks()).min(usable as u32)));
        if self.sequences[slot].scheduled.is_none() && self.config.prefix_caching {
            self.counters.prefix_queries += u64::from(self.sequences[slot].known);
            self.counters.prefix_hits += u64::from(computed);
        }
        if let Some(far) = far {
            let loading = self.set_out(slot, hits, &far, start);
            if loading.ready > start {
                return Admitted::Loads(loading);
            }
            let n = self.ahead(slot, loading.computed).min(budget);
            return Admitted::Joins(self.begin(slot, loading.computed, hits, n, start));
        }
        Admitted::Joins(self.begin(slot, computed, hits, n, start))
    }

    /// A sequence begins to run with `computed` tokens in its blocks, of which `hits` are already findable.
    pub(crate) fn begin(&mut self, slot: u32, computed: u32, hits: u32, n: u32, start: Time) -> Running {
        let size = self.config.block_size;
        let seq = &mut self.sequences[slot];
        seq.place = Place::Running;
        if seq.scheduled.is_none() {
            seq.scheduled = Some(start);
            seq.cached = computed;
        }
        Running {
            id: seq.id,
            slot,
            computed,
            known: seq.known,
            scheduled: n,
            drafts: 0,
            capacity: seq.blocks.len() as u32 * size,
            publish_at: if self.config.prefix_caching { (hits + 1) * size } else { u32::MAX },
            end: seq.end,
            prompt: seq.prompt,
            cached: seq.cached,
            last_token: seq.last_token.unwrap_or(Time::ZERO),
        }
    }

    /// Makes the blocks findable that the `i`-th running sequence fills in this step. As in vLLM this happens when the
    /// step begins: a sequence that joins the same step can already use them.
    fn publish(&mut self, i: usize) {
        let size = self.config.block_size;
        let upto = self.running[i].reached();
        while self.running[i].publish_at <= upto {
            let r = &mut self.running[i];
            let seq = &mut self.sequences[r.slot];
            let index = (r.publish_at / size) as usize - 1;
            r.publish_at += size;
            if index == seq.hashes.len() {
                let hash = seq.parent(index).child(seq.block_tokens(index, size as usize, &mut self.scratch));
                seq.hashes.push(hash);
            }
            let hash = seq.hashes[index];
            if !self.tiers.is_empty() {
                self.tiers.store(hash);
            }
            if let Err(other) = self.blocks.publish(seq.blocks[index], hash) {
                self.late.doubled(index as u32, seq.given(), size);
                if let Some(tail) = self.blocks.tail_on(other) {
                    self.uncover(tail, i);
                }
                continue;
            }
            if self.config.kv_events == KvEvents::Off {
                let invented = (index as u32 + 1) * size > seq.given();
                if seq.preemptions == 0 && self.late.allowed(invented) {
                    self.start_tail(i, index);
                }
                continue;
            }
            let parent = index.checked_sub(1).map(|before| seq.hashes[before]);
            let tokens = match self.config.kv_events {
                KvEvents::Tokens => Some(seq.block_tokens(index, size as usize, &mut self.scratch)),
                _ => None,
            };
            self.log.stored(hash, parent, seq.salt, seq.lora, tokens);
        }
    }
}

/// What came of a waiting sequence's turn.
enum Admitted {
    /// It must wait on.
    Not,
    /// It has its blocks, and what is to be in them is on its way.
    Loads(Loading),
    /// It takes part in the step.
    Joins(Running),
}

impl Batch {
    fn add(&mut self, r: &Running) {
        if r.scheduled - r.drafts == 1 && r.computed + 1 == r.known {
            self.decodes += 1;
            self.decode_tokens += r.scheduled;
            self.decode_context += u64::from(r.known);
            return;
        }
        self.prefills += 1;
        self.prefill_tokens += r.scheduled;
        self.prefill_attention += attention(r);
    }

    fn take_back(&mut self, r: &Running) {
        if r.scheduled == 0 {
            return;
        }
        if r.scheduled - r.drafts == 1 && r.computed + 1 == r.known {
            self.decodes -= 1;
            self.decode_tokens -= r.scheduled;
            self.decode_context -= u64::from(r.known);
            return;
        }
        self.prefills -= 1;
        self.prefill_tokens -= r.scheduled;
        self.prefill_attention -= attention(r);
    }
}

fn attention(r: &Running) -> f64 {
    f64::from(r.scheduled) * (f64::from(r.scheduled) / 2.0 + f64::from(r.computed))
}
