use crate::{
    Arrival, Complete, Endpoint, EndpointId, Event, KvMessage, Loras, Otherwise, Prompt, RequestId, Signals, Slo, Usage,
};
use serde::{Deserialize, Serialize};
use tailbound_clock::{Dur, Time};
use tailbound_kv::vllm::Batch;

/// An [`Event`], as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variants are Event's")]
pub enum Happened {
    Wake,
    Joined(EndpointId, Endpoint),
    Left(EndpointId),
    Ready(EndpointId, bool),
    Signals(EndpointId, Heard),
    Arrived(Box<Asked>),
    FirstToken(RequestId),
    Progress(RequestId, u32),
    Failed(RequestId),
    Ended(RequestId, Usage),
    Cancelled(RequestId),
    Kv { from: EndpointId, seq: u64, replayed: bool, batch: Batch },
    KvReplayed(EndpointId, bool),
    KvLost(EndpointId),
    KvGarbled(EndpointId),
}

/// [`Signals`] of one's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of Signals")]
pub struct Heard {
    pub at: u64,
    pub waiting: u32,
    pub running: u32,
    pub kv_usage: f64,
    pub block_size: Option<u32>,
    pub blocks: Option<u32>,
    /// How many adapters fit, which are in use, and which are waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<(u32, Vec<String>, Vec<String>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, f64)>,
}

impl Heard {
    /// Takes over what signals say.
    pub fn of(s: &Signals<'_>) -> Heard {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Heard {
            at: s.at.ns(),
            waiting: s.waiting,
            running: s.running,
            kv_usage: s.kv_usage,
            block_size: s.block_size,
            blocks: s.blocks,
            lora: s.lora.map(|l| (l.max, owned(l.running), owned(l.waiting))),
            attributes: s.attributes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        }
    }

    /// Lends them.
    pub fn lend<R>(&self, to: impl FnOnce(&Signals<'_>) -> R) -> R {
        let (max, running, waiting) = match &self.lora {
            Some((max, running, waiting)) => (Some(*max), &running[..], &waiting[..]),
            None => (None, &[][..], &[][..]),
        };
        let running: Vec<&str> = running.iter().map(String::as_str).collect();
        let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
        let attributes: Vec<(&str, f64)> = self.attributes.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        to(&Signals {
            at: Time(self.at),
            waiting: self.waiting,
            running: self.running,
            kv_usage: self.kv_usage,
            block_size: self.block_size,
            blocks: self.blocks,
            lora: max.map(|max| Loras { max, running: &running, waiting: &waiting }),
            attributes: &attributes,
        })
    }
}

/// An [`Arrival`] of one's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of Arrival")]
pub struct Asked {
    pub id: u64,
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// The prompt's bytes; one that isn't UTF-8 is written as a list of numbers.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "text")]
    pub text: Vec<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<String>,
    pub priority: i32,
    pub tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<EndpointId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subset: Option<Vec<EndpointId>>,
    pub bytes: u64,
    pub output_tokens: Option<u32>,
    pub slo: Slo,
    pub otherwise: Otherwise,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Dur>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<u64>,
}

impl Asked {
    fn of(a: &Arrival<'_>) -> Asked {
        Asked {
            id: a.id.0,
            model: a.model.to_owned(),
            model_override: a.model_override.map(str::to_owned),
            text: a.prompt.text.to_vec(),
            tokens: a.prompt.tokens.to_vec(),
            salt: a.salt.map(str::to_owned),
            lora: a.lora.map(str::to_owned),
            priority: a.priority,
            tenant: a.tenant.to_owned(),
            session: a.session.map(str::to_owned),
            sticky: a.sticky,
            subset: a.subset.map(<[EndpointId]>::to_vec),
            bytes: a.bytes,
            output_tokens: a.output_tokens,
            slo: a.slo,
            otherwise: a.otherwise,
            patience: a.patience,
            media: a.media.to_vec(),
        }
    }

    fn lend(&self) -> Arrival<'_> {
        Arrival {
            id: RequestId(self.id),
            model: &self.model,
            model_override: self.model_override.as_deref(),
            prompt: Prompt { text: &self.text, tokens: &self.tokens },
            salt: self.salt.as_deref(),
            lora: self.lora.as_deref(),
            priority: self.priority,
            tenant: &self.tenant,
            session: self.session.as_deref(),
            sticky: self.sticky,
            subset: self.subset.as_deref(),
            bytes: self.bytes,
            output_tokens: self.output_tokens,
            slo: self.slo,
            otherwise: self.otherwise,
            patience: self.patience,
            media: &self.media,
        }
    }
}

impl Happened {
    /// Takes over what an event says.
    pub fn of(event: &Event<'_>) -> Happened {
        match *event {
            Event::Wake => Happened::Wake,
            Event::Joined(id, endpoint) => Happened::Joined(id, endpoint.clone()),
            Event::Left(id) => Happened::Left(id),
            Event::Ready(id, ready) => Happened::Ready(id, ready),
            Event::Signals(id, signals) => Happened::Signals(id, Heard::of(signals)),
            Event::Arrived(arrival) => Happened::Arrived(Box::new(Asked::of(arrival))),
            Event::FirstToken(id) => Happened::FirstToken(id),
            Event::Progress(id, tokens) => Happened::Progress(id, tokens),
            Event::Failed(id) => Happened::Failed(id),
            Event::Ended(id, usage) => Happened::Ended(id, usage),
            Event::Cancelled(id) => Happened::Cancelled(id),
            Event::Kv(from, message) => {
                let KvMessage { seq, batch, replayed } = *message;
                Happened::Kv { from, seq, replayed, batch: batch.clone() }
            }
            Event::KvReplayed(id, complete) => Happened::KvReplayed(id, complete == Complete::Yes),
            Event::KvLost(id) => Happened::KvLost(id),
            Event::KvGarbled(id) => Happened::KvGarbled(id),
        }
    }

    /// Lends the event.
    pub fn lend<R>(&self, to: impl FnOnce(Event<'_>) -> R) -> R {
        let event = match self {
            Happened::Wake => Event::Wake,
            Happened::Joined(id, endpoint) => Event::Joined(*id, endpoint),
            Happened::Left(id) => Event::Left(*id),
            Happened::Ready(id, ready) => Event::Ready(*id, *ready),
            Happened::Signals(id, heard) => return heard.lend(|signals| to(Event::Signals(*id, signals))),
            Happened::Arrived(asked) => return to(Event::Arrived(&asked.lend())),
            Happened::FirstToken(id) => Event::FirstToken(*id),
            Happened::Progress(id, tokens) => Event::Progress(*id, *tokens),
            Happened::Failed(id) => Event::Failed(*id),
            Happened::Ended(id, usage) => Event::Ended(*id, *usage),
            Happened::Cancelled(id) => Event::Cancelled(*id),
            Happened::Kv { from, seq, replayed, batch } => {
                return to(Event::Kv(*from, &KvMessage { seq: *seq, batch, replayed: *replayed }));
            }
            Happened::KvReplayed(id, complete) => {
                Event::KvReplayed(*id, if *complete { Complete::Yes } else { Complete::No })
            }
            Happened::KvLost(id) => Event::KvLost(*id),
            Happened::KvGarbled(id) => Event::KvGarbled(*id),
        };
        to(event)
    }
}

/// Bytes as text where they are text.
mod text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.serialize(to),
            Err(_) => bytes.serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Text(text) => text.into_bytes(),
            Written::Bytes(bytes) => bytes,
        })
    }
}
