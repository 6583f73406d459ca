//! Weka agent traces: one conversation a record, sub-agents inside.

use crate::account::Drop;
use crate::context::Context;
use crate::formats::hashed::{ids, plain, word};
use crate::num;
use crate::options::Unit;
use crate::row::{Name, Row};
use serde::Deserialize;
use serde_json::value::RawValue;
use tailbound_clock::Dur;

#[derive(Deserialize)]
struct Conversation<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    block_size: Option<u32>,
    hash_id_scope: Option<&'a str>,
    requests: Option<Vec<Event<'a>>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    t: Option<&'a RawValue>,
    r#in: Option<&'a RawValue>,
    out: Option<&'a RawValue>,
    hash_ids: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    r#type: Option<&'a RawValue>,
    subagent_type: Option<&'a RawValue>,
    api_time: Option<&'a RawValue>,
    think_time: Option<&'a RawValue>,
    requests: Option<Vec<Event<'a>>>,
}

/// What all requests of a list share.
#[derive(Clone, Copy)]
struct Around {
    session: Option<Name>,
    /// The request that the list's first follows from.
    parent: Option<Name>,
    /// What kind of sub-agent; `None` for the conversation itself.
    agent: Option<Name>,
    /// Added to the list's own times, in nanoseconds.
    from: i64,
    /// Makes ids that count within one conversation differ from another's.
    salt: u64,
}

/// One conversation: requests at `t` seconds with `in` and `out` tokens; events without these (tools) are no requests;
/// events with requests of their own are sub-agents. `Err` if its blocks have another size than those before it.
pub(crate) fn record(text: &str, context: &mut Context) -> Result<(), String> {
    let Ok(conversation) = serde_json::from_str::<Conversation<'_>>(text) else {
        context.account.drop(Drop::NotJson);
        return Ok(());
    };
    block_size(conversation.block_size, context)?;
    let session = conversation.id.and_then(|r| context.names.intern_some(&word(r)));
    let events = conversation.requests.unwrap_or_default();
    if events.is_empty() {
        context.account.drop(Drop::NoTurns);
        return Ok(());
    }
    let local = conversation.hash_id_scope == Some("local");
    let salt = if local { (context.account.records - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { 0 };
    let around = Around { session, parent: None, agent: None, from: 0, salt };
    read(&events, around, &mut 0, context);
    Ok(())
}

fn block_size(stated: Option<u32>, context: &mut Context) -> Result<(), String> {
    let Some(stated) = stated.filter(|_| context.options.block_tokens.is_none()) else { return Ok(()) };
    match context.block {
        Some(known) if known != stated && context.account.rows_emitted > 0 => {
            Err(format!("blocks of {stated} tokens, after conversations with blocks of {known}; read them apart"))
        }
        _ => {
            context.block = Some(stated);
            Ok(())
        }
    }
}

fn read(events: &[Event<'_>], around: Around, requests: &mut u64, context: &mut Context) {
    let mut last = around.parent;
    for (k, event) in events.iter().enumerate() {
        match request(event, around, context) {
            Ok(mut row) => {
                let record = context.account.records;
                let id = context.names.intern(&format!("{record}.{requests}"));
                *requests += 1;
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
        let Some(inner) = &event.requests else { continue };
        let from = around.from + start(event, inner);
        let agent = event.subagent_type.and_then(|r| context.names.intern_some(&word(r))).or(around.agent);
        read(inner, Around { parent: last, agent, from, ..around }, requests, context);
    }
}

/// What a sub-agent's times count from: its own beginning, if its first request would otherwise come before that.
fn start(spawn: &Event<'_>, inner: &[Event<'_>]) -> i64 {
    let time = |event: &Event<'_>| Unit::Seconds.read(plain(event.t?)).ok();
    match (time(spawn), inner.iter().find_map(time)) {
        (Some(spawned), Some(first)) if first < spawned => spawned,
        _ => 0,
    }
}

fn request(event: &Event<'_>, around: Around, context: &mut Context) -> Result<Row, Drop> {
    let (Some(t), Some(input)) = (event.t, event.r#in) else { return Err(Drop::NotARequest) };
    let at = around.from.checked_add(Unit::Seconds.read(plain(t))?).ok_or(Drop::OutOfRange)?;
    let input = num::count(plain(input))?;
    let known = |raw: Option<&'_ RawValue>| raw.filter(|r| r.get() != "null").map(|r| r.get().to_owned());
    let output = event.out.map(|r| num::count(plain(r))).transpose()?;
    let duration = |raw: Option<&RawValue>| -> Result<Option<Dur>, Drop> {
        let Some(text) = known(raw) else { return Ok(None) };
        let ns = Unit::Seconds.read(text.as_bytes())?;
        Ok(Some(Dur(u64::try_from(ns).map_err(|_| Drop::Negative)?)))
    };
    let (took, think) = (duration(event.api_time)?, duration(event.think_time)?);
    let mut row = Row { at: Some(at), input: Some(input), output, took, session: around.session, ..Row::default() };
    row.model = event.model.and_then(|r| context.names.intern_some(&word(r)));
    row.class = around.agent.or_else(|| event.r#type.and_then(|r| context.names.intern_some(&word(r))));
    if think.is_some() {
        row.more_mut().think = think;
    }
    if let Some(raw) = event.hash_ids {
        let blocks = ids(raw)?.into_iter().map(|id| id ^ around.salt).collect();
        row.more_mut().blocks = Some(blocks);
    }
    Ok(row)
}
