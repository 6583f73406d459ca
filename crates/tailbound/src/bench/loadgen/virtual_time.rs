//! A test in virtual time: the scenario machine and the engine model, each woken when it asks to be. No clock, no sockets: the same
//! settings give the same logs, byte for byte.

use super::heard::Heard;
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use tailbound_clock::Time;
use tailbound_engine::{self as engine, Engine, Finish, SeqId, Submit};
use tailbound_prompt::{Body, Prompt};
use tailbound_stats::loadgen::Scenario;
use tailbound_stats::loadgen::scenario::{Effect, Event, Test};
use tailbound_token::Tokenizer;

/// A sample as the engine model needs it.
pub struct Model {
    prompt: Vec<u32>,
    output_tokens: u32,
}

impl Model {
    /// Of a prompt: its token ids, by the tokenizer if there is one, else a word is a token.
    pub fn new(prompt: &Prompt, tokenizer: Option<&Tokenizer>) -> Model {
        let of_text = |text: &str| match tokenizer.and_then(|t| t.encode(text, true).ok()) {
            Some(ids) => ids,
            None => text.split_ascii_whitespace().map(word).collect(),
        };
        let ids = match &prompt.body {
            Body::Text(text) => of_text(text),
            Body::Ids(ids) => ids.to_vec(),
            Body::Messages(json) => of_text(&json.to_string()),
        };
        Model { prompt: ids, output_tokens: prompt.output_tokens }
    }
}

/// Words of a text, counted as [`Model::new`] counts them.
pub fn words(text: &str) -> u32 {
    text.split_ascii_whitespace().count() as u32
}

/// Equal words are equal tokens, so that common beginnings are found in the prefix cache (FNV-1a).
fn word(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

struct Going {
    first: Option<Time>,
    tokens: u32,
}

struct World<'a> {
    test: &'a mut Test,
    engine: Engine,
    models: &'a [Model],
    going: HashMap<u64, Going>,
    reports_first: bool,
    token_mode: bool,
    effects: Vec<Effect>,
    heard: Heard,
}

/// Runs a test to its end.
pub fn run(test: &mut Test, engine: engine::Config, models: &[Model]) -> Outcome<Heard> {
    let engine = Engine::new(engine).map_err(|e| Failure::new(format!("failed to model the engine: {e}")))?;
    let r = &test.effective().requested;
    let (token_mode, reports_first) = (r.use_token_latencies, r.use_token_latencies && r.scenario != Scenario::Offline);
    let mut world = World {
        test,
        engine,
        models,
        going: HashMap::new(),
        reports_first,
        token_mode,
        effects: Vec::new(),
        heard: Heard::default(),
    };
    let mut now = Time::ZERO;
    world.tell(now, Event::Start);
    while !world.test.finished() {
        let (engine, test) = (world.engine.next_wake(), world.test.next_wake());
        match (engine, test) {
            // What comes out at a moment is known before what arrives at it.
            (Some(at), other) if other.is_none_or(|other| at <= other) => {
                now = now.max(at);
                world.step(now);
            }
            (_, Some(at)) => {
                now = now.max(at);
                world.tell(now, Event::Wake);
            }
            _ => return Err(Failure::new("the test waits for an answer that the engine model will never give")),
        }
    }
    Ok(world.heard)
}

impl World<'_> {
    fn tell(&mut self, now: Time, event: Event) {
        self.test.on(now, event, &mut self.effects);
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Load(_) => self.test.on(now, Event::Loaded, &mut self.effects),
                    Effect::Issue(batch) => {
                        for issue in batch {
                            for (sample, index) in (issue.first_sample..).zip(issue.samples) {
                                self.submit(now, sample, index);
                            }
                        }
                    }
                    Effect::Flush | Effect::Finished => {}
                }
            }
        }
    }

    fn submit(&mut self, now: Time, sample: u64, index: u32) {
        let Some(model) = self.models.get(index as usize) else { return };
        let submit = Submit { finish: Finish::Stop, ..Submit::new(SeqId(sample), &model.prompt, model.output_tokens) };
        let mut told = Vec::new();
        self.engine.on(now, engine::Event::Submit(submit), &mut told);
        match told.first() {
            Some(engine::Effect::Rejected { why, .. }) => {
                self.heard.lost_to("rejected by the engine model".into(), why.to_string());
                self.test.on(now, Event::Lost { sample }, &mut self.effects);
            }
            _ => {
                self.going.insert(sample, Going { first: None, tokens: 0 });
            }
        }
    }

    fn step(&mut self, now: Time) {
        let mut told = Vec::new();
        self.engine.on(now, engine::Event::Wake, &mut told);
        let mut done = Vec::new();
        for emit in self.engine.emitted() {
            let Some(going) = self.going.get_mut(&emit.id.0) else { continue };
            going.first.get_or_insert(now);
            going.tokens += emit.tokens;
            if emit.finish.is_some() {
                done.push(emit.id.0);
            }
        }
        for sample in done {
            let Some(going) = self.going.remove(&sample) else { continue };
            let event = Event::Answered {
                sample,
                issued: None,
                first_token: going.first.filter(|_| self.reports_first),
                at: now,
                tokens: self.token_mode.then_some(i64::from(going.tokens)),
            };
            self.tell(now, event);
        }
    }
}
