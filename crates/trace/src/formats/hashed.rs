//! Mooncake, its session extension, vLLM's timed trace and Qwen-Bailian: lengths with the content hashes of prompt blocks.

use crate::account::{Drop, Notice};
use crate::context::Context;
use crate::detect::Format;
use crate::error::Refusal;
use crate::formats::chat;
use crate::num;
use crate::options::{Options, Unit};
use crate::row::{Body, Row};
use crate::source::Source;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tailbound_clock::Dur;

#[derive(Deserialize)]
struct Mooncake<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    input_length: Option<&'a RawValue>,
    output_length: Option<&'a RawValue>,
    hash_ids: Option<&'a RawValue>,
    session_id: Option<&'a RawValue>,
    conversation_id: Option<&'a RawValue>,
    duration: Option<&'a RawValue>,
    delay: Option<&'a RawValue>,
    text_input: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    payload: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    priority: Option<&'a RawValue>,
    extra: Option<Extra<'a>>,
}

/// What AIPerf puts into the request's body.
#[derive(Default, Deserialize)]
struct Extra<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    priority: Option<&'a RawValue>,
}

pub(crate) fn mooncake(text: &str, format: Format, context: &mut Context) {
    let Ok(fields) = serde_json::from_str::<Mooncake<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    let unit = if format == Format::TimedTrace { Unit::Seconds } else { Unit::Millis };
    match mooncake_row(&fields, unit, context) {
        Ok(row) => context.push(row),
        Err(why) => context.account.drop(why),
    }
}

fn mooncake_row(fields: &Mooncake<'_>, unit: Unit, context: &mut Context) -> Result<Row, Drop> {
    let mut row = Row::default();
    if let Some(raw) = fields.timestamp {
        let at = unit.read(plain(raw))?;
        context.saw_time(at);
        row.at = Some(at);
    }
    row.input = fields.input_length.map(|r| num::count(plain(r))).transpose()?;
    row.output = fields.output_length.map(|r| num::count(plain(r))).transpose()?;
    let body = if let Some(raw) = fields.messages {
        Body::Messages(chat::openai_messages(raw).ok_or(Drop::NotText)?)
    } else if let Some(raw) = fields.text_input {
        Body::Text(serde_json::from_str(raw.get()).map_err(|_| Drop::NotText)?)
    } else if let Some(raw) = fields.payload {
        Body::Payload(raw.get().into())
    } else {
        Body::None
    };
    if row.input.is_none() && body == Body::None {
        return Err(Drop::MissingField);
    }
    let extra = fields.extra.as_ref();
    let mut name = |raw: Option<&RawValue>| raw.and_then(|r| context.names.intern_some(&word(r)));
    row.session = name(fields.session_id.or(fields.conversation_id));
    row.model = name(fields.model.or_else(|| extra?.model));
    // GuideLLM's, in seconds.
    if let Some(raw) = fields.duration {
        let ns = Unit::Seconds.read(plain(raw))?;
        row.took = Some(Dur(u64::try_from(ns).map_err(|_| Drop::Negative)?));
    }
    if let Some(raw) = fields.hash_ids {
        row.more_mut().blocks = Some(ids(raw)?);
    }
    if let Some(raw) = fields.delay {
        let ns = Unit::Millis.read(plain(raw))?;
        row.more_mut().think = Some(Dur(u64::try_from(ns).map_err(|_| Drop::Negative)?));
    }
    if let Some(raw) = fields.priority.or_else(|| extra?.priority) {
        row.more_mut().priority = Some(raw.get().parse().map_err(|_| Drop::NotANumber)?);
    }
    if let Some(raw) = fields.tools {
        row.more_mut().tools = Some(raw.get().into());
    }
    if body != Body::None {
        row.more_mut().body = body;
    }
    Ok(row)
}

#[derive(Deserialize)]
struct Bailian<'a> {
    #[serde(borrow)]
    chat_id: Option<&'a RawValue>,
    parent_chat_id: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
    input_length: Option<&'a RawValue>,
    output_length: Option<&'a RawValue>,
    r#type: Option<&'a RawValue>,
    turn: Option<&'a RawValue>,
    hash_ids: Option<&'a RawValue>,
}

pub(crate) fn bailian(text: &str, context: &mut Context) {
    let Ok(fields) = serde_json::from_str::<Bailian<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    match bailian_row(&fields, context) {
        Ok(row) => context.push(row),
        Err(why) => context.account.drop(why),
    }
}

