//! A loop: one thread, one `epoll`, its own connections. It sends on the nanosecond and reads whatever is ready.

mod receive;
mod send;

use crate::acks::Watch;
use crate::config::{Acks, Config};
use crate::conn::{Conn, State};
use crate::control::{Control, Phase};
use crate::error::system;
use crate::http::Template;
use crate::job::{Assigned, Job};
use crate::log::Late;
use crate::pacer::{Pacer, Port};
use crate::tls::TlsSetup;
use crate::{ClientError, Requests, Target};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_clock::{Dur, Time};
use tailbound_os::poll::Epoll;
use tailbound_os::{StampMap, clock, sched, sleep, usage};
use tailbound_record::{Blame, Cause, Limit, Moment, Phase as RowPhase, Row, Why};

/// What all loops of a run share.
pub(crate) struct Shared<'a> {
    pub requests: &'a dyn Requests,
    pub config: &'a Config,
    pub control: &'a Control,
    pub addresses: &'a [SocketAddr],
    pub target: &'a Target,
    pub template: &'a Template,
    pub tls: Option<&'a TlsSetup>,
    pub pacer: &'a Pacer<'a>,
    pub ports: &'a [Port],
}

/// What a loop saw of itself.
#[derive(Default)]
pub(crate) struct Book {
    pub late: Vec<Late>,
    pub unstamped: u64,
    pub reads: u64,
    pub read_delay: [u64; 24],
    pub clock_steps: u32,
    pub connections: u64,
    pub retries: u64,
    pub local_limit_hits: u64,
    pub sends_at_once: bool,
    pub cpu: Dur,
    pub refused: Vec<String>,
}

struct Slot {
    /// Tells a late readiness or timer entry of a closed connection from one of its successor.
    generation: u32,
    conn: Option<Conn>,
}

pub(crate) struct Lane<'a> {
    index: usize,
    shared: &'a Shared<'a>,
    port: &'a Port,
    epoll: Epoll,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Idle connections with their generation; the most recently used is taken first.
    idle: Vec<(u32, u32)>,
    due: BinaryHeap<Reverse<Assigned>>,
    /// Requests on their way into `due`.
    inbox: Vec<Assigned>,
    timers: BinaryHeap<Reverse<(Time, u32, u32)>>,
    stamps: StampMap,
    /// The last reading of the clock; fresh after every read and write.
    now: Time,
    /// When the last batch of reads began.
    batch_at: Time,
    /// More was due than one turn of sending takes.
    backlog: bool,
    /// Time spent awake ahead of sends: no sign of saturation.
    spun: Dur,
    /// Requests in flight.
    jobs: usize,
    /// The address that answered last.
    preferred: usize,
    /// What the connection opened last tells about the server.
    watch: Option<Watch>,
    head: Vec<u8>,
    buf: Vec<u8>,
    plain: Vec<u8>,
    book: Book,
}

const WAKE: u64 = u64::MAX;
/// Sockets taken from one wait: what is due is sent between any two of them anyway.
const BATCH: usize = 512;
const READ: usize = 128 << 10;
/// No wait is longer.
const LOOK_UP: Dur = Dur::from_ms(250);
/// How long before a send the loop stops sleeping: a sleeper wakes 20 to 100 µs late (most on virtual machines), and whatever is due
/// meanwhile leaves right behind it, so that arrivals bunch.
const AWAKE: Dur = Dur::from_us(60);
/// The longest time of sending without a look at what can be read.
const SENDING: Dur = Dur::from_ms(1);
/// The priority of loops among real-time threads (1 to 99).
pub(crate) const PRIORITY: u8 = 10;
/// How long the body's end may take once the answer has said that it is over.
const AFTER_TERMINAL: Dur = Dur::from_secs(5);

