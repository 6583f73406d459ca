//! Agent traces: LMCache, SGLang.

use crate::account::Drop;
use crate::context::Context;
use crate::formats::chat;
use crate::formats::hashed::{note_empty, plain, word};
use crate::num;
use crate::options::Unit;
use crate::row::{Body, Row};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Lmcache<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    session_id: Option<&'a RawValue>,
}

/// `timestamp` in epoch microseconds; `input` is the whole prompt so far. Rows come in order of completion.
pub(crate) fn lmcache(text: &str, context: &mut Context) {
    let Ok(fields) = serde_json::from_str::<Lmcache<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    match lmcache_row(&fields, context) {
        Ok(row) => context.push(row),
        Err(why) => context.account.drop(why),
    }
}

fn lmcache_row(fields: &Lmcache<'_>, context: &mut Context) -> Result<Row, Drop> {
    let at = Unit::Micros.read(plain(fields.timestamp.ok_or(Drop::BadTime)?))?;
    context.saw_time(at);
    let string = |raw: Option<&RawValue>| {
        let raw = raw.ok_or(Drop::MissingField)?;
        serde_json::from_str::<Box<str>>(raw.get()).map_err(|_| Drop::NotText)
    };
    let input = string(fields.input)?;
    let answer = string(fields.output)?;
    note_empty(&answer, context);
    let session = fields.session_id.and_then(|r| context.names.intern_some(&word(r)));
    let mut row = Row { at: Some(at), session, ..Row::default() };
    let more = row.more_mut();
    more.body = Body::Text(input);
    more.answer = Some(answer);
    Ok(row)
}

#[derive(Deserialize)]
struct Sglang<'a> {
    #[serde(borrow)]
    conversations: Vec<Vec<SglangTurn<'a>>>,
}

#[derive(Deserialize)]
struct SglangTurn<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    prompt_tokens: Option<&'a RawValue>,
    output_tokens: Option<&'a RawValue>,
    completion_tokens: Option<&'a RawValue>,
}

/// `{"metadata", "conversations": [[{"messages", "prompt_tokens"}, …], …]}`: each turn carries its whole prompt.
pub(crate) fn sglang(text: &str, context: &mut Context) {
    let Ok(document) = serde_json::from_str::<Sglang<'_>>(text) else {
        return context.account.drop(Drop::NotJson);
    };
    context.account.records -= 1;
    for turns in &document.conversations {
        context.record();
        if turns.is_empty() {
            context.account.drop(Drop::NoTurns);
        }
        let session = context.names.intern(&format!("conversation-{}", context.account.records));
        for (k, turn) in turns.iter().enumerate() {
            match sglang_row(turn) {
                Ok(mut row) => {
                    row.session = Some(session);
                    row.more_mut().turn = Some(k as u32 + 1);
                    context.push(row);
                }
                Err(why) => context.account.drop(why),
            }
        }
    }
}

fn sglang_row(turn: &SglangTurn<'_>) -> Result<Row, Drop> {
    let messages = chat::openai_messages(turn.messages.ok_or(Drop::MissingField)?).ok_or(Drop::NotText)?;
    let count = |raw: Option<&RawValue>| raw.map(|r| num::count(plain(r))).transpose();
    let mut row = Row { input: count(turn.prompt_tokens)?, ..Row::default() };
    row.output = count(turn.output_tokens.or(turn.completion_tokens))?;
    row.more_mut().body = Body::Messages(messages);
    Ok(row)
}
