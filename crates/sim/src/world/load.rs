//! Requests come: each part of the load is a machine of its own, told the time and what ended.

use super::calendar::Next;
use super::flights::{Flight, Stream};
use super::outcome::Answered;
use super::{START, World};
use crate::requests::{Part, Requests};
use std::sync::Arc;
use tailbound_clock::{Dur, Time};
use tailbound_record::{End, Moment, Row, StampSource};
use tailbound_route::{Arrival, Event, Prompt, RequestId};
use tailbound_workload::{IntentId, Load, LoadEffect, LoadEvent};

/// The loads of all parts.
pub(super) struct Loads {
    parts: Vec<Running>,
    /// When each request handed over was scheduled, and when it is due.
    due: Vec<(Time, Time)>,
    open: usize,
    effects: Vec<LoadEffect>,
}

struct Running {
    load: Load,
    first: u32,
    begin: Dur,
    after: Option<u32>,
    /// The wake that is on the calendar.
    wake: Option<Time>,
    over: bool,
}

impl Loads {
    pub(super) fn new(requests: &Requests) -> Loads {
        let running = |part: &Part| Running {
            load: Load::new(Arc::clone(&part.plan)),
            first: part.first,
            begin: part.begin,
            after: part.after,
            wake: None,
            over: false,
        };
        Loads {
            parts: requests.parts.iter().map(running).collect(),
            due: vec![(Time::ZERO, Time::ZERO); requests.asks.len()],
            open: requests.parts.len(),
            effects: Vec::new(),
        }
    }

    /// Whether every request has come and ended.
    pub(super) fn over(&self) -> bool {
        self.open == 0
    }

    /// The part a request belongs to.
    fn part_of(&self, number: u64) -> u32 {
        self.parts.partition_point(|part| u64::from(part.first) <= number) as u32 - 1
    }
}

impl World<'_, '_> {
    pub(super) fn begin_loads(&mut self) {
        for part in 0..self.loads.parts.len() {
            if self.loads.parts[part].after.is_none() {
                self.calendar.push(START + self.loads.parts[part].begin, Next::Begin(part as u32));
            }
        }
    }

    pub(super) fn wake_load(&mut self, part: u32) {
        self.loads.parts[part as usize].wake = None;
        self.tell_load(part, LoadEvent::Wake);
    }

    fn tell_load(&mut self, part: u32, event: LoadEvent) {
        let Loads { parts, due, effects, .. } = &mut self.loads;
        let running = &mut parts[part as usize];
        running.load.on(self.now, event, effects);
        let mut finished = false;
        for effect in effects.drain(..) {
            match effect {
                LoadEffect::Send { id, scheduled, due: at } => {
                    let number = running.first + id.0;
                    due[number as usize] = (scheduled, at);
                    self.calendar.push(at.max(self.now), Next::Arrive(number));
                }
                LoadEffect::Finished => finished = true,
            }
        }
        let wake = running.load.next_wake().map(|at| at.max(self.now));
        if let Some(at) = wake.filter(|at| running.wake.is_none_or(|known| *at < known)) {
            running.wake = Some(at);
            self.calendar.push(at, Next::Load(part));
        }
        if finished && !std::mem::replace(&mut running.over, true) {
            self.loads.open -= 1;
            self.followers_of(part);
        }
    }

    /// A part is over; those that waited for it begin, and not before their time.
    fn followers_of(&mut self, part: u32) {
        let began = self.loads.parts[part as usize].load.origin().unwrap_or(self.now);
        for (i, next) in self.loads.parts.iter().enumerate().filter(|(_, next)| next.after == Some(part)) {
            self.calendar.push((began + next.begin).max(self.now), Next::Begin(i as u32));
        }
    }

    pub(super) fn arrive(&mut self, number: u64) {
        self.moved = self.now;
        let ask = &self.requests.asks[number as usize];
        let class = &self.requests.classes[ask.class as usize];
        let (scheduled, due) = self.loads.due[number as usize];
        let mut row = Row { class: ask.class, stamps: StampSource::Virtual, ..Row::new(number) };
        row.tokens.prompt_asked = Some(ask.input);
        row.tokens.output_asked = Some(ask.output);
        for (moment, at) in [
            (Moment::Scheduled, scheduled),
            (Moment::Released, due),
            (Moment::WriteStart, self.now),
            (Moment::Written, self.now),
        ] {
            row.at.set(moment, at);
        }
        let prompt = self.requests.texts.prompt(number, ask.text, ask.input);
        let flight = Flight {
            row,
            part: self.loads.part_of(number),
            prompt: Arc::clone(&prompt),
            at: None,
            then: None,
            stream: Stream::Silent,
            held_by: None,
            prefilled_by: None,
            model: None,
            waited: Dur::ZERO,
            sent: 0,
        };
        self.flights.add(number, flight);
        if let Some(leaving) = class.leaving
            && self.leaving.unit() < leaving.share
        {
            let after = Dur::from_ms_f64(leaving.after_ms * self.leaving.exponential());
            self.calendar.push(self.now + after, Next::Leave(number as u32));
        }
        let lora = ask.adapter.map(|k| class.adapters[k as usize].as_str());
        let session = ask.text.session().filter(|_| class.affinity).map(|s| s.to_string());
        let arrival = Arrival {
            output_tokens: Some(ask.output),
            bytes: 4 * prompt.len() as u64,
            lora,
            priority: ask.priority,
            tenant: class.tenant(number),
            session: session.as_deref(),
            slo: class.slo,
            otherwise: class.otherwise,
            patience: class.patience,
            ..Arrival::new(RequestId(number), lora.unwrap_or(&class.model), Prompt { text: &[], tokens: &prompt })
        };
        self.tell(Event::Arrived(&arrival));
    }

    /// A request has ended, in whatever way. Its row is handed over; whoever waited for it may come.
    pub(super) fn end(&mut self, number: u64, end: End) {
        self.let_go(number);
        self.write_down(number);
        let Some(mut flight) = self.flights.take(number) else { return };
        flight.row.at.set(Moment::StreamEnd, self.now);
        flight.row.chunks.shrink();
        flight.row.end = end;
        let (part, ok) = (flight.part, flight.row.ok());
        let answer_tokens = flight.row.output_tokens();
        let session = self.requests.asks[number as usize].text.session();
        self.ended.push(Answered::new(flight, session));
        let id = IntentId(number as u32 - self.loads.parts[part as usize].first);
        self.tell_load(part, LoadEvent::Ended { id, ok, answer_tokens });
    }

    /// Rows of requests that were planned and never sent.
    pub(super) fn never_sent(&self) -> Vec<Answered> {
        let mut rows = Vec::new();
        for part in &self.loads.parts {
            for unsent in part.load.unsent() {
                let number = part.first + unsent.id.0;
                let ask = &self.requests.asks[number as usize];
                let mut row = Row { class: ask.class, stamps: StampSource::Virtual, ..Row::new(u64::from(number)) };
                row.tokens.prompt_asked = Some(ask.input);
                row.tokens.output_asked = Some(ask.output);
                if let Some(at) = unsent.scheduled {
                    row.at.set(Moment::Scheduled, at);
                }
                row.end = End::NeverSent(unsent.why);
                rows.push(Answered::never_sent(row, ask.text.session()));
            }
        }
        rows
    }
}
