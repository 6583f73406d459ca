//! Conversations: ShareGPT (`from`/`value`) and OpenAI (`role`/`content`). Every answer of the model is one request.

use crate::account::{Drop, Notice};
use crate::context::Context;
use crate::formats::hashed::{note_empty, word};
use crate::row::{Body, Message, Row};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    conversations: Option<&'a RawValue>,
    conversation: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
}

/// One spoken part, under the file's own word for the speaker.
struct Turn<'a> {
    role: Cow<'a, str>,
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RawTurn<'a> {
    #[serde(borrow)]
    from: Option<&'a RawValue>,
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
}

pub(crate) fn sharegpt(text: &str, context: &mut Context) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    conversation(&entry, entry.conversations.or(entry.conversation), context);
}

pub(crate) fn openai(text: &str, context: &mut Context) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(text) else { return context.account.drop(Drop::NotJson) };
    conversation(&entry, entry.messages, context);
}

fn conversation(entry: &Entry<'_>, list: Option<&RawValue>, context: &mut Context) {
    let Some(turns) = list.and_then(|raw| turns(raw, context)) else {
        count_entry(&[], context);
        return context.account.drop(Drop::NoTurns);
    };
    count_entry(&turns, context);
    if turns.is_empty() {
        return context.account.drop(Drop::NoTurns);
    }
    requests(entry, &turns, context);
}

fn count_entry(turns: &[Turn<'_>], context: &mut Context) {
    let Some(figures) = &mut context.conversations else { return };
    let said: Vec<(&str, &str)> = turns.iter().map(|t| (&*t.role, t.text.as_deref().unwrap_or_default())).collect();
    figures.entry(&said);
}

fn turns<'a>(raw: &'a RawValue, context: &mut Context) -> Option<Vec<Turn<'a>>> {
    let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    let mut decoded_any = false;
    let turns = raws.iter().filter_map(|raw| {
        if let Ok(turn) = serde_json::from_str::<RawTurn<'a>>(raw.get()) {
            return Some(spoken(&turn));
        }
        // Some exports hold each turn as a string of JSON.
        let inner: String = serde_json::from_str(raw.get()).ok()?;
        let turn = serde_json::from_str::<RawTurn<'_>>(&inner).ok()?;
        decoded_any = true;
        let Turn { role, text } = spoken(&turn);
        Some(Turn { role: role.into_owned().into(), text: text.map(|t| t.into_owned().into()) })
    });
    let turns = turns.collect();
    if decoded_any {
        context.account.notice(Notice::StringTurns);
    }
    Some(turns)
}

fn spoken<'a>(turn: &RawTurn<'a>) -> Turn<'a> {
    let role = turn.from.or(turn.role).map_or_else(|| "unknown".into(), |r| word(r));
    let text = turn.value.or(turn.content).and_then(content).or_else(|| turn.tool_calls.map(|r| r.get().into()));
    Turn { role, text }
}

/// Text content: a string, or the text parts of a list, joined.
fn content(raw: &RawValue) -> Option<Cow<'_, str>> {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return Some(text.into());
    }
    let parts: Vec<Value> = serde_json::from_str(raw.get()).ok()?;
    let texts: Vec<&str> = parts.iter().filter_map(|p| p.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

/// OpenAI's word for the file's.
fn role(word: &str) -> &str {
    match word {
        "human" => "user",
        "gpt" | "chatgpt" | "bard" | "bing" | "function_call" | "model" => "assistant",
        "observation" | "function" | "tool_response" => "tool",
        other => other,
    }
}

fn requests(entry: &Entry<'_>, turns: &[Turn<'_>], context: &mut Context) {
    let session = match entry.id {
        Some(raw) => word(raw).into_owned(),
        None => format!("entry-{}", context.account.records),
    };
    let session = context.names.intern(&format!("{session}#{}", context.account.records));
    let (mut asked, mut turn, mut failed): (Vec<Message>, u32, Option<Drop>) = (Vec::new(), 0, None);
    let system = entry.system.and_then(content).filter(|s| !s.is_empty());
    asked.extend(system.map(|text| Message { role: "system".into(), content: text.into_owned().into() }));
    for t in turns {
        let role = role(&t.role);
        let Some(text) = &t.text else {
            failed = failed.or(Some(Drop::NotText));
            continue;
        };
        if role != "assistant" {
            asked.push(Message { role: role.into(), content: text.as_ref().into() });
            continue;
        }
        let someone_spoke = asked.iter().any(|m| &*m.role != "system");
        if !someone_spoke && failed.is_none() {
            context.account.notice(Notice::LeadingAnswer);
            // A model that speaks first is part of what the next answer sees.
            asked.push(Message { role: "assistant".into(), content: text.as_ref().into() });
            continue;
        }
        if failed.is_some() || asked.iter().filter(|m| &*m.role != "assistant").all(|m| m.content.is_empty()) {
            failed = failed.or(Some(Drop::EmptyPrompt));
            break;
        }
        turn += 1;
        note_empty(text, context);
        let mut row = Row { session: Some(session), ..Row::default() };
        let more = row.more_mut();
        more.turn = Some(turn);
        more.body = Body::Added(std::mem::take(&mut asked));
        more.answer = Some(text.as_ref().into());
        if turn == 1 {
            more.tools = entry.tools.map(word).filter(|t| !t.is_empty()).map(|t| t.as_ref().into());
        }
        context.push(row);
    }
    match (failed, turn, asked.is_empty()) {
        (Some(why), _, _) => context.account.drop(why),
        (None, 0, _) => context.account.drop(Drop::NoAnswer),
        (None, _, false) => context.account.notice(Notice::TrailingQuestion),
        _ => {}
    }
}

/// OpenAI chat messages, each with its text content.
pub(crate) fn openai_messages(raw: &RawValue) -> Option<Vec<Message>> {
    let turns: Vec<RawTurn<'_>> = serde_json::from_str(raw.get()).ok()?;
    let message = |t: &RawTurn<'_>| {
        let turn = spoken(t);
        Message { role: role(&turn.role).into(), content: turn.text.unwrap_or_default().into_owned().into() }
    };
    Some(turns.iter().map(message).collect())
}