fn bailian_row(fields: &Bailian<'_>, context: &mut Context) -> Result<Row, Drop> {
    let at = Unit::Seconds.read(plain(fields.timestamp.ok_or(Drop::BadTime)?))?;
    context.saw_time(at);
    let input = num::count(plain(fields.input_length.ok_or(Drop::MissingField)?))?;
    let output = fields.output_length.map(|r| num::count(plain(r))).transpose()?;
    let turn = fields.turn.map(|r| num::count(plain(r))).transpose()?;
    let blocks = fields.hash_ids.map(ids).transpose()?;
    let id = context.names.intern_some(&word(fields.chat_id.ok_or(Drop::MissingField)?)).ok_or(Drop::MissingField)?;
    let parent = fields.parent_chat_id.map(word).filter(|p| p != "-1");
    let parent = parent.and_then(|p| context.names.intern_some(&p));
    let session = Some(context.session_of(id, parent));
    let class = fields.r#type.and_then(|r| context.names.intern_some(&word(r)));
    let mut row = Row { at: Some(at), input: Some(input), output, session, class, ..Row::default() };
    let more = row.more_mut();
    more.id = Some(id);
    more.parent = parent.filter(|&p| p != id);
    more.turn = turn;
    more.blocks = blocks;
    Ok(row)
}

/// A number's text, with or without quotes around it.
pub(crate) fn plain(raw: &RawValue) -> &[u8] {
    let text = raw.get().as_bytes();
    text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text)
}

/// A name, given as a string or as a number.
pub(crate) fn word(raw: &RawValue) -> Cow<'_, str> {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => text.into(),
        Err(_) => raw.get().into(),
    }
}

/// Block ids: unsigned 64-bit numbers, as numbers or strings.
pub(crate) fn ids(raw: &RawValue) -> Result<Vec<u64>, Drop> {
    if let Ok(ids) = serde_json::from_str::<Vec<u64>>(raw.get()) {
        return Ok(ids);
    }
    let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| Drop::NotANumber)?;
    let one = |raw: &&RawValue| std::str::from_utf8(plain(raw)).ok()?.parse::<u64>().ok();
    raws.iter().map(|raw| one(raw).ok_or(Drop::NotANumber)).collect()
}

/// Tokens per prefix block: what was asked for; else what fits the rows at the beginning of the file, the format's own size
/// first; else the format's own size. A prompt of L tokens in n blocks of B satisfies (n − 1)·B < L ≤ n·B.
pub(crate) fn block_size(format: Format, source: &Source, options: &Options) -> Option<u32> {
    let usual = format.usual_block()?;
    if options.block_tokens.is_some() {
        return options.block_tokens;
    }
    if !matches!(format, Format::Mooncake | Format::TimedTrace) {
        return Some(usual);
    }
    let (mut least, mut most) = (1, u32::MAX);
    let mut lines: Vec<&[u8]> = source.head.split(|&b| b == b'\n').collect();
    if !source.is_whole() {
        lines.pop();
    }
    for line in lines {
        let Ok(fields) = serde_json::from_slice::<Mooncake<'_>>(line) else { continue };
        let input = fields.input_length.and_then(|r| num::count(plain(r)).ok());
        let (Some(input), Some(Ok(ids))) = (input, fields.hash_ids.map(ids)) else { continue };
        let n = ids.len() as u32;
        if n == 0 || input == 0 {
            continue;
        }
        least = least.max(input.div_ceil(n));
        if n > 1 {
            most = most.min((input - 1) / (n - 1));
        }
    }
    let fits = |b: &u32| (least..=most).contains(b);
    let common = [usual, 512, 256, 128, 64, 32, 16, 1024, 2048];
    Some(common.into_iter().find(fits).unwrap_or(if least <= most && most < u32::MAX { most } else { usual }))
}

/// Mooncake's milliseconds are whole. With fractions the same fields may as well be vLLM's seconds: that has to be said.
pub(crate) fn check_unit(guess: Format, source: &Source) -> Result<(), Refusal> {
    if guess != Format::Mooncake {
        return Ok(());
    }
    let times = source.head.split(|&b| b == b'\n').take(100).filter_map(|line| {
        let fields = serde_json::from_slice::<Mooncake<'_>>(line).ok()?;
        let time = plain(fields.timestamp?);
        num::has_fraction(time).then(|| String::from_utf8_lossy(time).into_owned())
    });
    match times.into_iter().next() {
        None => Ok(()),
        Some(seen) => Err(Refusal::Ambiguous(format!(
            "times with fractions ({seen}): seconds (format timed-trace) or milliseconds (format mooncake)? name the format"
        ))),
    }
}

/// Notes an answer that is empty.
pub(crate) fn note_empty(answer: &str, context: &mut Context) {
    if answer.is_empty() {
        context.account.notice(Notice::EmptyOutput);
    }
}
