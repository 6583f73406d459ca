use crate::Engine;
use crate::sequence::{Place, Running};
use crate::tail;

impl Engine {
    /// What must hold between any two events; the message says what does not. For tests and simulations: it looks at every
    /// block and sequence.
    pub fn check(&self) -> Result<(), String> {
        self.check_blocks()?;
        self.check_places()?;
        self.check_counters()
    }

    fn check_blocks(&self) -> Result<(), String> {
        let mut users = vec![0; self.blocks.count() as usize];
        let mut unnumbered = 0;
        let mut held = 0;
        for (slot, seq) in self.sequences.iter() {
            unnumbered += seq.late;
            let tail = (seq.tail != tail::NONE).then(|| &self.blocks.tails[seq.tail]);
            if tail.map_or(seq.late > 0, |t| t.slot != slot || seq.blocks.last() != Some(&t.anchor)) {
                return Err(format!("sequence {} has a tail of {} blocks: {tail:?}", seq.id.0, seq.late));
            }
            for &block in &seq.blocks {
                users[block as usize] += 1;
            }
            if seq.place == Place::Held {
                held += 1;
            }
            if seq.place == Place::Waiting && (!seq.blocks.is_empty() || tail.is_some()) {
                return Err(format!("sequence {} waits and holds {} blocks", seq.id.0, seq.blocks.len()));
            }
        }
        if held != self.held() {
            return Err(format!("{held} ended sequences keep their blocks, but {} are counted", self.held()));
        }
        self.blocks.check(&users, unnumbered)
    }

    fn check_places(&self) -> Result<(), String> {
        if self.running.len() > self.config.max_num_seqs as usize {
            return Err(format!("{} sequences run", self.running.len()));
        }
        if self.running.len() != self.lanes.len() || !self.running.is_empty() && self.step.is_none() {
            return Err(format!("{} sequences run in {} lanes", self.running.len(), self.lanes.len()));
        }
        let running = self.running.iter().zip(&self.lanes).map(|(r, lane)| match lane.due {
            0 => *r,
            _ => {
                Running { known: lane.known(self.step_no), computed: lane.known(self.step_no) - 1, scheduled: 1, ..*r }
            }
        });
        let running: Vec<Running> = running.collect();
        let scheduled: u64 = running.iter().map(|r| u64::from(r.scheduled)).sum();
        if scheduled > u64::from(self.config.max_num_batched_tokens) {
            return Err(format!("{scheduled} tokens in the step"));
        }
        for r in &running {
            let seq = &self.sequences[r.slot];
            let held = (seq.blocks.len() as u32 + seq.late) * self.config.block_size;
            if seq.place != Place::Running || seq.id != r.id {
                return Err(format!("sequence {} runs, but its slot says otherwise", r.id.0));
            }
            if r.capacity != held || r.computed + r.scheduled > held {
                return Err(format!("sequence {} has {held} places in its blocks: {r:?}", r.id.0));
            }
            if r.computed >= r.known || r.known >= r.end || r.known < r.prompt {
                return Err(format!("sequence {} miscounts its tokens: {r:?}", r.id.0));
            }
        }
        for slot in self.waiting.slots() {
            if self.sequences[slot].place != Place::Waiting {
                return Err(format!("slot {slot} is in the queue, but {:?}", self.sequences[slot].place));
            }
        }
        let living = self.sequences.iter().count();
        let placed = self.running.len() + self.waiting.len() + self.loading.len() + self.held() as usize;
        if living != placed || living != self.slots.len() {
            return Err(format!(
                "{living} sequences live, {} run, {} wait, {} have a name",
                self.running.len(),
                self.waiting.len(),
                self.slots.len()
            ));
        }
        if let Some((slot, seq)) = self.sequences.iter().find(|(slot, seq)| self.slots.get(&seq.id.0) != Some(slot)) {
            return Err(format!("sequence {} of slot {slot} can't be found by its name", seq.id.0));
        }
        Ok(())
    }

    fn check_counters(&self) -> Result<(), String> {
        let c = &self.counters;
        let used = self.blocks.count() - self.blocks.free();
        let counted = (c.running as usize, c.waiting as usize, c.blocks_used);
        if counted != (self.running.len(), self.waiting.len() + self.loading.len(), used) {
            return Err(format!("running, waiting and used blocks are counted as {counted:?}"));
        }
        if self.slots.is_empty() && used != 0 {
            return Err(format!("nobody is served, but {used} blocks are in use"));
        }
        if c.prefix_hits > c.prefix_queries || c.accepted_tokens > c.draft_tokens {
            return Err(format!("more found than looked for: {c:?}"));
        }
        Ok(())
    }
}
