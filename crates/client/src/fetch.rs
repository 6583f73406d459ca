use crate::conn::{Conn, State};
use crate::http::{Cut, Head, Http, Part, Stop, Template};
use crate::tls::TlsSetup;
use crate::{ClientError, Request, Target};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tailbound_clock::{Dur, Time};
use tailbound_os::poll::wait_readable;
use tailbound_os::{Stamped, clock, socket};
use tailbound_wire::Api;

/// An answer read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// `content-type`, if there was one.
    pub content_type: Option<Box<str>>,
    /// Where a redirect points. It is not followed here.
    pub location: Option<Box<str>>,
    /// The body.
    pub body: Vec<u8>,
    /// From connecting to the last byte.
    pub took: Dur,
}

/// What an answer may take at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first try to connect to the last byte.
    pub time: Dur,
    /// Bytes of the body; one that is longer is not read to its end.
    pub bytes: usize,
}

/// The longest reply that is read where nobody says otherwise.
const LONGEST: usize = 64 << 20;

/// Asks one small thing and waits for the whole answer, `limit` at most: a list of models, a tokenizer's answer, metrics. GET without
/// a body, POST with one. Nothing is measured to the microsecond here, and any status is an answer.
///
/// # Errors
/// No address, no connection, no TLS, broken HTTP, or nothing in time.
pub fn fetch(target: &Target, path: &str, body: Option<&[u8]>, limit: Dur) -> Result<Reply, ClientError> {
    fetch_within(target, path, body, Limits { time: limit, bytes: LONGEST })
}

/// The same, with limits on time and length: for servers that may answer with anything, for ever.
///
/// # Errors
/// As [`fetch`]; an answer that is longer.
pub fn fetch_within(target: &Target, path: &str, body: Option<&[u8]>, limits: Limits) -> Result<Reply, ClientError> {
    let addresses = target.resolve()?;
    target.check()?;
    let tls = TlsSetup::new(target)?;
    let start = clock::now();
    let deadline = start + limits.time;
    let mut last = None;
    for (i, &addr) in addresses.iter().enumerate() {
        // A dead address must not eat the time of the others.
        let share = deadline.since(clock::now()) / (addresses.len() - i) as u64;
        match TcpStream::connect_timeout(&addr, Duration::from_nanos(share.ns().max(1))).and_then(socket::from_std) {
            Ok(socket) => {
                let mut conn = Conn::new(socket, Http::new(target), i, start);
                conn.state = State::Busy;
                let mut reply =
                    Dialogue { conn, addr, deadline, longest: limits.bytes }.ask(target, tls.as_ref(), path, body)?;
                reply.took = clock::now().since(start);
                return Ok(reply);
            }
            Err(e) => last = Some((addr, e)),
        }
    }
    let (addr, e) = last.unwrap_or((addresses[0], io::ErrorKind::NotFound.into()));
    Err(ClientError::Exchange { phase: "connect to", addr, problem: e.to_string() })
}

struct Dialogue {
    conn: Conn,
    addr: SocketAddr,
    deadline: Time,
    longest: usize,
}

impl Dialogue {
    fn ask(
        mut self,
        target: &Target,
        tls: Option<&TlsSetup>,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<Reply, ClientError> {
        if let Some(setup) = tls {
            self.conn.tls = Some(setup.connect().map_err(|e| self.wrong("begin TLS with", e.to_string()))?);
            while self.conn.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
                self.flush()?;
                if self.conn.tls.as_ref().is_some_and(|tls| !tls.wants_read()) {
                    continue;
                }
                // A server of HTTP/2 may speak together with the last words of its handshake.
                let early = &mut |http: &mut Http, bytes: &[u8]| {
                    http.between(bytes);
                    Ok(false)
                };
                if self.receive(early)? == Received::End {
                    return Err(self.wrong("shake hands with", "it hung up".into()));
                }
            }
            let agreed = self.conn.tls.as_ref().map_or(Ok(()), |tls| setup.check(tls));
            agreed.map_err(|e| self.wrong("shake hands with", e.to_string()))?;
        }
        let mut head = Vec::new();
        let request = Request::new(Api::Completions, path, body.unwrap_or_default());
        let method = if body.is_some() { "POST" } else { "GET" };
        let rest = self.conn.http.begin(&Template::new(target), &mut head, method, &request);
        head.extend_from_slice(rest);
        self.send(&head)?;
        self.read_reply()
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        if self.conn.tls.is_some() {
            self.conn.write(bytes, &[]).map_err(|e| self.wrong("write to", e.to_string()))?;
            return self.flush();
        }
        while !bytes.is_empty() {
            match self.conn.socket.send(bytes, &[]).map_err(|e| self.wrong("write to", e.to_string()))? {
                Some(n) => bytes = &bytes[n..],
                None => self.pause()?,
            }
        }
        Ok(())
    }