impl<'a> Lane<'a> {
    pub fn new(index: usize, shared: &'a Shared<'a>) -> Result<Lane<'a>, ClientError> {
        let port = &shared.ports[index];
        let epoll = Epoll::new(BATCH).map_err(system("open an epoll instance"))?;
        epoll.watch_level(&port.wake, WAKE).map_err(system("watch an event descriptor"))?;
        Ok(Lane {
            index,
            shared,
            port,
            epoll,
            slots: Vec::new(),
            free: Vec::new(),
            idle: Vec::new(),
            due: BinaryHeap::new(),
            inbox: Vec::new(),
            timers: BinaryHeap::new(),
            stamps: StampMap::new(),
            now: clock::now(),
            batch_at: Time::ZERO,
            backlog: false,
            spun: Dur::ZERO,
            jobs: 0,
            preferred: 0,
            watch: (shared.config.acks == Acks::Watched).then(Watch::default),
            head: Vec::new(),
            buf: vec![0; READ],
            plain: if shared.tls.is_some() { vec![0; 32 << 10] } else { Vec::new() },
            book: Book::default(),
        })
    }

    /// Settles the thread where it was asked to run.
    pub fn settle(&mut self) {
        sleep::exact_timers();
        let config = self.shared.config;
        if let Some(&core) = config.pin.get(self.index % config.pin.len().max(1))
            && let Err(e) = sched::pin_to(core)
        {
            self.book.refused.push(format!("--pin {core}: failed to pin a thread to that core: {e}"));
        }
        if config.realtime
            && let Err(why) = sched::realtime(PRIORITY)
        {
            self.book.refused.push(why);
        }
    }

    /// Opens this loop's share of the connections asked for ahead, and waits until each is usable or has failed.
    pub fn preconnect(&mut self) {
        let (all, loops) = (self.shared.config.preconnect, self.shared.ports.len());
        let own = all / loops + usize::from(self.index < all % loops);
        // A listener's queue of unaccepted connections is often 128 long, and a lost SYN costs a second.
        const AT_ONCE: usize = 64;
        let mut opened = 0;
        loop {
            while opened < own && self.opening() < AT_ONCE {
                self.dial(None, 0);
                opened += 1;
            }
            if (opened == own && self.opening() == 0) || self.shared.control.phase() != Phase::Run {
                return;
            }
            self.turn(Dur::from_ms(20));
        }
    }

    fn opening(&self) -> usize {
        let opening = |slot: &&Slot| {
            slot.conn.as_ref().is_some_and(|conn| matches!(conn.state, State::Connecting | State::Handshake))
        };
        self.slots.iter().filter(opening).count()
    }

    /// Until the run is over.
    pub fn run(mut self) -> Book {
        let cpu = usage::thread_cpu();
        loop {
            self.take_news();
            self.send_due();
            if self.shared.pacer.finished() && self.jobs == 0 {
                break;
            }
            if !self.gather() {
                continue;
            }
            self.turn(LOOK_UP);
        }
        let cpu = Dur(usage::thread_cpu().ns() - cpu.ns());
        self.book.cpu = Dur(cpu.ns().saturating_sub(self.spun.ns()));
        self.book.clock_steps = self.stamps.steps();
        self.book.sends_at_once = self.watch.as_ref().is_some_and(Watch::sends_at_once);
        self.shared.control.connections.fetch_sub(self.open_connections(), Relaxed);
        self.book
    }

    fn open_connections(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.conn.is_some()).count() as u64
    }

    fn take_news(&mut self) {
        if !self.port.collect(&mut self.inbox) {
            return;
        }
        self.admit();
        if self.shared.control.phase() != Phase::Run {
            let why = self.shared.control.why();
            while let Some(Reverse(assigned)) = self.due.pop() {
                self.never_send(assigned, why);
            }
        }
        if self.shared.pacer.cancelled() {
            self.cancel_all();
        }
    }

    fn admit(&mut self) {
        for assigned in self.inbox.drain(..) {
            self.due.push(Reverse(assigned));
        }
    }

    fn next_due(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse(assigned)| assigned.due)
    }

    /// Until when the loop may sleep for the sake of the next send.
    fn awake_at(&self) -> Time {
        Time(self.next_due().ns().saturating_sub(AWAKE.ns()))
    }

    /// Stays awake for the last moment before a send.
    fn await_due(&mut self) {
        let (from, due) = (self.now, self.next_due());
        if due.since(from) > AWAKE {
            return;
        }
        while self.now < due {
            std::hint::spin_loop();
            self.now = clock::now();
        }
        self.spun += self.now.since(from);
    }

    /// Sends what is due. In a burst that takes longer than [`SENDING`], reading gets its turn: answers that wait meanwhile would
    /// share reads, and lose their own stamps.
    fn send_due(&mut self) {
        self.backlog = false;
        if self.due.is_empty() {
            return;
        }
        self.now = clock::now();
        self.await_due();
        let until = self.now + SENDING;
        while self.send_one() {
            self.backlog = self.now >= until;
            if self.backlog {
                return;
            }
        }
    }

    /// Sends the next request if it is due at `self.now`.
    fn send_one(&mut self) -> bool {
        if self.next_due() > self.now {
            return false;
        }
        let Some(Reverse(assigned)) = self.due.pop() else { return false };
        self.start(assigned);
        true
    }

    /// After a batch of reads, lets readiness pile up for a while, so that it is read together; never past the next send.
    /// Returns false if there is something else to do first.
    fn gather(&mut self) -> bool {
        if !self.shared.config.gather || self.jobs == 0 {
            return true;
        }
        let until = (self.batch_at + Config::GATHER).min(self.awake_at());
        let left = until.since(clock::now());
        // Zero as well where something is overdue: then it is reading's turn.
        if left.is_zero() {
            return true;
        }
        let rung = self.port.wake.wait(left);
        if rung {
            // Whoever rings leaves word before the signal, so a signal without word is an old one; kept, it would end every wait.
            self.port.wake.clear();
        }
        !rung && self.next_due() > clock::now()
    }

    /// One wait, and everything that is ready then.
    fn turn(&mut self, most: Dur) {
        self.expire();
        let next = self.awake_at().min(self.timers.peek().map_or(Time::MAX, |Reverse((at, ..))| *at));
        let n = self.epoll.wait(next.since(clock::now()).min(most));
        if n == 0 {
            return;
        }
        self.now = clock::now();
        self.batch_at = self.now;
        self.stamps.refresh();
        self.warm(n);
        for i in 0..n {
            let ready = self.epoll.ready(i);
            if ready.token == WAKE {
                self.port.wake.clear();
                continue;
            }
            self.ready(ready);
            // What has become due meanwhile goes out at once; a backlog has its turn after the batch.
            if !self.backlog || self.next_due() > self.batch_at {
                self.send_one();
            }
        }
    }

    /// Brings near what the next `n` reads will need: each connection was last touched a token ago, and waiting for one after the
    /// other's memory would cost a tenth of all.
    fn warm(&self, n: usize) {
        let connections =
            || (0..n).filter_map(|i| self.slots.get(self.epoll.ready(i).token as u32 as usize)?.conn.as_ref());
        let near = connections().fold(0, |sum, conn| sum ^ conn.armed.ns() ^ u64::from(conn.served));
        let far = connections().filter_map(|conn| conn.job.as_ref()).fold(near, |sum, job| sum ^ job.touch());
        std::hint::black_box(far);
    }

    /// Ends what has passed a time limit.
    fn expire(&mut self) {
        let now = clock::now();
        while let Some(&Reverse((at, slot, generation))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            let found = &mut self.slots[slot as usize];
            if found.generation != generation {
                continue;
            }
            let Some(conn) = found.conn.as_mut().filter(|conn| conn.armed == at) else { continue };
            conn.armed = Time::MAX;
            let Some((deadline, limit)) = self.deadline(slot) else { continue };
            if deadline > now {
                self.arm(slot);
                continue;
            }
            self.time_out(slot, limit);
        }
    }

    /// When this connection has waited long enough, and for what.
    fn deadline(&self, slot: u32) -> Option<(Time, Limit)> {
        let conn = self.slots[slot as usize].conn.as_ref()?;
        let limits = &self.shared.config.timeouts;
        let own = match (conn.state, &conn.job) {
            (State::Connecting | State::Handshake, _) => (conn.connect_start + limits.connect, Limit::Connect),
            (State::Idle, _) | (State::Busy, None) => return None,
            (State::Busy, Some(job)) if job.terminal => (job.last + AFTER_TERMINAL.min(limits.gap), Limit::Gap),
            (State::Busy, Some(job)) if job.has_token() => (job.last + limits.gap, Limit::Gap),
            (State::Busy, Some(job)) => {
                let written = job.get(Moment::WriteStart).unwrap_or(job.last);
                (written + limits.first_token, Limit::FirstToken)
            }
        };
        let whole = conn.job.as_ref().map(|job| (job.released() + limits.request, Limit::Request));
        Some(whole.filter(|whole| whole.0 < own.0).unwrap_or(own))
    }

    /// Sees to it that the connection is looked at when its limit passes. Cheap when an earlier look is already planned.
    fn arm(&mut self, slot: u32) {
        let Some((deadline, _)) = self.deadline(slot) else { return };
        let found = &mut self.slots[slot as usize];
        let Some(conn) = found.conn.as_mut() else { return };
        if deadline < conn.armed {
            conn.armed = deadline;
            self.timers.push(Reverse((deadline, slot, found.generation)));
        }
    }

    fn time_out(&mut self, slot: u32, limit: Limit) {
        let Some(mut conn) = self.remove(slot) else { return };
        let Some(job) = conn.job.take() else { return };
        let phase = match conn.state {
            State::Connecting => Some(RowPhase::Connect),
            State::Handshake => Some(RowPhase::Tls),
            _ => None,
        };
        conn.socket.abort();
        let now = clock::now();
        let row = if job.terminal {
            job.finish(tailbound_wire::Eof::Reset, now) // the answer is whole; only the end of its body never came
        } else {
            let blame = if limit == Limit::Connect { Blame::Network } else { Blame::Server };
            let waited = now.since(job.released());
            let cause = Cause::Timeout(limit);
            let detail = format!("{cause} ({waited} after its release)");
            job.fail(blame, cause, detail, phase, now)
        };
        self.deliver(row);
    }

    fn cancel_all(&mut self) {
        let why = self.shared.pacer.why().unwrap_or(Why::Interrupted);
        while let Some(Reverse(assigned)) = self.due.pop() {
            self.never_send(assigned, why);
        }
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].conn.as_ref().is_none_or(|conn| conn.job.is_none()) {
                continue;
            }
            let Some(mut conn) = self.remove(slot) else { continue };
            let Some(job) = conn.job.take() else { continue };
            conn.socket.abort();
            let row = job.abandon(tailbound_record::End::Cancelled(why), clock::now());
            self.deliver(row);
        }
    }

    fn never_send(&mut self, assigned: Assigned, why: Why) {
        let row = Job::never_sent(assigned, self.index as u16, why);
        self.shared.pacer.ended(clock::now(), &row, &mut self.inbox, self.shared.ports);
        self.port.put_row(row);
        self.admit();
    }

    /// A request has ended: its row goes out, and what that sets free comes in.
    fn deliver(&mut self, mut row: Row) {
        self.jobs -= 1;
        let control = self.shared.control;
        if row.ok() { &control.done } else { &control.failed }.fetch_add(1, Relaxed);
        control.chunks.fetch_add(row.chunks.len() as u64, Relaxed);
        control.tokens.fetch_add(u64::from(row.output_tokens()), Relaxed);
        if matches!(row.end, tailbound_record::End::Failed { cause: Cause::LocalLimit, .. }) {
            self.book.local_limit_hits += 1;
        }
        self.book.reads += u64::from(row.net.reads);
        self.shared.requests.answered(&row);
        self.shared.pacer.ended(self.now, &row, &mut self.inbox, self.shared.ports);
        if !self.shared.config.keep_text {
            row.text = None;
        }
        self.port.put_row(row);
        self.admit();
    }

    /// Takes a connection out; dropping it closes the socket.
    fn remove(&mut self, slot: u32) -> Option<Conn> {
        let found = &mut self.slots[slot as usize];
        let conn = found.conn.take()?;
        found.generation = found.generation.wrapping_add(1);
        self.free.push(slot);
        self.shared.control.connections.fetch_sub(1, Relaxed);
        Some(conn)
    }
}
