//! Anthropic's Messages: typed events, or one `message` object.

use super::progress::Progress;
use super::template::{Only, Sink};
use super::{Event, Fault};
use crate::json::{Bad, Field, Scan};
use crate::usage::Usage;

/// The fields of a `content_block`, a `delta`, or a block of a whole message.
#[derive(Clone, Copy, Default)]
struct Block<'a> {
    kind: Field<'a>,
    text: Field<'a>,
    thinking: Field<'a>,
    partial_json: Field<'a>,
    name: Field<'a>,
    input: Field<'a>,
    stop_reason: Field<'a>,
}

impl<'a> Block<'a> {
    fn read(scan: &mut Scan<'a>) -> Result<Block<'a>, Bad> {
        let mut block = Block::default();
        scan.object_or_skip(|key, scan| {
            match key {
                b"type" => block.kind = scan.field()?,
                b"text" => block.text = scan.field()?,
                b"thinking" => block.thinking = scan.field()?,
                b"partial_json" => block.partial_json = scan.field()?,
                b"name" => block.name = scan.field()?,
                b"input" => block.input = scan.field()?,
                b"stop_reason" => block.stop_reason = scan.field()?,
                _ => scan.skip()?,
            }
            Ok(())
        })?;
        Ok(block)
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.str().is_some_and(|own| own.is(kind))
    }

    /// Output of this block, streamed or whole.
    fn apply(&self, progress: &mut Progress, event: &mut Event) {
        let is_tool = self.is("tool_use") || self.is("server_tool_use");
        let name = self.name.filled().filter(|_| is_tool);
        let shown = self.text.filled();
        let arguments = self.partial_json.filled();
        let thought = self.thinking.filled();
        let visible = shown.is_some() || arguments.is_some() || name.is_some();
        // A delta with an empty text is a token without text; a block that opens with one is not.
        let blank = (self.is("text_delta") && self.text != Field::Absent)
            || (self.is("thinking_delta") && self.thinking != Field::Absent);
        if visible || thought.is_some() || blank {
            Progress::output(event, 0, visible, None);
        }
        progress.only = match (shown, thought, arguments, name) {
            (Some(shown), None, None, None) => Some(Only::new(shown, Sink::Choice(0))),
            (None, Some(thought), None, None) => Some(Only::new(thought, Sink::Reasoning)),
            _ => None,
        };
        let Some(texts) = &mut progress.text else { return };
        shown.iter().for_each(|shown| texts.add(0, *shown));
        thought.iter().for_each(|thought| thought.push_to(&mut texts.reasoning));
        name.iter().for_each(|name| name.push_to(&mut texts.tools));
        arguments.iter().for_each(|arguments| arguments.push_to(&mut texts.tools));
        if let (true, Field::Other(input)) = (is_tool, self.input)
            && input != b"{}"
        {
            texts.tools.push_str(&String::from_utf8_lossy(input));
        }
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
    let mut block = Block::default();
    let mut delta = Block::default();
    let mut usage = Usage::default();
    let mut stop_reason = Field::Absent;
    let mut error = None;
    let mut seen = false;
    scan.object(|key, scan| {
        match key {
            b"type" => kind = scan.field()?,
            b"content_block" => block = Block::read(scan)?,
            b"delta" => delta = Block::read(scan)?,
            b"usage" => usage.grow(&Usage::read(scan)?),
            b"stop_reason" => stop_reason = scan.field()?,
            b"error" => error = Some(scan.raw()?),
            b"content" if whole => scan.array_or_skip(|scan| {
                Block::read(scan)?.apply(progress, event);
                Ok(())
            })?,
            b"message" => scan.object_or_skip(|key, scan| {
                match key {
                    b"usage" => usage.grow(&Usage::read(scan)?),
                    _ => scan.skip()?,
                }
                Ok(())
            })?,
            _ => scan.skip()?,
        }
        seen = true;
        Ok(())
    })?;
    scan.end()?;
    let is = |wanted: &str| match kind.filled() {
        Some(kind) => kind.is(wanted),
        None => name == wanted.as_bytes(),
    };
    match error {
        Some(error) if error != b"null" => progress.fail_json(error, event),
        _ if is("error") => progress.fail_json(data, event),
        _ => {}
    }
    if is("content_block_start") {
        block.apply(progress, event);
    } else if is("content_block_delta") {
        delta.apply(progress, event);
    } else if is("message_stop") {
        progress.end(event);
    }
    if let Some(reason) = delta.stop_reason.filled().or(stop_reason.filled()) {
        progress.finish(0, Some(reason.decode()), event);
    }
    let before = progress.output_stated();
    progress.usage(&usage, None, event);
    if whole {
        if event.output.is_none() && usage.output.is_some_and(|n| n > 0) {
            Progress::output(event, 0, false, None);
        }
        if let Some(output) = &mut event.output {
            output.tokens = usage.output;
        }
        if !seen || kind == Field::Absent && event.output.is_none() && !event.fault {
            progress.fail(Fault::Protocol, format!("not a message: {}", crate::complaint::quote(data)), event);
        }
    } else {
        super::choices::attribute(usage.output, before, false, progress, event);
    }
    Ok(())
}
