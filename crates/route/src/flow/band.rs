use crate::names::{Key, Map};
use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};

/// How one priority's queue is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BandConfig {
    pub(crate) max_bytes: u64,
    pub(crate) max_requests: usize,
    pub(crate) fairness: Fairness,
    pub(crate) ordering: Ordering,
}

impl Default for BandConfig {
    fn default() -> BandConfig {
        BandConfig {
            max_bytes: 1_000_000_000,
            max_requests: 5000,
            fairness: Fairness::GlobalStrict,
            ordering: Ordering::Fcfs,
        }
    }
}

/// Whose turn it is among tenants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fairness {
    /// The most urgent request, whosever it is.
    GlobalStrict,
    /// One after the other.
    RoundRobin,
    /// One after the other, for as many tokens each.
    Deficit { quantum: f64 },
    /// Virtual token counter: who has had the fewest tokens.
    Vtc,
    /// Least attained service, which fades, and the wait of its first request.
    LeastAttained { service: f64, head_wait: f64, half_life: Dur },
}

/// Whose turn it is among one tenant's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    /// As they came.
    Fcfs,
    /// By when they would be given up.
    Edf,
    /// By when their first token is due.
    SloDeadline,
    /// Weighted shortest processing time: (1 + priority) per prompt token, the most first.
    Wspt,
    /// The last first.
    Lcfs,
}

/// A place in a queue: smaller goes first.
pub(super) type Order = (u64, u64);

/// Those who wait, of one priority.
#[derive(Debug)]
pub(super) struct Band {
    pub(super) priority: i32,
    pub(super) config: BandConfig,
    pub(super) requests: usize,
    pub(super) bytes: u64,
    flows: Vec<Flow>,
    by_tenant: Map<Key, u32>,
    /// Whose turn was last, in round robin and deficit.
    turn: usize,
}

#[derive(Debug)]
struct Flow {
    tenant: Key,
    items: BTreeMap<Order, Item>,
    /// Tokens this tenant was served, by the fairness' own count.
    service: f64,
    served: Time,
    deficit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) request: u32,
    pub(super) tokens: f64,
    pub(super) since: Time,
}

/// Tenants nobody waits for are forgotten after this long.
const FORGET_AFTER: Dur = Dur::from_secs(600);
/// Tenants remembered of one priority.
const MOST_TENANTS: usize = 4096;

impl Band {
    pub(super) fn new(priority: i32, config: BandConfig) -> Band {
        Band { priority, config, requests: 0, bytes: 0, flows: Vec::new(), by_tenant: Map::default(), turn: 0 }
    }

    pub(super) fn push(&mut self, now: Time, tenant: Key, order: Order, item: Item) {
        let flow = self.flow(now, tenant);
        self.flows[flow].items.insert(order, item);
    }

    pub(super) fn remove(&mut self, tenant: Key, order: Order) -> bool {
        let Some(flow) = self.by_tenant.get(&tenant) else { return false };
        let flow = &mut self.flows[*flow as usize];
        let had = flow.items.remove(&order).is_some();
        if flow.items.is_empty() {
            flow.deficit = 0.0;
        }
        had
    }

    /// Whose turn it is: the tenant, and the request's order.
    pub(super) fn next(&mut self, now: Time) -> Option<(Key, Order, Item)> {
        let flow = match self.config.fairness {
            Fairness::GlobalStrict => self.least(|f, order| (order, f.tenant)),
            Fairness::RoundRobin => {
                let flow = self.after(self.turn)?;
                self.turn = flow;
                Some(flow)
            }
            Fairness::Deficit { quantum } => self.deficit(quantum),
            Fairness::Vtc => self.lowest(|f, _| f.service),
            Fairness::LeastAttained { service, head_wait, half_life } => {
                self.flows.iter_mut().for_each(|f| f.fade(now, half_life));
                let waiting = || self.flows.iter().filter(|f| !f.items.is_empty());
                let most = waiting().map(|f| f.service).fold(0.0, f64::max).max(1.0);
                let longest = waiting().map(|f| f.head_wait(now)).fold(0.0, f64::max).max(1e-9);
                self.lowest(|f, _| service * f.service / most - head_wait * f.head_wait(now) / longest)
            }
        }?;
        let flow = &self.flows[flow];
        let (order, item) = flow.items.first_key_value()?;
        Some((flow.tenant, *order, *item))
    }

    /// A tenant was served so many tokens.
    pub(super) fn serve(&mut self, now: Time, tenant: Key, tokens: f64) {
        let flow = self.flow(now, tenant);
        let half_life = match self.config.fairness {
            Fairness::LeastAttained { half_life, .. } => Some(half_life),
            _ => None,
        };
        let flow = &mut self.flows[flow];
        if let Some(half_life) = half_life {
            flow.fade(now, half_life);
        }
        flow.service += tokens;
        flow.served = now;
    }

    /// Forgets tenants of whom nothing was heard for long.
    pub(super) fn tidy(&mut self, now: Time) {
        self.forget_if(|f| now.since(f.served) > FORGET_AFTER);
    }

