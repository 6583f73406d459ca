//! The live driver: one thread, one `epoll`, the engine's plan turned into writes at their time.
//!
//! A turn of the loop: outputs that are due, then timers, then a wait that ends at the next due time, then sockets; and
//! between two sockets, outputs again if they have come due. A request counts as arrived when its last byte was read; every
//! step due before that is driven first, so that the engine sees everything in order.

mod conn;
mod deliver;
mod generate;
mod live;
mod plan;
mod simple;
mod sockets;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_clock::{Dur, Time};
use tailbound_engine::{Effect, Emit, Engine, Event, KvEvents};
use tailbound_os::clock::{WallAnchor, now};
use tailbound_os::poll::{Epoll, EventFd};
use tailbound_os::usage::thread_cpu;

use crate::answer::Lexicon;
use crate::config::Config;
use crate::error::EmulatorError;
use crate::kv_events::Publisher;
use crate::metrics::Histograms;
use crate::tokenizer::Tokenizer;
use crate::truth::{Lateness, Log, Summary};
use conn::Conn;
use live::{Key, Slab};

/// Tokens of the `epoll` that are not connections.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
/// How often time-outs are looked at.
const TICK: Dur = Dur::from_ms(250);
/// Further behind its plan than this, the engine's plan is moved instead: the machine cannot keep up.
const MOST_LAG: Dur = Dur::from_ms(500);

/// What other threads may do to a server.
pub(crate) struct Control {
    stop: AtomicBool,
    wake: EventFd,
}

impl Control {
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.signal();
    }
}

/// One replica.
struct Rank {
    engine: Engine,
    number: u32,
    publisher: Option<Publisher>,
    histograms: Histograms,
    errors: u64,
    /// What is added to the engine's times to get ours.
    slip: Dur,
    /// When it wants to be woken, in our time.
    due: Option<Time>,
    /// When it last got a request.
    last_submit: Time,
    /// Its first request after idleness came in this turn: others of the turn may join before the step begins.
    fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Give the request to the engine.
    Admit(Key),
    /// End its stall.
    Release(Key),
}

pub(crate) struct Server {
    config: Config,
    control: Arc<Control>,
    listener: TcpListener,
    addr: SocketAddr,
    epoll: Epoll,
    conns: Vec<(u32, Option<Conn>)>,
    free_conns: Vec<usize>,
    conns_ever: u64,
    /// The listener has connections that could not be taken for want of descriptors.
    accept_again: bool,
    lives: Slab,
    ranks: Vec<Rank>,
    next_rank: usize,
    timers: BinaryHeap<Reverse<(Time, Timer)>>,
    tokenizer: Tokenizer,
    lexicon: Lexicon,
    anchor: WallAnchor,
    started: Time,
    date: (u64, String),
    /// Requests that asked for an answer, ever.
    asked: u64,
    log: Option<Log>,
    late: Lateness,
    late_max: Lateness,
    tokens: u64,
    requests: u64,
    blocked_writes: u64,
    next_tick: Time,
    scratch: Scratch,
}

/// Buffers that live as long as the server.
#[derive(Default)]
struct Scratch {
    input: Vec<u8>,
    output: Vec<u8>,
    text: String,
    effects: Vec<Effect>,
    emits: Vec<Emit>,
}

