//! Agent traces: LMCache, Weka, SGLang.

use crate::account::Drop;
use crate::context::Context;
use crate::formats::chat;
use crate::formats::hashed::{ids, note_empty, plain, word};
use crate::num;
use crate::options::Unit;
use crate::row::{Body, Name, Row};
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
struct WekaConversation<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    requests: Option<Vec<WekaEvent<'a>>>,
}

#[derive(Deserialize)]
struct WekaEvent<'a> {
    #[serde(borrow)]
    t: Option<&'a RawValue>,
    r#in: Option<&'a RawValue>,
    out: Option<&'a RawValue>,
    hash_ids: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    r#type: Option<&'a RawValue>,
    requests: Option<Vec<WekaEvent<'a>>>,
}

/// One conversation: requests at `t` seconds with `in` and `out` tokens; events without these (tools) are no requests;
/// events with requests of their own are sub-agents.
pub(crate) fn weka(text: &str, context: &mut Context) {
    let Ok(conversation) = serde_json::from_str::<WekaConversation<'_>>(text) else {
        return context.account.drop(Drop::NotJson);
    };
    let session = conversation.id.and_then(|r| context.names.intern_some(&word(r)));
    let events = conversation.requests.unwrap_or_default();
    if events.is_empty() {
        return context.account.drop(Drop::NoTurns);
    }
    weka_events(&events, session, None, context);
}

fn weka_events(events: &[WekaEvent<'_>], session: Option<Name>, parent: Option<Name>, context: &mut Context) {
    let mut last = parent;
    for (k, event) in events.iter().enumerate() {
        match weka_row(event, session, context) {
            Ok(mut row) => {
                let label = format!("{}/{k}", last.map_or("", |n| context.names.text(n)));
                let id = context.names.intern(&format!("{}@{}{label}", context.account.records, k));
                let more = row.more_mut();
                more.id = Some(id);
                more.parent = last;
                more.turn = Some(k as u32 + 1);
                last = Some(id);
                context.push(row);
            }
            Err(why) if event.requests.is_none() => context.account.drop(why),
            Err(_) => {}
        }
        if let Some(inner) = &event.requests {
            weka_events(inner, session, last, context);
        }
    }
}

fn weka_row(event: &WekaEvent<'_>, session: Option<Name>, context: &mut Context) -> Result<Row, Drop> {
    let (Some(t), Some(input)) = (event.t, event.r#in) else { return Err(Drop::NotARequest) };
    let at = Unit::Seconds.read(plain(t))?;
    let input = num::count(plain(input))?;
    let output = event.out.map(|r| num::count(plain(r))).transpose()?;
    let mut row = Row { at: Some(at), input: Some(input), output, session, ..Row::default() };
    row.model = event.model.and_then(|r| context.names.intern_some(&word(r)));
    row.class = event.r#type.and_then(|r| context.names.intern_some(&word(r)));
    if let Some(raw) = event.hash_ids {
        row.more_mut().blocks = Some(ids(raw)?);
    }
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