    /// Clients invent tenants: with too many of them, the half that was served longest ago is forgotten.
    fn make_room(&mut self) {
        if self.flows.len() < MOST_TENANTS {
            return;
        }
        let mut served: Vec<Time> = self.flows.iter().filter(|f| f.items.is_empty()).map(|f| f.served).collect();
        served.sort_unstable();
        if let Some(&middle) = served.get(served.len() / 2) {
            self.forget_if(|f| f.served <= middle);
        }
    }

    fn forget_if(&mut self, old: impl Fn(&Flow) -> bool) {
        let goes = |f: &Flow| f.items.is_empty() && old(f);
        if !self.flows.iter().any(goes) {
            return;
        }
        self.flows.retain(|f| !goes(f));
        self.by_tenant.clear();
        self.by_tenant.extend(self.flows.iter().enumerate().map(|(i, f)| (f.tenant, i as u32)));
        self.turn = 0;
    }

    pub(super) fn tenants(&self) -> usize {
        self.flows.len()
    }

    /// A tenant who comes (back) gets no credit for not having been there.
    fn flow(&mut self, now: Time, tenant: Key) -> usize {
        let lowest = || {
            let waiting = self.flows.iter().filter(|f| !f.items.is_empty());
            waiting.map(|f| f.service).fold(f64::INFINITY, f64::min)
        };
        if let Some(&flow) = self.by_tenant.get(&tenant) {
            if self.flows[flow as usize].items.is_empty() && self.config.fairness == Fairness::Vtc {
                let lowest = lowest();
                let flow = &mut self.flows[flow as usize];
                flow.service = flow.service.max(if lowest.is_finite() { lowest } else { 0.0 });
            }
            return flow as usize;
        }
        let lowest = lowest();
        self.make_room();
        let service = if self.config.fairness == Fairness::Vtc && lowest.is_finite() { lowest } else { 0.0 };
        self.by_tenant.insert(tenant, self.flows.len() as u32);
        self.flows.push(Flow { tenant, items: BTreeMap::new(), service, served: now, deficit: 0.0 });
        self.flows.len() - 1
    }

    /// The next one with something waiting after `turn`, around.
    fn after(&self, turn: usize) -> Option<usize> {
        let n = self.flows.len();
        (1..=n).map(|i| (turn + i) % n).find(|i| !self.flows[*i].items.is_empty())
    }

    fn least<K: Ord>(&self, key: impl Fn(&Flow, Order) -> K) -> Option<usize> {
        let heads = self.flows.iter().enumerate().filter_map(|(i, f)| Some((i, f, *f.items.first_key_value()?.0)));
        heads.min_by_key(|(_, f, order)| key(f, *order)).map(|(i, ..)| i)
    }

    /// The lowest number; of equals the most urgent request.
    fn lowest(&self, number: impl Fn(&Flow, Order) -> f64) -> Option<usize> {
        let heads = self.flows.iter().enumerate().filter_map(|(i, f)| Some((i, f, *f.items.first_key_value()?.0)));
        let rated = heads.map(|(i, f, order)| (number(f, order), order, i));
        rated.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(.., i)| i)
    }

    /// Deficit round robin: who can pay for its first request, everybody being given a quantum each time around.
    fn deficit(&mut self, quantum: f64) -> Option<usize> {
        let cost = |f: &Flow| f.items.first_key_value().map(|(_, item)| item.tokens);
        let n = self.flows.len();
        let affordable = |f: &Flow, given: f64| cost(f).is_some_and(|c| c <= f.deficit + given);
        // Whoever's turn it is goes on as long as it can pay.
        if self.flows.get(self.turn).is_some_and(|f| affordable(f, 0.0)) {
            return Some(self.turn);
        }
        let rounds = self.flows.iter().filter_map(|f| Some(((cost(f)? - f.deficit) / quantum).max(0.0)));
        let most = libm::ceil(rounds.fold(f64::INFINITY, f64::min)).max(1.0);
        if !most.is_finite() {
            return None;
        }
        // Nobody can pay in the rounds before the last.
        let waiting = self.flows.iter_mut().filter(|f| !f.items.is_empty());
        waiting.for_each(|f| f.deficit += (most - 1.0) * quantum);
        for i in (1..=n).map(|i| (self.turn + i) % n) {
            if self.flows[i].items.is_empty() {
                continue;
            }
            self.flows[i].deficit += quantum;
            if affordable(&self.flows[i], 0.0) {
                self.turn = i;
                return Some(i);
            }
        }
        None
    }

    /// A request goes: its tenant pays.
    pub(super) fn pay(&mut self, tenant: Key, tokens: f64) {
        if let (Fairness::Deficit { .. }, Some(flow)) = (self.config.fairness, self.by_tenant.get(&tenant)) {
            let flow = &mut self.flows[*flow as usize];
            flow.deficit = (flow.deficit - tokens).max(0.0);
        }
    }
}

impl Flow {
    fn head_wait(&self, now: Time) -> f64 {
        self.items.first_key_value().map_or(0.0, |(_, item)| now.since(item.since).secs())
    }

    fn fade(&mut self, now: Time, half_life: Dur) {
        let halves = now.since(self.served).secs() / half_life.secs().max(1e-9);
        self.service *= libm::exp2(-halves);
        self.served = now.max(self.served);
    }
}
