//! OpenAI's completions and chat: `choices[]`, streamed (`delta`, `text`) or in one piece (`message`, `text`).

use super::progress::Progress;
use super::template::{Only, Sink};
use super::{Event, Fault, text};
use crate::json::{Bad, Field, Scan, Str};
use crate::usage::Usage;

/// The fields of one choice that matter.
#[derive(Default)]
struct Choice<'a> {
    index: u32,
    text: Field<'a>,
    content: Field<'a>,
    reasoning: Field<'a>,
    reasoning_details: bool,
    role: bool,
    /// A tool call, function call, refusal or audio.
    tools: Field<'a>,
    function: Field<'a>,
    refusal: Field<'a>,
    audio: bool,
    finish: Field<'a>,
    ids: Option<u32>,
}

/// Reads one chunk, or with `whole` a reply in one piece.
pub(super) fn read(data: &[u8], whole: bool, progress: &mut Progress, event: &mut Event) -> Result<(), Bad> {
    let mut scan = Scan::new(data);
    let mut usage = Usage::default();
    let mut timings = Usage::default();
    let mut error: Option<&[u8]> = None;
    let mut object_error = false;
    let mut position = 0;
    let mut last_choice = 0;
    let mut only_role = false;
    scan.object(|key, scan| {
        match key {
            b"choices" => scan.array_or_skip(|scan| {
                let mut choice = Choice { index: position, ..Choice::default() };
                position += 1;
                scan.object_or_skip(|key, scan| choice.read(key, whole, scan))?;
                last_choice = choice.index;
                only_role |= choice.role;
                choice.apply(whole, progress, event);
                Ok(())
            })?,
            b"usage" => {
                let metrics = (usage.queue_ms, usage.ttft_ms);
                usage = Usage::read(scan)?;
                usage.queue_ms = usage.queue_ms.or(metrics.0);
                usage.ttft_ms = usage.ttft_ms.or(metrics.1);
            }
            b"metrics" => usage.read_metrics(scan)?,
            b"timings" => timings = Usage::read_timings(scan)?,
            b"error" => error = Some(scan.raw()?),
            b"object" => object_error = scan.field()?.str().is_some_and(|object| object.is("error")),
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    scan.end()?;

    match error {
        None | Some(b"null" | b"false") if object_error => progress.fail_json(data, event),
        None | Some(b"null" | b"false") => {}
        Some(error) => progress.fail_json(error, event),
    }

    if whole && position == 0 && !event.fault {
        progress.fail(Fault::Protocol, format!("not a completion: {}", crate::complaint::quote(data)), event);
    }
    let before = progress.output_stated();
    let from = (position > 0).then_some(last_choice);
    let stated = if usage.output.is_some() { usage } else { timings };
    progress.usage(&usage, if position > 1 { None } else { from }, event);
    if usage.output.is_none() {
        progress.usage(&timings, from, event);
    }
    if position > 1 {
        progress.only = None;
    }
    attribute(stated.output, before, position > 0 && !only_role, progress, event);
    if whole && event.output.is_none() && position > 0 && stated.output.is_some_and(|n| n > 0) {
        Progress::output(event, 0, false, stated.output);
    }
    Ok(())
}

/// How many tokens an event brought, by the growth of the cumulative count: exact for one choice only.
pub(super) fn attribute(
    now: Option<u32>,
    before: Option<u32>,
    may_be_output: bool,
    progress: &Progress,
    event: &mut Event,
) {
    let Some(now) = now.filter(|_| progress.is_single()) else { return };
    let growth = match before {
        Some(before) => now.saturating_sub(before),
        None if progress.outputs == 0 => now,
        None => return,
    };
    match &mut event.output {
        Some(output) => output.tokens = output.tokens.or((growth > 0).then_some(growth)),
        // Tokens came that a parser on the server holds back.
        None if may_be_output && !event.finish && before.is_some() && growth > 0 => {
            Progress::output(event, 0, false, Some(growth));
        }
        None => {}
    }
}

impl<'a> Choice<'a> {
    fn read(&mut self, key: &[u8], whole: bool, scan: &mut Scan<'a>) -> Result<(), Bad> {
        match key {
            b"index" => self.index = scan.count()?.unwrap_or(self.index),
            b"text" => self.text = scan.field()?,
            b"delta" => scan.object_or_skip(|key, scan| self.read_delta(key, scan))?,
            b"message" if whole => scan.object_or_skip(|key, scan| self.read_delta(key, scan))?,
            b"finish_reason" => self.finish = scan.field()?,
            b"token_ids" => self.ids = scan.length()?,
            _ => scan.skip()?,
        }
        Ok(())
    }

    fn read_delta(&mut self, key: &[u8], scan: &mut Scan<'a>) -> Result<(), Bad> {
        match key {
            b"content" => self.content = scan.field()?,
            b"reasoning" | b"reasoning_content" => {
                let field = scan.field()?;
                // Some servers send both names, one of them null, empty or a copy.
                if weight(field) > weight(self.reasoning) {
                    self.reasoning = field;
                }
            }
            b"reasoning_details" => self.reasoning_details = scan.filled()?,
            b"role" => self.role = scan.field()?.filled().is_some(),
            b"tool_calls" => self.tools = scan.field()?,
            b"function_call" => self.function = scan.field()?,
            b"refusal" => self.refusal = scan.field()?,
            b"audio" => scan.object_or_skip(|key, scan| {
                match key {
                    b"data" | b"transcript" => self.audio |= scan.filled()?,
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            _ => scan.skip()?,
        }
        Ok(())
    }

    fn apply(&self, whole: bool, progress: &mut Progress, event: &mut Event) {
        progress.see(self.index);
        let finish = self.finish.filled().filter(|reason| !reason.is("null"));
        let (parts_seen, parts_thought) = text::parts(self.content, self.index, &mut progress.text);
        let tools = is_filled(self.tools) || is_filled(self.function);
        let refusal = self.refusal.filled();
        let shown = [self.text.filled(), self.content.filled(), refusal];
        let visible = parts_seen || tools || self.audio || shown.iter().any(Option::is_some);
        let thought = self.reasoning.filled();
        let hidden = parts_thought || self.reasoning_details || thought.is_some() || is_filled(self.reasoning);
        // An empty string without a role or a reason is a token that has no text (yet): half a character, a special token.
        let empty =
            [self.text, self.content, self.reasoning].iter().any(|field| field.str().is_some_and(Str::is_empty));
        let blank = empty && !self.role && finish.is_none();
        let ids = self.ids.filter(|ids| *ids > 0);
        if visible || hidden || (!whole && blank) || (ids.is_some() && finish.is_none()) {
            Progress::output(event, self.index, visible, ids);
        }
        progress.only = match (shown, thought) {
            ([Some(one), None, None] | [None, Some(one), None], None) => Some(Only::new(one, Sink::Choice(self.index))),
            ([None, None, None], Some(thought)) => Some(Only::new(thought, Sink::Reasoning)),
            _ => None,
        };
        if parts_seen
            || parts_thought
            || tools
            || self.audio
            || self.reasoning_details
            || matches!(self.reasoning, Field::Other(_))
        {
            progress.only = None;
        }
        if let Some(texts) = &mut progress.text {
            shown.iter().flatten().for_each(|shown| texts.add(self.index, *shown));
            thought.iter().for_each(|thought| thought.push_to(&mut texts.reasoning));
            texts.add_tools(self.tools);
            texts.add_tools(self.function);
        }
        if let Some(reason) = finish {
            progress.finish(self.index, Some(reason.decode()), event);
        }
    }
}

/// Of two names for one thing, the one that says more counts.
fn weight(field: Field<'_>) -> u8 {
    match field {
        Field::Absent => 0,
        _ if is_filled(field) => 3,
        Field::Str(_) => 2,
        Field::Other(_) => 1,
    }
}

fn is_filled(field: Field<'_>) -> bool {
    match field {
        Field::Absent => false,
        Field::Str(text) => !text.is_empty(),
        Field::Other(raw) => Scan::new(raw).filled().unwrap_or(false),
    }
}

/// Bytes that should have been a chunk and aren't.
pub(super) fn not_json(data: &[u8], progress: &mut Progress, event: &mut Event) {
    let quoted = crate::complaint::quote(data);
    progress.fail(Fault::Protocol, format!("stream data is not a JSON object: {quoted}"), event);
}
