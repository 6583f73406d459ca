//! A second, slow reading of chat and completions chunks, over `serde_json::Value`: the scanner must agree with it on any JSON.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tailbound_wire::{Api, Decoder, Eof, Event, Head, Outcome};

/// What a chunk is.
#[derive(Debug, PartialEq, Default)]
struct Reading {
    output: bool,
    visible: bool,
    tokens: Option<u32>,
    finish: bool,
    usage: bool,
    fault: bool,
    text: String,
    counts: [Option<u32>; 4],
}

fn filled(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

fn count(value: &Value) -> Option<u32> {
    value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u32)
}

fn string(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// A part of a content list: a bare string, or whatever stands under its text fields.
fn part_text(part: &Value) -> String {
    match part {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part_text).collect(),
        Value::Object(_) => ["text", "thinking", "reasoning"].iter().map(|key| part_text(&part[*key])).collect(),
        _ => String::new(),
    }
}

/// The rules, written down a second time and without a thought for speed.
fn reference(chunk: &Value) -> Reading {
    let mut reading = Reading::default();
    let error = &chunk["error"];
    let marked = chunk["object"] == "error";
    reading.fault = marked || !(error.is_null() || *error == Value::Bool(false));
    let choices = chunk["choices"].as_array().cloned().unwrap_or_default();
    let mut texts: Vec<(u64, String)> = Vec::new();
    let mut ids: Vec<Option<u32>> = Vec::new();
    let mut indexes = std::collections::BTreeSet::new();
    for (position, choice) in choices.iter().enumerate() {
        let index = count(&choice["index"]).unwrap_or(position as u32);
        indexes.insert(index);
        let delta = &choice["delta"];
        let finish = string(&choice["finish_reason"]).filter(|reason| *reason != "null");
        let has_role = string(&delta["role"]).is_some();
        let parts = delta["content"].as_array().cloned().unwrap_or_default();
        let is_thought =
            |part: &Value| part["type"].as_str().is_some_and(|kind| kind.contains("think") || kind.contains("reason"));
        let audio =
            ["data", "transcript"].iter().any(|key| delta["audio"].is_object() && filled(&delta["audio"][*key]));
        let visible = [&choice["text"], &delta["content"], &delta["refusal"]].iter().any(|text| string(text).is_some())
            || parts.iter().any(|part| !is_thought(part))
            || filled(&delta["tool_calls"])
            || filled(&delta["function_call"])
            || audio;
        let hidden = filled(&delta["reasoning"])
            || filled(&delta["reasoning_content"])
            || filled(&delta["reasoning_details"])
            || parts.iter().any(is_thought);
        let empty = [&choice["text"], &delta["content"], &delta["reasoning"], &delta["reasoning_content"]]
            .iter()
            .any(|text| text.as_str() == Some(""));
        let blank = empty && !has_role && finish.is_none();
        let listed = choice["token_ids"].as_array().map(|list| list.len() as u32).filter(|n| *n > 0);
        if visible || hidden || blank || (listed.is_some() && finish.is_none()) {
            reading.output = true;
            reading.visible |= visible;
            ids.push(listed);
        }
        reading.finish |= finish.is_some();
        reading.fault |= matches!(finish, Some("error" | "abort"));
        let mut text = String::new();
        for part in parts.iter().filter(|part| !is_thought(part)) {
            text += &part_text(part);
        }
        for shown in [&choice["text"], &delta["content"], &delta["refusal"]] {
            text += shown.as_str().unwrap_or_default();
        }
        texts.push((u64::from(index.min(127)), text));
    }
    texts.sort_by_key(|(index, _)| *index);
    reading.text = texts.into_iter().map(|(_, text)| text).collect();
    if reading.output {
        reading.tokens = ids.into_iter().sum();
    }
    let usage = &chunk["usage"];
    let first = |keys: &[&str]| keys.iter().find_map(|key| count(&usage[*key]));
    reading.counts = [
        first(&["prompt_tokens"]),
        first(&["completion_tokens"]),
        count(&usage["prompt_tokens_details"]["cached_tokens"]),
        count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    ];
    reading.usage = reading.counts.iter().any(Option::is_some);
    // The very first event: what usage states is what this event brought, if it is one choice's.
    if reading.output && reading.tokens.is_none() && indexes.len() <= 1 {
        reading.tokens = reading.counts[1].filter(|n| *n > 0);
    }
    reading
}

