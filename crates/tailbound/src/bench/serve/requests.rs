//! Every request's bytes: written before the clock starts, except for turns that carry an answer which hasn't come yet.

mod dialogue;
mod writer;

use super::args::ServeArgs;
use super::passes::Passes;
use super::replay::Replay;
use super::target::Endpoint;
use crate::failure::Outcome;
use dialogue::Dialogue;
use std::borrow::Cow;
use std::sync::Arc;
use tailbound_client as client;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Prompt};
use tailbound_record::Row;
use tailbound_wire::Api;
use tailbound_workload::{IntentId, Plan, Stage};
use writer::{Models, Writer};
pub use writer::{extra, forced};

/// The requests of a run.
pub struct Prepared {
    endpoint: Endpoint,
    plan: Arc<Plan>,
    bodies: Bodies,
    lengths: Vec<(Option<u32>, u32)>,
    classes: Vec<u16>,
    /// Each phase's class, in a load of phases.
    phase_classes: Vec<u16>,
    probe: Box<[u8]>,
    id_prefix: String,
    stream: bool,
    choices: u32,
    passes: Option<Passes>,
}

enum Bodies {
    /// Each stands for itself.
    Whole(Vec<Box<[u8]>>),
    /// Each carries what was said before.
    Dialogue(Box<Dialogue>),
}

impl Prepared {
    /// Writes the body of every prompt. `model` is the name to send.
    pub fn new(
        args: &ServeArgs,
        endpoint: &Endpoint,
        plan: &Arc<Plan>,
        model: &str,
        prompts: &[Prompt],
        replay: Option<&Replay>,
    ) -> Outcome<Prepared> {
        let writer = Writer::new(args, endpoint, replay.map(|replay| &replay.outline))?;
        let models = Models::new(args, model);
        let probe =
            Prompt { body: Body::Text("Hi".into()), prompt_tokens: None, output_tokens: 1, at: None, row: None };
        let probe = writer.prompt(model, &probe)?;
        let lengths = prompts.iter().map(|p| (p.prompt_tokens, p.output_tokens)).collect();
        let (stream, choices) = (writer.stream, writer.choices());
        let bodies = match replay.and_then(Replay::answers) {
            Some(answers) => {
                let history = args.trace.history;
                Bodies::Dialogue(Box::new(Dialogue::new(history, writer, models, plan, prompts, &answers)?))
            }
            None => {
                let one = |(i, prompt): (usize, &Prompt)| writer.prompt(models.of(i), prompt);
                Bodies::Whole(prompts.iter().enumerate().map(one).collect::<Outcome<_>>()?)
            }
        };
        Ok(Prepared {
            endpoint: endpoint.clone(),
            plan: plan.clone(),
            bodies,
            lengths,
            classes: replay.map_or(Vec::new(), |replay| replay.outline.classes.small()),
            phase_classes: args.load.phased.as_ref().map_or(Vec::new(), |p| p.class_of.clone()),
            probe,
            id_prefix: args.target.request_id_prefix.clone().unwrap_or_else(random_prefix),
            stream,
            choices,
            passes: None,
        })
    }

    /// The same, going through the prompts in another order than theirs.
    pub fn in_passes(self, passes: Option<Passes>) -> Prepared {
        Prepared { passes, ..self }
    }

    /// The same, the prompts being of these classes; none: of those of their trace.
    pub fn of_classes(self, classes: &[u16]) -> Prepared {
        if classes.is_empty() { self } else { Prepared { classes: classes.to_vec(), ..self } }
    }

    /// Bytes of all bodies.
    pub fn bytes(&self) -> usize {
        match &self.bodies {
            Bodies::Whole(all) => all.iter().map(|b| b.len()).sum(),
            Bodies::Dialogue(dialogue) => dialogue.bytes(),
        }
    }

    /// The API they speak.
    pub fn api(&self) -> Api {
        self.endpoint.api
    }

    /// The first measured request, for a ready check.
    pub fn first(&self) -> client::Request<'_> {
        self.numbered(0, 0, "ready".into())
    }

    fn phase_class(&self, number: u32) -> Option<u16> {
        let phase = self.plan.phases()?.of(IntentId(number))?;
        self.phase_classes.get(phase).copied()
    }

    /// Request `number`, of prompt `item` (past the last it begins again), named `id`.
    pub fn numbered(&self, number: u32, item: usize, id: Cow<'_, str>) -> client::Request<'_> {
        let passes = self.passes.as_ref();
        let item = passes.map_or(item, |p| p.item(number)) % self.lengths.len();
        let (prompt_tokens, output_tokens) = self.lengths[item];
        let (body, keep_text) = match &self.bodies {
            Bodies::Whole(all) => (passes.map_or(Cow::Borrowed(&*all[item]), |p| p.body(number, &all[item])), false),
            Bodies::Dialogue(dialogue) => (Cow::Borrowed(dialogue.body(item)), dialogue.needs_answer(item)),
        };
        client::Request {
            headers: vec![("x-request-id", Cow::Owned(format!("{}{id}", self.id_prefix)))],
            stream: self.stream,
            choices: self.choices,
            keep_text,
            class: self.phase_class(number).or(self.classes.get(item).copied()).unwrap_or(0),
            prompt_tokens,
            output_tokens: Some(output_tokens),
            ..client::Request::new(self.endpoint.api, &self.endpoint.path, body)
        }
    }
}

impl client::Requests for Prepared {
    fn request(&self, id: IntentId) -> client::Request<'_> {
        let intent = self.plan.intent(id);
        match intent.stage {
            Stage::Measured => self.numbered(id.0, intent.item as usize, id.0.to_string().into()),
            Stage::Warmup => self.numbered(id.0, intent.item as usize, format!("warmup-{}", id.0).into()),
            Stage::Probe => client::Request {
                headers: vec![("x-request-id", Cow::Owned(format!("{}probe-{}", self.id_prefix, id.0)))],
                stream: self.stream,
                output_tokens: Some(1),
                ..client::Request::new(self.endpoint.api, &self.endpoint.path, &*self.probe)
            },
        }
    }
    fn answered(&self, row: &Row) {
        if let Bodies::Dialogue(dialogue) = &self.bodies
            && row.id < self.lengths.len() as u64
        {
            dialogue.answered(row.id as usize, row);
        }
    }
}

/// `bench-<8 hex digits>-`: differs between runs, so that a server's logs can tell them apart.
fn random_prefix() -> String {
    let mixed = Seed(tailbound_os::clock::now().ns() ^ u64::from(std::process::id()) << 40).stream("request-ids").u64();
    format!("bench-{:08x}-", mixed as u32)
}
