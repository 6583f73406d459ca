//! From an assigned request to its bytes in the kernel: an idle connection, or a new one.

use super::{Lane, Slot};
use crate::acks::{Delayed, Watch};
use crate::config::Acks;
use crate::conn::{Conn, State};
use crate::http::Http;
use crate::job::{Assigned, Job, io_failure};
use crate::log::Late;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_os::clock;
use tailbound_os::socket::Socket;
use tailbound_record::{Blame, Cause, Moment, Phase};
use tailbound_workload::IntentId;

impl Lane<'_> {
    /// Takes up a request that is due.
    pub(super) fn start(&mut self, assigned: Assigned) {
        let shared = self.shared;
        let request = shared.requests.request(IntentId(assigned.id));
        self.now = clock::now();
        self.book.late.push(Late { id: assigned.id, by: self.now.since(assigned.due) });
        self.jobs += 1;
        shared.control.sent.fetch_add(1, Relaxed);
        let (worker, config) = (self.index as u16, shared.config);
        let keep_text = config.keep_text || request.keep_text;
        let job = Box::new(Job::new(assigned, &request, self.now, worker, keep_text, config.event_limit));
        let Some(slot) = self.take_idle() else { return self.dial(Some(job), 0) };
        if let Some(conn) = &mut self.slots[slot as usize].conn {
            conn.job = Some(job);
        }
        self.write(slot);
    }

    fn take_idle(&mut self) -> Option<u32> {
        while let Some((slot, generation)) = self.idle.pop() {
            if self.slots[slot as usize].generation == generation {
                return Some(slot);
            }
        }
        None
    }

    /// Begins to connect, for `job` or ahead of need. `tried` addresses have failed already.
    pub(super) fn dial(&mut self, mut job: Option<Box<Job>>, mut tried: usize) {
        let addresses = self.shared.addresses;
        let start = clock::now();
        if let Some(job) = &mut job
            && tried == 0
        {
            job.set(Moment::ConnectStart, start);
        }
        loop {
            let address = (self.preferred + tried) % addresses.len();
            tried += 1;
            match Socket::connect(addresses[address]) {
                Ok(socket) => {
                    let http = Http::new(self.shared.target);
                    return self.adopt(Conn::new(socket, http, address, start), job, tried);
                }
                Err(e) => {
                    let (blame, cause, detail) = io_failure(&e, "connect to", Some(addresses[address]));
                    if tried < addresses.len() && blame != Blame::Client {
                        continue;
                    }
                    return self.give_up(job, (blame, cause, detail));
                }
            }
        }
    }

    fn adopt(&mut self, mut conn: Conn, job: Option<Box<Job>>, tried: usize) {
        conn.job = job;
        conn.tried = tried;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, conn: None });
            self.slots.len() as u32 - 1
        });
        let generation = self.slots[slot as usize].generation;
        let token = u64::from(generation) << 32 | u64::from(slot);
        let watched = self.epoll.watch(&conn.socket, token);
        self.slots[slot as usize].conn = Some(conn);
        self.book.connections += 1;
        self.shared.control.connections.fetch_add(1, Relaxed);
        if let Err(e) = watched {
            let job = self.remove(slot).and_then(|mut conn| conn.job.take());
            return self.give_up(job, io_failure(&e, "watch a socket to", None));
        }
        self.arm(slot);
        // Writing at once, where that is possible, spares a turn of the loop, and a burst is not first connected and then
        // written, which would queue it up at the server.
        if self.slots[slot as usize].conn.as_ref().is_some_and(|conn| conn.socket.is_connected()) {
            self.connected(slot);
        }
    }

    fn give_up(&mut self, job: Option<Box<Job>>, (blame, cause, detail): (Blame, Cause, String)) {
        let Some(job) = job else { return };
        let row = job.fail(blame, cause, detail, Some(Phase::Connect), clock::now());
        self.deliver(row);
    }

    /// A connecting socket became writable, or broke.
    pub(super) fn connected(&mut self, slot: u32) {
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        if let Err(e) = conn.socket.connect_error() {
            let Some(mut conn) = self.remove(slot) else { return };
            let job = conn.job.take();
            let failure = io_failure(&e, "connect to", Some(self.shared.addresses[conn.address]));
            if conn.tried < self.shared.addresses.len() && failure.0 != Blame::Client {
                return self.dial(job, conn.tried);
            }
            return self.give_up(job, failure);
        }
        conn.connected = clock::now();
        self.preferred = conn.address;
        if self.shared.config.acks != Acks::AtOnce {
            conn.acks = Some(Delayed::start(&conn.socket, self.shared.config.acks == Acks::Delayed));
            self.watch = self.watch.take().map(|_| Watch::default());
        }
        if let Some(job) = &mut conn.job {
            job.set(Moment::Connected, conn.connected);
        }
        let Some(setup) = self.shared.tls else { return self.usable(slot) };
        match setup.connect() {
            Ok(tls) => {
                conn.tls = Some(tls);
                conn.state = State::Handshake;
                if let Err(e) = conn.flush() {
                    self.tls_failed(slot, &e);
                }
            }
            Err(e) => self.tls_failed(slot, &io::Error::other(e)),
        }
    }

    pub(super) fn tls_failed(&mut self, slot: u32, e: &io::Error) {
        let Some(mut conn) = self.remove(slot) else { return };
        let Some(job) = conn.job.take() else { return };
        let address = self.shared.addresses[conn.address];
        let detail = format!("TLS with {address}: {}", tls_words(e, self.shared.target.http2));
        let row = job.fail(Blame::Network, Cause::Tls, detail, Some(Phase::Tls), clock::now());
        self.deliver(row);
    }

    /// A connection is ready for a request.
    pub(super) fn usable(&mut self, slot: u32) {
        let found = &mut self.slots[slot as usize];
        let Some(conn) = &mut found.conn else { return };
        if conn.job.is_some() {
            return self.write(slot);
        }
        conn.http.greet();
        if !matches!(conn.flush(), Ok(true)) {
            self.remove(slot);
            return;
        }
        conn.state = State::Idle;
        self.idle.push((slot, found.generation));
    }

    /// Writes the request of the connection's job.
    fn write(&mut self, slot: u32) {
        let shared = self.shared;
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        let Some(job) = &mut conn.job else { return };
        let request = shared.requests.request(IntentId(job.id));
        let body = conn.http.begin(shared.template, &mut self.head, "POST", &request);
        conn.state = State::Busy;
        job.set_reused(conn.served > 0);
        let start = clock::now();
        job.set(Moment::WriteStart, start);
        job.last = start;
        let written = conn.write(&self.head, body);
        self.now = clock::now();
        self.wrote(slot, written);
        self.arm(slot);
    }

    /// The socket has room again.
    pub(super) fn go_on_writing(&mut self, slot: u32) {
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        let written = conn.job.as_ref().is_none_or(|job| job.get(Moment::Written).is_some());
        if written && conn.tls.is_none() && conn.http.output().is_none() {
            return;
        }
        let written = conn.flush();
        self.wrote(slot, written);
    }

    fn wrote(&mut self, slot: u32, written: io::Result<bool>) {
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        let Some(job) = &mut conn.job else { return };
        match written {
            Ok(true) if job.get(Moment::Written).is_none() => job.set(Moment::Written, self.now),
            Ok(_) => {}
            Err(e) => {
                // The server may have answered (and hung up) before it had read everything: what it said counts.
                job.forget_rest();
                if let Some(output) = conn.http.output() {
                    output.clear();
                }
                self.read(slot, true);
                self.broken(slot, &e);
            }
        }
    }
}

/// rustls wraps its reasons into I/O errors; people want the reason.
fn tls_words(e: &io::Error, http2: bool) -> String {
    match e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => format!(
            "the server's certificate is not trusted ({why}); name the file of its authority, or accept any certificate"
        ),
        Some(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)) => {
            let (asked, mend) = if http2 { ("HTTP/2", "leave --http2 out") } else { ("HTTP/1.1", "try --http2") };
            format!("the server does not speak {asked} (ALPN); {mend}")
        }
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS on this port".into(),
        Some(other) => other.to_string(),
        None if e.kind() == io::ErrorKind::UnexpectedEof => "the server hung up during the handshake".into(),
        None => e.to_string(),
    }
}
