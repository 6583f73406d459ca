//! One request in flight: from its release to its row.

use crate::http::{Http, Part, Stop};
use crate::request::Request;
use std::net::SocketAddr;
use tailbound_clock::Time;
use tailbound_record::{Blame, Cause, Chunks, End, Finish, Limit, Moment, Phase, Row, StampSource, Why};
use tailbound_wire::{self as wire, Decoder, Eof, Fault};

/// A request that the load has handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Assigned {
    pub due: Time,
    pub scheduled: Time,
    pub id: u32,
}

/// A request in flight.
pub(crate) struct Job {
    /// The last stamp: no later one may lie before it.
    pub last: Time,
    /// The answer said that it was over (`[DONE]` …); the body's end may still be to come.
    pub terminal: bool,
    pub unstamped: u32,
    decoder: Decoder,
    row: Row,
    /// From `rest_from` on, bytes of the request that the kernel has not taken yet.
    pub rest: Vec<u8>,
    pub rest_from: usize,
    pub id: u32,
}

/// More room than this is not set aside ahead for a request's events.
const MOST_EVENTS_AHEAD: u32 = 1024;

impl Job {
    pub fn new(
        assigned: Assigned,
        request: &Request<'_>,
        now: Time,
        worker: u16,
        keep_text: bool,
        limit: usize,
    ) -> Job {
        let mut row = Row::new(u64::from(assigned.id));
        row.class = request.class;
        row.worker = worker;
        row.tokens.prompt_asked = request.prompt_tokens;
        row.tokens.output_asked = request.output_tokens;
        row.at.set(Moment::Scheduled, assigned.scheduled);
        row.at.set(Moment::Released, assigned.due);
        if request.stream {
            row.chunks = Chunks::with_capacity(request.output_tokens.unwrap_or(64).min(MOST_EVENTS_AHEAD) as usize);
        }
        let decoder =
            Decoder::new(request.api, request.stream, keep_text).with_choices(request.choices).with_event_limit(limit);
        Job { last: now, terminal: false, unstamped: 0, decoder, row, rest: Vec::new(), rest_from: 0, id: assigned.id }
    }

    /// The row of a request that was handed over and never sent.
    pub fn never_sent(assigned: Assigned, worker: u16, why: Why) -> Row {
        let mut row = Row::new(u64::from(assigned.id));
        row.worker = worker;
        row.at.set(Moment::Scheduled, assigned.scheduled);
        row.end = End::NeverSent(why);
        row
    }

    pub fn set(&mut self, moment: Moment, at: Time) {
        self.row.at.set(moment, at);
    }

    pub fn get(&self, moment: Moment) -> Option<Time> {
        self.row.at.get(moment)
    }

    pub fn released(&self) -> Time {
        self.row.at.get(Moment::Released).unwrap_or(Time::ZERO)
    }

    pub fn set_reused(&mut self, reused: bool) {
        self.row.net.reused = reused;
    }

    pub fn retries(&self) -> u8 {
        self.row.net.retries
    }

    /// Reads a little from each part of it that the next event will need, and gives back something that depends on all.
    pub fn touch(&self) -> u64 {
        let newest = self.row.chunks.as_slice().last().map_or(0, |chunk| chunk.at.ns());
        newest ^ self.last.ns() ^ u64::from(self.row.net.reads) ^ u64::from(self.id)
    }

    /// Reads made for it.
    pub fn reads(&self) -> u32 {
        self.row.net.reads
    }

    pub fn has_token(&self) -> bool {
        !self.row.chunks.is_empty()
    }

    /// Back to where it was released, to be sent again on another connection.
    pub fn retry(&mut self) {
        self.row.net.retries += 1;
        self.row.net.reused = false;
        for moment in [Moment::WriteStart, Moment::Written] {
            self.row.at.clear(moment);
        }
        self.forget_rest();
    }

    /// Nothing of the request is left to be written.
    pub fn forget_rest(&mut self) {
        self.rest = Vec::new();
        self.rest_from = 0;
    }

    /// Takes the bytes of one read, all stamped `at`; returns whether the response is complete.
    pub fn read(&mut self, http: &mut Http, bytes: &[u8], at: Time) -> Result<bool, Stop> {
        self.count_read(at);
        self.go_on(http, bytes, at)
    }

    /// A read has been made.
    pub fn count_read(&mut self, at: Time) {
        self.row.net.reads += 1;
        self.last = at;
    }

