use super::Router;
use crate::endpoint::EndpointId;
use crate::event::Targets;
use crate::explain::Decision;
use crate::flow::{Queue, Waiting};
use crate::load::Load;
use crate::predict::Accuracy;
use crate::prefix::{KvHealth, KvPool};
use crate::request::{Arrival, RequestId};
use tailbound_clock::Time;

impl Router {
    /// Where a request would go now, if it went. Nothing is sent, counted or remembered; ties fall as they will next.
    pub fn consider(&mut self, now: Time, arrival: &Arrival<'_>) -> Option<Targets> {
        self.dry_run(now, arrival)
    }

    /// Why a request went where it went, as long as that is remembered.
    pub fn explain(&self, request: RequestId) -> Option<&Decision> {
        self.decisions.of(request)
    }

    /// Names and weights of the scorers that [`Decision::scores`] are of.
    pub fn scorers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.policy.profiles[self.primary()].scorers.iter().map(|w| (w.name.as_str(), w.weight))
    }

    /// What a replica has in flight from here.
    pub fn load(&self, id: EndpointId) -> Option<Load> {
        self.table.slot(id).map(|slot| self.table.load[slot as usize])
    }

    /// Requests it knows of, waiting or in flight.
    pub fn requests(&self) -> usize {
        self.by_id.len()
    }

    /// Replicas it knows of.
    pub fn endpoints(&self) -> usize {
        self.table.live.len()
    }

    /// What waits here.
    pub fn waiting(&self) -> Waiting {
        self.queue.as_ref().map(Queue::waiting).unwrap_or_default()
    }

    /// How full the pool is: 1 is full.
    pub fn pool_saturation(&self, now: Time) -> f64 {
        self.saturation(now)
    }

    /// How good the predictions are; `None` if none are made.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.predictor.as_ref().map(|p| p.accuracy())
    }

    /// How a replica's KV events are doing; `None` without a precise index, or such a replica.
    pub fn kv_health(&self, now: Time, id: EndpointId) -> Option<KvHealth> {
        let slot = self.table.slot(id)?;
        self.knowledge.precise_ref().map(|p| p.health(now, slot))
    }

    /// How KV events are doing; `None` without a precise index.
    pub fn kv_pool(&self, now: Time) -> Option<KvPool> {
        self.knowledge.precise_ref().map(|p| p.pool(now, &self.table.live))
    }

    /// Entries (a block at a replica) and different blocks of all prefix indexes.
    pub fn indexed(&self) -> (usize, usize) {
        self.knowledge.size()
    }
}
