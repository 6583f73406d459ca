use super::band::{Band, BandConfig, Item, Order, Ordering};
use super::ceiling::UsageLimit;
use crate::names::Key;
use crate::request::Request;
use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};

/// How the queue is run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowConfig {
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_requests: Option<usize>,
    /// Longest wait; `None`: as long as the client waits.
    pub(crate) ttl: Option<Dur>,
    /// For priorities without a band of their own.
    pub(crate) default_band: BandConfig,
    pub(crate) bands: Vec<(i32, BandConfig)>,
    pub(crate) limit: UsageLimit,
    /// Break off sheddable requests in flight when others wait for their place.
    pub(crate) evict: bool,
}

impl Default for FlowConfig {
    fn default() -> FlowConfig {
        FlowConfig {
            max_bytes: None,
            max_requests: None,
            ttl: Some(Dur::from_secs(60)),
            default_band: BandConfig::default(),
            bands: Vec::new(),
            limit: UsageLimit::Static(1.0),
            evict: false,
        }
    }
}

/// Where in the queue a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    priority: i32,
    tenant: Key,
    order: Order,
    bytes: u64,
    expires: Option<Time>,
}

impl Place {
    /// The request's number in the order in which they came.
    pub(crate) fn arrival(&self) -> u64 {
        self.order.1
    }
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Those who wait.
#[derive(Debug)]
pub(crate) struct Queue {
    config: FlowConfig,
    /// The highest priority first.
    bands: Vec<Band>,
    requests: usize,
    bytes: u64,
    arrivals: u64,
    /// By when they are given up.
    expiry: BTreeMap<(Time, u64), u32>,
    tidied: Time,
}

/// Figures of the queue: what waits here is invisible to whoever watches the engines alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Requests.
    pub requests: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Tenants that something is remembered of.
    pub tenants: usize,
}

const TIDY_EVERY: Dur = Dur::from_secs(60);

