use crate::config::{Acks, Config};
use crate::control::Control;
use crate::error::system;
use crate::http::Template;
use crate::lane::{self, Book, Lane, Shared};
use crate::log::RunLog;
use crate::pacer::{Pacer, Port};
use crate::tls::TlsSetup;
use crate::{ClientError, Request, Requests, Schedule, Target};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tailbound_clock::Dur;
use tailbound_os::poll::EventFd;
use tailbound_os::socket::StampsOn;
use tailbound_os::{TimerProbe, clock, limits, sched, usage};
use tailbound_record::{Row, StampSource};
use tailbound_workload::{IntentId, Load, Spec};

/// Descriptors kept for other things than connections: files, pipes, epoll instances.
const RESERVED: u64 = 64;
/// Room in the table of descriptors is made ahead for no more (half a megabyte of it).
const MOST_AHEAD: u64 = 1 << 16;
/// How often ended requests' rows go to the sink.
const COLLECT: Dur = Dur::from_ms(50);
/// The pacer comes before the loops.
const PACER_PRIORITY: u8 = lane::PRIORITY + 2;

/// Sends the load and hands each request's row to `sink` (on the calling thread) when it has ended. Blocks until everything has
/// ended, by itself or by `control`. Requests that were planned and not sent get rows as well, at the end.
///
/// # Errors
/// Only what keeps the run from beginning: an unusable target, TLS that cannot be set up, too few descriptors.
pub fn run(
    load: &mut dyn Schedule,
    requests: &dyn Requests,
    target: &Target,
    config: &Config,
    control: &Control,
    sink: &mut dyn FnMut(Row),
) -> Result<RunLog, ClientError> {
    target.check()?;
    let descriptors = make_room(load, config)?;
    let addresses = target.resolve()?;
    let tls = TlsSetup::new(target)?;
    let template = Template::new(target);
    let stamps_on = StampsOn::hold();
    let loops = loops(config);
    let ports =
        (0..loops).map(|_| Port::new()).collect::<Result<Vec<_>, _>>().map_err(system("open an event descriptor"))?;
    let mut log = RunLog {
        stamps: if stamps_on.is_some() { StampSource::Kernel } else { StampSource::User },
        descriptors,
        ports: limits::ephemeral_ports(),
        loops,
        realtime: config.realtime,
        ..RunLog::default()
    };
    let cpu = usage::process_cpu();
    {
        let pacer = Pacer::new(load, loops).map_err(system("open an event descriptor"))?;
        let shared = Shared {
            requests,
            config,
            control,
            addresses: &addresses,
            target,
            template: &template,
            tls: tls.as_ref(),
            pacer: &pacer,
            ports: &ports,
        };
        let books = drive(&shared, &mut log, sink)?;
        for book in books {
            enter(&mut log, book);
        }
    }
    log.process_cpu = Dur(usage::process_cpu().ns() - cpu.ns());
    log.origin = load.origin();
    load.unsent().into_iter().for_each(sink);
    Ok(log)
}

/// What one request told.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its row.
    pub row: Row,
    /// The server was seen to send small segments without waiting for the acknowledgement of earlier ones ([`Acks::Delayed`] does it
    /// no harm). False also where the answer was too short, or too slow, to tell.
    pub sends_at_once: bool,
}

/// Sends one request and waits for its row: a doctor's question.
///
/// # Errors
/// As [`run`].
pub fn one(request: &Request<'_>, target: &Target, config: &Config) -> Result<Row, ClientError> {
    ask(request, target, config, config.acks).map(|probe| probe.row)
}

/// As [`one`], and learns how the server sends: the ready check.
///
/// # Errors
/// As [`run`].
pub fn probe(request: &Request<'_>, target: &Target, config: &Config) -> Result<Probe, ClientError> {
    ask(request, target, config, Acks::Watched)
}

fn ask(request: &Request<'_>, target: &Target, config: &Config, acks: Acks) -> Result<Probe, ClientError> {
    struct Only<'a>(&'a Request<'a>);
    impl Requests for Only<'_> {
        fn request(&self, _: IntentId) -> Request<'_> {
            self.0.clone()
        }
    }
    let plan = Spec { num_prompts: Some(1), ..Spec::default() }
        .plan()
        .map_err(|e| ClientError::NotPermitted(e.to_string()))?;
    let mut load = Load::new(plan.into());
    let config = Config { threads: 1, gather: false, realtime: false, preconnect: 0, acks, ..config.clone() };
    let mut rows = Vec::new();
    let log = run(&mut load, &Only(request), target, &config, &Control::new(), &mut |row| rows.push(row))?;
    let row = rows.pop().unwrap_or_else(|| Row::new(0));
    Ok(Probe { row, sends_at_once: log.sends_at_once })
}

