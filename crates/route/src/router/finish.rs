use super::Router;
use crate::endpoint::EndpointId;
use crate::event::{Complete, Effect, KvMessage, Refusal, Usage};
use crate::prefix::Next;
use crate::request::{Leg, RequestId, Sent, Stage};
use tailbound_clock::Time;

impl Router {
    /// The prompt is computed: it is no longer work to come.
    pub(super) fn first_token(&mut self, now: Time, id: RequestId) {
        let Some(&index) = self.by_id.get(&id) else { return };
        let Stage::Sent(sent) = &mut self.requests[index as usize].stage else { return };
        if sent.first_token.is_some() {
            return;
        }
        sent.first_token = Some(now);
        let took = now.since(sent.at);
        let computes = sent.prefill.unwrap_or(sent.answer);
        let features = sent.features;
        prompt_done(&mut self.table, &mut sent.answer);
        // Whoever only computed the prompt has nothing more to do with it.
        let done = [sent.prefill.take(), sent.encode.take()];
        let at = sent.at;
        done.into_iter().flatten().for_each(|leg| self.release(at, &leg));
        if let Some(predictor) = self.predictor.as_mut().filter(|_| self.table.is(computes.slot, computes.born)) {
            predictor.first_token(computes.slot, &features, took);
        }
        self.stirred = true;
    }

    /// The answer has grown to so many tokens.
    pub(super) fn progress(&mut self, now: Time, id: RequestId, tokens: u32) {
        let Some(&index) = self.by_id.get(&id) else { return };
        let request = &mut self.requests[index as usize];
        let Stage::Sent(sent) = &mut request.stage else { return };
        let more = tokens.saturating_sub(sent.generated);
        if more == 0 {
            return;
        }
        sent.generated = tokens;
        let leg = &mut sent.answer;
        if self.table.is(leg.slot, leg.born) {
            self.table.load[leg.slot as usize].kv_tokens += u64::from(more);
            leg.charge.kv_tokens += u64::from(more);
        }
        if let Some(queue) = &mut self.queue {
            queue.generated(now, request.priority, request.tenant, more);
        }
    }

    /// It couldn't be sent, or was lost before it was answered: somewhere else, if there is anywhere.
    pub(super) fn failed(&mut self, now: Time, id: RequestId, out: &mut Vec<Effect>) {
        let Some(&index) = self.by_id.get(&id) else { return };
        let Stage::Sent(sent) = self.requests[index as usize].stage else { return };
        self.land(index, &sent);
        let request = &mut self.requests[index as usize];
        let failed_at = self.table.id[sent.answer.slot as usize];
        if self.table.is(sent.answer.slot, sent.answer.born) {
            request.tried.push(failed_at);
        }
        // An answer that began can't be begun again elsewhere.
        if sent.first_token.is_some() || request.tried.len() > self.retries {
            return self.refuse(index, Refusal::AllFailed, out);
        }
        let saturation = self.saturation(now);
        self.schedule(now, index, saturation, out);
        self.stirred = true;
    }

    /// The answer is over.
    pub(super) fn ended(&mut self, now: Time, id: RequestId, usage: Usage) {
        let Some(&index) = self.by_id.get(&id) else { return };
        let Stage::Sent(sent) = self.requests[index as usize].stage else { return };
        if let Some(tokens) = usage.generated {
            self.progress(now, id, tokens);
        }
        let Stage::Sent(sent) = self.requests[index as usize].stage else { return debug_assert!(sent.generated == 0) };
        self.land(index, &sent);
        let request = &self.requests[index as usize];
        let used = u64::from(usage.prompt.unwrap_or(request.prompt_tokens)) + u64::from(sent.generated);
        self.quotas.settle(request.tenant, used as i64 - request.budgeted as i64);
        let leg = sent.answer;
        if let (Some(predictor), Some(first)) = (&mut self.predictor, sent.first_token)
            && usage.ok
            && self.table.is(leg.slot, leg.born)
        {
            predictor.answered(leg.slot, &sent.features, now.since(first), sent.generated);
        }
        self.forget(index);
        self.stirred = true;
    }

    pub(super) fn cancelled(&mut self, now: Time, id: RequestId) {
        let Some(&index) = self.by_id.get(&id) else { return };
        match self.requests[index as usize].stage {
            Stage::Sent(_) => self.ended(now, id, Usage::default()),
            _ => {
                let request = &self.requests[index as usize];
                self.quotas.settle(request.tenant, -(request.budgeted as i64));
                self.forget(index);
            }
        }
    }

    /// A request no longer weighs on anybody. This is the only place where that is so, and it takes the legs away.
    fn land(&mut self, index: u32, sent: &Sent) {
        let request = &mut self.requests[index as usize];
        request.stage = Stage::New;
        self.flights.ended(sent.at, index, request.priority);
        if let Some(predictor) = &mut self.predictor {
            predictor.over(sent.answer.slot, request.slo);
        }
        let legs = [Some(sent.answer), sent.prefill, sent.encode];
        legs.into_iter().flatten().for_each(|leg| self.release(sent.at, &leg));
    }

    /// Gives back what a leg weighs, unless its replica has gone, and all load with it.
    fn release(&mut self, at: Time, leg: &Leg) {
        if self.table.is(leg.slot, leg.born) {
            self.table.discharge(leg.slot, &leg.charge, at, leg.sent_tokens);
        }
    }

    pub(super) fn kv_message(&mut self, now: Time, id: EndpointId, message: &KvMessage, out: &mut Vec<Effect>) {
        let Some((slot, precise)) = self.table.slot(id).zip(self.knowledge.precise()) else { return };
        ask(id, precise.message(now, slot, message.seq, message.batch, message.replayed), out);
    }

    pub(super) fn kv_replayed(&mut self, id: EndpointId, complete: Complete, out: &mut Vec<Effect>) {
        let Some((slot, precise)) = self.table.slot(id).zip(self.knowledge.precise()) else { return };
        ask(id, precise.replay_ended(slot, complete == Complete::Yes), out);
    }

    pub(super) fn kv_lost(&mut self, id: EndpointId, out: &mut Vec<Effect>) {
        let Some((slot, precise)) = self.table.slot(id).zip(self.knowledge.precise()) else { return };
        ask(id, precise.lost(slot), out);
    }

    pub(super) fn kv_garbled(&mut self, id: EndpointId) {
        if let Some((slot, precise)) = self.table.slot(id).zip(self.knowledge.precise()) {
            precise.garbled(slot);
        }
    }
}

fn ask(id: EndpointId, next: Next, out: &mut Vec<Effect>) {
    if let Next::Replay(from) = next {
        out.push(Effect::ReplayKv(id, from));
    }
}

fn prompt_done(table: &mut crate::table::Table, leg: &mut Leg) {
    if table.is(leg.slot, leg.born) {
        table.load[leg.slot as usize].prefill_tokens -= leg.charge.prefill_tokens;
    }
    leg.charge.prefill_tokens = 0;
}
