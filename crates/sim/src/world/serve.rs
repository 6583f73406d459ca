//! A request is sent, computed, answered, or not.

use super::World;
use super::calendar::Turn;
use super::mail::Letter;
use tailbound_engine::{self as engine, Emit, SeqId, Submit};
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Why};
use tailbound_route::{Complete, Dispatch, Effect, Event, RequestId, Usage};

/// Which part of a request an engine is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    /// All of it.
    Both,
    /// The prompt, for another.
    Prefill,
    /// The answer to a prompt that another computed.
    Decode,
}

impl World<'_, '_> {
    /// Does what the router wants; what it is to hear of that at once.
    pub(super) fn obey(&mut self, effect: Effect) -> Option<Event<'static>> {
        match effect {
            Effect::Dispatch(d) => self.submit(d),
            Effect::Refuse(id, why) => {
                self.fail(id, Cause::Status(why.status()), why.to_string());
                None
            }
            Effect::Evict(id) => {
                self.abort(id.0);
                self.fail(id, Cause::Status(429), "request evicted by flow control".to_owned());
                Some(Event::Cancelled(id))
            }
            // Nobody here keeps what was sent.
            Effect::ReplayKv(id, _) => Some(Event::KvReplayed(id, Complete::No)),
        }
    }

    fn submit(&mut self, dispatch: Dispatch) -> Option<Event<'static>> {
        let (id, to) = (dispatch.request, dispatch.to[0].0);
        let flight = self.flights.get_mut(id.0)?;
        flight.sent += 1;
        flight.model = dispatch.model;
        flight.waited = dispatch.waited;
        flight.row.worker = to as u16;
        // Whoever was to compute the prompt is gone: the one that answers does all of it.
        match dispatch.prefill.filter(|p| self.replicas[p.0 as usize].alive) {
            Some(prefill) => {
                (flight.then, flight.prefilled_by) = (Some(to), Some(prefill.0));
                self.hand_to(id, prefill.0, Half::Prefill)
            }
            None => self.hand_to(id, to, Half::Both),
        }
    }

    /// Submits a request to an engine.
    fn hand_to(&mut self, id: RequestId, to: u32, half: Half) -> Option<Event<'static>> {
        self.catch_up(to);
        let flight = self.flights.get_mut(id.0)?;
        let replica = &mut self.replicas[to as usize];
        if !replica.alive {
            return Some(Event::Failed(id));
        }
        flight.at = Some(to);
        let ask = &self.requests.asks[id.0 as usize];
        self.requests.texts.answer(ask.text, ask.input, ask.output, &mut self.answer);
        let submit = Submit {
            answer: &self.answer,
            priority: ask.priority.saturating_neg(),
            lora: ask.adapter.map(u32::from),
            remote: if half == Half::Decode { ask.input } else { 0 },
            hold: half == Half::Prefill,
            ..Submit::new(SeqId(id.0), &flight.prompt, if half == Half::Prefill { 1 } else { ask.output })
        };
        let effects = replica.tell(self.now, engine::Event::Submit(submit));
        let rejected = effects.iter().find_map(|effect| match effect {
            engine::Effect::Rejected { why, .. } => Some(why.to_string()),
            _ => None,
        });
        self.schedule(to);
        let why = rejected?;
        self.fail(id, Cause::Status(400), why);
        Some(Event::Ended(id, Usage::default()))
    }

    pub(super) fn step(&mut self, replica: u32) {
        self.catch_up(replica);
        let r = &mut self.replicas[replica as usize];
        if !r.woken(self.now) {
            return;
        }
        if let Some((seq, batch)) = r.message()
            && r.events
        {
            self.post(Turn::KvEvents, self.event_delay, Letter::Kv(replica, seq, batch));
        }
        self.list(replica);
        self.schedule(replica);
        let mut emitted = std::mem::take(&mut self.emitted);
        for emit in emitted.drain(..) {
            self.emit(replica, &emit);
        }
        self.emitted = emitted;
    }

    fn emit(&mut self, replica: u32, emit: &Emit) {
        let id = RequestId(emit.id.0);
        // One that is gone was evicted by what an earlier one of the same step brought about.
        let Some(flight) = self.flights.get_mut(id.0).filter(|f| f.at == Some(replica)) else { return };
        self.moved = self.now;
        if let Some(then) = flight.then.take() {
            flight.held_by = flight.at.take();
            if let Some(event) = self.hand_to(id, then, Half::Decode) {
                self.tell(event);
            }
            return;
        }
        self.note(replica, emit);
        if emit.first == 0 {
            self.let_go(id.0);
            self.tell(Event::FirstToken(id));
        }
        let Some(finish) = emit.finish else { return };
        let Some(flight) = self.flights.get_mut(id.0) else { return };
        let row = &mut flight.row;
        for moment in [Moment::Finish, Moment::Usage] {
            row.at.set(moment, self.now);
        }
        let generated = emit.first + emit.tokens;
        row.tokens.prompt_server = row.tokens.prompt_asked;
        row.tokens.output_server = Some(generated);
        row.net.status = 200;
        let usage = Usage {
            ok: true,
            prompt: row.tokens.prompt_asked,
            cached: row.tokens.cached_server,
            generated: Some(generated),
        };
        self.end(id.0, End::Done(as_recorded(finish)));
        self.tell(Event::Ended(id, usage));
    }

    /// What another replica holds for a request is fetched, or no longer needed.
    pub(super) fn let_go(&mut self, number: u64) {
        let Some(holder) = self.flights.get_mut(number).and_then(|f| f.held_by.take()) else { return };
        self.catch_up(holder);
        self.replicas[holder as usize].tell(self.now, engine::Event::Release(SeqId(number)));
        self.schedule(holder);
    }

    /// A client leaves before it was answered.
    pub(super) fn leave(&mut self, number: u64) {
        if self.flights.get(number).is_none() {
            return;
        }
        self.abort(number);
        self.end(number, End::Cancelled(Why::Planned));
        self.tell(Event::Cancelled(RequestId(number)));
    }

    /// Takes a request away from the replica that has it.
    fn abort(&mut self, number: u64) {
        let Some(at) = self.flights.get(number).and_then(|f| f.at) else { return };
        self.catch_up(at);
        self.flights.get_mut(number).expect("it was there").at = None;
        self.replicas[at as usize].tell(self.now, engine::Event::Abort(SeqId(number)));
        self.schedule(at);
    }

    /// The replica that had it is gone: another one takes it, if nothing of the answer was out.
    pub(super) fn lost(&mut self, number: u64) {
        let id = RequestId(number);
        self.let_go(number);
        let Some(flight) = self.flights.get_mut(number) else { return };
        (flight.at, flight.then) = (None, None);
        if flight.row.at.get(Moment::FirstToken).is_none() {
            return self.tell(Event::Failed(id));
        }
        self.fail(id, Cause::Reset, "the replica died".to_owned());
        self.tell(Event::Ended(id, Usage::default()));
    }

    fn fail(&mut self, id: RequestId, cause: Cause, why: String) {
        let Some(flight) = self.flights.get_mut(id.0) else { return };
        if let Cause::Status(status) = cause {
            flight.row.net.status = status;
        }
        let answered = flight.row.at.get(Moment::FirstToken).is_some();
        let phase = if answered { Phase::Stream } else { Phase::Headers };
        self.end(id.0, End::Failed { phase, blame: Blame::Server, cause, detail: why.into() });
    }
}

fn as_recorded(finish: engine::Finish) -> Finish {
    match finish {
        engine::Finish::Stop => Finish::Stop,
        engine::Finish::Length => Finish::Length,
        engine::Finish::Abort => Finish::Other,
    }
}