/// Starts the threads, passes rows on until all have ended, and gives back the loops' books.
fn drive<'a>(shared: &'a Shared<'a>, log: &mut RunLog, sink: &mut dyn FnMut(Row)) -> Result<Vec<Book>, ClientError> {
    let ports = shared.ports;
    let config = shared.config;
    let lanes = (0..ports.len()).map(|i| Lane::new(i, shared)).collect::<Result<Vec<_>, _>>()?;
    let core = config.pin.first().copied();
    let noise = TimerProbe::start(Dur::from_ms(10), core, config.realtime.then_some(lane::PRIORITY))
        .map_err(system("start a thread"))?;
    let settled = Barrier::new(lanes.len() + 1);
    let over = EventFd::new().map_err(system("open an event descriptor"))?;
    let alive = AtomicUsize::new(lanes.len() + 1);
    let mut rows = Vec::new();
    let books = thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .into_iter()
            .map(|mut lane| {
                let (settled, over, alive) = (&settled, &over, &alive);
                scope.spawn(move || {
                    let _ended = OnEnd(|| {
                        shared.pacer.loop_ended();
                        leave(alive, over);
                    });
                    lane.settle();
                    lane.preconnect();
                    settled.wait();
                    lane.run()
                })
            })
            .collect();
        let pacer = scope.spawn(|| {
            let _ended = OnEnd(|| leave(&alive, &over));
            let refused = config.realtime.then(|| sched::realtime(PACER_PRIORITY).err()).flatten();
            tailbound_os::sleep::exact_timers();
            settled.wait();
            let start = clock::now();
            shared.pacer.run(shared.control, config.grace, ports);
            (start, refused)
        });
        while alive.load(Ordering::Acquire) > 0 {
            over.wait(COLLECT);
            pass_on(ports, &mut rows, sink);
        }
        log.end = clock::now();
        if let Ok((start, refused)) = pacer.join() {
            log.start = start;
            log.realtime &= refused.is_none();
            log.refused.extend(refused);
        }
        threads.into_iter().map(|thread| thread.join()).collect::<Result<Vec<_>, _>>()
    });
    pass_on(ports, &mut rows, sink);
    log.noise = noise.finish();
    match books {
        Ok(books) => Ok(books),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn pass_on(ports: &[Port], rows: &mut Vec<Row>, sink: &mut dyn FnMut(Row)) {
    for port in ports {
        port.take_rows(rows);
    }
    rows.drain(..).for_each(sink);
}

fn leave(alive: &AtomicUsize, over: &EventFd) {
    if alive.fetch_sub(1, Ordering::AcqRel) == 1 {
        over.signal();
    }
}

/// Does it however the thread ends, so that nobody waits for one that panicked.
struct OnEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn enter(log: &mut RunLog, book: Book) {
    log.late.extend(book.late);
    log.unstamped += book.unstamped;
    log.reads += book.reads;
    log.read_delay.iter_mut().zip(book.read_delay).for_each(|(sum, n)| *sum += n);
    log.clock_steps = log.clock_steps.max(book.clock_steps);
    log.connections += book.connections;
    log.retries += book.retries;
    log.local_limit_hits += book.local_limit_hits;
    log.sends_at_once |= book.sends_at_once;
    log.loop_cpu.push(book.cpu);
    for refused in book.refused {
        if !log.refused.contains(&refused) {
            log.refused.push(refused);
        }
    }
    if log.unstamped > 0 && log.stamps == StampSource::Kernel {
        log.stamps = StampSource::Mixed;
    }
}

fn loops(config: &Config) -> usize {
    let most = u16::MAX as usize;
    match config.threads {
        0 => sched::cores().len().saturating_sub(1).clamp(1, most),
        n => n.min(most),
    }
}

/// Raises the limit on descriptors, and refuses a plan that is sure to need more than there are.
fn make_room(load: &dyn Schedule, config: &Config) -> Result<u64, ClientError> {
    let limit = limits::raise_nofile().map_err(system("read the limit on file descriptors"))?.now;
    limits::widen_table(limit.min(MOST_AHEAD));
    let Some(needed) = surely_needed(load, config) else { return Ok(limit) };
    let reserved = limits::open_files().unwrap_or(16) + RESERVED;
    if needed + reserved > limit {
        let most = limit.saturating_sub(reserved);
        return Err(ClientError::Descriptors { needed, limit, reserved, suggested: needed + reserved, most });
    }
    match limits::ephemeral_ports().map(u64::from) {
        Some(ports) if needed > ports => Err(ClientError::Ports { needed, ports }),
        _ => Ok(limit),
    }
}

/// Connections that will be open at once whatever the server does: those of requests that leave together, and those asked for ahead.
fn surely_needed(load: &dyn Schedule, config: &Config) -> Option<u64> {
    let ahead = Some(config.preconnect as u64).filter(|&n| n > 0);
    load.at_once().max(ahead)
}
