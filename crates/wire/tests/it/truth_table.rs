//! Every case of the conformance suite, read as sent, a byte at a time, all at once, and cut in two at every place.

use tailbound_wire::cases::{Case, Truth, cases, find};
use tailbound_wire::{Decoder, End, Event, Head, Outcome};

/// What a client with our decoder would have recorded.
#[derive(Default)]
struct Seen {
    events: Vec<(u32, Event)>,
}

fn decoder(case: &Case) -> Decoder {
    let mut decoder = Decoder::new(case.api, case.stream, true).with_choices(case.choices);
    decoder.head(Head {
        status: case.status,
        content_type: case.content_type,
        content_encoding: case.content_encoding,
    });
    decoder
}

fn play(case: &Case, cut: impl Fn(&[u8]) -> Vec<&[u8]>) -> (Seen, Outcome) {
    let mut seen = Seen::default();
    let mut decoder = decoder(case);
    let mut now = 0;
    for step in &case.steps {
        now += step.delay_ms;
        for piece in cut(&step.bytes) {
            decoder.push(piece, |event| seen.events.push((now, event)));
        }
    }
    let outcome = decoder.finish(case.eof, |event| seen.events.push((now, event)));
    (seen, outcome)
}

fn reading(seen: &Seen, outcome: &Outcome) -> Truth {
    let outputs: Vec<_> =
        seen.events.iter().filter_map(|(at, event)| event.output.map(|output| (*at, output))).collect();
    let stated: Option<u32> = outputs.iter().map(|(_, output)| output.tokens).sum();
    let (end, message) = match &outcome.end {
        // Only what the truth says of the message is compared.
        End::Done(reason) => (Ok(reason.as_deref().map(|reason| &*reason.to_owned().leak())), ""),
        End::Failed(fault, _) => (Err(*fault), ""),
    };
    Truth {
        end,
        message,
        ttft_ms: outputs.first().map(|(at, _)| *at),
        visible_ms: outputs.iter().find(|(_, output)| output.visible).map(|(at, _)| *at),
        last_ms: outputs.last().map(|(at, _)| *at),
        outputs: outcome.outputs,
        tokens: outcome.usage.output.or(stated).unwrap_or(outcome.outputs),
        text: outcome.text.as_ref().unwrap().visible(),
    }
}

fn check(case: &Case, how: &str, seen: &Seen, outcome: &Outcome) {
    let read = reading(seen, outcome);
    let truth = Truth { message: "", ..case.truth.clone() };
    assert_eq!(read, truth, "{} ({how}): {:?}", case.name, outcome);
    assert_eq!(
        seen.events.iter().filter(|(_, event)| event.output.is_some()).count() as u32,
        read.outputs,
        "{}",
        case.name
    );
    if let End::Failed(_, message) = &outcome.end {
        assert!(message.contains(case.truth.message), "{}: {message:?} lacks {:?}", case.name, case.truth.message);
        assert!(!message.is_empty() && !message.contains(['\n', '\r']), "{}: {message:?}", case.name);
    }
}

#[test]
fn every_case_is_read_right_as_it_is_sent() {
    for case in cases() {
        let (seen, outcome) = play(&case, |bytes| vec![bytes]);
        check(&case, "as sent", &seen, &outcome);
    }
}

#[test]
fn every_case_is_read_right_a_byte_at_a_time() {
    for case in cases() {
        let (seen, outcome) = play(&case, |bytes| bytes.chunks(1).collect());
        check(&case, "byte by byte", &seen, &outcome);
    }
}

#[test]
fn wherever_the_bytes_are_cut_the_events_are_the_same() {
    for case in cases() {
        let bytes: Vec<u8> = case.steps.iter().flat_map(|step| &step.bytes).copied().collect();
        let decode = |pieces: &[&[u8]]| {
            let mut events = Vec::new();
            let mut decoder = decoder(&case);
            pieces.iter().for_each(|piece| decoder.push(piece, |event| events.push(event)));
            let outcome = decoder.finish(case.eof, |event| events.push(event));
            (events, outcome)
        };
        let whole = decode(&[&bytes]);
        assert_eq!(reading_of_end(&whole.1), case.truth.end, "{} at once", case.name);
        let stride = 1 + bytes.len() / 300;
        for cut in (0..=bytes.len()).step_by(stride) {
            assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), whole, "{} cut at {cut}", case.name);
        }
    }
}

fn reading_of_end(outcome: &Outcome) -> Result<Option<&'static str>, tailbound_wire::Fault> {
    match &outcome.end {
        End::Done(reason) => Ok(reason.as_deref().map(|reason| &*reason.to_owned().leak())),
        End::Failed(fault, _) => Err(*fault),
    }
}

#[test]
fn the_published_cases_lead_and_every_name_is_found() {
    let all = cases();
    assert_eq!(all[0].name, "plain");
    assert_eq!(all[24].name, "no_usage", "the 25 published cases come first");
    assert!(all.len() >= 26 + 30, "only {} cases", all.len());
    for (i, case) in all.iter().enumerate() {
        assert_eq!(find(case.name).unwrap().about, case.about, "{} is not unique", case.name);
        assert_eq!(find(&format!("case-{:02}", i + 1)).unwrap().name, case.name);
    }
    assert!(find("case-0").is_none());
}

/// The published values themselves, so that the suite's script can't drift from them.
#[test]
fn the_published_truths_are_these() {
    let truth = |name: &str| find(name).unwrap().truth;
    let near = |name: &str, ttft: u32, gaps: u32, tokens: u32| {
        let truth = truth(name);
        assert!(truth.ttft_ms.unwrap().abs_diff(ttft) <= 5, "{name}: {truth:?}");
        assert_eq!((truth.gaps(), truth.tokens), (gaps, tokens), "{name}");
    };
    near("role_first", 310, 3, 4);
    near("reasoning_content", 110, 7, 8);
    near("reasoning", 110, 7, 8);
    near("tool_calls_only", 110, 3, 4);
    near("ping_before_tokens", 210, 3, 4);
    near("ping_between_tokens", 110, 3, 4);
    near("crlf", 100, 3, 4);
    near("usage_late", 110, 3, 4);
    near("finish_late", 110, 3, 4);
    near("empty_content", 110, 3, 4);
    near("bundles", 400, 4, 20);
    near("coalesced", 200, 15, 16);
    for name in ["error_midway", "error_first", "ended_early", "reset_midway"] {
        assert!(truth(name).end.is_err(), "{name}");
    }
    assert_eq!(truth("utf8_split").text, "中文");
    assert_eq!(truth("split_after_blank").text, "hello world");
    assert_eq!(truth("usage_late").last_ms, Some(410));
    assert_eq!(truth("finish_late").last_ms, Some(410));
}
