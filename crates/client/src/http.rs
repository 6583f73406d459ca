//! One exchange after another over a connection, in whichever version of HTTP it speaks. No I/O.
//!
//! Two versions, one enum: what an event passes through on its way to a stamp is a `match`, not a table of functions.

use crate::{Request, Target, h1, h2};

/// What a response's head says, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    pub content_type: Option<Box<str>>,
    pub content_encoding: Option<Box<str>>,
    pub location: Option<Box<str>>,
}

/// What the next bytes of a response were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The head of the final response (interim 1xx heads are passed over).
    Head(Head),
    /// Bytes of the body, without framing.
    Body(&'a [u8]),
    /// The response is complete.
    End,
}

/// What the end of the connection means to the response being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Not a byte of a response had come.
    Nothing,
    /// It ended the body in good order (no length was promised).
    End,
    /// It broke the response off.
    Broken,
}

/// Why a response cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Bytes that break HTTP.
    Bad(String),
    /// The server gave the request back unprocessed, and says so.
    Refused(String),
    /// The server broke the exchange off, and says so.
    Reset(String),
}

/// A connection's side of HTTP.
#[derive(Debug)]
pub(crate) enum Http {
    One(h1::Reader),
    Two(Box<h2::Session>),
}

impl Http {
    /// Of a fresh connection to `target`.
    pub fn new(target: &Target) -> Http {
        if target.http2 { Http::Two(Box::default()) } else { Http::One(h1::Reader::default()) }
    }

    /// Begins an exchange. `out` is emptied and gets what is sent first; what follows it at once is given back. What the server
    /// has no room for yet stays in [`Http::output`] until it has.
    pub fn begin<'b>(
        &mut self,
        template: &Template,
        out: &mut Vec<u8>,
        method: &str,
        request: &'b Request<'_>,
    ) -> &'b [u8] {
        match self {
            Http::One(reader) => {
                reader.restart();
                template.one.write(out, method, request);
                &request.body
            }
            Http::Two(session) => session.begin(out, |out| template.two.write(out, method, request), &request.body),
        }
    }

    /// What is to be said on a fresh connection that has no request yet.
    pub fn greet(&mut self) {
        if let Http::Two(session) = self {
            session.greet();
        }
    }

    /// Takes one part off the front of `input`. `None`: more bytes are needed, and `input` is used up.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Part<'a>>, Stop> {
        match self {
            Http::One(reader) => reader.next(input).map_err(|bad| Stop::Bad(bad.0)),
            Http::Two(session) => session.next(input),
        }
    }

    /// Takes bytes that come after a complete response, or before any request; whether the connection may still be used.
    pub fn between(&mut self, bytes: &[u8]) -> bool {
        match self {
            Http::One(reader) => {
                if !bytes.is_empty() {
                    reader.spoil();
                }
                bytes.is_empty()
            }
            Http::Two(session) => session.between(bytes),
        }
    }

    /// Bytes that must go out now, if there are any.
    #[inline]
    pub fn output(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Http::One(_) => None,
            Http::Two(session) => session.output(),
        }
    }

    /// Whether nothing of the request waits for the server's leave to be sent.
    pub fn all_handed_over(&self) -> bool {
        match self {
            Http::One(_) => true,
            Http::Two(session) => session.all_handed_over(),
        }
    }

    /// Whether the connection may carry another request. Meaningful once the response is complete.
    pub fn keep_alive(&self) -> bool {
        match self {
            Http::One(reader) => reader.keep_alive(),
            Http::Two(session) => session.keep_alive(),
        }
    }

    /// Whether not a byte of an answer has come in as many reads.
    pub fn unanswered(&self, reads: u32) -> bool {
        match self {
            Http::One(_) => reads == 0,
            Http::Two(session) => session.unanswered(),
        }
    }

    /// Whether the body ends only with the connection.
    pub fn until_close(&self) -> bool {
        match self {
            Http::One(reader) => reader.until_close(),
            Http::Two(_) => false,
        }
    }

    /// The peer has closed its side: what that means for the response.
    pub fn close(&mut self) -> Cut {
        match self {
            Http::One(reader) => reader.close(),
            Http::Two(session) => session.close(),
        }
    }

    /// What the server has said about the end of the connection.
    pub fn farewell(&self) -> Option<String> {
        match self {
            Http::One(_) => None,
            Http::Two(session) => session.farewell(),
        }
    }
}

/// What is the same for every request to a target, in both versions.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    one: h1::HeadTemplate,
    two: h2::BlockTemplate,
}

impl Template {
    pub fn new(target: &Target) -> Template {
        Template { one: h1::HeadTemplate::new(target), two: h2::BlockTemplate::new(target) }
    }
}

/// Names and values of the headers that go with every request to a target, beside the host's name.
pub(crate) fn usual_headers(target: &Target) -> impl Iterator<Item = (&str, &str)> {
    const USUAL: [(&str, &str); 4] = [
        ("accept-encoding", "identity"),
        ("user-agent", concat!("tailbound/", env!("CARGO_PKG_VERSION"))),
        ("accept", "*/*"),
        ("content-type", "application/json"),
    ];
    let own = |name: &str| target.headers.iter().any(|h| h.name == name);
    let usual = USUAL.into_iter().filter(move |(name, _)| !own(name));
    usual.chain(target.headers.iter().map(|h| (h.name.as_str(), h.value())))
}

/// The value of a `content-length`, which must not contradict one that came `before`. A list of equal values is one value
/// (RFC 9110, 8.6).
pub(crate) fn content_length(value: &[u8], mut before: Option<u64>) -> Result<u64, String> {
    let wrong = || format!("not a content-length: {}", quote(value));
    for part in value.split(|&b| b == b',') {
        let digits = std::str::from_utf8(part.trim_ascii()).map_err(|_| wrong())?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let length: u64 = digits.parse().map_err(|_| wrong())?;
        if before.is_some_and(|before| before != length) {
            return Err("two different content-lengths".into());
        }
        before = Some(length);
    }
    before.ok_or_else(wrong)
}

/// The start of some bytes, for a message: one line, printable.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(60)];
    let dots = if bytes.len() > start.len() { "…" } else { "" };
    format!("\"{}{dots}\"", start.escape_ascii())
}

/// The first so many bytes of `input`, or all of them.
pub(crate) fn take<'a>(input: &mut &'a [u8], most: u64) -> &'a [u8] {
    let n = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    let (taken, rest) = input.split_at(n);
    *input = rest;
    taken
}
