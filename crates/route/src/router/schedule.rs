use super::{OLD, Router};
use crate::disagg::Handler;
use crate::event::{Dispatch, Effect, Refusal, Targets};
use crate::explain::Decision;
use crate::load::Charge;
use crate::pick::Case;
use crate::predict::Features;
use crate::request::{Arrival, Leg, Otherwise, Request, Sent, Stage};
use tailbound_clock::Time;

/// What a pick came to.
struct Chosen {
    to: Targets,
    slot: u32,
    prefill: Option<u32>,
    encode: Option<u32>,
}

impl Router {
    /// Finds a replica for a request and sends it there, or refuses it.
    pub(super) fn schedule(&mut self, now: Time, index: u32, saturation: f64, out: &mut Vec<Effect>) {
        if !self.survey(now, index) {
            let tried = !self.requests[index as usize].tried.is_empty();
            return self.refuse(index, if tried { Refusal::AllFailed } else { Refusal::NoEndpoints }, out);
        }
        match self.hopeless(index) {
            Some(Otherwise::Refuse) => return self.refuse(index, Refusal::SloOutOfReach, out),
            Some(Otherwise::Wait) => return self.wait_for_better(now, index, out),
            Some(Otherwise::Downgrade) | None => {}
        }
        match self.choose(now, index, saturation) {
            Some(chosen) => self.dispatch(now, index, chosen, out),
            None => self.refuse(index, Refusal::NoneEligible, out),
        }
    }

    /// Who could take it, before any filter: those that are there, healthy, allowed, and haven't failed it.
    fn candidates(&mut self, index: u32) -> bool {
        let (t, request) = (&self.table, &self.requests[index as usize]);
        let candidates = &mut self.scratch.candidates;
        candidates.clear();
        let plain = request.tried.is_empty() && !request.has_subset;
        if plain && t.all_ready() {
            candidates.extend_from_slice(&t.live);
            return !candidates.is_empty();
        }
        let fits = |s: &u32| {
            let id = t.id[*s as usize];
            !request.tried.contains(&id) && (!request.has_subset || request.subset.contains(&id))
        };
        candidates.extend(t.live.iter().copied().filter(|s| t.ready[*s as usize] && (plain || fits(s))));
        if candidates.is_empty() && plain {
            // Health checks that say nobody is well are more likely wrong themselves.
            candidates.extend_from_slice(&t.live);
        }
        !candidates.is_empty()
    }

    /// Picks without sending.
    pub(super) fn dry_run(&mut self, now: Time, arrival: &Arrival) -> Option<Targets> {
        let index = self.take_place();
        let (rng, turn) = (self.memory.rng.clone(), self.memory.turn);
        let request = &mut self.requests[index as usize];
        request.fill(now, arrival, None);
        self.knowledge.chains(arrival.model, arrival, request);
        let chosen = if self.survey(now, index) {
            self.run(index, self.primary(), None);
            self.targets()
        } else {
            None
        };
        (self.memory.rng, self.memory.turn) = (rng, turn);
        self.free.push(index);
        chosen
    }

    /// Looks up all that a pick goes by. Whether there is anybody to pick from.
    fn survey(&mut self, now: Time, index: u32) -> bool {
        self.table.age(now, OLD);
        self.knowledge.find(now, &self.requests[index as usize], self.table.slots());
        self.foresee(now, index);
        self.candidates(index)
    }

    /// The profile that finds who answers.
    pub(super) fn primary(&self) -> usize {
        match self.policy.handler {
            Handler::Single { profile } => profile,
            Handler::Disagg { decode, .. } => decode,
        }
    }

    /// The picked, best first.
    fn targets(&self) -> Option<Targets> {
        let mut to = Targets::new();
        for place in &self.scratch.picked {
            to.push(self.table.id[self.scratch.candidates[*place as usize] as usize]);
        }
        (!to.is_empty()).then_some(to)
    }

    fn choose(&mut self, now: Time, index: u32, saturation: f64) -> Option<Chosen> {
        let others = match self.policy.handler {
            Handler::Single { .. } => None,
            Handler::Disagg { prefill, encode, .. } => Some((prefill, encode)),
        };
        let primary = self.primary();
        self.run(index, primary, None);
        let slot = self.picked()?;
        let profile = &self.policy.profiles[primary];
        let cached = self.knowledge.cached(&self.scratch);
        let id = self.requests[index as usize].id;
        self.decisions.push(Decision::new(now, id, profile, &self.scratch, &self.table, saturation, cached));
        let to = self.targets()?;
        let mut chosen = Chosen { to, slot, prefill: None, encode: None };
        let Some((prefill, encode)) = others else { return Some(chosen) };
        for (stage, place) in [(prefill, &mut chosen.prefill), (encode, &mut chosen.encode)] {
            let Some((profile, decider)) = stage else { continue };
            let request = &self.requests[index as usize];
            if !decider.splits(request, self.knowledge.matches.first(), slot) || !self.candidates(index) {
                continue;
            }
            self.run(index, profile, Some(slot));
            // Without anybody to do it, the one that decodes does all of it.
            *place = self.picked().filter(|s| *s != slot);
        }
        Some(chosen)
    }

