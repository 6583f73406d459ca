//! Our side of a connection: what we say, and what the server lets us say.

use super::frame::{self, Code, Frame, HEAD, LARGEST, USUAL_LENGTH, USUAL_WINDOW, flag, kind, setting};
use super::hpack;
use super::reader::Reading;
use crate::http::{Cut, Stop};

/// A connection, and the exchange it carries.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) reading: Reading,
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    /// How much of any bodies the server still takes.
    pub(super) window: i64,
    /// What it has sent since it was last given leave for more.
    pub(super) taken: u32,
    out: Vec<u8>,
    /// Acknowledgements since all had last gone out.
    owed: u32,
    greeted: bool,
    pub(super) broken: bool,
    pub(super) goodbye: Option<Goodbye>,
    /// The table for what we send has its full size, and the server has less room: it must be told that we keep nothing there.
    pub(super) table_too_large: bool,
}

/// What the server has said of itself.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its first settings have come.
    pub settled: bool,
    pub longest_frame: u32,
    pub window: i64,
    pub streams: u32,
}

/// The exchange under way, or the one before.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: u32,
    pub phase: Phase,
    /// How much of this request's body the server still takes.
    pub window: i64,
    pub taken: u32,
    /// Bytes of the response's body, and how many were promised.
    pub received: u64,
    pub length: Option<u64>,
    /// From `sent` on, what of the request's body waits for the server's leave.
    rest: Vec<u8>,
    sent: usize,
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing of it is there.
    Unanswered,
    /// A part of its head, or an interim one.
    Head,
    Body,
    Done,
}

/// The server takes no more streams.
#[derive(Debug)]
pub(super) struct Goodbye {
    pub code: Code,
    pub words: Box<str>,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            reading: Reading::default(),
            stream: Stream::new(0, Phase::Done, 0),
            peer: Peer {
                settled: false,
                longest_frame: USUAL_LENGTH,
                window: i64::from(USUAL_WINDOW),
                streams: u32::MAX,
            },
            window: i64::from(USUAL_WINDOW),
            taken: 0,
            out: Vec::new(),
            owed: 0,
            greeted: false,
            broken: false,
            goodbye: None,
            table_too_large: false,
        }
    }
}

impl Stream {
    fn new(id: u32, phase: Phase, window: i64) -> Stream {
        Stream { id, phase, window, taken: 0, received: 0, length: None, rest: Vec::new(), sent: 0 }
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest head of a response.
pub(super) const HEAD_LIMIT: usize = 64 << 10;
/// Whoever leaves so many acknowledgements unread while asking for more means no good.
const MOST_OWED: u32 = 10_000;

impl Session {
    /// The first words on a connection: our settings, and leave to send as much as can be said.
    pub fn greet(&mut self) {
        if std::mem::replace(&mut self.greeted, true) {
            return;
        }
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, LARGEST),
            (setting::MAX_HEADER_LIST_SIZE, HEAD_LIMIT as u32),
        ];
        // A server may speak first: what it is owed comes after.
        let owed = std::mem::replace(&mut self.out, PREFACE.to_vec());
        Frame { length: 6 * settings.len() as u32, kind: kind::SETTINGS, flags: 0, stream: 0 }.put(&mut self.out);
        for (name, value) in settings {
            self.out.extend_from_slice(&name.to_be_bytes());
            self.out.extend_from_slice(&value.to_be_bytes());
        }
        self.allow(0, LARGEST - USUAL_WINDOW);
        self.out.extend(owed);
    }

