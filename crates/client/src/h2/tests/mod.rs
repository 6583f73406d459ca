//! The connection's state against a server written out byte by byte.

mod cases;
mod reading;
mod sending;

use super::frame::{Frame, HEAD, flag, kind, setting};
use super::hpack::put_field;
use super::session::Session;
use crate::http::{Part, Stop};

/// What a server says.
#[derive(Clone, Default)]
pub struct Said(pub Vec<u8>);

impl Said {
    /// Its first words.
    pub fn settings(list: &[(u16, u32)]) -> Said {
        let payload: Vec<u8> =
            list.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        Said::default().frame(kind::SETTINGS, 0, 0, &payload)
    }

    pub fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Said {
        super::frame::put(&mut self.0, kind, flags, stream, payload);
        self
    }

    pub fn head(self, stream: u32, fields: &[(&str, &str)], flags: u8) -> Said {
        self.frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block(fields))
    }

    /// The head of an ordinary answer.
    pub fn ok(self, stream: u32) -> Said {
        self.head(stream, &[(":status", "200"), ("content-type", "text/event-stream")], 0)
    }

    pub fn data(self, stream: u32, body: &[u8], flags: u8) -> Said {
        self.frame(kind::DATA, flags, stream, body)
    }

    /// As many frames as it takes.
    pub fn body(self, stream: u32, body: &[u8]) -> Said {
        body.chunks(16_384).fold(self, |said, piece| said.data(stream, piece, 0))
    }

    pub fn reset(self, stream: u32, code: u32) -> Said {
        self.frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    pub fn window(self, stream: u32, more: u32) -> Said {
        self.frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
    }

    pub fn goodbye(self, last: u32, code: u32, words: &str) -> Said {
        let payload = [&last.to_be_bytes()[..], &code.to_be_bytes(), words.as_bytes()].concat();
        self.frame(kind::GOAWAY, 0, 0, &payload)
    }
}

pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(name, value)| put_field(&mut out, name, value.as_bytes(), false));
    out
}

/// A session whose request (the first, on stream 1) has been sent, and what it sent.
pub fn asked(body: &[u8]) -> (Session, Vec<u8>) {
    let mut session = Session::default();
    let sent = ask(&mut session, body);
    (session, sent)
}

/// Sends a request; what was sent.
pub fn ask(session: &mut Session, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let rest = session.begin(&mut out, |out| out.extend(block(&[("x", "y")])), body);
    out.extend_from_slice(rest);
    out
}

/// What a response came to: its status, its body, and whether it is complete.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    pub complete: bool,
}

pub fn read(session: &mut Session, pieces: &[&[u8]]) -> Result<Answer, Stop> {
    let mut answer = Answer::default();
    for piece in pieces {
        let mut input = *piece;
        while !answer.complete
            && let Some(part) = session.next(&mut input)?
        {
            match part {
                Part::Head(head) => answer.status = head.status,
                Part::Body(body) => answer.body.extend_from_slice(body),
                Part::End => answer.complete = true,
            }
        }
        if answer.complete {
            session.between(input);
        } else {
            assert!(input.is_empty(), "all of a piece is used");
        }
    }
    Ok(answer)
}

/// The frames of some bytes, after the preface.
pub fn frames(mut bytes: &[u8]) -> Vec<(Frame, Vec<u8>)> {
    bytes = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut frames = Vec::new();
    while let Some((front, rest)) = bytes.split_first_chunk::<HEAD>() {
        let frame = Frame::read(front);
        let (payload, rest) = rest.split_at(frame.length as usize);
        frames.push((frame, payload.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "whole frames only");
    frames
}

/// What the session wants to send now.
pub fn output(session: &mut Session) -> Vec<u8> {
    session.output().map(std::mem::take).unwrap_or_default()
}

/// Settings that leave everything as it is.
pub const PLAIN: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 100)];
