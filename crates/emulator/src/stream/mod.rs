//! An answer as bytes: what goes out for each output of the engine, in vLLM's shapes and order of fields.
//!
//! What every event of one answer shares is written once, when the request is taken; a token then costs a few copies
//! into one buffer, which is one write.

mod messages;
mod openai;
mod responses;

use crate::api::{Api, Ask};
use crate::http::reply::{LAST_CHUNK, chunk_size};

/// The name of the build, as vLLM puts it into answers.
pub(crate) const FINGERPRINT: &str = concat!("tailbound-", env!("CARGO_PKG_VERSION"));

/// How the body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Events, each in an HTTP chunk of its own.
    Chunked,
    /// Events until the connection closes (HTTP/1.0).
    UntilClose,
    /// One JSON object at the end.
    Whole,
}

/// What an answer's text is preceded and accompanied by.
#[derive(Debug)]
pub(crate) struct Stream {
    pub api: Api,
    pub framing: Framing,
    id: String,
    created: u64,
    model: String,
    include_usage: bool,
    continuous_usage: bool,
    logprobs: Option<u32>,
    /// The prompt, where the client wants the ids back.
    prompt_ids: Option<Vec<u32>>,
    token_details: bool,
    max_tokens: u32,
    max_tokens_given: bool,
    temperature: f64,
    top_p: f64,
    /// What stands before the text in each event.
    prefix: Vec<u8>,
    /// Characters of text so far.
    offset: usize,
    /// The number of the next event (responses).
    sequence: u32,
    /// The text so far, for the APIs and framings that repeat it at the end.
    text: String,
    /// The tokens so far, where the client wants them back, or their probabilities.
    tokens: Vec<(u32, String)>,
}

/// One output of the engine.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// What may be seen of its text: letters and spaces, nothing that JSON would escape.
    pub text: &'a str,
    /// Its tokens; empty unless [`Stream::wants_tokens`].
    pub tokens: &'a [(u32, String)],
    /// It is the first.
    pub first: bool,
    pub usage: Usage,
    /// It is the last, and why.
    pub end: Option<End<'a>>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End<'a> {
    Length,
    /// By itself, or at a stop string.
    Stop(Option<&'a str>),
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub prompt: u32,
    pub completion: u32,
    pub cached: u32,
}

impl Stream {
    /// For a request with this name; `created` is in seconds since 1970.
    pub(crate) fn new(ask: &Ask, name: &str, created: u64, framing: Framing, token_details: bool) -> Stream {
        let kind = match ask.api {
            Api::Completions => "cmpl-",
            Api::Chat | Api::Messages => "chatcmpl-",
            Api::Responses => "resp_",
        };
        let mut stream = Stream {
            api: ask.api,
            framing,
            id: format!("{kind}{name}"),
            created,
            model: ask.model.clone(),
            include_usage: ask.include_usage,
            continuous_usage: ask.continuous_usage && ask.include_usage,
            logprobs: ask.logprobs,
            prompt_ids: ask.token_ids.then(|| ask.prompt.clone()),
            token_details,
            max_tokens: ask.max_tokens,
            max_tokens_given: ask.max_tokens_given,
            temperature: ask.temperature.unwrap_or(1.0),
            top_p: ask.top_p.unwrap_or(1.0),
            prefix: Vec::new(),
            offset: 0,
            sequence: 0,
            text: String::new(),
            tokens: Vec::new(),
        };
        stream.prefix = stream.make_prefix();
        stream
    }

    /// Whether outputs must bring their tokens along.
    pub(crate) fn wants_tokens(&self) -> bool {
        self.logprobs.is_some() || self.prompt_ids.is_some()
    }

    /// Whether the answer leaves as it is made.
    pub(crate) fn is_streamed(&self) -> bool {
        self.framing != Framing::Whole
    }

    /// Appends what goes out for `output`. For [`Framing::Whole`] that is nothing before the end, and then the body.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, output: &Output<'_>) {
        if self.framing == Framing::Whole {
            self.text.push_str(output.text);
            self.tokens.extend_from_slice(output.tokens);
            if let Some(end) = output.end {
                self.whole(out, output.usage, end);
            }
            return;
        }
        match self.api {
            Api::Completions | Api::Chat => self.openai_events(out, output),
            Api::Messages => self.messages_events(out, output),
            Api::Responses => self.responses_events(out, output),
        }
        self.offset += output.text.len();
        if output.end.is_some() && self.framing == Framing::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
    }

    fn whole(&mut self, out: &mut Vec<u8>, usage: Usage, end: End<'_>) {
        match self.api {
            Api::Completions | Api::Chat => self.openai_body(out, usage, end),
            Api::Messages => self.messages_body(out, usage, end),
            Api::Responses => self.responses_body(out, usage, end),
        }
    }

    /// Appends one event, framed.
    fn event(&self, out: &mut Vec<u8>, parts: &[&[u8]]) {
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            chunk_size(out, parts.iter().map(|p| p.len()).sum());
        }
        for part in parts {
            out.extend_from_slice(part);
        }
        if chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    fn make_prefix(&self) -> Vec<u8> {
        match self.api {
            Api::Completions => self.completions_prefix(),
            Api::Chat => self.chat_prefix(),
            Api::Messages => self.messages_prefix(),
            Api::Responses => self.responses_prefix(),
        }
    }
}

/// `text` as a JSON string.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn finish_reason(end: Option<End<'_>>) -> &'static str {
    match end {
        None => "null",
        Some(End::Length) => "\"length\"",
        Some(End::Stop(_)) => "\"stop\"",
    }
}

fn stop_reason(end: Option<End<'_>>) -> String {
    match end {
        Some(End::Stop(Some(text))) => json(text),
        _ => "null".to_owned(),
    }
}

fn ids(tokens: impl Iterator<Item = u32>) -> String {
    let mut text = String::from("[");
    for (i, id) in tokens.enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(itoa::Buffer::new().format(id));
    }
    text.push(']');
    text
}
