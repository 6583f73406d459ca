use crate::sequence::{Lane, Running};
use crate::{Effect, Emit, Engine, Finish, Step};

impl Engine {
    /// Ends the step: every sequence whose known tokens are all computed puts out the next, and accepted drafts after it.
    pub(crate) fn complete(&mut self, mut step: Step, out: &mut Vec<Effect>) {
        let mut ended = false;
        let mut i = 0;
        while i < self.lanes.len() {
            let steady = self.lanes[i..].iter().position(|lane| lane.due == 0).unwrap_or(self.lanes.len() - i);
            self.emitted.extend(self.lanes[i..i + steady].iter().map(|lane| lane.emit(self.step_no)));
            step.emitted_tokens += steady as u32;
            i += steady;
            if i < self.lanes.len() {
                ended |= self.complete_one(i, &mut step);
                i += 1;
            }
        }
        self.counters.generated += u64::from(step.emitted_tokens);
        self.counters.steps += 1;
        if ended {
            self.retire();
        }
        out.push(Effect::Stepped(step));
    }

    /// The same for one that gets individual care; returns whether it is done.
    fn complete_one(&mut self, i: usize, step: &mut Step) -> bool {
        let r = &mut self.running[i];
        if r.scheduled == 0 {
            return false;
        }
        let upto = r.computed + r.scheduled - r.drafts;
        if upto < r.known {
            r.computed = upto;
            return false;
        }
        let drafts = r.drafts;
        let accepted = if drafts > 0 { self.accept(drafts) } else { 0 };

        let r = &mut self.running[i];
        let tokens = (1 + accepted).min(r.end - r.known);
        let first = r.known - r.prompt;
        r.computed = r.known + tokens - 1;
        r.known += tokens;
        r.last_token = step.end;
        step.emitted_tokens += tokens;
        let seq = &mut self.sequences[r.slot];
        if first == 0 {
            seq.first_token = Some(step.end);
            self.counters.prompt_cached += u64::from(r.cached);
            self.counters.prompt_computed += u64::from(r.prompt - r.cached);
        }
        let done = r.known == r.end;
        let finish = if done { Some(seq.finish) } else { None };
        self.emitted.push(Emit { id: r.id, first, tokens, cached: r.cached, finish });
        if !done && self.config.speculation.is_none() {
            self.lanes[i] = Lane::steady(r, self.step_no + 1);
        }
        done
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

    /// Takes those that are done out of the batch; the others keep their order.
    fn retire(&mut self) {
        let mut kept = 0;
        for i in 0..self.running.len() {
            if self.lanes[i].due == 0 && self.running[i].known == self.running[i].end {
                self.finish(self.running[i]);
                continue;
            }
            if kept < i {
                self.lanes[kept] = self.lanes[i];
                self.running[kept] = self.running[i];
            }
            kept += 1;
        }
        self.lanes.truncate(kept);
        self.running.truncate(kept);
    }

    fn finish(&mut self, r: Running) {
        let seq = &self.sequences[r.slot];
        match seq.finish {
            Finish::Stop => self.counters.finished_stop += 1,
            Finish::Length => self.counters.finished_length += 1,
            Finish::Abort => self.counters.finished_abort += 1,
        }
        self.finished.push(seq.record(seq.finish, r.known, Some(r.last_token)));
        let hold = seq.hold;
        self.leave_adapter(r.slot);
        if hold {
            return self.hold(r.slot);
        }
        self.bury(r.slot, r.computed);
    }
}
