//! Whatever bytes come, in whatever pieces: no panic, no hang, and the same events.

use crate::captures::{data, load};
use proptest::prelude::*;
use tailbound_wire::cases::cases;
use tailbound_wire::sse::{Item, Parser};
use tailbound_wire::{Api, Decoder, Eof, Event, Head, Outcome};

const APIS: [Api; 6] =
    [Api::Completions, Api::Chat, Api::Responses, Api::Messages, Api::TgiGenerate, Api::LlamaCompletion];

fn decode(api: Api, kind: Option<&str>, pieces: &[&[u8]], eof: Eof) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(api, true, true);
    decoder.head(Head { status: 200, content_type: kind, content_encoding: None });
    pieces.iter().for_each(|piece| decoder.push(piece, |event| events.push(event)));
    let outcome = decoder.finish(eof, |event| events.push(event));
    (events, outcome)
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}

/// A slow reading of the standard: the whole text, line by line.
fn whatwg(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>, bool)> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut lines: Vec<(Vec<u8>, bool)> = Vec::new();
    let mut line = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\r' | b'\n' => {
                if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                    at += 1;
                }
                lines.push((std::mem::take(&mut line), true));
            }
            byte => line.push(byte),
        }
        at += 1;
    }
    if !line.is_empty() {
        lines.push((line, false));
    }
    let (mut name, mut data): (Vec<u8>, Option<Vec<u8>>) = Default::default();
    let mut events = Vec::new();
    for (line, _) in lines {
        if line.is_empty() {
            if let Some(data) = data.take() {
                events.push((std::mem::take(&mut name), data, true));
            }
            name.clear();
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => name = value.to_vec(),
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    if let Some(data) = data {
        events.push((name, data, false));
    }
    events
}

fn parsed(pieces: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>, bool)> {
    let mut events = Vec::new();
    let mut parser = Parser::new();
    let mut take = |item: Item<'_>| {
        if let Item::Event(event) = item {
            events.push((event.name.to_vec(), event.data.to_vec(), event.terminated));
        }
    };
    pieces.iter().for_each(|piece| parser.push(piece, &mut take).unwrap());
    parser.finish(&mut take).unwrap();
    events
}

/// Bytes out of which event streams are made.
fn streamish() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: [&[u8]; 24] = [
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"data:",
        b"data: ",
        b"data",
        b"event: ",
        b"event:ping",
        b"id: 1",
        b"retry: 5",
        b":",
        b": ping",
        b" ",
        b"x",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"[DONE]",
        b"{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        b"{\"error\":\"e\"}",
        b"\0",
        b"\xF0\x9F",
        b"{",
        b"<html>",
    ];

    proptest::collection::vec(prop::sample::select(&TOKENS[..]), 0..30).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_agrees_with_the_standard_however_the_bytes_are_cut(
        bytes in streamish(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let right = whatwg(&bytes);
        prop_assert_eq!(&parsed(&[&bytes]), &right);
        prop_assert_eq!(&parsed(&pieces(&bytes, &cuts)), &right);
        prop_assert_eq!(&parsed(&bytes.chunks(1).collect::<Vec<_>>()), &right);
    }

    #[test]
    fn any_bytes_are_survived_and_cuts_change_nothing(
        bytes in prop_oneof![streamish(), proptest::collection::vec(any::<u8>(), 0..300)],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        api in prop::sample::select(APIS.to_vec()),
        kind in prop::sample::select(vec![None, Some("text/event-stream"), Some("application/json"), Some("text/html")]),
        eof in prop::sample::select(vec![Eof::Clean, Eof::Reset]),
    ) {
        let whole = decode(api, kind, &[&bytes], eof);
        prop_assert_eq!(&decode(api, kind, &pieces(&bytes, &cuts), eof), &whole);
        prop_assert_eq!(&decode(api, kind, &bytes.chunks(1).collect::<Vec<_>>(), eof), &whole);
    }

    #[test]
    fn damaged_answers_are_survived_and_cuts_change_nothing(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 1..8),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        api in prop::sample::select(APIS.to_vec()),
        same_api in prop::bool::weighted(0.8),
    ) {
        thread_local! { static ANSWERS: Vec<(Api, Vec<u8>)> = answers(); }
        let (own, mut bytes) = ANSWERS.with(|answers| which.get(answers).clone());
        for (place, kind, byte) in edits {
            if bytes.is_empty() { break }
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.drain(at..(at + usize::from(byte)).min(bytes.len()))),
                _ => { let again = bytes[at..(at + usize::from(byte)).min(bytes.len())].to_vec(); bytes.splice(at..at, again); }
            }
        }
        let api = if same_api { own } else { api };
        let whole = decode(api, Some("text/event-stream"), &[&bytes], Eof::Clean);
        prop_assert_eq!(&decode(api, Some("text/event-stream"), &pieces(&bytes, &cuts), Eof::Clean), &whole);
        // An event more or less than there are blank lines would mean that bytes were read twice or not at all.
        prop_assert!(whole.0.len() <= bytes.len());
    }
}

/// Captured streams, and the suite's shorter ones.
fn answers() -> Vec<(Api, Vec<u8>)> {
    let mut all: Vec<(Api, Vec<u8>)> = cases()
        .into_iter()
        .map(|case| (case.api, case.steps.into_iter().flat_map(|step| step.bytes).collect::<Vec<u8>>()))
        .filter(|(_, bytes)| bytes.len() < 5000)
        .collect();
    for (file, api) in [
        ("vllm/chat_stream.sse", Api::Chat),
        ("vllm/completions_stream.sse", Api::Completions),
        ("vllm/responses_stream.sse", Api::Responses),
        ("vllm/anthropic_messages_stream.sse", Api::Messages),
        ("llamacpp/chat_stream.sse", Api::Chat),
        ("llamacpp/native_completion_stream.sse", Api::LlamaCompletion),
    ] {
        if data().is_some() {
            all.extend(load(file).map(|capture| (api, capture.body)));
        }
    }
    all
}

#[test]
fn an_endless_event_is_refused_and_costs_no_more_memory_than_the_limit() {
    let mut parser = Parser::with_limit(1000);
    let mut pushes = 0;
    let refused = loop {
        if let Err(error) = parser.push(b"data: 0123456789 and no end of line ", |_| {}) {
            break error;
        }
        pushes += 1;
        assert!(pushes < 100);
    };
    assert_eq!(refused.to_string(), "a stream event is longer than 1000 bytes");
    let mut decoder = Decoder::new(Api::Chat, true, false).with_event_limit(1000);
    decoder.head(Head { status: 200, content_type: Some("text/event-stream"), content_encoding: None });
    decoder.push("data: x\n".repeat(1000).as_bytes(), |_| {});
    let outcome = decoder.finish(Eof::Clean, |_| {});
    assert_eq!(
        outcome.end,
        tailbound_wire::End::Failed(tailbound_wire::Fault::Protocol, "a stream event is longer than 1000 bytes".into())
    );
}

#[test]
fn ids_and_retries_are_kept() {
    let mut parser = Parser::new();
    parser.push(b"id: 7\nretry: 2500\ndata: x\n\nid: a\0b\nretry: 1x\n\n", |_| {}).unwrap();
    assert_eq!((parser.last_id(), parser.retry_ms()), (&b"7"[..], Some(2500)));
}