fn scanned(bytes: &[u8]) -> (Option<Event>, Outcome) {
    let mut decoder = Decoder::new(Api::Chat, true, true);
    decoder.head(Head { status: 200, content_type: Some("text/event-stream"), content_encoding: None });
    let mut events = Vec::new();
    decoder.push(b"data: ", |event| events.push(event));
    decoder.push(bytes, |event| events.push(event));
    decoder.push(b"\n\n", |event| events.push(event));
    let outcome = decoder.finish(Eof::Clean, |event| events.push(event));
    assert!(events.len() <= 1);
    (events.pop(), outcome)
}

fn reading_of(event: Event, outcome: &Outcome) -> Reading {
    let usage = &outcome.usage;
    Reading {
        output: event.output.is_some(),
        visible: event.output.is_some_and(|output| output.visible),
        tokens: event.output.and_then(|output| output.tokens),
        finish: event.finish,
        usage: event.usage,
        fault: event.fault,
        text: outcome.text.as_ref().unwrap().visible(),
        counts: [usage.prompt, usage.output, usage.cached, usage.reasoning],
    }
}

/// Any small JSON, with strings and keys that look like the fields that matter.
fn noise() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("content".to_owned()),
        Just("\"},\"error\":{\"x".to_owned()),
        Just("data: [DONE]".to_owned()),
        Just("\\\"choices\\\":[".to_owned()),
        "[a-z中\u{1F600}\\\\\"\n{}\\[\\]:, ]{0,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        (-1e6f64..1e6).prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            Just("content".to_owned()),
            Just("error".to_owned()),
            Just("choices".to_owned()),
            Just("usage".to_owned()),
            Just("delta".to_owned()),
            Just("finish_reason".to_owned()),
            "[a-z\"\\\\]{1,6}",
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn maybe_string() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(Value::Null),
        2 => Just(Value::from("")),
        4 => "[a-z中é\u{1F600}\\\\\"\n\t ]{1,8}".prop_map(Value::from),
        1 => noise(),
    ]
}

/// An object with some of the given fields, some of others, in any order.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| proptest::option::weighted(0.5, value).prop_map(move |value| (name.to_owned(), value)))
        .collect();
    let others = proptest::collection::vec(("x[a-z]{1,4}", noise()), 0..3);
    (fields, others)
        .prop_flat_map(|(fields, others)| {
            let known = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let all: Vec<(String, Value)> = known.chain(others).collect();
            Just(all).prop_shuffle()
        })
        .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
        .boxed()
}

fn chunk() -> BoxedStrategy<Value> {
    let number = || prop_oneof![4 => (0u32..50).prop_map(Value::from), 1 => Just(json!(3.0)), 1 => noise()].boxed();
    let call =
        || prop_oneof![Just(json!([])), Just(json!([{"function": {"name": "f"}}])), Just(Value::Null), noise()].boxed();
    let parts = prop_oneof![
        6 => maybe_string(),
        1 => Just(json!([{"type": "text", "text": "p"}])),
        1 => Just(json!([{"type": "thinking", "thinking": "h"}, {"type": "text", "text": "q"}])),
        1 => Just(json!([])),
    ]
    .boxed();
    let audio =
        prop_oneof![Just(json!({"data": "x"})), Just(json!({"id": "x", "transcript": ""})), Just(Value::Null)].boxed();
    let role = prop_oneof![Just(json!("assistant")), Just(Value::Null), Just(json!(""))].boxed();
    let delta = object(vec![
        ("role", role),
        ("content", parts),
        ("reasoning", maybe_string().boxed()),
        ("reasoning_content", maybe_string().boxed()),
        ("reasoning_details", call()),
        ("tool_calls", call()),
        ("function_call", call()),
        ("refusal", maybe_string().boxed()),
        ("audio", audio),
    ]);
    let finish = prop_oneof![
        5 => Just(Value::Null),
        1 => Just(json!("")),
        1 => Just(json!("null")),
        2 => Just(json!("stop")),
        1 => Just(json!("abort")),
        1 => noise(),
    ];
    let ids = prop_oneof![3 => Just(Value::Null), 1 => Just(json!([])), 2 => Just(json!([1, 2])), 1 => noise()];
    let choice = object(vec![
        ("index", prop_oneof![4 => Just(json!(0)), 1 => Just(json!(1)), 1 => Just(json!(70))].boxed()),
        ("delta", prop_oneof![9 => delta, 1 => noise().boxed()].boxed()),
        ("text", maybe_string().boxed()),
        ("finish_reason", finish.boxed()),
        ("token_ids", ids.boxed()),
        ("logprobs", noise().boxed()),
        ("message", noise().boxed()),
    ]);
    let details = || object(vec![("cached_tokens", number()), ("reasoning_tokens", number())]);
    let usage = object(vec![
        ("prompt_tokens", number()),
        ("completion_tokens", number()),
        ("total_tokens", number()),
        ("prompt_tokens_details", details()),
        ("completion_tokens_details", details()),
    ]);
    let choices = prop_oneof![
        6 => proptest::collection::vec(choice.clone(), 1).prop_map(Value::from),
        2 => proptest::collection::vec(choice, 0..3).prop_map(Value::from),
        1 => noise(),
    ];
    let error =
        prop_oneof![5 => Just(Value::Null), 1 => Just(json!({"message": "m"})), 1 => Just(json!("m")), 1 => noise()];
    object(vec![
        ("choices", choices.boxed()),
        ("usage", prop_oneof![1 => Just(Value::Null), 3 => usage].boxed()),
        ("error", error.boxed()),
        ("object", prop_oneof![4 => Just(json!("chat.completion.chunk")), 1 => Just(json!("error"))].boxed()),
        ("id", noise().boxed()),
    ])
}

