//! Prompts without times: benchmark questions, `{"prompt"}` lines, plain text; and custom JSON lines.

use crate::account::Drop;
use crate::context::Context;
use crate::formats::hashed::{plain, word};
use crate::num;
use crate::row::{Body, Message, Row};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    question_id: Option<&'a RawValue>,
    category: Option<&'a RawValue>,
    turns: Option<Vec<String>>,
}

/// MT-bench and SpecBench: each of the `turns` is a request of one session.
pub(crate) fn question(text: &str, context: &mut Context) {
    let Ok(question) = serde_json::from_str::<Question<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    let turns = question.turns.unwrap_or_default();
    if turns.is_empty() {
        return context.account.drop(Drop::NoTurns);
    }
    let id =
        question.question_id.map_or_else(|| format!("record-{}", context.account.records), |r| word(r).into_owned());
    let session = Some(context.names.intern(&format!("question-{id}")));
    let class = question.category.and_then(|r| context.names.intern_some(&word(r)));
    for (k, turn) in turns.iter().enumerate() {
        if turn.is_empty() {
            context.account.drop(Drop::EmptyPrompt);
            continue;
        }
        let mut row = Row { session, class, ..Row::default() };
        let more = row.more_mut();
        more.turn = Some(k as u32 + 1);
        more.body = Body::Added(vec![Message { role: "user".into(), content: turn.as_str().into() }]);
        context.push(row);
    }
}

#[derive(Deserialize)]
struct Prompt<'a> {
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    output_tokens: Option<&'a RawValue>,
    output_len: Option<&'a RawValue>,
}

/// vLLM's custom data set: `prompt`, and `output_tokens` where known.
pub(crate) fn prompt(text: &str, context: &mut Context) {
    let Ok(fields) = serde_json::from_str::<Prompt<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    let Some(raw) = fields.prompt else { return context.account.drop(Drop::MissingField) };
    let Ok(prompt) = serde_json::from_str::<Box<str>>(raw.get()) else { return context.account.drop(Drop::NotText) };
    if prompt.is_empty() {
        return context.account.drop(Drop::EmptyPrompt);
    }
    let output = fields.output_tokens.or(fields.output_len).map(|r| num::count(plain(r))).transpose();
    match output {
        Err(why) => context.account.drop(why),
        Ok(output) => {
            let mut row = Row { output, ..Row::default() };
            row.more_mut().body = Body::Text(prompt);
            context.push(row);
        }
    }
}

/// One line of plain text (sonnets and the like): a prompt of its own.
pub(crate) fn text_line(text: &str, context: &mut Context) {
    let mut row = Row::default();
    row.more_mut().body = Body::Text(text.into());
    context.push(row);
}

/// A record of a custom trace, by the map of fields.
pub(crate) fn custom(text: &str, context: &mut Context) {
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return context.account.drop(Drop::NotJson);
    };
    match custom_row(&fields, context) {
        Ok(row) => context.push(row),
        Err(why) => context.account.drop(why),
    }
}

fn custom_row(fields: &BTreeMap<String, &RawValue>, context: &mut Context) -> Result<Row, Drop> {
    let map = context.options.columns.clone().unwrap_or_default();
    let find = |name: &Option<String>| name.as_ref().and_then(|n| fields.get(n)).copied().filter(|r| r.get() != "null");
    let mut row = Row::default();
    if map.time.is_some() {
        let at = map.unit.read(plain(find(&map.time).ok_or(Drop::BadTime)?))?;
        context.saw_time(at);
        row.at = Some(at);
    }
    row.input = find(&map.input).map(|r| num::count(plain(r))).transpose()?;
    row.output = find(&map.output).map(|r| num::count(plain(r))).transpose()?;
    let mut name = |column: &Option<String>| find(column).and_then(|r| context.names.intern_some(&word(r)));
    row.session = name(&map.session);
    row.client = name(&map.client);
    row.model = name(&map.model);
    row.class = name(&map.class);
    if let Some(raw) = find(&map.text) {
        row.more_mut().body = Body::Text(serde_json::from_str(raw.get()).map_err(|_| Drop::NotText)?);
    }
    Ok(row)
}
