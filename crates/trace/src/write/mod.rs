//! Traces written in formats others read.

mod guidellm;
mod mooncake;

use crate::collect::Trace;
use crate::error::Error;
use crate::formats::{Line, Part};
use crate::row::{Body, Row};
use guidellm::GuideLlm;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;

/// The formats that can be written, all JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Our own rows: loses nothing but the file's origin.
    Canonical,
    /// Mooncake with the session extension: times in milliseconds, as decimals where they are not whole. Carries times,
    /// lengths, block ids, sessions, waits, models, priorities, prompts and tools.
    Mooncake,
    /// AIPerf's `mooncake_trace`: as Mooncake, but a row has its prompt or the prompt's length and blocks, not both.
    AiPerf,
    /// GuideLLM's `mooncake` (`trace_synthetic` without blocks): times in decimal seconds, lengths, block ids renumbered from
    /// zero, durations, sessions.
    GuideLlm,
    /// vLLM's timed trace: times in decimal seconds from zero, lengths and block ids, nothing else.
    TimedTrace,
}

/// Writes every row of the trace. Rows the format cannot express (a timed trace needs times and prompt lengths) are an error
/// that names the row; nothing is left out in silence.
pub fn write(trace: &Trace, format: Output, to: &mut impl Write) -> Result<(), Error> {
    let mut guidellm = GuideLlm::new(trace);
    for (i, row) in trace.rows.iter().enumerate() {
        let mut line = match format {
            Output::Canonical => json(i, &canonical(trace, row)),
            Output::Mooncake => match mooncake::mooncake(trace, row) {
                Some(line) => json(i, &line),
                None => Err(lacks(i, "Mooncake", "prompt length or prompt")),
            },
            Output::AiPerf => match mooncake::aiperf(trace, row) {
                Some(line) => json(i, &line),
                None => Err(lacks(i, "AIPerf's trace", "prompt length or prompt")),
            },
            Output::GuideLlm => guidellm.line(trace, i, row),
            Output::TimedTrace => timed(i, row),
        }?;
        line.push(b'\n');
        to.write_all(&line).map_err(|source| Error::Io { file: "the output".into(), source })?;
    }
    Ok(())
}

fn json(row: usize, line: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(line).map_err(|e| Error::Asked(format!("failed to write row {}: {e}", row + 1)))
}

fn timed(i: usize, row: &Row) -> Result<Vec<u8>, Error> {
    let at = row.at.ok_or_else(|| lacks(i, "a timed trace", "time"))?;
    let input_length = row.input.ok_or_else(|| lacks(i, "a timed trace", "prompt length"))?;
    let hash_ids = row.blocks().unwrap_or_default();
    json(i, &Timed { timestamp: decimal(at, 9), input_length, output_length: row.output, hash_ids })
}

fn lacks(row: usize, format: &str, what: &str) -> Error {
    Error::Asked(format!("failed to write row {}: {format} needs a {what}, and the row has none", row + 1))
}

fn canonical<'a>(trace: &'a Trace, row: &'a Row) -> Line<'a> {
    let name = |name: Option<crate::row::Name>| name.map(|n| Cow::Borrowed(trace.names.text(n)));
    let mut line = Line {
        arrival_ns: row.at,
        input_tokens: row.input,
        output_tokens: row.output,
        source_e2e_ns: row.took.map(|d| d.ns()),
        source_ok: row.ok,
        session: name(row.session),
        client: name(row.client),
        model: name(row.model),
        class: name(row.class),
        ..Line::default()
    };
    let Some(more) = &row.more else { return line };
    line.id = name(more.id);
    line.parent = name(more.parent);
    line.turn = more.turn;
    line.think_ns = more.think.map(|d| d.ns());
    line.prefix_blocks = more.blocks.as_deref().map(Cow::Borrowed);
    line.block_tokens = trace.block_tokens.filter(|_| more.blocks.is_some());
    line.priority = more.priority;
    line.reasoning_tokens = more.reasoning;
    let media: Vec<Part> = more.media.iter().map(|m| Part { kind: m.kind, tokens: m.tokens }).collect();
    line.media = (!media.is_empty()).then_some(media);
    line.answer = more.answer.as_deref().map(Cow::Borrowed);
    line.tools = more.tools.as_deref().map(Cow::Borrowed);
    match &more.body {
        Body::None => {}
        Body::Text(text) => line.text = Some(Cow::Borrowed(text)),
        Body::Messages(list) => line.messages = Some(Cow::Borrowed(list)),
        Body::Added(list) => line.added = Some(Cow::Borrowed(list)),
        Body::Payload(json) => line.payload = RawValue::from_string(json.to_string()).ok(),
    }
    line
}

#[derive(Serialize)]
struct Timed<'a> {
    timestamp: Box<RawValue>,
    input_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u32>,
    hash_ids: &'a [u64],
}

/// `ns` divided by 10^`digits`, exactly, as a JSON number.
fn decimal(ns: i64, digits: usize) -> Box<RawValue> {
    let unit = 10i64.pow(digits as u32);
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (ns.unsigned_abs() / unit.unsigned_abs(), ns.unsigned_abs() % unit.unsigned_abs());
    let mut text = format!("{sign}{whole}");
    if rest != 0 {
        text += &format!(".{rest:0digits$}");
        text.truncate(text.trim_end_matches('0').len());
    }
    RawValue::from_string(text).expect("digits, a sign and a point are a JSON number")
}
