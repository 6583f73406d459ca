//! A request is sent, computed, answered, or not.

use super::World;
use super::mail::Letter;
use tailbound_clock::Time;
use tailbound_engine::{self as engine, Emit, SeqId, Submit};
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row, Why};
use tailbound_route::{Complete, Dispatch, Effect, Event, RequestId, Usage};

/// Moments of a first token.
const FIRST: [Moment; 5] =
    [Moment::Headers, Moment::FirstByte, Moment::FirstEvent, Moment::FirstToken, Moment::FirstVisible];

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
            ..Submit::new(SeqId(id.0), &flight.prompt, ask.output)
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
        let r = &mut self.replicas[replica as usize];
        if !r.woken(self.now) {
            return;
        }
        let mut emitted = std::mem::take(&mut self.emitted);
        emitted.extend_from_slice(r.emitted());
        if let Some((seq, batch)) = r.message()
            && r.events
        {
            self.post(self.event_delay, Letter::Kv(replica, seq, batch));
        }
        self.schedule(replica);
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
        note_tokens(&mut flight.row, self.now, emit);
        if emit.first == 0 {
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
        let Some(at) = self.flights.get_mut(number).and_then(|f| f.at.take()) else { return };
        self.replicas[at as usize].tell(self.now, engine::Event::Abort(SeqId(number)));
        self.schedule(at);
    }

    /// The replica that had it is gone: another one takes it, if nothing of the answer was out.
    pub(super) fn lost(&mut self, number: u64) {
        let id = RequestId(number);
        let Some(flight) = self.flights.get_mut(number) else { return };
        flight.at = None;
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

/// Tokens came out.
fn note_tokens(row: &mut Row, now: Time, emit: &Emit) {
    if emit.first == 0 {
        FIRST.iter().for_each(|moment| row.at.set(*moment, now));
        row.tokens.cached_server = Some(emit.cached);
    }
    row.net.reads += 1;
    row.chunks.push(now, row.net.reads, emit.tokens as u16, true);
    row.at.set(Moment::LastToken, now);
}

fn as_recorded(finish: engine::Finish) -> Finish {
    match finish {
        engine::Finish::Stop => Finish::Stop,
        engine::Finish::Length => Finish::Length,
        engine::Finish::Abort => Finish::Other,
    }
}
