use crate::endpoint::EndpointId;
use crate::flow::Place;
use crate::load::Charge;
use crate::names::Key;
use crate::predict::Features;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tailbound_clock::{Dur, Time};

/// A request's name, chosen by the driver; not to be used again while the request lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A request as far as routing reads it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its name.
    pub id: RequestId,
    /// The model its body names.
    pub model: &'a str,
    /// A model that a header asks for instead (`x-llm-d-model-name-rewrite`).
    pub model_override: Option<&'a str>,
    /// What is asked.
    pub prompt: Prompt<'a>,
    /// Separates prefix caches.
    pub salt: Option<&'a str>,
    /// The adapter, if `model` is one.
    pub lora: Option<&'a str>,
    /// Higher goes first; negative may be shed.
    pub priority: i32,
    /// Whose fair share it counts against (`x-llm-d-inference-fairness-id`).
    pub tenant: &'a str,
    /// The conversation, for affinity.
    pub session: Option<&'a str>,
    /// The replica a session token names.
    pub sticky: Option<EndpointId>,
    /// Only these may serve it, if given.
    pub subset: Option<&'a [EndpointId]>,
    /// Size of the request on the wire.
    pub bytes: u64,
    /// The answer's length as far as known: the limit the body sets, or what is expected.
    pub output_tokens: Option<u32>,
    /// Latency wanted.
    pub slo: Slo,
    /// What to do when no replica can keep to [`Arrival::slo`].
    pub otherwise: Otherwise,
    /// How long it may wait in the queue, if less than the configured limit.
    pub patience: Option<Dur>,
    /// Hashes of its images, sounds and so on.
    pub media: &'a [u64],
}

impl<'a> Arrival<'a> {
    /// A request for `model` with nothing special about it.
    pub fn new(id: RequestId, model: &'a str, prompt: Prompt<'a>) -> Arrival<'a> {
        Arrival {
            id,
            model,
            model_override: None,
            prompt,
            salt: None,
            lora: None,
            priority: 0,
            tenant: DEFAULT_TENANT,
            session: None,
            sticky: None,
            subset: None,
            bytes: prompt.text.len() as u64,
            output_tokens: None,
            slo: Slo::default(),
            otherwise: Otherwise::Downgrade,
            patience: None,
            media: &[],
        }
    }
}

/// The flow of requests that name no tenant.
pub const DEFAULT_TENANT: &str = "default-flow";

/// The prompt, as bytes, as tokens, or both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// What the published hash input is made of: the prompt's text, or the messages as JSON.
    pub text: &'a [u8],
    /// Token ids, where the driver has them.
    pub tokens: &'a [u32],
}

impl Prompt<'_> {
    /// Tokens, at four characters each where they aren't known.
    pub(crate) fn len(&self) -> u32 {
        match self.tokens.len() {
            0 => self.text.len().div_ceil(4) as u32,
            n => n as u32,
        }
    }
}

/// Latency a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slo {
    /// Time to first token, from arrival.
    pub ttft: Option<Dur>,
    /// Time per output token.
    pub tpot: Option<Dur>,
}

/// What becomes of a request whose SLO no replica can keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    /// It is refused at once: never run what can't make it.
    Refuse,
    /// It waits for a replica that can, until it can't make it anywhere any more or its patience ends.
    Wait,
    /// It is served as if it had no SLO.
    #[default]
    Downgrade,
}

/// A request the router knows of. Its place is used again for another, so that its lists keep their memory.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// The model (or adapter) it will be served by, after rewriting.
    pub(crate) model: Key,
    pub(crate) rewritten: Option<Arc<str>>,
    pub(crate) tenant: Key,
    pub(crate) session: Option<Key>,
    pub(crate) sticky: Option<EndpointId>,
    pub(crate) priority: i32,
    pub(crate) bytes: u64,
    pub(crate) prompt_tokens: u32,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) slo: Slo,
    pub(crate) otherwise: Otherwise,
    pub(crate) arrived: Time,
    pub(crate) expires: Option<Time>,
    /// Block hashes of the prompt, one chain per prefix index.
    pub(crate) chains: Vec<Vec<u64>>,
    pub(crate) media: Vec<u64>,
    pub(crate) has_subset: bool,
    pub(crate) subset: Vec<EndpointId>,
    /// Where it failed already.
    pub(crate) tried: Vec<EndpointId>,
    /// Tokens its tenant's budget was charged.
    pub(crate) budgeted: u64,
    pub(crate) stage: Stage,
}

impl Request {
    pub(crate) fn empty() -> Request {
        Request {
            id: RequestId(0),
            model: Key(0),
            rewritten: None,
            tenant: Key(0),
            session: None,
            sticky: None,
            priority: 0,
            bytes: 0,
            prompt_tokens: 0,
            output_tokens: None,
            slo: Slo::default(),
            otherwise: Otherwise::Downgrade,
            arrived: Time::ZERO,
            expires: None,
            chains: Vec::new(),
            media: Vec::new(),
            has_subset: false,
            subset: Vec::new(),
            tried: Vec::new(),
            budgeted: 0,
            stage: Stage::New,
        }
    }

    /// Takes over what an arrival says, but for the chains.
    pub(crate) fn fill(&mut self, now: Time, arrival: &Arrival, rewritten: Option<Arc<str>>) {
        let model = rewritten.as_deref().or(arrival.lora).unwrap_or(arrival.model);
        self.id = arrival.id;
        self.model = Key::of(model);
        self.rewritten = rewritten;
        self.tenant = Key::of(arrival.tenant);
        self.session = arrival.session.map(Key::of);
        self.sticky = arrival.sticky;
        self.priority = arrival.priority;
        self.bytes = arrival.bytes;
        self.prompt_tokens = arrival.prompt.len();
        self.output_tokens = arrival.output_tokens;
        self.slo = arrival.slo;
        self.otherwise = arrival.otherwise;
        self.arrived = now;
        self.expires = None;
        self.media.clear();
        self.media.extend_from_slice(arrival.media);
        self.has_subset = arrival.subset.is_some();
        self.subset.clear();
        self.subset.extend_from_slice(arrival.subset.unwrap_or(&[]));
        self.tried.clear();
        self.budgeted = 0;
        self.stage = Stage::New;
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// Not there yet, or no longer.
    New,
    Queued(Place),
    Sent(Sent),
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) answer: Leg,
    pub(crate) prefill: Option<Leg>,
    pub(crate) encode: Option<Leg>,
    pub(crate) first_token: Option<Time>,
    pub(crate) generated: u32,
    pub(crate) features: Features,
    /// An eviction was asked for.
    pub(crate) evicted: Option<Time>,
}

/// What a request weighs on one replica. Made by charging, used up by discharging: it is what makes both happen once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    pub(crate) slot: u32,
    pub(crate) born: u32,
    pub(crate) charge: Charge,
    pub(crate) sent_tokens: u64,
}
