//! OpenAI's Responses: typed events, or one `response` object.

use super::progress::Progress;
use super::template::{Only, Sink};
use super::{Event, Fault};
use crate::complaint;
use crate::json::{Bad, Field, Scan};
use crate::usage::Usage;
use serde_json::Value;

/// The fields of a `response` object.
#[derive(Clone, Copy, Default)]
struct Response<'a> {
    status: Field<'a>,
    usage: Usage,
    error: Field<'a>,
    incomplete: Field<'a>,
    output: Field<'a>,
}

impl<'a> Response<'a> {
    fn field(&mut self, key: &[u8], scan: &mut Scan<'a>) -> Result<(), Bad> {
        match key {
            b"status" => self.status = scan.field()?,
            b"usage" => self.usage = Usage::read(scan)?,
            b"error" => self.error = scan.field()?,
            b"incomplete_details" => scan.object_or_skip(|key, scan| {
                match key {
                    b"reason" => self.incomplete = scan.field()?,
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            b"output" => self.output = scan.field()?,
            _ => scan.skip()?,
        }
        Ok(())
    }

    fn is(&self, status: &str) -> bool {
        self.status.str().is_some_and(|own| own.is(status))
    }
}

/// Reads one event, or with `whole` a reply in one piece.
pub(super) fn read(
    name: &[u8],
    data: &[u8],
    whole: bool,
    progress: &mut Progress,
    event: &mut Event,
) -> Result<(), Bad> {
    let mut scan = Scan::new(data);
    let mut kind = Field::Absent;
    let mut delta = Field::Absent;
    let mut call_name = Field::Absent;
    let mut is_call = false;
    let mut top = Response::default();
    let mut inner = Response::default();
    scan.object(|key, scan| {
        match key {
            b"type" => kind = scan.field()?,
            b"delta" => delta = scan.field()?,
            b"response" => scan.object_or_skip(|key, scan| inner.field(key, scan))?,
            b"item" => scan.object_or_skip(|key, scan| {
                match key {
                    b"type" => is_call = scan.field()?.str().is_some_and(|kind| kind.decode().ends_with("_call")),
                    b"name" => call_name = scan.field()?,
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            _ => top.field(key, scan)?,
        }
        Ok(())
    })?;
    scan.end()?;

    let decoded;
    let kind: &[u8] = match kind.filled() {
        Some(kind) => match kind.plain() {
            Some(plain) => plain,
            None => {
                decoded = kind.decode();
                decoded.as_bytes()
            }
        },
        None => name,
    };
    if whole {
        top.end(data, progress, event);
        return Ok(());
    }
    if kind.ends_with(b".delta") {
        let Field::Str(text) = delta else { return Ok(()) };
        let is_thought = memchr::memmem::find(kind, b"reasoning").is_some();
        let is_text = kind == b"response.output_text.delta" || kind == b"response.refusal.delta";
        progress.see(0);
        if !text.is_empty() || is_text || is_thought {
            Progress::output(event, 0, !is_thought && !text.is_empty(), None);
        }
        progress.only = match (is_text, is_thought) {
            (true, _) => Some(Only::new(text, Sink::Choice(0))),
            (_, true) => Some(Only::new(text, Sink::Reasoning)),
            _ => None,
        };
        if let Some(texts) = &mut progress.text {
            match (is_text, is_thought) {
                (true, _) => texts.add(0, text),
                (_, true) => text.push_to(&mut texts.reasoning),
                _ if kind.ends_with(b"arguments.delta") => text.push_to(&mut texts.tools),
                _ => {}
            }
        }
        return Ok(());
    }
    match kind {
        b"response.output_item.added" => {
            if let Some(name) = call_name.filled().filter(|_| is_call) {
                progress.see(0);
                Progress::output(event, 0, true, None);
                if let Some(texts) = &mut progress.text {
                    name.push_to(&mut texts.tools);
                }
            }
        }
        b"response.completed" | b"response.incomplete" | b"response.failed" | b"response.cancelled" => {
            inner.end(data, progress, event);
        }
        b"error" | b"response.error" => progress.fail_json(error_of(top.error, data), event),
        _ if top.error != Field::Absent => progress.fail_json(error_of(top.error, data), event),
        _ => progress.usage(&inner.usage, None, event),
    }
    Ok(())
}

fn error_of<'a>(error: Field<'a>, data: &'a [u8]) -> &'a [u8] {
    match error {
        Field::Other(object) => object,
        _ => data,
    }
}

impl Response<'_> {
    /// The response has ended, in one of four ways.
    fn end(&self, data: &[u8], progress: &mut Progress, event: &mut Event) {
        progress.end(event);
        progress.usage(&self.usage, None, event);
        if self.error != Field::Absent || self.is("failed") || self.is("cancelled") {
            let message = match self.error {
                Field::Other(error) => complaint::of_error(&serde_json::from_slice(error).unwrap_or(Value::Null)),
                Field::Str(error) => error.decode(),
                Field::Absent => {
                    format!("the response ended as {}", self.status.str().map_or("failed".into(), |s| s.decode()))
                }
            };
            progress.fail(Fault::ErrorObject, message, event);
            return;
        }
        if self.status.filled().is_none() && self.output == Field::Absent {
            progress.fail(Fault::Protocol, format!("not a response: {}", complaint::quote(data)), event);
            return;
        }
        let reason = self.incomplete.filled().or(self.status.filled()).map(|reason| reason.decode());
        progress.finish(0, reason, event);
        // Nothing was streamed piece by piece: the answer is all here.
        if progress.outputs == 0 {
            self.whole_output(progress, event);
        }
    }

    fn whole_output(&self, progress: &mut Progress, event: &mut Event) {
        let Field::Other(raw) = self.output else { return };
        let Ok(Value::Array(items)) = serde_json::from_slice(raw) else { return };
        let (mut seen, mut thought) = (false, false);
        for item in &items {
            let kind = item["type"].as_str().unwrap_or_default();
            if kind.ends_with("_call") {
                seen = true;
                if let Some(texts) = &mut progress.text {
                    let parts = ["name", "arguments"].iter().filter_map(|key| item[*key].as_str());
                    parts.for_each(|part| texts.tools.push_str(part));
                }
                continue;
            }
            let parts = ["content", "summary"].iter().filter_map(|key| item[*key].as_array()).flatten();
            for part in parts {
                let Some(text) = part["text"].as_str().or(part["refusal"].as_str()).filter(|text| !text.is_empty())
                else {
                    continue;
                };
                let is_thought = kind == "reasoning";
                seen |= !is_thought;
                thought |= is_thought;
                let Some(texts) = &mut progress.text else { continue };
                let into = if is_thought { &mut texts.reasoning } else { texts.choice(0) };
                into.push_str(text);
            }
        }
        if seen || thought || self.usage.output.is_some_and(|n| n > 0) {
            Progress::output(event, 0, seen, self.usage.output);
        }
    }
}
