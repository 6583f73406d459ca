//! A trace's rows as requests to make prompts of.

use crate::bench::serve::args::ServeArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use serde_json::Value;
use std::sync::Arc;
use tailbound_prompt::{Asked, Content, Rows};
use tailbound_trace::{Body, Message, More, Row, Trace};

/// Every row, in order, with what it says or how long it is.
pub fn data_set(trace: &Trace, args: &ServeArgs) -> Outcome<Rows> {
    tell_left_out(trace);
    let output_len = args.data.output_len;
    let asked = trace.rows.iter().zip(1..).map(|(row, number)| {
        let answer = row.more.as_ref().and_then(|more| more.answer.as_deref()).map(Arc::from);
        let overridden = args.data.sharegpt_output_len.or(output_len.filter(|_| row.output.is_none()));
        Ok(Asked {
            content: content(row, args.data.input_len).map_err(|what| lacking(args, number, what))?,
            output_tokens: overridden.or(row.output),
            answer,
            row: number,
        })
    });
    Ok(Rows {
        path: args.data.dataset_path.clone().unwrap_or_default(),
        asked: asked.collect::<Outcome<_>>()?,
        block_tokens: trace.block_tokens.unwrap_or(1),
        output_len,
    })
}

fn content(row: &Row, input_len: Option<u32>) -> Result<Content, String> {
    let blocks = row.blocks().filter(|ids| !ids.is_empty());
    match (row.more.as_deref().map(|more| &more.body), row.input.or(input_len)) {
        (Some(Body::Text(text)), _) => Ok(Content::Text((&**text).into())),
        (Some(Body::Messages(list) | Body::Added(list)), _) => Ok(Content::Messages(Arc::new(messages(list)))),
        (Some(Body::Payload(json)), _) => payload(json),
        (_, None) => Err("has neither a prompt nor a prompt length; give --input-len".into()),
        (_, Some(tokens)) => Ok(match blocks {
            Some(ids) => Content::Blocks { tokens, ids: ids.into() },
            None => Content::Length(tokens),
        }),
    }
}

/// Messages as OpenAI writes them.
fn messages(list: &[Message]) -> Value {
    let one = |m: &Message| serde_json::json!({ "role": &*m.role, "content": &*m.content });
    list.iter().map(one).collect()
}

/// What a recorded request body asks: its messages, or its prompt.
fn payload(json: &str) -> Result<Content, String> {
    let body: Value = serde_json::from_str(json).map_err(|e| format!("has a payload that is not JSON ({e})"))?;
    match (body.get("messages"), body.get("prompt").and_then(Value::as_str)) {
        (Some(list), _) => Ok(Content::Messages(Arc::new(list.clone()))),
        (None, Some(text)) => Ok(Content::Text(text.into())),
        (None, None) => Err("has a payload without messages or a prompt".into()),
    }
}

fn lacking(args: &ServeArgs, row: u64, what: String) -> Failure {
    let path = args.data.dataset_path.clone().unwrap_or_default();
    Failure::new(format!("failed to read {}: row {row} {what}", path.display())).during("preparing the prompts")
}

fn tell_left_out(trace: &Trace) {
    let count = |with: fn(&More) -> bool| trace.rows.iter().filter(|row| row.more.as_deref().is_some_and(with)).count();
    let (media, tools) = (count(|more| !more.media.is_empty()), count(|more| more.tools.is_some()));
    if media > 0 {
        output::note(&format!("{media} rows have images, audio or video; only their text is sent"));
    }
    if tools > 0 {
        output::note(&format!("{tools} rows define tools; their definitions are not sent"));
    }
}
