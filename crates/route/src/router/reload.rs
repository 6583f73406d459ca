use super::knowledge::Knowledge;
use super::{Config, Router};
use crate::event::{Effect, Refusal};
use crate::explain::Decisions;
use crate::flow::{FlowConfig, Queue};
use crate::pick::Ring;
use crate::predict::Predictor;
use crate::request::Stage;
use crate::rewrite::Rewrites;
use tailbound_clock::Time;

impl Router {
    /// Goes on under another configuration, which has been checked already.
    ///
    /// Replicas, what they last said and what is in flight stay. Whoever waits keeps its turn, or is refused if the new queue
    /// has no room for it. Prefix indexes stay if they are to be as they were; otherwise they are learnt anew. The seed isn't
    /// read: draws go on where they are.
    pub fn reload(&mut self, now: Time, config: Config, out: &mut Vec<Effect>) {
        let Config { policy, seed: _, rewrites, limits, other_limits, explain, retries } = config;
        if policy.producers != self.policy.producers || policy.media != self.policy.media {
            self.knowledge = Knowledge::new(&policy.producers, policy.media);
            // What waits was hashed for the indexes that were.
            for request in &mut self.requests {
                request.chains.clear();
                request.chains.resize_with(policy.producers.len(), Vec::new);
                request.media.clear();
            }
        }
        self.table.want(policy.wanted.clone());
        self.knowledge.fit(&self.table);
        self.memory.ring = Ring::new(policy.ring_nodes);
        self.memory.ring.members_changed();
        self.memory.cold_limit = policy.cold_limit;
        let surplus = self.memory.cold.len().saturating_sub(policy.cold_limit.max(1));
        self.memory.cold.drain(..surplus);
        if policy.predictor != self.policy.predictor {
            self.predictor = policy.predictor.map(Predictor::new);
            for slot in &self.table.live {
                self.predictor.iter_mut().for_each(|p| p.joined(*slot));
            }
        }
        self.quotas.limit(&limits, other_limits);
        self.rewrites = Rewrites::new(&rewrites);
        self.decisions = Decisions::new(explain);
        self.retries = retries;
        let flow = policy.flow.clone();
        let queues_alike = flow == self.policy.flow;
        self.policy = policy;
        if !queues_alike {
            self.requeue(now, flow, out);
        }
        self.stirred = true;
        self.on(now, crate::event::Event::Wake, out);
    }

    /// Another queue: those who wait go over into it in the order in which they came.
    fn requeue(&mut self, now: Time, flow: Option<FlowConfig>, out: &mut Vec<Effect>) {
        let mut waiting = Vec::new();
        for index in self.by_id.values() {
            if let Stage::Queued(place) = self.requests[*index as usize].stage {
                waiting.push((place.arrival(), *index));
            }
        }
        waiting.sort_unstable();
        self.queue = flow.map(Queue::new);
        for (_, index) in waiting {
            let request = &mut self.requests[index as usize];
            request.stage = Stage::New;
            let Some(queue) = &mut self.queue else {
                let saturation = self.saturation(now);
                self.schedule(now, index, saturation, out);
                continue;
            };
            match queue.push(now, index, request) {
                Ok(place) => request.stage = Stage::Queued(place),
                Err(_) => self.refuse(index, Refusal::QueueFull, out),
            }
        }
    }
}
