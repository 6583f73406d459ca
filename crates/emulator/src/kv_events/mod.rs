//! KV events as vLLM publishes them: a PUB socket for the events of each step, and a ROUTER socket that sends earlier ones
//! again. On threads of its own: the emulator only hands over a step's events, and what a slow reader leaves is dropped
//! and seen by it as a gap in the numbers.

mod zmtp;

use crate::error::EmulatorError;
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tailbound_clock::Dur;
use tailbound_kv::vllm::{self, Batch};
use tailbound_kv::{Encoding, Log, encode};
use tailbound_os::{clock, sleep};
use zmtp::Told;

/// Where and how KV events are published: vLLM's `--kv-events-config`, with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEventsConfig {
    /// `tcp://*:5557` listens, `tcp://host:5557` connects; a further data-parallel rank adds its number to the port.
    pub endpoint: String,
    /// Where earlier batches are sent again from; always listens.
    pub replay_endpoint: Option<String>,
    /// Batches kept for that.
    pub buffer_steps: usize,
    /// Messages a subscriber may be behind before it loses some.
    pub hwm: usize,
    /// The first frame of every message.
    pub topic: String,
    /// How batches are written.
    pub encoding: Encoding,
}

impl Default for KvEventsConfig {
    fn default() -> KvEventsConfig {
        KvEventsConfig {
            endpoint: "tcp://*:5557".to_owned(),
            replay_endpoint: None,
            buffer_steps: 10_000,
            hwm: 100_000,
            topic: String::new(),
            encoding: Encoding::default(),
        }
    }
}

/// One rank's publisher. Dropping it closes its sockets.
#[derive(Debug)]
pub(crate) struct Publisher {
    queue: SyncSender<Batch>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    topic: Vec<u8>,
    closed: AtomicBool,
    hwm: usize,
    subscribers: Mutex<Vec<Subscriber>>,
    /// (number, payload), the oldest in front.
    kept: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

#[derive(Debug)]
struct Subscriber {
    topics: Arc<Mutex<Vec<Vec<u8>>>>,
    queue: SyncSender<Arc<Vec<u8>>>,
}

/// How often a listener looks whether it is to stop, and a connection is tried again.
const PATIENCE: Dur = Dur::from_ms(50);

impl Publisher {
    /// Opens the sockets of a data-parallel rank.
    pub(crate) fn open(config: &KvEventsConfig, rank: u32) -> Result<Publisher, EmulatorError> {
        let shared = Arc::new(Shared {
            topic: config.topic.as_bytes().to_vec(),
            closed: AtomicBool::new(false),
            hwm: config.hwm.max(1),
            subscribers: Mutex::default(),
            kept: Mutex::default(),
        });
        let (queue, batches) = sync_channel(config.hwm.clamp(1, 100_000));
        let (encoding, keep, of) = (config.encoding, config.buffer_steps, shared.clone());
        thread("kv-events", move || of.distribute(&batches, encoding, keep))?;

        let (host, port) = address(&config.endpoint, rank)?;
        let of = shared.clone();
        if host == "*" {
            let listener = listen(&config.endpoint, port)?;
            let serve = shared.clone();
            thread("kv-events-accept", move || of.accept(&listener, &move |stream| serve.subscriber(stream)))?;
        } else {
            thread("kv-events-connect", move || {
                while !of.closed() {
                    if let Ok(stream) = TcpStream::connect((host.as_str(), port)) {
                        of.subscriber(stream);
                    }
                    sleep::until(clock::now() + PATIENCE);
                }
            })?;
        }
        if let Some(endpoint) = &config.replay_endpoint {
            let listener = listen(endpoint, address(endpoint, rank)?.1)?;
            let (of, serve) = (shared.clone(), shared.clone());
            thread("kv-events-replay", move || of.accept(&listener, &move |stream| serve.replay(stream)))?;
        }
        Ok(Publisher { queue, shared })
    }

    /// What a step, or a reset, changed in the cache, at `ts` seconds since 1970; dropped if a hundred thousand wait already.
    pub(crate) fn publish(&self, log: &Log, ts: f64, rank: u32) {
        if log.events().is_empty() {
            return;
        }
        let mut events = vllm::of_log(log);
        for event in &mut events {
            let (medium, group) = match event {
                vllm::Event::Stored(s) => {
                    s.extra_keys = vec![Vec::new(); s.hashes.len()];
                    (&mut s.medium, &mut s.group)
                }
                vllm::Event::Removed(r) => (&mut r.medium, &mut r.group),
                vllm::Event::Cleared | vllm::Event::Unknown => continue,
            };
            (*medium, *group) = (Some("GPU".to_owned()), Some(0));
        }
        let batch = Batch { ts, events, dp_rank: Some(rank) };
        // Lost is lost, as with vLLM; the numbers are given by the thread that sends, so this leaves no gap.
        let _ = self.queue.try_send(batch);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
    }
}

impl Shared {
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Numbers, writes, keeps and sends every batch, until there are no more.
    fn distribute(&self, batches: &Receiver<Batch>, encoding: Encoding, keep: usize) {
        for (seq, batch) in (0u64..).zip(batches) {
            let payload: Arc<[u8]> = encode(&batch, encoding).into();
            let wire = Arc::new(zmtp::message(&[&self.topic, &seq.to_be_bytes(), &payload]));
            {
                let mut kept = lock(&self.kept);
                kept.push_back((seq, payload));
                while kept.len() > keep {
                    kept.pop_front();
                }
            }
            lock(&self.subscribers).retain(|s| {
                let wanted = lock(&s.topics).iter().any(|prefix| self.topic.starts_with(prefix));
                // One that is full loses this message; one that has gone is forgotten.
                !wanted
                    || !matches!(s.queue.try_send(wire.clone()), Err(std::sync::mpsc::TrySendError::Disconnected(_)))
            });
        }
        lock(&self.subscribers).clear();
    }

