//! The conformance suite of streams, carried over HTTP/2: however frames and reads cut them, every case is read as it should be.

use super::super::frame::{flag, kind};
use super::{PLAIN, Said, asked};
use crate::http::{Cut, Part, Stop};
use tailbound_wire::cases::{Case, Framing, cases};
use tailbound_wire::{Decoder, End, Eof, Fault, Head, Outcome};

/// How a case's body is put into frames.
#[derive(Clone, Copy, Debug)]
enum Carried {
    /// A frame a step, and an empty one that ends it.
    Steps,
    /// Padded frames of a few bytes, with all that may stand between them; a trailer ends it.
    Crumbs,
    /// As few frames as can be, the last of which ends the stream.
    Whole,
}

fn carry(case: &Case, how: Carried) -> Vec<u8> {
    let status = case.status.to_string();
    let bytes: Vec<u8> = case.steps.iter().flat_map(|step| &step.bytes).copied().collect();
    let length = bytes.len().to_string();
    let mut fields = vec![(":status", status.as_str())];
    fields.extend(case.content_type.map(|kind| ("content-type", kind)));
    fields.extend(case.content_encoding.map(|encoding| ("content-encoding", encoding)));
    if case.framing == Framing::Length && case.eof == Eof::Clean {
        fields.push(("content-length", &length));
    }
    let said = Said::settings(PLAIN);
    let broken = case.eof == Eof::Reset;
    match how {
        Carried::Steps => {
            let said = case.steps.iter().fold(said.head(1, &fields, 0), |said, step| said.body(1, &step.bytes));
            if broken { said.reset(1, 2).0 } else { said.data(1, b"", flag::END_STREAM).0 }
        }
        Carried::Crumbs => {
            let block = super::block(&fields);
            let (front, rest) = block.split_at(block.len() / 2);
            let mut said = said.head(1, &[(":status", "103")], 0).frame(kind::HEADERS, 0, 1, front);
            said = said.frame(kind::CONTINUATION, 0, 1, b"").frame(kind::CONTINUATION, flag::END_HEADERS, 1, rest);
            for (i, crumb) in bytes.chunks(11).enumerate() {
                let padded = [&[(i % 5) as u8][..], crumb, &[0; 5][..i % 5]].concat();
                said = said.data(1, &padded, flag::PADDED).window(1, 7).window(0, 9);
                said = said.frame(kind::PING, 0, 0, b"are you?").frame(0xbe, 0xff, 1, b"unknown");
            }
            if broken { said.reset(1, 2).0 } else { said.head(1, &[("x-trailer", "1")], flag::END_STREAM).0 }
        }
        Carried::Whole => {
            let (most, last) = bytes.split_at(bytes.len().saturating_sub(9_000));
            let said = said.head(1, &fields, 0).body(1, most);
            if broken { said.body(1, last).reset(1, 2).0 } else { said.data(1, last, flag::END_STREAM).0 }
        }
    }
}

/// As a request in flight reads it.
fn read(case: &Case, pieces: &[&[u8]]) -> Outcome {
    let (mut session, _) = asked(b"{}");
    let mut decoder = Decoder::new(case.api, case.stream, true).with_choices(case.choices);
    for piece in pieces {
        let mut input = *piece;
        loop {
            match session.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Part::Head(head))) => decoder.head(Head {
                    status: head.status,
                    content_type: head.content_type.as_deref(),
                    content_encoding: head.content_encoding.as_deref(),
                }),
                Ok(Some(Part::Body(body))) => decoder.push(body, |_| {}),
                Ok(Some(Part::End)) => {
                    assert!(session.between(input), "{}: the connection can go on", case.name);
                    return decoder.finish(Eof::Clean, |_| {});
                }
                Err(Stop::Reset(why)) => {
                    assert!(why.contains("INTERNAL_ERROR"), "{why}");
                    return decoder.finish(Eof::Reset, |_| {});
                }
                Err(other) => panic!("{}: {other:?}", case.name),
            }
        }
    }
    assert_eq!(session.close(), Cut::Broken);
    panic!("{}: neither end nor reset", case.name);
}

fn check(case: &Case, how: &str, outcome: &Outcome) {
    let truth = &case.truth;
    let end: Result<Option<&str>, Fault> = match &outcome.end {
        End::Done(reason) => Ok(reason.as_deref()),
        End::Failed(fault, _) => Err(*fault),
    };
    assert_eq!(end, truth.end, "{} ({how}): {outcome:?}", case.name);
    assert_eq!(outcome.outputs, truth.outputs, "{} ({how})", case.name);
    assert_eq!(
        outcome.text.as_ref().map(|text| text.visible()).unwrap_or_default(),
        truth.text,
        "{} ({how})",
        case.name
    );
}

#[test]
fn every_case_is_read_right_however_it_is_carried() {
    for case in cases() {
        for how in [Carried::Steps, Carried::Crumbs, Carried::Whole] {
            let bytes = carry(&case, how);
            check(&case, &format!("{how:?} at once"), &read(&case, &[&bytes]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            check(&case, &format!("{how:?} byte by byte"), &read(&case, &single));
        }
    }
}

#[test]
fn every_case_is_read_right_wherever_it_is_cut() {
    for (i, case) in cases().into_iter().enumerate() {
        let bytes = carry(&case, Carried::Crumbs);
        // Some cases at every place; the others at every place of what stands before the body, and at some of the rest (long
        // ones only at some).
        let stride = if i % 16 == 0 && bytes.len() < 3_000 { 1 } else { 1 + bytes.len() / 30 };
        let front = if bytes.len() < 20_000 { 120.min(bytes.len()) } else { 0 };
        let cuts = (0..front).chain((front..bytes.len()).step_by(stride));
        for cut in cuts {
            check(&case, &format!("cut at {cut}"), &read(&case, &[&bytes[..cut], &bytes[cut..]]));
        }
    }
}