    fn run(&mut self, index: u32, profile: usize, peer: Option<u32>) {
        let case = Case {
            table: &self.table,
            request: &self.requests[index as usize],
            matches: &self.knowledge.matches,
            media: &self.knowledge.media_matches,
            forecast: &self.forecast,
            peer,
        };
        self.policy.profiles[profile].run(&case, &mut self.memory, &mut self.scratch);
    }

    fn picked(&self) -> Option<u32> {
        self.scratch.picked.first().map(|place| self.scratch.candidates[*place as usize])
    }

    /// Counts the load, tells the indexes, and sends. From here on the request weighs on its replicas until it is over.
    fn dispatch(&mut self, now: Time, index: u32, chosen: Chosen, out: &mut Vec<Effect>) {
        let request = &self.requests[index as usize];
        let computes = chosen.prefill.unwrap_or(chosen.slot);
        let kv = u64::from(request.prompt_tokens);
        let uncached = self.uncached(request, computes);
        let features = self.features(request, computes);
        let cold = self.knowledge.matches.iter().all(|m| !m.any());

        let answer = Charge { prefill_tokens: if chosen.prefill.is_none() { uncached } else { 0 }, kv_tokens: kv };
        let answer = self.leg(now, chosen.slot, answer);
        let prefill = chosen.prefill.map(|s| self.leg(now, s, Charge { prefill_tokens: uncached, kv_tokens: kv }));
        let encode = chosen.encode.map(|s| self.leg(now, s, Charge::default()));

        let request = &self.requests[index as usize];
        self.knowledge.sent(now, chosen.slot, request);
        if let Some(slot) = chosen.prefill {
            self.knowledge.sent(now, slot, request);
        }
        if cold {
            self.memory.went_cold(chosen.slot);
            chosen.prefill.into_iter().for_each(|s| self.memory.went_cold(s));
        }
        if let Some(predictor) = &mut self.predictor {
            predictor.sent(chosen.slot, request.slo);
        }
        if let Some(queue) = &mut self.queue {
            queue.dispatched(now, request);
        }
        self.flights.sent(now, index, request.priority);
        out.push(Effect::Dispatch(Dispatch {
            request: request.id,
            to: chosen.to,
            prefill: chosen.prefill.map(|s| self.table.id[s as usize]),
            encode: chosen.encode.map(|s| self.table.id[s as usize]),
            model: request.rewritten.clone(),
            waited: now.since(request.arrived),
        }));
        let sent = Sent { at: now, answer, prefill, encode, first_token: None, generated: 0, features, evicted: None };
        self.requests[index as usize].stage = Stage::Sent(sent);
    }

    fn leg(&mut self, now: Time, slot: u32, charge: Charge) -> Leg {
        self.table.charge(now, slot, &charge);
        Leg { slot, born: self.table.born[slot as usize], charge, sent_tokens: charge.kv_tokens }
    }

    fn uncached(&self, request: &Request, slot: u32) -> u64 {
        let cached = self.knowledge.matches.first().map_or(0, |m| m.tokens(slot));
        u64::from(request.prompt_tokens).saturating_sub(cached)
    }

    fn features(&self, request: &Request, slot: u32) -> Features {
        let s = slot as usize;
        let features = Features {
            kv: self.table.kv_now[s],
            prompt: f64::from(request.prompt_tokens),
            uncached: self.uncached(request, slot) as f64,
            waiting: self.table.waiting[s],
            running: self.table.running[s],
            ..Features::default()
        };
        features.with_load(&self.table.load[s])
    }

    /// Predicts for every replica, if predictions are made.
    fn foresee(&mut self, now: Time, index: u32) {
        let mut forecast = std::mem::take(&mut self.forecast);
        forecast.0.clear();
        if let Some(predictor) = &self.predictor {
            let request = &self.requests[index as usize];
            let waited = now.since(request.arrived);
            forecast.0.resize(self.table.slots(), None);
            for slot in &self.table.live {
                let features = self.features(request, *slot);
                forecast.0[*slot as usize] = predictor.predict(*slot, &features, request.slo, waited);
            }
        }
        self.forecast = forecast;
    }

    /// What to do with a request whose SLO no candidate is predicted to keep.
    fn hopeless(&self, index: u32) -> Option<Otherwise> {
        let request = &self.requests[index as usize];
        if request.slo == Default::default() {
            return None;
        }
        let hope = |s: &u32| self.forecast.of(*s).is_none_or(|p| p.keeps_the_slo());
        (!self.scratch.candidates.iter().any(hope)).then_some(request.otherwise)
    }

    /// It waits until somebody can, or nobody can any more.
    fn wait_for_better(&mut self, now: Time, index: u32, out: &mut Vec<Effect>) {
        let request = &self.requests[index as usize];
        let until = request.slo.ttft.map(|slo| request.arrived + slo).filter(|at| *at > now);
        match until {
            Some(at) => {
                self.hopeful.insert((at, index));
            }
            None => self.refuse(index, Refusal::SloOutOfReach, out),
        }
    }

    pub(super) fn retry_hopeful(&mut self, now: Time, out: &mut Vec<Effect>) {
        let mut from = (Time::ZERO, 0);
        while let Some(&(at, index)) = self.hopeful.range(from..).next() {
            from = (at, index + 1);
            self.hopeful.remove(&(at, index));
            let saturation = self.saturation(now);
            self.schedule(now, index, saturation, out);
        }
    }
}