    /// Takes connections, each on a thread of its own, until closed.
    fn accept(&self, listener: &TcpListener, serve: &(impl Fn(TcpStream) + Send + Clone + 'static)) {
        while !self.closed() {
            match listener.accept() {
                Ok((stream, _)) => {
                    let serve = serve.clone();
                    // A peer for which there is no thread is closed again.
                    let _ = thread("kv-events-peer", move || serve(stream));
                }
                Err(_) => sleep::until(clock::now() + PATIENCE),
            }
        }
    }

    /// One subscriber, until it or we go.
    fn subscriber(self: &Arc<Shared>, mut stream: TcpStream) {
        let greeted = stream.set_nonblocking(false).and_then(|()| zmtp::greet(&mut stream, "PUB"));
        let Ok(mut writer) = greeted.and_then(|()| stream.try_clone()) else { return };
        let topics = Arc::new(Mutex::new(Vec::new()));
        let (queue, messages) = sync_channel::<Arc<Vec<u8>>>(self.hwm);
        let write = move || {
            for message in messages {
                if io::Write::write_all(&mut writer, &message).is_err() {
                    break;
                }
            }
            // Wakes the reader; that it may be closed already is no matter.
            let _ = writer.shutdown(Shutdown::Both);
        };
        if thread("kv-events-write", write).is_err() {
            return;
        }
        lock(&self.subscribers).push(Subscriber { topics: topics.clone(), queue });
        while let Ok(told) = zmtp::read(&mut stream) {
            match told {
                Told::Subscribe(topic) => lock(&topics).push(topic),
                Told::Cancel(topic) => lock(&topics).retain(|t| *t != topic),
                Told::Message(_) | Told::Other => {}
            }
        }
        let ours = Arc::as_ptr(&topics);
        lock(&self.subscribers).retain(|s| Arc::as_ptr(&s.topics) != ours);
    }

    /// Sends what was kept from a number on, to whoever asks.
    fn replay(&self, mut stream: TcpStream) {
        let greeted = stream.set_nonblocking(false).and_then(|()| zmtp::greet(&mut stream, "ROUTER"));
        if greeted.is_err() {
            return;
        }
        while let Ok(told) = zmtp::read(&mut stream) {
            let Told::Message(frames) = told else { continue };
            let Some(start) = frames.last().and_then(|f| <[u8; 8]>::try_from(&f[..]).ok()).map(u64::from_be_bytes)
            else {
                continue;
            };
            let kept: Vec<_> = lock(&self.kept).iter().filter(|(seq, _)| *seq >= start).cloned().collect();
            let mut wire = Vec::new();
            for (seq, payload) in kept {
                wire.extend(zmtp::message(&[b"", &self.topic, &seq.to_be_bytes(), &payload]));
            }
            wire.extend(zmtp::message(&[b"", b"", &(-1i64).to_be_bytes(), b""]));
            if io::Write::write_all(&mut stream, &wire).is_err() {
                return;
            }
        }
    }
}

/// A poisoned lock holds no half-done change here.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), EmulatorError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|source| EmulatorError::System { what: "start a thread for KV events", source })
}

/// Host and port of `tcp://host:port`, the port moved by the rank.
fn address(endpoint: &str, rank: u32) -> Result<(String, u16), EmulatorError> {
    let bad =
        || EmulatorError::Config(format!("`{endpoint}` is no endpoint for KV events: tcp://HOST:PORT or tcp://*:PORT"));
    let (host, port) = endpoint.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':')).ok_or_else(bad)?;
    let port = port.parse::<u16>().ok().and_then(|p| p.checked_add(rank as u16)).ok_or_else(bad)?;
    if host.is_empty() {
        return Err(bad());
    }
    Ok((host.to_owned(), port))
}

fn listen(endpoint: &str, port: u16) -> Result<TcpListener, EmulatorError> {
    let host = address(endpoint, 0)?.0;
    let host = if host == "*" { "0.0.0.0".to_owned() } else { host };
    let failed = |source| EmulatorError::System { what: "listen for subscribers of KV events", source };
    let listener = TcpListener::bind((host.as_str(), port)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
