//! Connections: taken, read, timed out, dropped.

use std::io::ErrorKind;

use tailbound_clock::Time;
use tailbound_os::clock::now;
use tailbound_os::poll::Ready;

use super::conn::{Conn, Input};
use super::{LISTENER, Server, WAKE};
use crate::api::Problem;
use crate::http::{Limits, Progress, Refusal};

/// Longest request line and headers, in bytes.
const MAX_HEAD: usize = 64 << 10;

impl Server {
    pub(super) fn socket_event(&mut self, event: Ready) {
        match event.token {
            LISTENER => self.accept(),
            WAKE => self.control.wake.clear(),
            token => {
                let (index, generation) = (token as u32 as usize, (token >> 32) as u32);
                if self.conns.get(index).is_none_or(|c| c.0 != generation || c.1.is_none()) {
                    return; // closed earlier in this turn
                }
                if event.writable {
                    self.writable(index);
                }
                if event.readable || event.closed {
                    self.readable(index, event.closed);
                }
            }
        }
    }

    pub(super) fn accept(&mut self) {
        self.accept_again = false;
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(e) if e.kind() == ErrorKind::Interrupted || e.kind() == ErrorKind::ConnectionAborted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptors left: those waiting stay in the listener's queue until some are free.
                    self.accept_again = true;
                    return;
                }
            };
            // A socket that cannot be set up is a client that has gone already.
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            let index = self.free_conns.pop().unwrap_or_else(|| {
                self.conns.push((0, None));
                self.conns.len() - 1
            });
            let place = &mut self.conns[index];
            place.0 = place.0.wrapping_add(1) & 0x7fff_ffff;
            let token = u64::from(place.0) << 32 | index as u64;
            if self.epoll.watch(&socket, token).is_err() {
                self.free_conns.push(index);
                continue;
            }
            self.conns_ever += 1;
            place.1 = Some(Conn::new(socket, self.conns_ever, now()));
        }
    }

    /// Closes a connection and gives up what it was waiting for.
    pub(super) fn drop_conn(&mut self, index: usize) {
        let Some(conn) = self.conns[index].1.take() else { return };
        self.free_conns.push(index);
        if let Some(key) = conn.busy {
            self.give_up(key, "abort");
        }
        if self.accept_again {
            self.next_tick = Time::ZERO;
        }
    }

    fn writable(&mut self, index: usize) {
        let Some(conn) = self.conns[index].1.as_mut() else { return };
        if conn.is_flushed() {
            return;
        }
        if conn.flush().is_err() {
            return self.drop_conn(index);
        }
        conn.active = now();
        let (busy, done) = (conn.busy, conn.is_flushed());
        if let Some(key) = busy {
            self.stamp(key);
            self.finish_if_flushed(key);
        } else if done {
            self.next_request(index);
        }
    }

    fn readable(&mut self, index: usize, closed: bool) {
        let Some(conn) = self.conns[index].1.as_mut() else { return };
        if conn.discarding {
            if conn.discard(&mut self.scratch.input) {
                self.drop_conn(index);
            }
            return;
        }
        let Ok(input) = conn.read(&mut self.scratch.input, closed) else { return self.drop_conn(index) };
        if input == Input::Ended {
            // What was asked before the end is still answered if it can be at once.
            self.understand(index);
            let Some(conn) = self.conns[index].1.as_mut() else { return };
            if conn.busy.is_some() || conn.is_flushed() {
                return self.drop_conn(index);
            }
            conn.close_when_flushed = true;
            return;
        }
        self.next_request(index);
    }

    /// Looks at what a connection has sent, and reads on what was left unread, as long as nothing is being answered.
    pub(super) fn next_request(&mut self, index: usize) {
        loop {
            self.understand(index);
            let Some(conn) = self.conns[index].1.as_mut() else { return };
            if conn.discarding {
                return;
            }
            if conn.close_when_flushed && conn.is_flushed() && conn.busy.is_none() {
                return self.drop_conn(index);
            }
            if conn.busy.is_some() || !conn.has_more || conn.close_when_flushed {
                return;
            }
            let Ok(input) = conn.read(&mut self.scratch.input, true) else { return self.drop_conn(index) };
            if input == Input::Ended {
                return self.drop_conn(index);
            }
        }
    }

    fn understand(&mut self, index: usize) {
        let limits = Limits { head: MAX_HEAD, body: self.config.max_body };
        loop {
            let Some(conn) = self.conns[index].1.as_mut() else { return };
            // An answer not taken yet holds back the next request: a client that only sends must not fill memory.
            if conn.busy.is_some() || conn.close_when_flushed || !conn.is_flushed() || conn.input.is_empty() {
                return;
            }
            let at = now();
            conn.active = at;
            conn.request_began.get_or_insert(at);
            match conn.parser.advance(&conn.input, &limits) {
                Progress::More => return,
                Progress::Continue => {
                    self.scratch.output.clear();
                    self.scratch.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    return self.send_output(index);
                }
                Progress::Refused(why) => return self.refuse(index, why, &limits),
                Progress::Whole { used } => {
                    conn.request_began = None;
                    let input = std::mem::take(&mut conn.input);
                    let parser = std::mem::take(&mut conn.parser);
                    self.answer(index, &input, &parser, at);
                    let Some(conn) = self.conns[index].1.as_mut() else { return };
                    if used < input.len() {
                        conn.input = input;
                        conn.input.drain(..used);
                    }
                }
            }
        }
    }

    fn refuse(&mut self, index: usize, why: Refusal, limits: &Limits) {
        let problem = Problem::plain(why.status(), why.message(limits));
        self.reply_problem(index, &problem, None);
        if let Some(conn) = self.conns[index].1.as_mut() {
            conn.close_when_flushed = true;
            if conn.is_flushed() {
                conn.discard_the_rest(now());
            }
        }
    }

    pub(super) fn time_out(&mut self, at: Time) {
        let limits = Limits { head: MAX_HEAD, body: self.config.max_body };
        for index in 0..self.conns.len() {
            let Some(conn) = self.conns[index].1.as_mut() else { continue };
            if conn.busy.is_some() {
                continue;
            }
            if conn.request_began.is_some_and(|began| at.since(began) > self.config.request_timeout) {
                if conn.discarding {
                    self.drop_conn(index);
                } else {
                    self.refuse(index, Refusal::TooSlow, &limits);
                }
            } else if at.since(conn.active) > self.config.idle_timeout {
                self.drop_conn(index);
            }
        }
    }
}