    /// Like [`Job::read`], for further plain bytes of the same read (TLS hands out a record at a time).
    pub fn go_on(&mut self, http: &mut Http, mut bytes: &[u8], at: Time) -> Result<bool, Stop> {
        let Job { decoder, row, terminal, .. } = self;
        while let Some(part) = http.next(&mut bytes)? {
            match part {
                Part::Head(head) => {
                    row.at.set(Moment::Headers, at);
                    row.net.status = head.status;
                    decoder.head(wire::Head {
                        status: head.status,
                        content_type: head.content_type.as_deref(),
                        content_encoding: head.content_encoding.as_deref(),
                    });
                }
                Part::Body(body) => {
                    row.at.set_first(Moment::FirstByte, at);
                    row.net.body_bytes += body.len() as u64;
                    decoder.push(body, |event| note(row, terminal, event, at));
                }
                Part::End => {
                    http.between(bytes);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The body has ended: the row.
    pub fn finish(self, eof: Eof, at: Time) -> Row {
        let Job { decoder, mut row, mut terminal, unstamped, .. } = self;
        let outcome = decoder.finish(eof, |event| note(&mut row, &mut terminal, event, at));
        row.tokens.prompt_server = outcome.usage.prompt;
        row.tokens.output_server = outcome.usage.output;
        row.tokens.cached_server = outcome.usage.cached;
        row.tokens.reasoning_server = outcome.usage.reasoning;
        row.text = outcome.text.map(|text| text.visible().into_boxed_str());
        let end = match outcome.end {
            wire::End::Done(reason) => End::Done(reason.as_deref().map_or(Finish::Unstated, Finish::from_reason)),
            wire::End::Failed(fault, detail) => {
                let (blame, cause) = blame(fault);
                End::Failed { phase: phase(&row), blame, cause, detail: detail.into_boxed_str() }
            }
        };
        seal(row, end, at, unstamped)
    }

    /// It went wrong before its body ended.
    pub fn fail(self, blame: Blame, cause: Cause, detail: String, phase_hint: Option<Phase>, at: Time) -> Row {
        let phase = phase_hint.unwrap_or_else(|| phase(&self.row));
        let end = End::Failed { phase, blame, cause, detail: detail.into_boxed_str() };
        self.abandon(end, at)
    }

    /// We give up on it: what had come by now stays in the row.
    pub fn abandon(self, end: End, at: Time) -> Row {
        let Job { decoder, mut row, unstamped, .. } = self;
        let mut ignored = false;
        let outcome = decoder.finish(Eof::Reset, |event| note(&mut row, &mut ignored, event, at));
        row.tokens.prompt_server = outcome.usage.prompt;
        row.tokens.output_server = outcome.usage.output;
        row.text = outcome.text.map(|text| text.visible().into_boxed_str());
        seal(row, end, at, unstamped)
    }
}

fn seal(mut row: Row, end: End, at: Time, unstamped: u32) -> Row {
    row.at.set(Moment::StreamEnd, at);
    if let Some(last) = row.chunks.as_slice().last() {
        row.at.set(Moment::LastToken, last.at);
    }
    row.end = end;
    row.stamps = match unstamped {
        0 if row.net.reads > 0 => StampSource::Kernel,
        n if n >= row.net.reads => StampSource::User,
        _ => StampSource::Mixed,
    };
    row.chunks.shrink();
    row
}

fn note(row: &mut Row, terminal: &mut bool, event: wire::Event, at: Time) {
    row.at.set_first(Moment::FirstEvent, at);
    if let Some(output) = event.output {
        if row.chunks.is_empty() {
            row.at.set(Moment::FirstToken, at);
        }
        if output.visible {
            row.at.set_first(Moment::FirstVisible, at);
        }
        let tokens = output.tokens.unwrap_or(0).min(u32::from(u16::MAX)) as u16;
        row.chunks.push(at, row.net.reads, tokens, output.visible);
    }
    if event.finish {
        row.at.set_first(Moment::Finish, at);
    }
    if event.usage {
        row.at.set(Moment::Usage, at);
    }
    *terminal |= event.terminal;
}

/// How far a request had come, from what had happened.
fn phase(row: &Row) -> Phase {
    let happened = |moment| row.at.get(moment).is_some();
    if !row.chunks.is_empty() {
        Phase::Stream
    } else if happened(Moment::Headers) {
        Phase::FirstToken
    } else if happened(Moment::Written) {
        Phase::Headers
    } else if happened(Moment::WriteStart) {
        Phase::Write
    } else if happened(Moment::Connected) {
        Phase::Tls
    } else {
        Phase::Connect
    }
}

fn blame(fault: Fault) -> (Blame, Cause) {
    match fault {
        Fault::Status(code) => (Blame::Server, Cause::Status(code)),
        Fault::Protocol => (Blame::Server, Cause::Protocol),
        Fault::ErrorObject => (Blame::Server, Cause::ErrorObject),
        Fault::EndedEarly => (Blame::Server, Cause::EndedEarly),
        Fault::NoTokens => (Blame::Server, Cause::NoTokens),
        Fault::Reset => (Blame::Network, Cause::Reset),
    }
}

/// Whose side an operating-system error is on, what it is called, and what to tell people.
pub(crate) fn io_failure(e: &std::io::Error, what: &str, addr: Option<SocketAddr>) -> (Blame, Cause, String) {
    use std::io::ErrorKind as K;
    let to = addr.map_or(String::new(), |addr| format!(" {addr}"));
    // EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM, EAGAIN: numbers are Linux's, where the client runs.
    let local = matches!(e.raw_os_error(), Some(24 | 23 | 99 | 105 | 12 | 11));
    let (blame, cause) = match e.kind() {
        _ if local => (Blame::Client, Cause::LocalLimit),
        K::ConnectionRefused => (Blame::Network, Cause::Refused),
        K::ConnectionReset | K::BrokenPipe | K::ConnectionAborted | K::UnexpectedEof => (Blame::Network, Cause::Reset),
        K::TimedOut => (Blame::Network, Cause::Timeout(Limit::Connect)),
        _ => (Blame::Network, Cause::Io),
    };
    (blame, cause, format!("{what}{to}: {e}"))
}