/// Two choices of one index, or a usage that a nested detail also states, are beyond what the two readings define alike.
fn is_plain(chunk: &Value) -> bool {
    let indexes: Vec<_> = chunk["choices"].as_array().into_iter().flatten().map(|choice| &choice["index"]).collect();
    let usage = &chunk["usage"];
    indexes.iter().enumerate().all(|(i, index)| !index.is_null() && !indexes[..i].contains(index) || indexes.len() < 2)
        && usage["prompt_tokens_details"]["reasoning_tokens"].is_null()
}

fn check(chunk: &Value, bytes: &[u8]) -> Result<(), TestCaseError> {
    let (event, outcome) = scanned(bytes);
    let Some(event) = event else { return Err(TestCaseError::fail("no event")) };
    prop_assert_eq!(reading_of(event, &outcome), reference(chunk), "{}", chunk);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 0, /* shrinking these shuffled trees takes minutes */ failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scanner_reads_any_chunk_as_the_slow_reading_does(chunk in chunk().prop_filter("ambiguous", is_plain)) {
        check(&chunk, chunk.to_string().as_bytes())?;
        // White space between tokens, with data lines for its line ends, changes nothing.
        let pretty = serde_json::to_string_pretty(&chunk).unwrap().replace('\n', "\ndata:");
        check(&chunk, pretty.as_bytes())?;
        // Nor does it matter how strings are escaped.
        let ascii: String = chunk.to_string().chars().map(|c| {
            let mut units = [0; 2];
            if c.is_ascii() { c.to_string() } else { c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect() }
        }).collect();
        check(&chunk, ascii.as_bytes())?;
    }

    /// What is JSON for `serde_json` is for the scanner, and nothing else: otherwise broken data would pass as empty chunks.
    #[test]
    fn the_scanner_takes_exactly_what_is_json(
        chunk in chunk(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..4, prop_oneof![
            Just(b'"'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b','), Just(b':'), Just(b'\\'), Just(b'0'), Just(b'-'),
            Just(b'.'), Just(b'e'), Just(b'u'), Just(b'n'), Just(b't'), Just(b' '), Just(b'x'), Just(1u8)
        ]), 0..3),
    ) {
        let mut bytes = chunk.to_string().into_bytes();
        for (place, kind, byte) in edits {
            if bytes.is_empty() { break }
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_object = serde_json::from_str::<Map<String, Value>>(&text);
        let trimmed = text.trim();
        // `serde_json` alone minds numbers too large for it and lone surrogates, and drops the first of two equal keys.
        let is_moot = is_object.as_ref().is_err_and(|error| { let e = error.to_string(); e.contains("out of range") || e.contains("surrogate") });
        prop_assume!(!trimmed.is_empty() && trimmed != "null" && !is_moot);
        let (event, outcome) = scanned(text.as_bytes());
        let refused = matches!(&outcome.end, tailbound_wire::End::Failed(tailbound_wire::Fault::Protocol, _));
        if is_object.is_err() {
            prop_assert!(event.unwrap().fault, "{text}");
        } else {
            prop_assert!(!refused, "{text}: {:?}", outcome.end);
        }
    }
}
