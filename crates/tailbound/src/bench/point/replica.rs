//! The engine model as something that answers prompts: what is submitted comes back as a row, as a server's answers would.

use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use tailbound_clock::Time;
use tailbound_engine::{self as engine, Engine, SeqId, Submit};
use tailbound_prompt::{Body, Prompt};
use tailbound_record::{Blame, Cause, Counts, End, Finish, Moment, Phase, Row, StampSource};
use tailbound_token::Tokenizer;

/// A prompt as the engine model needs it.
pub struct Sample {
    prompt: Vec<u32>,
    output_tokens: u32,
}

impl Sample {
    /// Of a prompt: its token ids, by the tokenizer if there is one, else a word is a token.
    pub fn new(prompt: &Prompt, tokenizer: Option<&Tokenizer>) -> Sample {
        let of_text = |text: &str| match tokenizer.and_then(|t| t.encode(text, true).ok()) {
            Some(ids) => ids,
            None => text.split_ascii_whitespace().map(word).collect(),
        };
        let ids = match &prompt.body {
            Body::Text(text) => of_text(text),
            Body::Ids(ids) => ids.to_vec(),
            Body::Messages(json) => of_text(&json.to_string()),
        };
        Sample { prompt: ids, output_tokens: prompt.output_tokens }
    }

    /// Words of a text, counted as [`Sample::new`] counts them.
    pub fn words(text: &str) -> u32 {
        text.split_ascii_whitespace().count() as u32
    }
}

/// Equal words are equal tokens, so that common beginnings are found in the prefix cache (FNV-1a).
fn word(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A request to be submitted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its number.
    pub id: u64,
    /// When it should have started by the plan.
    pub scheduled: Time,
    /// When it was to be sent.
    pub due: Time,
    /// Which sample, past the last from the first again.
    pub item: usize,
    /// What its first token is made different by.
    pub salt: Option<u32>,
    /// Its class.
    pub class: u16,
}

/// One replica of the engine model, and the rows of what it is answering.
pub struct Replica {
    engine: Engine,
    samples: Vec<Sample>,
    going: HashMap<u64, Row>,
    told: Vec<engine::Effect>,
    done: Vec<u64>,
}

impl Replica {
    /// That answers these samples.
    pub fn new(config: engine::Config, samples: Vec<Sample>) -> Outcome<Replica> {
        let engine = Engine::new(config).map_err(|e| Failure::new(format!("failed to model the engine: {e}")))?;
        Ok(Replica { engine, samples, going: HashMap::new(), told: Vec::new(), done: Vec::new() })
    }

    /// When it has something to do.
    pub fn next_wake(&self) -> Option<Time> {
        self.engine.next_wake()
    }

    /// Takes a request; the row of one that it rejects comes back at once.
    pub fn submit(&mut self, now: Time, wanted: Wanted) -> Option<Row> {
        let item = wanted.item % self.samples.len().max(1);
        let sample = self.samples.get_mut(item)?;
        if let (Some(first), Some(salt)) = (sample.prompt.first_mut(), wanted.salt) {
            *first = salt;
        }
        let mut row = Row::new(wanted.id);
        row.class = wanted.class;
        let moments = [
            (Moment::Scheduled, wanted.scheduled),
            (Moment::Released, wanted.due),
            (Moment::WriteStart, now),
            (Moment::Written, now),
        ];
        moments.into_iter().for_each(|(moment, at)| row.at.set(moment, at));
        row.stamps = StampSource::Virtual;
        let prompt_tokens = Some(sample.prompt.len() as u32);
        row.tokens = Counts {
            prompt_asked: prompt_tokens,
            prompt_server: prompt_tokens,
            output_asked: Some(sample.output_tokens),
            ..Counts::default()
        };
        let submit = Submit::new(SeqId(row.id), &sample.prompt, sample.output_tokens);
        self.engine.on(now, engine::Event::Submit(submit), &mut self.told);
        let rejected = self.told.drain(..).find_map(|effect| match effect {
            engine::Effect::Rejected { why, .. } => Some(why),
            _ => None,
        });
        let Some(why) = rejected else {
            self.going.insert(row.id, row);
            return None;
        };
        let detail = why.to_string().into();
        row.end = End::Failed { phase: Phase::Headers, blame: Blame::Server, cause: Cause::Status(400), detail };
        row.at.set(Moment::StreamEnd, now);
        Some(row)
    }

    /// Lets it do what is due; rows of what it has answered are added to `ended`.
    pub fn step(&mut self, now: Time, ended: &mut Vec<Row>) {
        self.engine.on(now, engine::Event::Wake, &mut self.told);
        self.told.clear();
        for emit in self.engine.emitted() {
            let Some(row) = self.going.get_mut(&emit.id.0) else { continue };
            let read = row.chunks.len() as u32;
            row.chunks.push(now, read, u16::try_from(emit.tokens).unwrap_or(u16::MAX), true);
            if emit.finish.is_some() {
                self.done.push(emit.id.0);
            }
        }
        for id in self.done.drain(..) {
            ended.extend(self.going.remove(&id).map(|row| answered(now, row)));
        }
    }
}

fn answered(now: Time, mut row: Row) -> Row {
    let first = row.chunks.as_slice().first().map_or(now, |c| c.at);
    for moment in [Moment::Headers, Moment::FirstByte, Moment::FirstEvent, Moment::FirstToken, Moment::FirstVisible] {
        row.at.set(moment, first);
    }
    for moment in [Moment::LastToken, Moment::Finish, Moment::Usage, Moment::StreamEnd] {
        row.at.set(moment, now);
    }
    row.tokens.output_server = row.chunks.stated_tokens();
    row.net.status = 200;
    row.end = End::Done(Finish::Length);
    row.chunks.shrink();
    row
}
