use super::Router;
use crate::config::Admitter;
use crate::disagg::Handler;
use crate::event::{Effect, Refusal};
use crate::request::{Arrival, Request, Stage};
use tailbound_clock::Time;

impl Router {
    /// A request comes: rewritten, counted against its tenant's budget, then served, queued or refused.
    pub(super) fn arrived(&mut self, now: Time, arrival: &Arrival, out: &mut Vec<Effect>) {
        if self.by_id.contains_key(&arrival.id) {
            return out.push(Effect::Refuse(arrival.id, Refusal::IdInUse));
        }
        let asked = arrival.model_override.unwrap_or(arrival.model);
        let index = self.take_place();
        let request = &mut self.requests[index as usize];
        let session = arrival.session.map(crate::names::Key::of);
        let target = self.rewrites.target(asked, session, &mut self.dice);
        let target = target.or_else(|| arrival.model_override.map(Into::into));
        let model = target.clone();
        request.fill(now, arrival, target);
        self.knowledge.chains(model.as_deref().unwrap_or(asked), arrival, request);
        self.by_id.insert(arrival.id, index);

        let tokens = u64::from(request.prompt_tokens) + u64::from(request.output_tokens.unwrap_or(0));
        if let Err(wait) = self.quotas.take(now, request.tenant, tokens) {
            return self.refuse(index, Refusal::RateLimited(wait), out);
        }
        self.requests[index as usize].budgeted = tokens;
        // Nobody asks how full the pool is for a request that neither waits nor may be shed.
        let asked = self.queue.is_some() || self.requests[index as usize].priority < 0;
        let saturation = if asked { self.saturation(now) } else { f64::NAN };
        if let Err(refusal) = self.admit(index, saturation) {
            return self.refuse(index, refusal, out);
        }
        match self.queue {
            Some(_) => self.enqueue(now, index, arrival.patience, saturation, out),
            None => self.schedule(now, index, saturation, out),
        }
    }

    pub(super) fn saturation(&self, now: Time) -> f64 {
        let split = matches!(self.policy.handler, Handler::Disagg { prefill: Some(_), .. });
        self.policy.detector.saturation(now, &self.table, split)
    }

    /// Who may not even wait.
    fn admit(&mut self, index: u32, saturation: f64) -> Result<(), Refusal> {
        let request = &self.requests[index as usize];
        if self.table.live.is_empty() {
            // With a queue it waits for somebody to come.
            return if self.queue.is_some() { Ok(()) } else { Err(Refusal::NoEndpoints) };
        }
        if request.priority >= 0 {
            return Ok(());
        }
        for admitter in &self.policy.admitters {
            let refused = match admitter {
                Admitter::Probabilistic { power, factor } => {
                    self.dice.unit() < (libm::pow(saturation, *power) * factor).min(1.0)
                }
                Admitter::LatencySlo => {
                    let t = &self.table;
                    let easy = |s: u32| t.load[s as usize].requests == 0 || t.kv_now[s as usize] < 0.02;
                    let fits = |s: u32| self.forecast.of(s).is_some_and(|p| p.keeps_the_slo());
                    !t.live.iter().any(|s| easy(*s) || fits(*s))
                }
            };
            if refused {
                return Err(Refusal::Saturated);
            }
        }
        if self.queue.is_none() && saturation >= 1.0 {
            return Err(Refusal::Saturated);
        }
        Ok(())
    }

    fn enqueue(
        &mut self,
        now: Time,
        index: u32,
        patience: Option<tailbound_clock::Dur>,
        saturation: f64,
        out: &mut Vec<Effect>,
    ) {
        let Some(queue) = &mut self.queue else { return };
        let request = &mut self.requests[index as usize];
        request.expires = queue.expires(now, patience);
        let anybody = !self.table.live.is_empty();
        if anybody && queue.is_open(saturation, request.priority) {
            return self.schedule(now, index, saturation, out);
        }
        match queue.push(now, index, request) {
            Ok(place) => {
                request.stage = Stage::Queued(place);
                self.stirred = true;
            }
            // Full without anybody to empty it: there is no capacity now, rather than too little.
            Err(_) if !anybody => self.refuse(index, Refusal::NoEndpoints, out),
            Err(_) => self.refuse(index, Refusal::QueueFull, out),
        }
    }

    /// Lets those go whose turn it is, as long as there is room.
    pub(super) fn pump(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.retry_hopeful(now, out);
        while !self.table.live.is_empty() {
            if self.queue.as_ref().is_none_or(|q| q.is_empty()) {
                return;
            }
            let saturation = self.saturation(now);
            let Some(queue) = &mut self.queue else { return };
            let Some(index) = queue.next(now, saturation) else { break };
            if let Stage::Queued(place) = self.requests[index as usize].stage {
                queue.remove(&place);
            }
            self.requests[index as usize].stage = Stage::New;
            self.schedule(now, index, saturation, out);
        }
        self.revoke(now, out);
    }

    /// Somebody waits and nobody may go: those who may be shed make room.
    fn revoke(&mut self, now: Time, out: &mut Vec<Effect>) {
        let Some(queue) = self.queue.as_ref().filter(|q| q.evicts()) else { return };
        let Some((priority, waiting)) = queue.highest().filter(|(p, _)| *p >= 0) else { return };
        self.flights.forgive(now);
        let mut asked = [0; 2];
        let mut n = 0;
        self.flights.revoke(now, priority, waiting, &mut self.requests, |index| {
            asked[n] = index;
            n += 1;
        });
        out.extend(asked[..n].iter().map(|i| Effect::Evict(self.requests[*i as usize].id)));
    }

    /// Waited as long as it may. Without replicas that is because there are none.
    pub(super) fn give_up_waiting(&mut self, now: Time, index: u32, out: &mut Vec<Effect>) {
        let waited = now.since(self.requests[index as usize].arrived);
        self.refuse(index, Refusal::Expired(waited), out);
    }

    pub(super) fn refuse(&mut self, index: u32, refusal: Refusal, out: &mut Vec<Effect>) {
        let request = &self.requests[index as usize];
        out.push(Effect::Refuse(request.id, refusal));
        let (tenant, budgeted) = (request.tenant, request.budgeted);
        self.quotas.settle(tenant, -(budgeted as i64));
        self.forget(index);
    }

    pub(super) fn take_place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.requests.push(Request::empty());
            self.requests.len() as u32 - 1
        })
    }

    /// The request is over: out of the queue, and its place is free. Its load must have been given back.
    pub(super) fn forget(&mut self, index: u32) {
        let request = &mut self.requests[index as usize];
        if let (Stage::Queued(place), Some(queue)) = (request.stage, &mut self.queue) {
            queue.remove(&place);
        }
        if let Some(until) = request.slo.ttft.map(|slo| request.arrived + slo) {
            self.hopeful.remove(&(until, index));
        }
        debug_assert!(!matches!(request.stage, Stage::Sent(_)), "{:?} still weighs on a replica", request.id);
        request.stage = Stage::New;
        request.rewritten = None;
        self.by_id.remove(&request.id);
        self.free.push(index);
    }
}