    /// Until the kernel has taken all that can be sent now. (HTTP/2 may keep back a body for which the server has no room yet.)
    fn flush(&mut self) -> Result<(), ClientError> {
        loop {
            self.conn.flush().map_err(|e| self.wrong("write to", e.to_string()))?;
            let Conn { http, tls, .. } = &mut self.conn;
            if http.output().is_none() && tls.as_ref().is_none_or(|tls| !tls.wants_write()) {
                return Ok(());
            }
            self.pause()?;
        }
    }

    /// A moment for the peer to make room.
    fn pause(&self) -> Result<(), ClientError> {
        self.in_time()?;
        tailbound_os::sleep::until(clock::now() + Dur::from_ms(1));
        Ok(())
    }

    fn in_time(&self) -> Result<(), ClientError> {
        if clock::now() < self.deadline { Ok(()) } else { Err(self.wrong("wait for", "nothing came in time".into())) }
    }

    fn read_reply(mut self) -> Result<Reply, ClientError> {
        let mut reply: Option<Reply> = None;
        let longest = self.longest;
        let mut take = |http: &mut Http, mut bytes: &[u8]| -> Result<bool, String> {
            while let Some(part) = http.next(&mut bytes).map_err(words)? {
                match (part, &mut reply) {
                    (Part::Head(head), _) => {
                        let Head { status, content_type, location, .. } = head;
                        reply = Some(Reply { status, content_type, location, body: Vec::new(), took: Dur::ZERO });
                    }
                    (Part::Body(body), Some(reply)) if reply.body.len() + body.len() <= longest => {
                        reply.body.extend_from_slice(body);
                    }
                    (Part::Body(_), _) => return Err(format!("the reply is longer than {longest} bytes")),
                    (Part::End, _) => return Ok(true),
                }
            }
            Ok(false)
        };
        loop {
            // An answer that never ends must not have the time that its next bytes would take.
            self.in_time()?;
            match self.receive(&mut take)? {
                Received::More => self.flush()?,
                Received::Done => break,
                Received::End if self.conn.http.close() == Cut::End => break,
                Received::End => return Err(self.wrong("read from", "it hung up in the middle".into())),
            }
        }
        reply.ok_or_else(|| self.wrong("read from", "no answer".into()))
    }

    /// One read, waiting for it.
    fn receive(&mut self, take: &mut Take<'_>) -> Result<Received, ClientError> {
        let mut buf = [0u8; 16 << 10];
        let len = loop {
            match self.conn.socket.receive(&mut buf).map_err(|e| self.wrong("read from", e.to_string()))? {
                Some(Stamped { len, .. }) => break len,
                None => {
                    self.in_time()?;
                    wait_readable(&self.conn.socket, self.deadline.since(clock::now()).min(Dur::from_ms(250)));
                }
            }
        };
        if len == 0 {
            return Ok(Received::End);
        }
        let mut outcome = Ok(false);
        let Conn { tls, http, .. } = &mut self.conn;
        match tls {
            None => outcome = take(http, &buf[..len]),
            Some(tls) => {
                let mut plain = [0u8; 16 << 10];
                Conn::decrypt(tls, &buf[..len], &mut plain, |plain| {
                    outcome = take(http, plain);
                    !matches!(outcome, Ok(false))
                })
                .map_err(|e| self.wrong("TLS with", e.to_string()))?;
            }
        }
        match outcome {
            Ok(true) => Ok(Received::Done),
            Ok(false) => Ok(Received::More),
            Err(problem) => Err(self.wrong("read from", problem)),
        }
    }

    fn wrong(&self, phase: &'static str, problem: String) -> ClientError {
        ClientError::Exchange { phase, addr: self.addr, problem }
    }
}

/// What to make of received bytes: whether the reply is complete, or what is wrong with it.
type Take<'a> = dyn FnMut(&mut Http, &[u8]) -> Result<bool, String> + 'a;

fn words(stop: Stop) -> String {
    match stop {
        Stop::Bad(why) | Stop::Refused(why) | Stop::Reset(why) => why,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Received {
    More,
    Done,
    End,
}
