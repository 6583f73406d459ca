//! From a ready socket to moments and rows. Nothing stands between a read and its consumer: what a read brought is parsed, and
//! stamped with that read's time, before the next read is made.

use super::Lane;
use crate::conn::{Conn, State};
use crate::http::{Cut, Stop};
use crate::job::{Job, io_failure};
use crate::log::RunLog;
use std::io;
use tailbound_clock::Time;
use tailbound_os::poll::Ready;
use tailbound_os::{Stamped, clock};
use tailbound_record::{Blame, Cause, End, Moment};
use tailbound_wire::Eof;

impl Lane<'_> {
    pub(super) fn ready(&mut self, ready: Ready) {
        let (slot, generation) = (ready.token as u32, (ready.token >> 32) as u32);
        let found = &self.slots[slot as usize];
        let Some(conn) = found.conn.as_ref().filter(|_| found.generation == generation) else { return };
        match conn.state {
            State::Connecting => {
                if ready.writable || ready.gone {
                    self.connected(slot);
                }
            }
            State::Handshake => self.shake_hands(slot, ready),
            State::Idle => self.look_at_idle(slot, ready),
            State::Busy => {
                if ready.writable {
                    self.go_on_writing(slot);
                }
                if ready.readable || ready.closed {
                    self.read(slot, ready.closed);
                }
            }
        }
    }

    /// Reads what is there for a request in flight; `to_the_end` if the peer is known to have closed.
    pub(super) fn read(&mut self, slot: u32, to_the_end: bool) {
        loop {
            let Some(conn) = self.slots[slot as usize].conn.as_mut().filter(|conn| conn.state == State::Busy) else {
                return;
            };
            let before = self.watch.as_ref().and_then(|_| conn.socket.segments_sent());
            let got = conn.receive(&mut self.buf);
            self.now = clock::now();
            if let (Some(watch), Ok(Some(stamped))) = (&mut self.watch, &got) {
                watch.read(before, conn.socket.segments_sent(), stamped.len);
            }
            let stamped = match got {
                Ok(None) => return,
                Ok(Some(Stamped { len: 0, .. })) => return self.ended_by_peer(slot),
                Ok(Some(stamped)) => stamped,
                Err(e) => return self.broken(slot, &e),
            };
            let Some(at) = self.stamp(slot, stamped) else { return };
            let Some(conn) = self.slots[slot as usize].conn.as_mut() else { return };
            if let (Some(acks), Some(job)) = (&mut conn.acks, &conn.job) {
                acks.keep(&conn.socket, job.last, at);
            }
            let Some(complete) = take_bytes(conn, &self.buf[..stamped.len], &mut self.plain, at) else { return };
            match complete {
                // What is waited for may have changed, and have a nearer limit: the first token is there, or the last.
                Ok(false) => {
                    let owes = conn.http.output().is_some();
                    self.arm(slot);
                    if owes {
                        self.go_on_writing(slot);
                    }
                }
                Ok(true) => return self.complete(slot, at, to_the_end),
                Err(Trouble::Http(Stop::Bad(what))) => return self.spoiled(slot, what),
                Err(Trouble::Http(Stop::Refused(why))) => return self.lost(slot, Lost::Refused(why)),
                Err(Trouble::Http(Stop::Reset(why))) => return self.broken_off(slot, Some(why)),
                Err(Trouble::Tls(e)) => return self.broken(slot, &e),
            }
            if stamped.len < self.buf.len() && !to_the_end {
                return; // new bytes raise a new edge
            }
        }
    }

    /// The monotonic moment of a read.
    fn stamp(&mut self, slot: u32, stamped: Stamped) -> Option<Time> {
        let job = self.slots[slot as usize].conn.as_mut()?.job.as_mut()?;
        let mapped = stamped.wall_ns.and_then(|wall| self.stamps.map(wall, job.last, self.now));
        Some(match mapped {
            Some(at) => {
                RunLog::count_delay(&mut self.book.read_delay, self.now.since(at));
                at
            }
            None => {
                job.unstamped += 1;
                self.book.unstamped += 1;
                self.now
            }
        })
    }

    /// The response is whole. A peer that closed together with its end gave notice by the very readiness that brought it, and gives
    /// no other: such a connection must not be used again.
    fn complete(&mut self, slot: u32, at: Time, closed: bool) {
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        let Some(job) = conn.job.take() else { return };
        conn.take_out();
        conn.served += 1;
        let answered = conn.http.output().is_none() || matches!(conn.flush(), Ok(true));
        let reusable = !closed
            && answered
            && conn.http.keep_alive()
            && job.get(Moment::Written).is_some()
            && conn.tls.as_ref().is_none_or(|tls| !tls.wants_write());
        if reusable {
            self.usable(slot);
        } else {
            self.remove(slot);
        }
        let row = job.finish(Eof::Clean, at);
        self.deliver(row);
    }

    /// The peer closed its side while a request was in flight.
    fn ended_by_peer(&mut self, slot: u32) {
        let Some(conn) = &mut self.slots[slot as usize].conn else { return };
        conn.take_out();
        let delimited = conn.http.until_close();
        let mut cut = conn.http.close();
        if cut == Cut::End && delimited && !said_goodbye(conn) {
            cut = Cut::Broken;
        }
        match cut {
            Cut::Nothing => self.lost(slot, Lost::HungUp),
            Cut::End => self.finish(slot, Eof::Clean),
            Cut::Broken => {
                let why = conn.http.farewell();
                self.broken_off(slot, why);
            }
        }
    }

    /// The connection broke while a request was in flight.
    pub(super) fn broken(&mut self, slot: u32, e: &io::Error) {
        let Some(conn) = self.slots[slot as usize].conn.as_ref().filter(|conn| conn.state == State::Busy) else {
            return;
        };
        let Some(job) = &conn.job else { return };
        if conn.http.unanswered(job.reads()) {
            return self.lost(slot, Lost::Broken(e));
        }
        let why = conn.http.farewell();
        self.broken_off(slot, why);
    }

    fn finish(&mut self, slot: u32, eof: Eof) {
        let Some(mut conn) = self.remove(slot) else { return };
        let Some(job) = conn.job.take() else { return };
        let row = job.finish(eof, clock::now());
        self.deliver(row);
    }

    /// The response was broken off in the middle; a server that says `why` has done it itself.
    fn broken_off(&mut self, slot: u32, why: Option<String>) {
        let Some(mut conn) = self.remove(slot) else { return };
        let Some(job) = conn.job.take() else { return };
        let mut row = job.finish(Eof::Reset, clock::now());
        if let (Some(why), End::Failed { blame, cause: Cause::Reset, detail, .. }) = (why, &mut row.end) {
            (*blame, *detail) = (Blame::Server, why.into());
        }
        self.deliver(row);
    }

    /// Not a byte of an answer came. On a connection that had been idle the server most likely hung up before it saw the
    /// request: then, and only once, it is sent again on a fresh one, and counted.
    fn lost(&mut self, slot: u32, how: Lost<'_>) {
        let Some(mut conn) = self.remove(slot) else { return };
        let Some(mut job) = conn.job.take() else { return };
        let was_idle = job.get(Moment::ConnectStart).is_none();
        if was_idle && job.retries() == 0 {
            self.book.retries += 1;
            job.retry();
            return self.dial(Some(job), 0);
        }
        let address = self.shared.addresses[conn.address];
        let (blame, cause, mut detail) = match how {
            Lost::HungUp => {
                (Blame::Network, Cause::Reset, format!("{address} closed the connection without an answer"))
            }
            Lost::Broken(e) => io_failure(e, "talk to", Some(address)),
            Lost::Refused(why) => (Blame::Server, Cause::Reset, why),
        };
        if let (Blame::Network, Some(farewell)) = (blame, conn.http.farewell()) {
            detail += &format!(" ({farewell})");
        }
        let row = job.fail(blame, cause, detail, None, clock::now());
        self.deliver(row);
    }

    /// The bytes break HTTP.
    fn spoiled(&mut self, slot: u32, what: String) {
        let Some(mut conn) = self.remove(slot) else { return };
        let _ = conn.flush(); // HTTP/2's last word, which says why
        let Some(job) = conn.job.take() else { return };
        conn.socket.abort();
        let row = job.fail(Blame::Server, Cause::Protocol, what, None, clock::now());
        self.deliver(row);
    }

    fn shake_hands(&mut self, slot: u32, ready: Ready) {
        loop {
            let Some(conn) = &mut self.slots[slot as usize].conn else { return };
            if let Err(e) = conn.flush() {
                return self.tls_failed(slot, &e);
            }
            let Conn { tls: Some(tls), http, .. } = conn else { return };
            if !tls.is_handshaking() {
                if let Some(Err(e)) = self.shared.tls.map(|setup| setup.check(tls)) {
                    return self.tls_failed(slot, &e);
                }
                conn.tls_done = clock::now();
                if let Some(job) = &mut conn.job {
                    job.set(Moment::TlsDone, conn.tls_done);
                }
                return self.usable(slot);
            }
            let received = match conn.socket.receive(&mut self.buf) {
                Ok(None) => return,
                Ok(Some(Stamped { len: 0, .. })) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Some(stamped)) => Conn::decrypt(tls, &self.buf[..stamped.len], &mut self.plain, |plain| {
                    http.between(plain); // a server of HTTP/2 may speak first
                    false
                }),
                Err(e) => Err(e),
            };
            if let Err(e) = received {
                let _ = conn.flush(); // the alert that says why
                return self.tls_failed(slot, &e);
            }
            let _ = ready;
        }
    }

    /// Something happened on a connection that nobody uses: housekeeping of TLS or HTTP/2, or its end.
    fn look_at_idle(&mut self, slot: u32, ready: Ready) {
        if !ready.readable && !ready.closed {
            return;
        }
        loop {
            let Some(conn) = &mut self.slots[slot as usize].conn else { return };
            let Conn { socket, tls, http, .. } = conn;
            let mut usable = true;
            let read = match (socket.receive(&mut self.buf), tls) {
                (Ok(None), _) => return,
                (Ok(Some(Stamped { len: 0, .. })), _) => Err(io::ErrorKind::UnexpectedEof.into()),
                (Ok(Some(Stamped { len, .. })), None) => {
                    usable = http.between(&self.buf[..len]);
                    Ok(())
                }
                (Ok(Some(Stamped { len, .. })), Some(tls)) => {
                    Conn::decrypt(tls, &self.buf[..len], &mut self.plain, |plain| {
                        usable = http.between(plain);
                        !usable
                    })
                }
                (Err(e), _) => Err(e),
            };
            if read.is_err() || !usable || !matches!(conn.flush(), Ok(true)) {
                self.remove(slot);
                return;
            }
        }
    }
}

