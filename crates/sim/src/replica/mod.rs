//! One replica: an engine, its own time, and what can go wrong with it.

mod pace;

use pace::Pace;
use tailbound_clock::Time;
use tailbound_engine::{Config, ConfigError, Counters, Effect, Emit, Engine, Event, KvEvents};
use tailbound_kv::vllm::Batch;
use tailbound_route::{Endpoint, Signals};

/// A replica.
pub(crate) struct Replica {
    engine: Engine,
    effects: Vec<Effect>,
    /// What discovery says of it.
    pub(crate) endpoint: Endpoint,
    /// Whether its process runs.
    pub(crate) alive: bool,
    /// Whether scrapes are answered, and KV events arrive.
    pub(crate) metrics: bool,
    pub(crate) events: bool,
    pace: Pace,
    /// The wake that is on the heap already.
    wake: Option<Time>,
    /// The number of its next message of KV events.
    seq: u64,
    /// What engines it had before counted.
    buried: Counted,
}

/// What a scrape said.
pub(crate) struct Scrape {
    signals: Signals<'static>,
    /// Figures by the names they are exported under, if anybody reads them.
    attributes: Box<[(&'static str, f64)]>,
}

impl Scrape {
    pub(crate) fn signals(&self) -> Signals<'_> {
        Signals { attributes: &self.attributes, ..self.signals }
    }
}

/// Totals of an engine that outlive it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) steps: u64,
    pub(crate) queries: u64,
    pub(crate) hits: u64,
}

impl Counted {
    fn of(c: &Counters) -> Counted {
        Counted { steps: c.steps, queries: c.prefix_queries, hits: c.prefix_hits }
    }

    pub(crate) fn plus(self, other: Counted) -> Counted {
        Counted { steps: self.steps + other.steps, queries: self.queries + other.queries, hits: self.hits + other.hits }
    }
}

impl Replica {
    pub(crate) fn new(config: &Config, endpoint: Endpoint, events: bool) -> Result<Replica, ConfigError> {
        let kv_events = if events { KvEvents::Tokens } else { KvEvents::Off };
        Ok(Replica {
            engine: Engine::new(Config { kv_events, ..config.clone() })?,
            effects: Vec::new(),
            endpoint,
            alive: true,
            metrics: true,
            events: true,
            pace: Pace::EVEN,
            wake: None,
            seq: 0,
            buried: Counted::default(),
        })
    }

    /// A new process in its place, its cache empty.
    pub(crate) fn begin_anew(&mut self) {
        self.buried = self.counted();
        // A configuration that made one engine makes another.
        if let Ok(engine) = Engine::new(self.engine.config().clone()) {
            self.engine = engine;
        }
        (self.wake, self.seq) = (None, 0);
    }

    pub(crate) fn counted(&self) -> Counted {
        self.buried.plus(Counted::of(self.engine.counters()))
    }

    /// What a scrape at `now` would say; nothing, if nobody answers.
    pub(crate) fn scrape(&self, now: Time, attributes: bool) -> Option<Scrape> {
        if !self.alive || !self.metrics || self.pace.stands() {
            return None;
        }
        let c = self.engine.counters();
        let signals = Signals {
            waiting: c.waiting,
            running: c.running,
            kv_usage: c.kv_usage(),
            block_size: Some(self.engine.config().block_size),
            blocks: Some(c.blocks),
            ..Signals::idle(now)
        };
        let figures = [
            ("vllm:num_requests_waiting", f64::from(c.waiting)),
            ("vllm:num_requests_running", f64::from(c.running)),
            ("vllm:kv_cache_usage_perc", c.kv_usage()),
        ];
        Some(Scrape { signals, attributes: if attributes { figures.into() } else { Box::default() } })
    }

    /// Tells the engine. What it answers is in the slice, until the next call.
    pub(crate) fn tell(&mut self, now: Time, event: Event<'_>) -> &[Effect] {
        self.effects.clear();
        self.engine.on(self.pace.own(now), event, &mut self.effects);
        &self.effects
    }

    /// The moment for which a wake is to be put on the heap, if one is.
    pub(crate) fn next_wake(&mut self, now: Time) -> Option<Time> {
        if !self.alive {
            return None;
        }
        let at = self.engine.next_wake().and_then(|own| self.pace.world(own))?.max(now);
        if self.wake == Some(at) {
            return None;
        }
        self.wake = Some(at);
        Some(at)
    }

    /// Its wake has come, if it still stands.
    pub(crate) fn woken(&mut self, now: Time) -> bool {
        let due = self.alive && self.wake == Some(now);
        if due {
            self.wake = None;
            self.tell(now, Event::Wake);
        }
        due
    }

    /// From now on, its time goes `factor` times slower.
    pub(crate) fn slow_down(&mut self, now: Time, factor: f64) {
        self.pace.change(now, factor);
        self.wake = None;
    }

    /// What the last step put out.
    pub(crate) fn emitted(&self) -> &[Emit] {
        self.engine.emitted()
    }

    /// The last step's changes of the cache as vLLM would send them, if there were any.
    pub(crate) fn message(&mut self) -> Option<(u64, Batch)> {
        if self.engine.kv().events().is_empty() {
            return None;
        }
        let events = tailbound_kv::vllm::of_log(self.engine.kv());
        self.seq += 1;
        Some((self.seq - 1, Batch { ts: 0.0, events, dp_rank: None }))
    }
}
