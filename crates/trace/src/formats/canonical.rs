//! Our own rows, one JSON object per line; what [`crate::write`] writes.

use crate::account::Drop;
use crate::context::Context;
use crate::row::{Body, Media, MediaKind, Message, Row};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tailbound_clock::Dur;

/// A canonical row as it stands in a file. `arrival_ns` is always there, null if unknown; of the rest only what is known.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    pub arrival_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_blocks: Option<Cow<'a, [u64]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_tokens: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Vec<Part>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_e2e_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ok: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Cow<'a, [Message]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Cow<'a, [Message]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Cow<'a, str>>,
}

/// A [`Media`] part in a file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Part {
    pub kind: MediaKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
}

pub(crate) fn row(text: &str, context: &mut Context) {
    match serde_json::from_str::<Line<'_>>(text) {
        Ok(line) => {
            let row = from_line(line, context);
            context.push(row);
        }
        Err(e) if e.is_data() => context.account.drop(Drop::NotANumber),
        Err(_) => context.account.drop(Drop::NotJson),
    }
}

fn from_line(line: Line<'_>, context: &mut Context) -> Row {
    if let Some(at) = line.arrival_ns {
        context.saw_time(at);
    }
    if context.block.is_none() {
        context.block = line.block_tokens;
    }
    let mut name = |text: &Option<Cow<'_, str>>| text.as_ref().map(|t| context.names.intern(t));
    let mut row = Row {
        at: line.arrival_ns,
        input: line.input_tokens,
        output: line.output_tokens,
        took: line.source_e2e_ns.map(Dur),
        ok: line.source_ok,
        session: name(&line.session),
        client: name(&line.client),
        model: name(&line.model),
        class: name(&line.class),
        more: None,
    };
    let (id, parent) = (name(&line.id), name(&line.parent));
    let body = if let Some(text) = line.text {
        Body::Text(text.into())
    } else if let Some(messages) = line.messages {
        Body::Messages(messages.into_owned())
    } else if let Some(added) = line.added {
        Body::Added(added.into_owned())
    } else if let Some(payload) = line.payload {
        Body::Payload(payload.get().into())
    } else {
        Body::None
    };
    let more = crate::row::More {
        id,
        parent,
        turn: line.turn,
        think: line.think_ns.map(Dur),
        blocks: line.prefix_blocks.map(Cow::into_owned),
        priority: line.priority,
        reasoning: line.reasoning_tokens,
        media: line.media.iter().flatten().map(|p| Media { kind: p.kind, tokens: p.tokens }).collect(),
        body,
        answer: line.answer.map(Into::into),
        tools: line.tools.map(Into::into),
    };
    if more != crate::row::More::default() {
        row.more = Some(Box::new(more));
    }
    row
}