impl Server {
    /// Listens; nothing is answered before [`Server::run`].
    pub(crate) fn bind(config: Config) -> Result<Server, EmulatorError> {
        config.validate()?;
        let system = |what| move |source| EmulatorError::System { what, source };
        let tokenizer = match &config.tokenizer {
            None => Tokenizer::Builtin,
            Some(path) => Tokenizer::File(Box::new(tailbound_token::Tokenizer::load(path)?)),
        };
        let lexicon = Lexicon::of(&tokenizer)?;
        let ranks = (0..config.data_parallel_size).map(|n| Rank::new(&config, n)).collect::<Result<_, _>>()?;
        let log = config.truth_log.as_deref().map(Log::create).transpose()?;

        // Without more descriptors than the usual 1,024 most clients would be turned away; what cannot be raised shows there.
        let _ = tailbound_os::limits::raise_nofile();
        // Before there are threads: later, each doubling of the table stops the process for some ten milliseconds.
        tailbound_os::limits::widen_table(16_384);
        let listen = |source| EmulatorError::Listen { addr: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(listen)?;
        tailbound_os::socket::widen_backlog(&listener, 16_384).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let epoll = Epoll::new(1024).map_err(system("create an epoll instance"))?;
        let wake = EventFd::new().map_err(system("create an event descriptor"))?;
        epoll.watch(&listener, LISTENER).map_err(system("watch the listener"))?;
        epoll.watch_level(&wake, WAKE).map_err(system("watch the event descriptor"))?;
        let started = now();
        Ok(Server {
            control: Arc::new(Control { stop: AtomicBool::new(false), wake }),
            config,
            listener,
            addr,
            epoll,
            conns: Vec::new(),
            free_conns: Vec::new(),
            conns_ever: 0,
            accept_again: false,
            lives: Slab::default(),
            ranks,
            next_rank: 0,
            timers: BinaryHeap::new(),
            tokenizer,
            lexicon,
            anchor: WallAnchor::take(),
            started,
            date: (0, String::new()),
            asked: 0,
            log,
            late: Lateness::new(),
            late_max: Lateness::new(),
            tokens: 0,
            requests: 0,
            blocked_writes: 0,
            next_tick: started,
            scratch: Scratch { input: vec![0; 256 << 10], ..Scratch::default() },
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn control(&self) -> Arc<Control> {
        self.control.clone()
    }

    /// Serves until told to stop, then gives up what is in flight. `also_stop` is asked four times a second.
    pub(crate) fn run(mut self, also_stop: impl Fn() -> bool) -> Result<Summary, EmulatorError> {
        tailbound_os::sleep::exact_timers();
        while !self.control.stop.load(Ordering::Acquire) {
            let at = now();
            self.drive(at);
            self.fire_timers(at);
            if at >= self.next_tick {
                if also_stop() {
                    break;
                }
                self.tick(at);
            }
            let ready = self.epoll.wait(self.patience());
            for i in 0..ready {
                let event = self.epoll.ready(i);
                self.socket_event(event);
                if self.is_due(now()) {
                    self.drive(now());
                }
            }
            self.ranks.iter_mut().for_each(|r| r.fresh = false);
        }
        self.shut_down()
    }

    /// How long nothing need be done but for sockets.
    fn patience(&self) -> Dur {
        let steps = self.ranks.iter().filter_map(|r| r.due).min().unwrap_or(Time::MAX);
        let timers = self.timers.peek().map_or(Time::MAX, |t| t.0.0);
        let next = steps.min(timers);
        let wait = next.min(self.next_tick).since(now());
        // The last stretch before a step is spent awake, if so configured.
        if next <= self.next_tick { wait - self.config.spin } else { wait }
    }

    /// Whether a step is due that must not wait for the rest of this turn.
    fn is_due(&self, at: Time) -> bool {
        self.ranks.iter().any(|r| !r.fresh && r.due.is_some_and(|due| due <= at))
    }

    /// Ends every step that was due by `until`, in order of due time, and sends what came out.
    fn drive(&mut self, until: Time) {
        let due = |(i, r): (usize, &Rank)| Some((r.due.filter(|_| !r.fresh)?, i));
        while let Some((due, rank)) =
            self.ranks.iter().enumerate().filter_map(due).min().filter(|&(due, _)| due <= until)
        {
            self.step(rank, due);
        }
    }

    fn step(&mut self, rank: usize, due: Time) {
        let r = &mut self.ranks[rank];
        r.fresh = false;
        let slip = r.slip;
        self.scratch.effects.clear();
        // An idle engine begins with all that came in this turn, so not before the last of it; a busy one goes by its plan.
        r.engine.on(due.max(r.last_submit) - slip, Event::Wake, &mut self.scratch.effects);
        r.publish(&self.anchor);
        let mut emits = std::mem::take(&mut self.scratch.emits);
        emits.clear();
        emits.extend_from_slice(r.engine.emitted());
        for effect in &self.scratch.effects {
            if let Effect::Stepped(step) = effect {
                r.histograms.stepped(step);
            }
        }
        for finished in r.engine.finished() {
            let max_tokens = self.lives.get(Key::unpack(finished.id.0)).map_or(0, |live| live.max_tokens);
            r.histograms.finished(finished, max_tokens);
        }
        for emit in &emits {
            self.deliver(emit, due);
        }
        self.scratch.emits = emits;

        let r = &mut self.ranks[rank];
        let lag = now().since(due);
        if lag > MOST_LAG {
            r.slip += lag;
        }
        r.refresh();
    }

    fn fire_timers(&mut self, at: Time) {
        while let Some(&Reverse((due, timer))) = self.timers.peek() {
            if due > at {
                return;
            }
            self.timers.pop();
            match timer {
                Timer::Admit(key) => self.admit(key, due),
                Timer::Release(key) => self.release(key, due),
            }
        }
    }

    fn tick(&mut self, at: Time) {
        self.next_tick = at + TICK;
        self.time_out(at);
        if let Some(log) = &mut self.log {
            log.flush();
        }
        if self.accept_again {
            self.accept();
        }
    }

    fn shut_down(mut self) -> Result<Summary, EmulatorError> {
        for key in self.lives.keys() {
            self.give_up(key, "abort");
        }
        let summary = self.summary();
        if let (Some(log), Some(path)) = (self.log.take(), self.config.truth_log.clone()) {
            log.close().map_err(|source| EmulatorError::TruthLog { path, source })?;
        }
        Ok(summary)
    }

    fn summary(&self) -> Summary {
        Summary {
            requests: self.requests,
            tokens: self.tokens,
            late_max: self.late_max.quantiles(),
            late: self.late.quantiles(),
            blocked_writes: self.blocked_writes,
            slipped: self.ranks.iter().map(|r| r.slip).max().unwrap_or(Dur::ZERO),
            cpu: thread_cpu(),
        }
    }

    fn unix_seconds(&self) -> u64 {
        self.anchor.unix_ns(now()) / 1_000_000_000
    }
}

impl Rank {
    fn new(config: &Config, number: u32) -> Result<Rank, EmulatorError> {
        let publisher = config.kv_events.as_ref().map(|kv| Publisher::open(kv, number)).transpose()?;
        let kv_events = if publisher.is_some() { KvEvents::Tokens } else { config.engine.kv_events };
        Ok(Rank {
            engine: Engine::new(tailbound_engine::Config { kv_events, ..config.engine.clone() })?,
            number,
            publisher,
            histograms: Histograms::new(config.engine.max_model_len),
            errors: 0,
            slip: Dur::ZERO,
            due: None,
            last_submit: Time::ZERO,
            fresh: false,
        })
    }

    /// Tells what the engine's last event changed in its cache.
    fn publish(&self, anchor: &WallAnchor) {
        if let Some(publisher) = &self.publisher {
            publisher.publish(self.engine.kv(), anchor.unix_ns(now()) as f64 * 1e-9, self.number);
        }
    }

    /// Looks again at when the engine wants to be woken.
    fn refresh(&mut self) {
        self.due = self.engine.next_wake().map(|at| at + self.slip);
    }
}