impl Queue {
    pub(crate) fn new(config: FlowConfig) -> Queue {
        let mut bands: Vec<Band> = config.bands.iter().map(|(p, band)| Band::new(*p, *band)).collect();
        bands.sort_by_key(|b| std::cmp::Reverse(b.priority));
        Queue { config, bands, requests: 0, bytes: 0, arrivals: 0, expiry: BTreeMap::new(), tidied: Time::ZERO }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    pub(crate) fn waiting(&self) -> Waiting {
        let tenants = self.bands.iter().map(Band::tenants).sum();
        Waiting { requests: self.requests, bytes: self.bytes, tenants }
    }

    pub(crate) fn evicts(&self) -> bool {
        self.config.evict
    }

    /// When a request that comes now would be given up.
    pub(crate) fn expires(&self, now: Time, patience: Option<Dur>) -> Option<Time> {
        self.config.ttl.into_iter().chain(patience).min().map(|d| now + d)
    }

    pub(crate) fn push(&mut self, now: Time, index: u32, request: &Request) -> Result<Place, Full> {
        let bytes = request.bytes;
        let over = |max: Option<u64>, n: u64| max.is_some_and(|m| n > m);
        let all_requests = self.config.max_requests.map(|n| n as u64);
        if over(all_requests, self.requests as u64 + 1) || over(self.config.max_bytes, self.bytes + bytes) {
            return Err(Full);
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        let band = self.band(request.priority);
        let band = &mut self.bands[band];
        if band.requests + 1 > band.config.max_requests || band.bytes + bytes > band.config.max_bytes {
            return Err(Full);
        }
        let order = order(band.config.ordering, request, arrival);
        let tokens = f64::from(request.prompt_tokens) + f64::from(request.output_tokens.unwrap_or(0));
        band.push(now, request.tenant, order, Item { request: index, tokens, since: request.arrived });
        band.requests += 1;
        band.bytes += bytes;
        self.requests += 1;
        self.bytes += bytes;
        if let Some(at) = request.expires {
            self.expiry.insert((at, order.1), index);
        }
        let priority = request.priority;
        Ok(Place { priority, tenant: request.tenant, order, bytes, expires: request.expires })
    }

    /// A request leaves, whatever for.
    pub(crate) fn remove(&mut self, place: &Place) {
        let band = self.band(place.priority);
        let band = &mut self.bands[band];
        if !band.remove(place.tenant, place.order) {
            return;
        }
        band.requests -= 1;
        band.bytes -= place.bytes;
        self.requests -= 1;
        self.bytes -= place.bytes;
        if let Some(at) = place.expires {
            self.expiry.remove(&(at, place.order.1));
        }
    }

    /// Whose turn it is, if a pool that full may take anybody more. Bands are strict: where one is held back, nobody below
    /// it goes.
    pub(crate) fn next(&mut self, now: Time, saturation: f64) -> Option<u32> {
        let count = self.bands.len();
        let (rank, band) = self.bands.iter_mut().enumerate().find(|(_, b)| b.requests > 0)?;
        if saturation >= self.config.limit.ceiling(saturation, band.priority, rank, count) {
            return None;
        }
        band.next(now).map(|(.., item)| item.request)
    }

    /// Whether a request of this priority needs not wait at all: nobody waits, and the pool has room for it.
    pub(crate) fn is_open(&mut self, saturation: f64, priority: i32) -> bool {
        if self.requests > 0 {
            return false;
        }
        let rank = self.band(priority);
        let count = self.bands.len();
        saturation < self.config.limit.ceiling(saturation, priority, rank, count)
    }

    /// The highest priority that waits, and how many of it.
    pub(crate) fn highest(&self) -> Option<(i32, usize)> {
        self.bands.iter().find(|b| b.requests > 0).map(|b| (b.priority, b.requests))
    }

    /// The next one that has waited too long.
    pub(crate) fn expired(&self, now: Time) -> Option<u32> {
        let ((at, _), index) = self.expiry.first_key_value()?;
        (*at <= now).then_some(*index)
    }

    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiry.first_key_value().map(|((at, _), _)| *at)
    }

    /// A request went to be served: the prompt counts at once.
    pub(crate) fn dispatched(&mut self, now: Time, request: &Request) {
        let band = self.band(request.priority);
        let tokens = f64::from(request.prompt_tokens);
        let whole = tokens + f64::from(request.output_tokens.unwrap_or(0));
        self.bands[band].pay(request.tenant, whole);
        self.bands[band].serve(now, request.tenant, tokens);
        if now.since(self.tidied) > TIDY_EVERY {
            self.tidied = now;
            self.bands.iter_mut().for_each(|b| b.tidy(now));
        }
    }

    /// An answer grew by so many tokens: each counts two of a prompt.
    pub(crate) fn generated(&mut self, now: Time, priority: i32, tenant: Key, tokens: u32) {
        let band = self.band(priority);
        self.bands[band].serve(now, tenant, 2.0 * f64::from(tokens));
    }

    fn band(&mut self, priority: i32) -> usize {
        match self.bands.binary_search_by_key(&std::cmp::Reverse(priority), |b| std::cmp::Reverse(b.priority)) {
            Ok(place) => place,
            Err(place) => {
                // A priority nobody configured, and that nobody waits in any more, makes room for another.
                let configured = |p: i32| self.config.bands.iter().any(|(c, _)| *c == p);
                if self.bands.len() >= MOST_BANDS
                    && let Some(idle) = self.bands.iter().position(|b| b.requests == 0 && !configured(b.priority))
                {
                    self.bands.remove(idle);
                    return self.band(priority);
                }
                self.bands.insert(place, Band::new(priority, self.config.default_band));
                place
            }
        }
    }
}

const MOST_BANDS: usize = 64;

fn order(ordering: Ordering, request: &Request, arrival: u64) -> Order {
    let key = match ordering {
        Ordering::Fcfs => 0,
        Ordering::Edf => request.expires.map_or(u64::MAX, Time::ns),
        Ordering::SloDeadline => request.slo.ttft.map_or(u64::MAX, |slo| (request.arrived + slo).ns()),
        Ordering::Wspt => {
            let weight = 1 + request.priority.max(0) as u64;
            (u64::from(request.prompt_tokens) << 20) / weight
        }
        Ordering::Lcfs => u64::MAX - arrival,
    };
    (key, arrival)
}
