//! Mooncake with the session extension, and AIPerf's stricter reading of it.

use super::decimal;
use crate::collect::Trace;
use crate::row::{Body, Message, Row};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Default, Serialize)]
pub(super) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_ids: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<&'a [Message]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Extra<'a>>,
}

/// What AIPerf adds to the request's body.
#[derive(Serialize)]
struct Extra<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
}

/// Whether it is a list of objects, and not an empty one.
fn lists_tools(json: &RawValue) -> bool {
    serde_json::from_str::<Vec<Tool>>(json.get()).is_ok_and(|list| !list.is_empty())
}

/// A tool's definition: some object.
type Tool = BTreeMap<String, serde::de::IgnoredAny>;

/// Everything Mooncake has a field for. `None` if there is neither a prompt nor its length.
pub(super) fn mooncake<'a>(trace: &'a Trace, row: &'a Row) -> Option<Line<'a>> {
    let mut line = Line {
        timestamp: row.at.map(|at| decimal(at, 6)),
        input_length: row.input,
        output_length: row.output,
        hash_ids: row.blocks(),
        session_id: row.session.map(|n| trace.names.text(n)),
        model: row.model.map(|n| trace.names.text(n)),
        ..Line::default()
    };
    if let Some(more) = &row.more {
        line.delay = more.think.map(|d| decimal(i64::try_from(d.ns()).unwrap_or(i64::MAX), 6));
        line.priority = more.priority;
        line.tools = more.tools.as_ref().and_then(|t| RawValue::from_string(t.to_string()).ok());
        match &more.body {
            Body::None => {}
            Body::Text(text) => line.text_input = Some(text),
            Body::Messages(list) | Body::Added(list) => line.messages = Some(list),
            Body::Payload(json) => line.payload = RawValue::from_string(json.to_string()).ok(),
        }
    }
    (line.input_length.is_some() || line.has_prompt()).then_some(line)
}

/// As AIPerf 0.13 validates it: a prompt or its length, not both; blocks only with the length; tools only with messages, and only
/// as a list that has some; model and priority as extra fields of the request.
pub(super) fn aiperf<'a>(trace: &'a Trace, row: &'a Row) -> Option<Line<'a>> {
    let mut line = mooncake(trace, row)?;
    if line.has_prompt() {
        (line.input_length, line.hash_ids) = (None, None);
    }
    line.tools = line.tools.filter(|tools| line.messages.is_some() && lists_tools(tools));
    let extra = Extra { model: line.model.take(), priority: line.priority.take() };
    line.extra = (extra.model.is_some() || extra.priority.is_some()).then_some(extra);
    Some(line)
}

impl Line<'_> {
    fn has_prompt(&self) -> bool {
        self.text_input.is_some() || self.messages.is_some() || self.payload.is_some()
    }
}
