//! One replica: an engine, its own time, and what can go wrong with it.

mod pace;
mod steps;

use pace::Pace;
pub(crate) use steps::Steps;
use tailbound_clock::Time;
use tailbound_engine::{Config, ConfigError, Counters, Effect, Emit, Engine, Event, KvEvents};
use tailbound_kv::vllm::Batch;
use tailbound_route::{Endpoint, Loras, Signals};

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
    pub(crate) steps: Steps,
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
    lora: Option<Box<Adapters>>,
}

/// Which adapters a replica has.
struct Adapters {
    max: u32,
    running: Vec<String>,
    waiting: Vec<String>,
}

impl Scrape {
    pub(crate) fn waiting(&self) -> u32 {
        self.signals.waiting
    }

    pub(crate) fn lend<R>(&self, to: impl FnOnce(&Signals<'_>) -> R) -> R {
        let Some(lora) = &self.lora else { return to(&Signals { attributes: &self.attributes, ..self.signals }) };
        let [running, waiting] =
            [&lora.running, &lora.waiting].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        let loras = Loras { max: lora.max, running: &running, waiting: &waiting };
        to(&Signals { attributes: &self.attributes, lora: Some(loras), ..self.signals })
    }
}

/// Totals of an engine that outlive it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) steps: u64,
    pub(crate) queries: u64,
    pub(crate) hits: u64,
    pub(crate) tier_hits: u64,
    pub(crate) lora_loads: u64,
}

impl Counted {
    fn of(c: &Counters) -> Counted {
        Counted {
            steps: c.steps,
            queries: c.prefix_queries,
            hits: c.prefix_hits,
            tier_hits: c.tier_hits.iter().sum(),
            lora_loads: c.lora_loads,
        }
    }

    pub(crate) fn plus(self, other: Counted) -> Counted {
        Counted {
            steps: self.steps + other.steps,
            queries: self.queries + other.queries,
            hits: self.hits + other.hits,
            tier_hits: self.tier_hits + other.tier_hits,
            lora_loads: self.lora_loads + other.lora_loads,
        }
    }
}

/// What an adapter is called.
pub(crate) fn adapter_name(number: u32) -> String {
    format!("adapter-{number}")
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
            steps: Steps::new(),
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
        self.steps.preemptions = 0;
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
        let attributes = if attributes { figures.into() } else { Box::default() };
        Some(Scrape { signals, attributes, lora: self.adapters() })
    }

    fn adapters(&self) -> Option<Box<Adapters>> {
        let lora = self.engine.config().lora?;
        let running = self.engine.running_adapters().map(adapter_name).collect();
        let waiting = self.engine.waiting_adapters().into_iter().map(adapter_name).collect();
        Some(Box::new(Adapters { max: lora.max_loras, running, waiting }))
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
        // With KV events there is news in every step that fills a block, and each must be told when it happens.
        let next = if self.is_quiet() { self.engine.next_news() } else { self.engine.next_wake() };
        let at = next.and_then(|own| self.pace.world(own))?.max(now);
        if self.wake == Some(at) {
            return None;
        }
        self.wake = Some(at);
        Some(at)
    }

    fn is_quiet(&self) -> bool {
        self.engine.config().kv_events == KvEvents::Off && self.steps.apart == 0
    }

    /// Ends the steps before `now` that nobody was to be woken for, and lists them; when the last of them ended. Comes before
    /// everything else that happens to it.
    pub(crate) fn pass(&mut self, now: Time) -> Option<Time> {
        if !self.alive || !self.is_quiet() {
            return None;
        }
        let quiet = self.engine.pass(self.pace.own(now));
        self.steps.extend(quiet.ends, &self.pace)
    }

    /// What the step that just ended put out, apart from one more token of each listed answer; `false`: not each of them got
    /// one, or somebody else did, and `news` has all of it.
    pub(crate) fn sort_out(&mut self, news: &mut Vec<Emit>) -> bool {
        news.clear();
        let emitted = self.engine.emitted();
        let preemptions = self.engine.counters().preemptions;
        let lost = std::mem::replace(&mut self.steps.preemptions, preemptions) != preemptions;
        let (mut listed, mut single) = (0, true);
        for emit in emitted {
            listed += usize::from(emit.first > 0);
            single &= emit.tokens == 1;
            if emit.first == 0 || emit.finish.is_some() {
                news.push(*emit);
            }
        }
        let regular = !lost && single && self.steps.apart == 0 && listed == self.steps.listed.len();
        if !regular {
            news.clear();
            news.extend_from_slice(emitted);
        }
        regular
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
