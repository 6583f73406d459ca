//! One response's bytes to what they mean: output, finish, usage, failure.

mod choices;
mod llama;
mod messages;
mod progress;
mod responses;
mod template;
mod text;
mod tgi;

use crate::complaint;
use crate::json::{Bad, Scan};
use crate::sse::{self, Item};
use crate::{Api, Usage};
use progress::Progress;
use template::{Sink, Template};
pub use text::Text;

/// What one stream event (or a reply in one piece) was. Every complete event gives one of these, so the first is the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Output it carried. `None` for role-only, usage-only and finish-only events and the like.
    pub output: Option<Output>,
    /// It stated why generation ended (of one choice, if there are several).
    pub finish: bool,
    /// It stated usage counts.
    pub usage: bool,
    /// It said that the stream is over (`[DONE]`, `message_stop`, `response.completed` …).
    pub terminal: bool,
    /// It makes the answer a failure: an error object, or bytes that can't be understood.
    pub fault: bool,
}

/// The output of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Whether a user would see any of it: text, a tool call, a refusal, audio; not reasoning, and not an empty text.
    pub visible: bool,
    /// How many tokens it carried, if the server said: token ids, or the growth of its cumulative usage.
    pub tokens: Option<u32>,
    /// The choice it belongs to (the first one, if it carried several).
    pub choice: u32,
}

/// The parts of a response's head that decide how its body is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    /// `content-type`, if there was one.
    pub content_type: Option<&'a str>,
    /// `content-encoding`, if there was one. Anything but `identity` can't be read here, and is a failure.
    pub content_encoding: Option<&'a str>,
}

/// How the body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// In good order: the last chunk, all of content-length, or a close where neither was promised.
    Clean,
    /// The connection broke off before the body's end.
    Reset,
}

/// How an answer ended, and what it said on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Done or failed.
    pub end: End,
    /// Token counts the server stated.
    pub usage: Usage,
    /// How many events carried output.
    pub outputs: u32,
    /// The text, if it was to be kept.
    pub text: Option<Text>,
    /// Oddities.
    pub notes: Notes,
}

/// Done or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole answer came. The reason in the server's words; `None` if the stream ended in good order without one.
    Done(Option<Box<str>>),
    /// It did not; the message is the server's own where it had one, on one line, fit to follow "failed: ".
    Failed(Fault, String),
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A status other than 2xx.
    Status(u16),
    /// Bytes that break server-sent events or JSON, or a body that is neither.
    Protocol,
    /// An error object inside a 2xx response.
    ErrorObject,
    /// The body ended in good order, but before the answer did.
    EndedEarly,
    /// The answer ended without a single token.
    NoTokens,
    /// The connection broke off in the middle.
    Reset,
}

/// Oddities that are no failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// A stream was asked for, and the reply came in one piece: there is no time to first token in it.
    pub not_streamed: bool,
    /// The last event lacked the blank line that ends an event.
    pub unterminated: bool,
    /// The connection broke off after the answer was complete.
    pub reset_after_end: bool,
}

/// Decodes one response.
#[derive(Debug)]
pub struct Decoder {
    api: Api,
    stream_asked: bool,
    choices_asked: u32,
    body: Body,
    parser: sse::Parser,
    progress: Progress,
    template: Template,
    /// The first line of the stream that belongs to no event, for the message.
    stray: Option<String>,
    notes: Notes,
}

/// How the body is read.
#[derive(Debug)]
enum Body {
    /// Not known before its first byte that isn't blank.
    Unknown(Vec<u8>),
    Stream,
    /// One JSON text.
    Whole(Vec<u8>),
    /// The reply to a request that failed; only its start is kept.
    Refusal(u16, Vec<u8>),
    /// Nothing that could be read.
    Ignored,
}

/// How much of a failed request's reply is kept for the message.
const REFUSAL_LIMIT: usize = 64 << 10;
/// The longest reply in one piece.
const WHOLE_LIMIT: usize = 256 << 20;

impl Decoder {
    /// For one response. `stream` is what was asked for; what came decides. With `keep_text` the text is in the [`Outcome`].
    pub fn new(api: Api, stream: bool, keep_text: bool) -> Decoder {
        let mut progress = Progress::default();
        progress.text = keep_text.then(Text::default);
        Decoder {
            api,
            stream_asked: stream,
            choices_asked: 1,
            body: Body::Unknown(Vec::new()),
            parser: sse::Parser::new(),
            progress,
            template: Template::default(),
            stray: None,
            notes: Notes::default(),
        }
    }

    /// Several choices were asked for (`n`): the answer isn't whole before that many have finished.
    pub fn with_choices(mut self, n: u32) -> Decoder {
        self.choices_asked = n.max(1);
        self
    }

    /// Events longer than this are a failure; 16 MiB unless set.
    pub fn with_event_limit(mut self, bytes: usize) -> Decoder {
        self.parser = sse::Parser::with_limit(bytes);
        self
    }

