use crate::sequence::Running;
use crate::{Effect, Emit, Engine, Finish, Step};

impl Engine {
    /// Ends the step: every sequence whose known tokens are all computed puts out the next, and accepted drafts after it.
    pub(crate) fn complete(&mut self, mut step: Step, out: &mut Vec<Effect>) {
        let mut ended = 0;
        for i in 0..self.running.len() {
            let r = &self.running[i];
            if r.scheduled == 0 {
                continue;
            }
            let upto = r.computed + r.scheduled - r.drafts;
            if upto < r.known {
                self.running[i].computed = upto;
                continue;
            }
            let accepted = if r.drafts > 0 { self.accept(r.drafts) } else { 0 };
            let r = &mut self.running[i];
            let tokens = (1 + accepted).min(r.end - r.known);
            let first = r.known - r.prompt;
            r.computed = r.known + tokens - 1;
            r.known += tokens;
            r.last_token = step.end;
            step.emitted_tokens += tokens;
            let done = r.known == r.end;
            let (id, slot, cached, prompt) = (r.id, r.slot, r.cached, r.prompt);
            let finish = if done { Some(self.sequences[slot].finish) } else { None };
            self.emitted.push(Emit { id, first, tokens, cached, finish });
            if first == 0 {
                self.sequences[slot].first_token = Some(step.end);
                self.counters.prompt_cached += u64::from(cached);
                self.counters.prompt_computed += u64::from(prompt - cached);
            }
            ended += usize::from(done);
        }
        self.counters.generated += u64::from(step.emitted_tokens);
        self.counters.steps += 1;
        if ended > 0 {
            self.retire();
        }
        out.push(Effect::Stepped(step));
    }

    /// How many of `drafts` tokens are right: each counts only if those before it were.
    fn accept(&mut self, drafts: u32) -> u32 {
        let chance = self.config.speculation.map_or(0.0, |s| s.acceptance);
        let mut accepted = 0;
        while accepted < drafts && self.rng.unit() < chance {
            self.counters.accepted_per_position[accepted as usize] += 1;
            accepted += 1;
        }
        self.counters.drafts += 1;
        self.counters.draft_tokens += u64::from(drafts);
        self.counters.accepted_tokens += u64::from(accepted);
        accepted
    }

    /// Takes those that are done out of the batch.
    fn retire(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        running.retain(|r| {
            if r.known == r.end {
                self.finish(r);
            }
            r.known < r.end
        });
        self.running = running;
    }

    fn finish(&mut self, r: &Running) {
        let seq = &self.sequences[r.slot];
        match seq.finish {
            Finish::Stop => self.counters.finished_stop += 1,
            Finish::Length => self.counters.finished_length += 1,
            Finish::Abort => self.counters.finished_abort += 1,
        }
        self.finished.push(seq.record(seq.finish, r.known, Some(r.last_token)));
        self.bury(r.slot);
    }
}
