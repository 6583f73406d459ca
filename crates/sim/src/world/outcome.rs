use super::World;
use super::flights::Flight;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tailbound_clock::{Dur, Time};
use tailbound_record::Row;
use tailbound_route::{EndpointId, Load};

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What a client saw of it; [`Row::worker`] is the replica, [`Row::class`] the number of its traffic.
    pub row: Row,
    /// What no client sees.
    pub routed: Routed,
}

impl Answered {
    pub(super) fn new(flight: Flight, session: Option<u32>) -> Answered {
        let Flight { row, model, waited, sent, prefilled_by, .. } = flight;
        Answered { row, routed: Routed { model, session, waited, sent, prefilled_by } }
    }

    pub(super) fn never_sent(row: Row, session: Option<u32>) -> Answered {
        Answered { row, routed: Routed { model: None, session, waited: Dur::ZERO, sent: 0, prefilled_by: None } }
    }
}

/// What only a simulation knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The number of each stage's first request.
    pub stages: Vec<usize>,
    /// When the last thing happened.
    pub end: Time,
    /// Engine steps, of all replicas.
    pub steps: u64,
    /// Mean over scrapes and replicas of requests that wait in the engine.
    pub mean_waiting: f64,
    /// Prompt tokens found in prefix caches, of those looked up.
    pub hit_ratio: f64,
    /// Prompt tokens found in tiers below the GPU's cache, of all looked up; beside [`Figures::hit_ratio`].
    #[serde(default)]
    pub tier_hit_ratio: f64,
    /// Times an adapter was brought to a GPU.
    #[serde(default)]
    pub lora_loads: u64,
    /// What the router still counted when the last request had ended: its requests, and their load on replicas. Both are nothing.
    pub left_over: (usize, u64),
    /// Most entries (a block at a replica) of its prefix indexes, seen at scrapes.
    pub most_indexed: usize,
}

/// What a simulation came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One per request, by number.
    pub rows: Vec<Row>,
    /// Beside each row, what no client sees.
    pub routed: Vec<Routed>,
    /// What only a simulation knows.
    pub figures: Figures,
}

/// What became of a request, beside its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The model that the router wrote in place of the one asked for.
    pub model: Option<Arc<str>>,
    /// Its conversation.
    pub session: Option<u32>,
    /// How long it waited in the router.
    pub waited: Dur,
    /// How often it was sent to a replica.
    pub sent: u16,
    /// The replica that computed its prompt for the one that answered.
    pub prefilled_by: Option<u32>,
}

impl Outcome {
    pub(super) fn new(answered: Vec<Answered>, figures: Figures) -> Outcome {
        let (mut rows, mut routed) = (Vec::with_capacity(answered.len()), Vec::with_capacity(answered.len()));
        for Answered { row, routed: of } in answered {
            rows.push(row);
            routed.push(of);
        }
        Outcome { rows, routed, figures }
    }
}

impl World<'_, '_> {
    fn left_over(&self) -> (usize, u64) {
        let load = |id: u32| self.router.load(EndpointId(id)).unwrap_or_default();
        let weight = |l: Load| u64::from(l.requests) + l.prefill_tokens + l.kv_tokens;
        let all = (0..self.replicas.len() as u32).map(|id| weight(load(id))).sum();
        (self.router.requests(), all)
    }

    pub(super) fn figures(&self) -> Figures {
        let all = self.replicas.iter().map(|r| r.counted()).fold(Default::default(), crate::replica::Counted::plus);
        Figures {
            classes: self.requests.classes.iter().map(|class| class.name.clone()).collect(),
            stages: self.requests.stages.clone(),
            end: self.now,
            steps: all.steps,
            mean_waiting: self.waiting.0 / self.waiting.1.max(1) as f64,
            hit_ratio: all.hits as f64 / all.queries.max(1) as f64,
            tier_hit_ratio: all.tier_hits as f64 / all.queries.max(1) as f64,
            lora_loads: all.lora_loads,
            left_over: self.left_over(),
            most_indexed: self.most_indexed,
        }
    }
}
