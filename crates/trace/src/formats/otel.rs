//! OpenTelemetry gen-AI spans: a document with `spans` (as exported by inference-perf), one span per line, or OTLP JSON.

use crate::account::Drop;
use crate::context::Context;
use crate::formats::chat;
use crate::formats::hashed::note_empty;
use crate::row::{Body, Row};
use crate::{num, stamp};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tailbound_clock::Dur;

pub(crate) fn record(text: &str, context: &mut Context) {
    let Ok(Value::Object(document)) = serde_json::from_str(text) else { return context.account.drop(Drop::NotJson) };
    let spans = spans(&document);
    if spans.is_empty() {
        return context.account.drop(Drop::NotARequest);
    }
    context.account.records -= 1;
    for span in spans {
        context.record();
        match request(span, context) {
            Ok(row) => context.push(row),
            Err(why) => context.account.drop(why),
        }
    }
}

fn spans(document: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    if let Some(Value::Array(list)) = document.get("spans") {
        return list.iter().filter_map(Value::as_object).collect();
    }
    let Some(Value::Array(resources)) = document.get("resourceSpans") else { return vec![document] };
    let scopes = resources.iter().filter_map(|r| r.get("scopeSpans")?.as_array()).flatten();
    scopes.filter_map(|s| s.get("spans")?.as_array()).flatten().filter_map(Value::as_object).collect()
}

/// A span is a request if it names a model or carries an input.
fn request(span: &Map<String, Value>, context: &mut Context) -> Result<Row, Drop> {
    let attributes = attributes(span);
    let text = |key: &str| attributes.get(key).and_then(Value::as_str);
    let count = |keys: [&str; 2]| {
        let value = keys.iter().find_map(|k| attributes.get(*k))?;
        num::count(value.to_string().trim_matches('"').as_bytes()).ok()
    };
    let model = text("gen_ai.request.model").or_else(|| text("gen_ai.response.model"));
    let input = attributes.get("gen_ai.input.messages").or_else(|| attributes.get("gen_ai.prompt"));
    let operation = text("gen_ai.operation.name").unwrap_or("chat");
    if (model.is_none() && input.is_none()) || matches!(operation, "execute_tool" | "invoke_agent" | "create_agent") {
        return Err(Drop::NotARequest);
    }
    let start = time(span, ["start_time", "startTimeUnixNano"])?;
    let end = time(span, ["end_time", "endTimeUnixNano"]).ok();
    context.saw_time(start);
    let mut row = Row { at: Some(start), ..Row::default() };
    row.took = end.and_then(|e| u64::try_from(e - start).ok()).map(Dur);
    row.input = count(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
    row.output = count(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]);
    row.model = model.and_then(|m| context.names.intern_some(m));
    row.class = text("gen_ai.operation.name").and_then(|o| context.names.intern_some(o));
    let session = text("gen_ai.conversation.id").or_else(|| text("session.id")).or_else(|| text("exgentic.session.id"));
    let field = |keys: [&str; 2]| keys.iter().find_map(|k| span.get(*k)?.as_str()).filter(|s| !s.is_empty());
    let trace = field(["trace_id", "traceId"]);
    let id = field(["span_id", "spanId"]).map(|s| context.names.intern(s));
    let parent = field(["parent_span_id", "parentSpanId"]).map(|s| context.names.intern(s));
    row.session = session.or(trace).and_then(|s| context.names.intern_some(s));
    if let Some(Value::Object(status)) = span.get("status") {
        let failed = status.get("code").is_some_and(|c| c == 2 || c == "STATUS_CODE_ERROR" || c == "ERROR");
        row.ok = Some(!failed);
    }
    let messages = input.and_then(messages);
    let answer =
        text("gen_ai.output.text").map(Into::into).or_else(|| answer(attributes.get("gen_ai.output.messages")?));
    if let Some(answer) = &answer {
        note_empty(answer, context);
    }
    let more = row.more_mut();
    more.id = id;
    more.parent = parent;
    more.body = messages.map_or(Body::None, Body::Messages);
    more.answer = answer;
    more.tools = text("gen_ai.request.tools").or_else(|| text("gen_ai.tool.definitions")).map(Into::into);
    Ok(row)
}

/// The attributes as a map: already one, or OTLP's list of keys and typed values.
fn attributes(span: &Map<String, Value>) -> Map<String, Value> {
    match span.get("attributes") {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::Array(list)) => list.iter().filter_map(otlp_pair).collect(),
        _ => Map::new(),
    }
}

fn otlp_pair(pair: &Value) -> Option<(String, Value)> {
    let key = pair.get("key")?.as_str()?.to_owned();
    let value = pair.get("value")?.as_object()?.values().next()?.clone();
    Some((key, value))
}

/// An ISO date, or nanoseconds since the epoch as a number or a string of digits.
fn time(span: &Map<String, Value>, keys: [&str; 2]) -> Result<i64, Drop> {
    let value = keys.iter().find_map(|k| span.get(*k)).ok_or(Drop::BadTime)?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    stamp::date(text.as_bytes()).or_else(|_| num::scaled(text.as_bytes(), 0)).map_err(|_| Drop::BadTime)
}

/// Messages given as JSON or as a string of JSON.
fn messages(value: &Value) -> Option<Vec<crate::row::Message>> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let raw = RawValue::from_string(text).ok()?;
    chat::openai_messages(&raw)
}

fn answer(value: &Value) -> Option<Box<str>> {
    messages(value)?.pop().map(|m| m.content)
}
