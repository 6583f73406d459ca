//! The conformance suite: responses as real servers (and broken ones) send them, with the right reading of each.
//!
//! A case is a script of bytes with the delay before each piece, and the [`Truth`] that a benchmark client should find. The
//! decoder's own tests run them all, cut at every byte; the example `play_cases` serves them over TCP to any client.

mod chat;
mod failures;
mod framing;
mod other_apis;
mod script;

use crate::{Api, Eof, Fault};
use script::Script;

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, unique: `ping_between_tokens`.
    pub name: &'static str,
    /// What is special about it, in one line.
    pub about: &'static str,
    /// The API that is spoken.
    pub api: Api,
    /// Whether the request asked for a stream.
    pub stream: bool,
    /// How many choices the request asked for.
    pub choices: u32,
    /// The response's status.
    pub status: u16,
    /// Its content type; `None` for no such header.
    pub content_type: Option<&'static str>,
    /// Its content encoding; `None` for no such header.
    pub content_encoding: Option<&'static str>,
    /// How the body is delimited.
    pub framing: Framing,
    /// The body.
    pub steps: Vec<Step>,
    /// How the body ends.
    pub eof: Eof,
    /// The right reading.
    pub truth: Truth,
}

/// How HTTP/1.1 says where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `transfer-encoding: chunked`, one chunk a step.
    Chunked,
    /// `content-length`.
    Length,
    /// `connection: close`: the body ends when the connection does.
    Close,
}

/// Bytes of the body, sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after the step before (or after the head), in milliseconds.
    pub delay_ms: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The right reading of a case. Times are from the sending of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The finish reason (`None`: ended in good order without one), or what was wrong.
    pub end: Result<Option<&'static str>, Fault>,
    /// A part of the message of a failure.
    pub message: &'static str,
    /// When the first output came, in milliseconds; `None` if there was none.
    pub ttft_ms: Option<u32>,
    /// When the first output came that a user would see, in milliseconds.
    pub visible_ms: Option<u32>,
    /// When the last output came, in milliseconds.
    pub last_ms: Option<u32>,
    /// How many events carried output; there is one gap (ITL) fewer.
    pub outputs: u32,
    /// How many output tokens there were, by the server's usage where it states one, else by its token ids, else by events.
    pub tokens: u32,
    /// The text a user would read; several choices follow one another.
    pub text: String,
}

impl Truth {
    /// How many gaps between output events there are.
    pub fn gaps(&self) -> u32 {
        self.outputs.saturating_sub(1)
    }
}

/// Every case, in a fixed order: the published comparison of clients first (chat), then those found since.
pub fn cases() -> Vec<Case> {
    let scripts =
        [framing::published(), chat::scripts(), framing::scripts(), failures::scripts(), other_apis::scripts()];
    scripts.into_iter().flatten().map(Script::into_case).collect()
}

/// The case of this name or number (from 1, with or without `case-` before it).
pub fn find(name: &str) -> Option<Case> {
    let name = name.strip_prefix("case-").unwrap_or(name);
    let number = name.parse::<usize>().ok();
    cases().into_iter().enumerate().find(|(i, case)| case.name == name || number == Some(i + 1)).map(|(_, case)| case)
}