    /// The response's head has come.
    pub fn head(&mut self, head: Head<'_>) {
        if !(200..300).contains(&head.status) {
            self.body = Body::Refusal(head.status, Vec::new());
            return;
        }
        let encoding = head.content_encoding.map(str::trim).unwrap_or_default();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            let message = format!("the response is compressed (content-encoding: {encoding}), which was not asked for");
            self.refuse(message);
            return;
        }
        let kind = head.content_type.unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            self.body = Body::Stream;
        }
    }

    /// Takes the next bytes of the body and hands out the events that they complete, in order.
    pub fn push(&mut self, bytes: &[u8], mut on: impl FnMut(Event)) {
        match &mut self.body {
            Body::Stream => self.push_stream(bytes, &mut on),
            Body::Whole(body) if body.len() + bytes.len() > WHOLE_LIMIT => {
                self.refuse(format!("the reply is longer than {WHOLE_LIMIT} bytes"));
            }
            Body::Whole(body) => body.extend_from_slice(bytes),
            Body::Refusal(_, body) => {
                let room = REFUSAL_LIMIT - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Body::Ignored => {}
            Body::Unknown(start) => {
                start.extend_from_slice(bytes);
                let Some(first) = first_byte(start) else { return };
                let start = std::mem::take(start);
                match first {
                    b'{' | b'[' => self.body = Body::Whole(start),
                    b'<' => self.body = Body::Whole(start),
                    _ => {
                        self.body = Body::Stream;
                        self.push_stream(&start, &mut on);
                    }
                }
            }
        }
    }

    /// The body has ended. Hands out what its end completed (a reply in one piece, an event without its blank line), and says how
    /// the answer ended.
    pub fn finish(mut self, eof: Eof, mut on: impl FnMut(Event)) -> Outcome {
        match std::mem::replace(&mut self.body, Body::Ignored) {
            Body::Stream if eof == Eof::Clean => self.finish_stream(&mut on),
            Body::Whole(body) if eof == Eof::Clean => self.finish_whole(&body, &mut on),
            Body::Refusal(status, body) => {
                let mut message = complaint::of_body(&body);
                if message.is_empty() {
                    message = "no body".into();
                }
                let fault = (Fault::Status(status), message);
                self.progress.fault = Some(fault);
            }
            _ => {}
        }
        let end = self.end(eof);
        Outcome {
            end,
            usage: self.progress.usage_total(),
            outputs: self.progress.outputs,
            text: self.progress.text.take(),
            notes: self.notes,
        }
    }

    fn end(&mut self, eof: Eof) -> End {
        let progress = &mut self.progress;
        if let Some((fault, message)) = progress.fault.take() {
            return End::Failed(fault, message);
        }
        let events = progress.outputs;
        let counted = format!("{events} output event{}", if events == 1 { "" } else { "s" });
        if eof == Eof::Reset {
            if !progress.terminal {
                return End::Failed(Fault::Reset, format!("the connection broke off after {counted}"));
            }
            self.notes.reset_after_end = true;
        }
        if !progress.is_complete(self.choices_asked) {
            let mut message = format!("the body ended after {counted} without a finish reason or [DONE]");
            if let Some(stray) = &self.stray {
                message = format!("{message}; it holds lines that are no stream events: {stray}");
            }
            return End::Failed(Fault::EndedEarly, message);
        }
        if events == 0 {
            let reason = progress.reason.as_deref().unwrap_or("none");
            let message = format!("the answer ended without a token (finish reason: {reason})");
            return End::Failed(Fault::NoTokens, message);
        }
        End::Done(progress.reason.take())
    }

    fn refuse(&mut self, message: String) {
        self.progress.fault.get_or_insert((Fault::Protocol, message));
        self.body = Body::Ignored;
    }

    fn push_stream(&mut self, bytes: &[u8], on: &mut impl FnMut(Event)) {
        let Decoder { api, parser, progress, template, stray, notes, .. } = self;
        let pushed = parser.push(bytes, |item| match item {
            Item::Event(event) if event.terminated => take_event(*api, &event, progress, template, on),
            other => take_oddity(*api, other, progress, template, stray, notes, on),
        });
        if let Err(too_long) = pushed {
            self.refuse(too_long.to_string());
        }
    }

    fn finish_stream(&mut self, on: &mut impl FnMut(Event)) {
        let Decoder { api, parser, progress, template, stray, notes, .. } = self;
        let pushed = parser.finish(|item| take_oddity(*api, item, progress, template, stray, notes, on));
        if let Err(too_long) = pushed {
            self.refuse(too_long.to_string());
        }
    }

    fn finish_whole(&mut self, body: &[u8], on: &mut impl FnMut(Event)) {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii();
        let mut event = Event::default();
        if body.first() == Some(&b'<') {
            let message =
                format!("not an event stream but a page: {}", complaint::of_html(&String::from_utf8_lossy(body)));
            return self.refuse(message);
        }
        self.notes.not_streamed = self.stream_asked;
        let object = one_of_list(body);
        match read(self.api, b"", object, true, &mut self.progress, &mut event) {
            Ok(()) => {
                if event.output.is_some() {
                    self.progress.outputs += 1;
                }
                // A reply in one piece needs no marker for its end.
                self.progress.terminal = true;
            }
            Err(Bad) => {
                let message = format!("the reply is not a JSON object: {}", complaint::quote(body));
                self.progress.fail(Fault::Protocol, message, &mut event);
            }
        }
        on(event);
    }
}

