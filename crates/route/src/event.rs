use crate::endpoint::{Endpoint, EndpointId};
use crate::request::{Arrival, RequestId};
use crate::signals::Signals;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;
use tailbound_clock::Dur;
use tailbound_kv::vllm::Batch;

/// What can happen to a router.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// [`crate::Router::next_wake`] has come.
    Wake,
    /// Discovery knows a replica, or something new about it.
    Joined(EndpointId, &'a Endpoint),
    /// Discovery no longer knows it. Requests in flight there are still to be ended, or failed.
    Left(EndpointId),
    /// A replica passes its health checks, or doesn't.
    Ready(EndpointId, bool),
    /// A replica's metrics.
    Signals(EndpointId, &'a Signals<'a>),
    /// A request to be routed.
    Arrived(&'a Arrival<'a>),
    /// The first token of an answer came back.
    FirstToken(RequestId),
    /// An answer has grown to this many tokens. Optional; it makes the load in tokens truer.
    Progress(RequestId, u32),
    /// The replica couldn't be reached, or lost the request before any byte of its answer: route it again, elsewhere.
    Failed(RequestId),
    /// The answer is complete, or broke off; `usage` as far as known.
    Ended(RequestId, Usage),
    /// The client left.
    Cancelled(RequestId),
    /// A message of KV events.
    Kv(EndpointId, &'a KvMessage<'a>),
    /// The replay that [`Effect::ReplayKv`] asked for is over, or can't be had.
    KvReplayed(EndpointId, Complete),
    /// The connection for KV events was lost; what was missed is unknown.
    KvLost(EndpointId),
    /// A message of KV events that couldn't be read.
    KvGarbled(EndpointId),
}

/// A message of KV events.
#[derive(Clone, Copy, Debug)]
pub struct KvMessage<'a> {
    /// Its number: 0 for an engine's first.
    pub seq: u64,
    /// What it says.
    pub batch: &'a Batch,
    /// Whether it came on request, as part of a replay.
    pub replayed: bool,
}

/// Whether everything asked for was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complete {
    /// Up to the newest.
    Yes,
    /// There is no replay, or it broke off.
    No,
}

/// Token counts an engine reported at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Whether the answer is complete.
    pub ok: bool,
    /// Prompt tokens.
    pub prompt: Option<u32>,
    /// Of those, from the prefix cache.
    pub cached: Option<u32>,
    /// Generated tokens.
    pub generated: Option<u32>,
}

/// What a router wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a request.
    Dispatch(Dispatch),
    /// Answer it with an error.
    Refuse(RequestId, Refusal),
    /// Break off a request in flight that may be shed: answer 429. [`Event::Cancelled`] is to follow.
    Evict(RequestId),
    /// Ask a replica for its KV events from this number on, then say [`Event::KvReplayed`].
    ReplayKv(EndpointId, u64),
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// Which.
    pub request: RequestId,
    /// Who answers it; after the first, whom to try next if that one can't be reached.
    pub to: Targets,
    /// Who computes the prompt first, when that is somebody else.
    pub prefill: Option<EndpointId>,
    /// Who computes embeddings of images and so on first, when that is somebody else.
    pub encode: Option<EndpointId>,
    /// What to write in the body in place of the model's name.
    pub model: Option<Arc<str>>,
    /// How long it waited here.
    pub waited: Dur,
}

/// Most replicas that one pick names.
pub const MAX_TARGETS: usize = 8;

/// A few replicas, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    list: [EndpointId; MAX_TARGETS],
    len: u8,
}

impl Targets {
    pub(crate) fn new() -> Targets {
        Targets { list: [EndpointId(0); MAX_TARGETS], len: 0 }
    }

    pub(crate) fn push(&mut self, id: EndpointId) {
        if (self.len as usize) < MAX_TARGETS {
            self.list[self.len as usize] = id;
            self.len += 1;
        }
    }
}

impl Deref for Targets {
    type Target = [EndpointId];
    fn deref(&self) -> &[EndpointId] {
        &self.list[..self.len as usize]
    }
}

/// Why a request isn't served, and what to tell its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// There is capacity, but it is taken, and the request may be shed.
    #[error("system saturated, sheddable request dropped")]
    Saturated,
    /// There is capacity, but the queue for it is full.
    #[error("the queue is full")]
    QueueFull,
    /// It waited as long as it may.
    #[error("waited {0} in the queue, its limit")]
    Expired(Dur),
    /// No replica is there.
    #[error("no endpoint is there to serve the request")]
    NoEndpoints,
    /// Replicas are there, but none of them may or can serve this request.
    #[error("no endpoint is eligible for the request")]
    NoneEligible,
    /// Its latency objective can't be kept anywhere.
    #[error("no endpoint can meet the latency objective")]
    SloOutOfReach,
    /// Its tenant sends more than it may.
    #[error("the tenant's rate limit is reached, try again in {0}")]
    RateLimited(Dur),
    /// It failed everywhere it was tried.
    #[error("every endpoint that was tried failed")]
    AllFailed,
    /// A request of that id is being served.
    #[error("a request of that id is being served")]
    IdInUse,
}

impl Refusal {
    /// The status to answer with: 429 where capacity exists but is contended, 503 where there is none now.
    pub fn status(self) -> u16 {
        match self {
            Refusal::Saturated | Refusal::QueueFull | Refusal::SloOutOfReach | Refusal::RateLimited(_) => 429,
            Refusal::NoneEligible => 429,
            Refusal::Expired(_) | Refusal::NoEndpoints | Refusal::AllFailed => 503,
            Refusal::IdInUse => 500,
        }
    }

    /// For the header `x-llm-d-request-dropped-reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Refusal::Saturated => "rejected-saturated",
            Refusal::QueueFull => "rejected-capacity",
            Refusal::Expired(_) => "rejected-ttl-expired",
            Refusal::NoEndpoints => "rejected-no-endpoints",
            Refusal::NoneEligible => "rejected-none-eligible",
            Refusal::SloOutOfReach => "rejected-slo",
            Refusal::RateLimited(_) => "rejected-rate-limit",
            Refusal::AllFailed => "rejected-all-failed",
            Refusal::IdInUse => "rejected-id-in-use",
        }
    }
}
