//! HTTP/1.1 as bytes: requests in, replies out. Pure, so that it can be fuzzed; sockets are `server`'s business.

mod chunked;
mod head;
mod parser;
pub(crate) mod reply;

pub(crate) use head::Method;
pub(crate) use parser::{Parser, Progress};

/// How much of a request is read before it is refused, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub head: usize,
    pub body: usize,
}

/// Why a request was refused before anybody looked at what it asks for. The connection is closed after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not HTTP/1.x, or HTTP broken in the way the text says.
    Malformed(&'static str),
    /// The request line and headers passed the limit.
    HeadTooLarge,
    /// The body passed the limit, or announced that it would.
    BodyTooLarge,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// Not HTTP/1.0 or 1.1.
    Version,
    /// It did not arrive in time.
    TooSlow,
}

impl Refusal {
    pub(crate) fn status(self) -> u16 {
        match self {
            Refusal::Malformed(_) => 400,
            Refusal::TooSlow => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::HeadTooLarge => 431,
            Refusal::UnknownCoding => 501,
            Refusal::Version => 505,
        }
    }

    pub(crate) fn message(self, limits: &Limits) -> String {
        match self {
            Refusal::Malformed(what) => format!("Invalid HTTP request received: {what}."),
            Refusal::TooSlow => "The request did not arrive in time.".to_owned(),
            Refusal::BodyTooLarge => format!("The request body is longer than the limit of {} bytes.", limits.body),
            Refusal::HeadTooLarge => format!("The request headers are longer than the limit of {} bytes.", limits.head),
            Refusal::UnknownCoding => "The only transfer coding supported is chunked.".to_owned(),
            Refusal::Version => "The only versions supported are HTTP/1.0 and HTTP/1.1.".to_owned(),
        }
    }
}