    /// As [`Http::begin`](crate::http::Http::begin); `block` appends the request's header block.
    pub fn begin<'b>(&mut self, out: &mut Vec<u8>, block: impl FnOnce(&mut Vec<u8>), body: &'b [u8]) -> &'b [u8] {
        self.greet();
        out.clear();
        out.append(&mut self.out);
        let id = if self.stream.id == 0 { 1 } else { self.stream.id + 2 };
        self.stream = Stream::new(id, Phase::Unanswered, self.peer.window);
        self.put_head(out, block, body.is_empty());
        if body.is_empty() {
            return &[];
        }
        if body.len() as i64 <= self.room() {
            self.put_data_head(out, body.len() as u32, flag::END_STREAM);
            return body;
        }
        self.stream.rest = body.to_vec();
        self.send_on();
        out.append(&mut self.out);
        &[]
    }

    fn put_head(&mut self, out: &mut Vec<u8>, block: impl FnOnce(&mut Vec<u8>), ends: bool) {
        let at = out.len();
        out.extend_from_slice(&[0; HEAD]);
        if std::mem::take(&mut self.table_too_large) {
            hpack::put_empty_table(out);
        }
        block(out);
        let longest = self.peer.longest_frame as usize;
        let rest = out.split_off(out.len().min(at + HEAD + longest));
        let pieces = rest.chunks(longest).count();
        let last = |nth: usize| if nth == pieces { flag::END_HEADERS } else { 0 };
        let flags = last(0) | if ends { flag::END_STREAM } else { 0 };
        let length = (out.len() - at - HEAD) as u32;
        let head = Frame { length, kind: kind::HEADERS, flags, stream: self.stream.id };
        out[at..at + HEAD].copy_from_slice(&head.bytes());
        for (i, piece) in rest.chunks(longest).enumerate() {
            frame::put(out, kind::CONTINUATION, last(i + 1), self.stream.id, piece);
        }
    }

    fn put_data_head(&mut self, out: &mut Vec<u8>, length: u32, flags: u8) {
        Frame { length, kind: kind::DATA, flags, stream: self.stream.id }.put(out);
        self.window -= i64::from(length);
        self.stream.window -= i64::from(length);
    }

    /// How long the next frame of a body may be.
    fn room(&self) -> i64 {
        self.window.min(self.stream.window).min(i64::from(self.peer.longest_frame)).max(0)
    }

    /// Sends as much of the body as the server takes now.
    pub(super) fn send_on(&mut self) {
        let rest = std::mem::take(&mut self.stream.rest);
        let mut out = std::mem::take(&mut self.out);
        while self.stream.sent < rest.len() {
            let left = &rest[self.stream.sent..];
            let piece = &left[..left.len().min(self.room() as usize)];
            if piece.is_empty() {
                self.stream.rest = rest;
                break;
            }
            let ends = piece.len() == left.len();
            self.put_data_head(&mut out, piece.len() as u32, if ends { flag::END_STREAM } else { 0 });
            out.extend_from_slice(piece);
            self.stream.sent += piece.len();
        }
        self.out = out;
    }

    /// Nothing more of the request's body is of interest.
    pub(super) fn forget_rest(&mut self) {
        self.stream.rest = Vec::new();
    }

    /// Says something in reply.
    pub(super) fn answer(&mut self, kind: u8, flags: u8, payload: &[u8]) -> Result<(), Stop> {
        if self.out.is_empty() {
            self.owed = 0;
        }
        self.owed += 1;
        if self.owed > MOST_OWED {
            return Err(self.violation(Code::ENHANCE_YOUR_CALM, "an endless demand for acknowledgements"));
        }
        frame::put(&mut self.out, kind, flags, 0, payload);
        Ok(())
    }

    /// Gives the server leave to send so much more.
    pub(super) fn allow(&mut self, stream: u32, more: u32) {
        frame::put(&mut self.out, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    }

    /// The server broke the rules: it is told, and the connection is over.
    pub(super) fn violation(&mut self, code: Code, what: impl Into<String>) -> Stop {
        self.broken = true;
        let payload = [0u32.to_be_bytes(), code.0.to_be_bytes()].concat();
        frame::put(&mut self.out, kind::GOAWAY, 0, 0, &payload);
        Stop::Bad(format!("{} ({code})", what.into()))
    }

    /// Bytes that must go out now, if there are any.
    #[inline]
    pub fn output(&mut self) -> Option<&mut Vec<u8>> {
        (self.greeted && !self.out.is_empty()).then_some(&mut self.out)
    }

    /// Whether nothing of the request waits for the server's leave to be sent.
    pub fn all_handed_over(&self) -> bool {
        self.stream.rest.is_empty() && self.out.is_empty()
    }

    /// Whether the connection may carry another request.
    pub fn keep_alive(&self) -> bool {
        let takes_more = !self.broken && self.goodbye.is_none() && self.peer.streams > 0;
        takes_more && self.stream.phase == Phase::Done && self.stream.id < LARGEST - 2
    }

    /// Whether nothing of an answer has come.
    pub fn unanswered(&self) -> bool {
        self.stream.phase == Phase::Unanswered
    }

    /// The peer has closed its side: what that means for the response.
    pub fn close(&mut self) -> Cut {
        self.broken = true;
        match self.stream.phase {
            Phase::Unanswered => Cut::Nothing,
            Phase::Head | Phase::Body => Cut::Broken,
            Phase::Done => Cut::End,
        }
    }

    /// What the server has said about the end of the connection, or not said.
    pub fn farewell(&self) -> Option<String> {
        match &self.goodbye {
            Some(Goodbye { code, words }) if words.is_empty() => Some(format!("the server said goodbye ({code})")),
            Some(Goodbye { code, words }) => Some(format!("the server said goodbye ({code}: {words})")),
            None if !self.peer.settled => Some("it may not speak HTTP/2".into()),
            None => None,
        }
    }
}
