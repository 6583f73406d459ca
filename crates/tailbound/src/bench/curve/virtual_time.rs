//! A point in virtual time: the load and the engine model, each woken when it asks to be. No clock, no sockets: the same plan gives the
//! same rows, hours of them in seconds.

use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::journal::Journal;
use crate::bench::serve::live::{Ending, Names};
use crate::bench::serve::passes::Passes;
use crate::failure::{Failure, Outcome};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use tailbound_clock::Time;
use tailbound_engine::{self as engine, Engine, SeqId, Submit};
use tailbound_prompt::{Body, Prompt};
use tailbound_record::{Blame, Cause, Counts, End, Finish, Moment, Phase, Row, StampSource};
use tailbound_workload::{IntentId, Load, LoadEffect, LoadEvent, Plan};

/// Words of a text: without a tokenizer a word is a token.
pub fn words(text: &str) -> u32 {
    text.split_ascii_whitespace().count() as u32
}

/// A prompt as the engine model needs it.
struct Model {
    prompt: Vec<u32>,
    output_tokens: u32,
}

impl Model {
    fn new(prompt: &Prompt) -> Model {
        let of_text = |text: &str| text.split_ascii_whitespace().map(word).collect();
        let ids = match &prompt.body {
            Body::Text(text) => of_text(text),
            Body::Ids(ids) => ids.to_vec(),
            Body::Messages(json) => of_text(&json.to_string()),
        };
        Model { prompt: ids, output_tokens: prompt.output_tokens }
    }
}

/// Equal words are equal tokens, so that common beginnings are found in the prefix cache (FNV-1a).
fn word(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

struct World<'a> {
    load: Load,
    engine: Engine,
    models: Vec<Model>,
    passes: &'a Passes,
    /// Handed over and not yet due: when, which, and when it was scheduled.
    due: BinaryHeap<Reverse<(Time, IntentId, Time)>>,
    going: HashMap<u64, Row>,
    effects: Vec<LoadEffect>,
    told: Vec<engine::Effect>,
    ended: Vec<Row>,
    finished: bool,
}

/// Runs a plan to its end; every row is kept as a live run's would be.
pub fn run(
    args: &ServeArgs,
    plan: &Arc<Plan>,
    model: &engine::Config,
    prompts: &[Prompt],
    passes: &Passes,
    names: &Names,
) -> Outcome<(Vec<Row>, Ending)> {
    let mut world = World {
        load: Load::new(plan.clone()),
        engine: Engine::new(model.clone()).map_err(|e| Failure::new(format!("failed to model the engine: {e}")))?,
        models: prompts.iter().map(Model::new).collect(),
        passes,
        due: BinaryHeap::new(),
        going: HashMap::new(),
        effects: Vec::new(),
        told: Vec::new(),
        ended: Vec::new(),
        finished: false,
    };
    let mut journal = Journal::open(args, names)?;
    let mut rows = Vec::with_capacity(plan.requests() as usize);
    let mut now = Time::ZERO;
    world.tell(now, LoadEvent::Wake);
    while !world.finished {
        now = now
            .max(world.next().ok_or_else(|| Failure::new("the load waits for what the engine model will never give"))?);
        world.step(now);
        for row in world.ended.drain(..) {
            journal.row(&row)?;
            rows.push(row);
        }
    }
    let ending = Ending::in_virtual_time(world.load.origin());
    journal.close(&ending)?;
    rows.sort_unstable_by_key(|row| row.id);
    Ok((rows, ending))
}

impl World<'_> {
    fn next(&self) -> Option<Time> {
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        [due, self.engine.next_wake(), self.load.next_wake()].into_iter().flatten().min()
    }

    /// What comes out at a moment is known before what arrives at it.
    fn step(&mut self, now: Time) {
        if self.engine.next_wake().is_some_and(|at| at <= now) {
            self.engine_step(now);
        }
        if self.load.next_wake().is_some_and(|at| at <= now) {
            self.tell(now, LoadEvent::Wake);
        }
        while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            if let Some(Reverse((at, id, scheduled))) = self.due.pop() {
                self.submit(now, at, id, scheduled);
            }
        }
    }

    fn tell(&mut self, now: Time, event: LoadEvent) {
        self.load.on(now, event, &mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                LoadEffect::Send { id, scheduled, due } => self.due.push(Reverse((due, id, scheduled))),
                LoadEffect::Finished => self.finished = true,
            }
        }
    }

    fn submit(&mut self, now: Time, due: Time, id: IntentId, scheduled: Time) {
        let item = self.passes.item(id.0) % self.models.len();
        let model = &mut self.models[item];
        if let Some(first) = model.prompt.first_mut().filter(|_| self.passes.salt.is_some()) {
            *first = id.0.wrapping_mul(0x9e37_79b9); // the salt's place
        }
        let mut row = Row::new(u64::from(id.0));
        for (moment, at) in
            [(Moment::Scheduled, scheduled), (Moment::Released, due), (Moment::WriteStart, now), (Moment::Written, now)]
        {
            row.at.set(moment, at);
        }
        row.stamps = StampSource::Virtual;
        row.tokens = Counts {
            prompt_asked: Some(model.prompt.len() as u32),
            prompt_server: Some(model.prompt.len() as u32),
            output_asked: Some(model.output_tokens),
            ..Counts::default()
        };
        let submit = Submit::new(SeqId(row.id), &model.prompt, model.output_tokens);
        self.engine.on(now, engine::Event::Submit(submit), &mut self.told);
        let rejected = self.told.drain(..).find_map(|effect| match effect {
            engine::Effect::Rejected { why, .. } => Some(why),
            _ => None,
        });
        match rejected {
            None => drop(self.going.insert(row.id, row)),
            Some(why) => {
                let detail = why.to_string().into();
                row.end =
                    End::Failed { phase: Phase::Headers, blame: Blame::Server, cause: Cause::Status(400), detail };
                row.at.set(Moment::StreamEnd, now);
                self.end(now, row);
            }
        }
    }

    fn engine_step(&mut self, now: Time) {
        self.engine.on(now, engine::Event::Wake, &mut self.told);
        self.told.clear();
        let mut done = Vec::new();
        for emit in self.engine.emitted() {
            let Some(row) = self.going.get_mut(&emit.id.0) else { continue };
            let read = row.chunks.len() as u32;
            row.chunks.push(now, read, u16::try_from(emit.tokens).unwrap_or(u16::MAX), true);
            if emit.finish.is_some() {
                done.push(emit.id.0);
            }
        }
        for id in done {
            let Some(mut row) = self.going.remove(&id) else { continue };
            let first = row.chunks.as_slice().first().map_or(now, |c| c.at);
            for moment in
                [Moment::Headers, Moment::FirstByte, Moment::FirstEvent, Moment::FirstToken, Moment::FirstVisible]
            {
                row.at.set(moment, first);
            }
            for moment in [Moment::LastToken, Moment::Finish, Moment::Usage, Moment::StreamEnd] {
                row.at.set(moment, now);
            }
            row.tokens.output_server = row.chunks.stated_tokens();
            row.net.status = 200;
            row.end = End::Done(Finish::Length);
            self.end(now, row);
        }
    }

    fn end(&mut self, now: Time, mut row: Row) {
        row.chunks.shrink();
        let answer_tokens = row.tokens.output_server.unwrap_or(0);
        let event = LoadEvent::Ended { id: IntentId(row.id as u32), ok: row.ok(), answer_tokens };
        self.ended.push(row);
        self.tell(now, event);
    }
}