enum Trouble {
    Http(Stop),
    Tls(io::Error),
}

/// How a request was lost.
enum Lost<'a> {
    HungUp,
    Broken(&'a io::Error),
    /// The server gave it back unprocessed, and says so.
    Refused(String),
}

/// Gives a read's bytes to the request in flight, through TLS where there is any. `None`: there is no request.
fn take_bytes(conn: &mut Conn, bytes: &[u8], plain: &mut [u8], at: Time) -> Option<Result<bool, Trouble>> {
    let Conn { http, tls, job, .. } = conn;
    let job: &mut Job = job.as_mut()?;
    let Some(tls) = tls else {
        return Some(job.read(http, bytes, at).map_err(Trouble::Http));
    };
    job.count_read(at);
    let mut outcome = Ok(false);
    let decrypted = Conn::decrypt(tls, bytes, plain, |plain| {
        if matches!(outcome, Ok(true)) {
            http.between(plain);
        } else {
            outcome = job.go_on(http, plain, at).map_err(Trouble::Http);
        }
        outcome.is_err()
    });
    Some(match decrypted {
        Err(e) => Err(Trouble::Tls(e)),
        Ok(()) => outcome,
    })
}

/// Whether the peer ended the TLS stream in good order; without that, its end may be an attacker's.
fn said_goodbye(conn: &mut Conn) -> bool {
    match &mut conn.tls {
        None => true,
        Some(tls) => tls.process_new_packets().is_ok_and(|state| state.peer_has_closed()),
    }
}
