//! The machine: events in, effects out.

mod admit;
mod config;
mod figures;
mod finish;
mod flights;
mod knowledge;
mod reload;
mod schedule;

pub use config::Config;

use crate::config::Policy;
use crate::endpoint::{Endpoint, EndpointId};
use crate::event::{Effect, Event};
use crate::explain::Decisions;
use crate::flow::Queue;
use crate::names::Map;
use crate::pick::{Memory, Ring, Scratch};
use crate::predict::{Forecast, Predictor};
use crate::quota::Quotas;
use crate::request::{Request, RequestId};
use crate::rewrite::Rewrites;
use crate::signals::Signals;
use crate::table::Table;
use flights::Flights;
use knowledge::Knowledge;
use std::collections::BTreeSet;
use tailbound_clock::{Dur, Rng, Time};

/// A router; see the crate's documentation.
#[derive(Debug)]
pub struct Router {
    policy: Policy,
    table: Table,
    knowledge: Knowledge,
    predictor: Option<Predictor>,
    forecast: Forecast,
    memory: Memory,
    scratch: Scratch,
    requests: Vec<Request>,
    free: Vec<u32>,
    by_id: Map<RequestId, u32>,
    queue: Option<Queue>,
    flights: Flights,
    /// Requests that wait for a replica that can keep their SLO, by when none can any more.
    hopeful: BTreeSet<(Time, u32)>,
    quotas: Quotas,
    rewrites: Rewrites,
    decisions: Decisions,
    /// Draws that are no part of a pick, so that one more of them moves no pick.
    dice: Rng,
    retries: usize,
    /// Something happened that may let somebody go.
    stirred: bool,
}

impl Router {
    /// A router without replicas.
    pub fn new(config: Config) -> Router {
        let policy = config.policy;
        Router {
            table: Table::new(policy.wanted.clone()),
            knowledge: Knowledge::new(&policy.producers, policy.media),
            predictor: policy.predictor.map(Predictor::new),
            forecast: Forecast::default(),
            memory: Memory {
                rng: config.seed.stream("route/pick"),
                turn: 0,
                ring: Ring::new(policy.ring_nodes),
                cold: Vec::new(),
                cold_limit: policy.cold_limit,
            },
            scratch: Scratch::default(),
            requests: Vec::new(),
            free: Vec::new(),
            by_id: Map::default(),
            queue: policy.flow.clone().map(Queue::new),
            flights: Flights::default(),
            hopeful: BTreeSet::new(),
            quotas: Quotas::new(&config.limits, config.other_limits),
            rewrites: Rewrites::new(&config.rewrites),
            decisions: Decisions::new(config.explain),
            dice: config.seed.stream("route/dice"),
            retries: config.retries,
            stirred: false,
            policy,
        }
    }

    /// Takes in what happened, and appends what is to be done. `now` never goes back.
    pub fn on(&mut self, now: Time, event: Event<'_>, out: &mut Vec<Effect>) {
        match event {
            Event::Wake => self.stirred = true,
            Event::Joined(id, endpoint) => self.joined(id, endpoint),
            Event::Left(id) => self.left(id),
            Event::Ready(id, ready) => self.ready(id, ready),
            Event::Signals(id, signals) => self.hear(id, signals),
            Event::Arrived(arrival) => self.arrived(now, arrival, out),
            Event::FirstToken(id) => self.first_token(now, id),
            Event::Progress(id, tokens) => self.progress(now, id, tokens),
            Event::Failed(id) => self.failed(now, id, out),
            Event::Ended(id, usage) => self.ended(now, id, usage),
            Event::Cancelled(id) => self.cancelled(now, id),
            Event::Kv(id, message) => self.kv_message(now, id, message, out),
            Event::KvReplayed(id, complete) => self.kv_replayed(id, complete, out),
            Event::KvLost(id) => self.kv_lost(id, out),
            Event::KvGarbled(id) => self.kv_garbled(id),
        }
        self.expire(now, out);
        if std::mem::take(&mut self.stirred) {
            self.pump(now, out);
        }
        #[cfg(debug_assertions)]
        self.knowledge.check();
    }

    /// When it wants to be woken next, if nothing happens before.
    pub fn next_wake(&self) -> Option<Time> {
        let expiry = self.queue.as_ref().and_then(Queue::next_expiry);
        let hopeful = self.hopeful.first().map(|(at, _)| *at);
        let grace = self.queue.as_ref().filter(|q| q.evicts() && !q.is_empty()).and(self.flights.next_grace());
        expiry.into_iter().chain(hopeful).chain(grace).min()
    }

    fn joined(&mut self, id: EndpointId, endpoint: &Endpoint) {
        let known = self.table.slot(id).is_some();
        let slot = self.table.join(id, endpoint);
        if !known && let Some(predictor) = &mut self.predictor {
            predictor.joined(slot);
        }
        self.members_changed();
    }

    fn left(&mut self, id: EndpointId) {
        let Some(slot) = self.table.leave(id) else { return };
        self.knowledge.left(slot);
        self.memory.cold.retain(|s| *s != slot);
        self.members_changed();
    }

    fn members_changed(&mut self) {
        self.knowledge.fit(&self.table);
        self.memory.ring.members_changed();
        self.stirred = true;
    }

    fn ready(&mut self, id: EndpointId, ready: bool) {
        if let Some(slot) = self.table.slot(id) {
            self.table.set_ready(slot, ready);
            self.stirred |= ready;
        }
    }

    fn hear(&mut self, id: EndpointId, signals: &Signals) {
        let Some(slot) = self.table.slot(id) else { return };
        let sizes = |t: &Table| (t.block_size[slot as usize], t.blocks[slot as usize]);
        let before = sizes(&self.table);
        self.table.hear(slot, signals);
        if sizes(&self.table) != before {
            self.knowledge.fit(&self.table);
        }
        self.stirred = true;
    }

    /// Gives up those who have waited too long.
    fn expire(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some(index) = self.queue.as_ref().and_then(|q| q.expired(now)) {
            self.give_up_waiting(now, index, out);
        }
        while let Some((_, index)) = self.hopeful.first().copied().filter(|(at, _)| *at <= now) {
            self.refuse(index, crate::event::Refusal::SloOutOfReach, out);
        }
    }
}

/// Older signals than this are replaced by what the router has in flight itself.
const OLD: Dur = Dur::from_secs(5);