/// Hugging Face's endpoints wrap a reply into a list of one.
fn one_of_list(body: &[u8]) -> &[u8] {
    if body.first() != Some(&b'[') {
        return body;
    }
    let mut only = None;
    let mut count = 0;
    let walked = Scan::new(body).array(|scan| {
        count += 1;
        only = Some(scan.raw()?);
        Ok(())
    });
    if walked.is_ok() && count == 1 { only.unwrap_or(body) } else { body }
}

fn first_byte(bytes: &[u8]) -> Option<u8> {
    let bytes = match bytes {
        [0xEF] | [0xEF, 0xBB] => return None,
        [0xEF, 0xBB, 0xBF, rest @ ..] => rest,
        other => other,
    };
    bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// What the standard has no room for: an event that the end of the body cut short, a line that belongs to no event.
fn take_oddity(
    api: Api,
    item: Item<'_>,
    progress: &mut Progress,
    template: &mut Template,
    stray: &mut Option<String>,
    notes: &mut Notes,
    on: &mut impl FnMut(Event),
) {
    match item {
        Item::Event(event) => {
            let data = event.data.trim_ascii();
            // Half an object isn't a broken one: the body ended early.
            let is_whole = data == b"[DONE]" || Scan::new(data).skip().is_ok();
            if is_whole {
                notes.unterminated = true;
                take_event(api, &event, progress, template, on);
            }
        }
        Item::Stray(line) => match stray_error(line) {
            Some(message) => {
                let mut event = Event::default();
                progress.fail(Fault::ErrorObject, message, &mut event);
                on(event);
            }
            None => drop(stray.get_or_insert_with(|| complaint::quote(line))),
        },
    }
}

/// llama.cpp once wrote `error: {…}`; others write the object bare.
fn stray_error(line: &[u8]) -> Option<String> {
    let json = line.strip_prefix(b"error:").unwrap_or(line).trim_ascii();
    if json.first() != Some(&b'{') {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(json).ok()?;
    let is_marked = json.len() < line.trim_ascii().len();
    complaint::of_json(&value).or_else(|| is_marked.then(|| complaint::of_error(&value)))
}

fn take_event(
    api: Api,
    sse: &sse::Event<'_>,
    progress: &mut Progress,
    template: &mut Template,
    on: &mut impl FnMut(Event),
) {
    let data = sse.data.trim_ascii();
    if let Some((event, sink, text)) = template.find(sse.name, data) {
        template.hit();
        progress.outputs += 1;
        match (&mut progress.text, sink) {
            (None, _) => {}
            (Some(texts), Sink::Choice(index)) => texts.add(index, text),
            (Some(texts), Sink::Reasoning) => text.push_to(&mut texts.reasoning),
        }
        return on(event);
    }
    let mut event = Event::default();
    if data == b"[DONE]" {
        progress.end(&mut event);
    } else if sse.name == b"error" {
        take_error_event(data, progress, &mut event);
    } else if !data.is_empty() {
        progress.only = None;
        match read(api, sse.name, data, false, progress, &mut event) {
            Ok(()) => template.keep(sse.name, data, &event, progress.only.take()),
            Err(Bad) if is_ping(sse.name, data) => {}
            Err(Bad) => choices::not_json(data, progress, &mut event),
        }
    }
    if event.output.is_some() {
        progress.outputs += 1;
    }
    on(event);
}

fn take_error_event(data: &[u8], progress: &mut Progress, event: &mut Event) {
    let value = serde_json::from_slice(data).unwrap_or_else(|_| String::from_utf8_lossy(data).into());
    let message = complaint::of_json(&value).unwrap_or_else(|| complaint::of_error(&value));
    progress.fail(Fault::ErrorObject, message, event);
}

/// Keep-alives that come as events rather than as comments.
fn is_ping(name: &[u8], data: &[u8]) -> bool {
    data == b"null" || matches!(name, b"ping" | b"heartbeat" | b"keepalive" | b"keep-alive" | b"keep_alive")
}

fn read(
    api: Api,
    name: &[u8],
    data: &[u8],
    whole: bool,
    progress: &mut Progress,
    event: &mut Event,
) -> Result<(), Bad> {
    match api {
        Api::Completions | Api::Chat => choices::read(data, whole, progress, event),
        Api::Responses => responses::read(name, data, whole, progress, event),
        Api::Messages => messages::read(name, data, whole, progress, event),
        Api::TgiGenerate => tgi::read(data, progress, event),
        Api::LlamaCompletion => llama::read(data, progress, event),
    }
}
