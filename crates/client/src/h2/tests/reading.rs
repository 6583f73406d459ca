use super::super::frame::{flag, kind, setting};
use super::super::session::Session;
use super::{Answer, PLAIN, Said, ask, asked, block, frames, output, read};
use crate::http::{Cut, Stop};
use proptest::prelude::*;

fn answered(said: Said) -> Result<Answer, Stop> {
    read(&mut asked(b"{}").0, &[&said.0])
}

#[test]
fn an_answer_and_the_next_one_on_the_same_connection() {
    let (mut session, sent) = asked(b"{}");
    let kinds = |bytes: &[u8]| frames(bytes).iter().map(|(f, _)| (f.kind, f.flags, f.stream)).collect::<Vec<_>>();
    let request = |id| [(kind::HEADERS, flag::END_HEADERS, id), (kind::DATA, flag::END_STREAM, id)];
    assert!(sent.starts_with(b"PRI * HTTP/2.0"));
    assert_eq!(kinds(&sent), [&[(kind::SETTINGS, 0, 0), (kind::WINDOW_UPDATE, 0, 0)][..], &request(1)].concat());
    let said = Said::settings(PLAIN).ok(1).data(1, b"one", flag::END_STREAM);
    assert!(!session.keep_alive());
    let answer = read(&mut session, &[&said.0]).unwrap();
    assert_eq!((answer.status, &answer.body[..], answer.complete), (200, &b"one"[..], true));
    assert!(session.keep_alive());
    assert_eq!(kinds(&output(&mut session)), [(kind::SETTINGS, flag::ACK, 0)]);
    assert_eq!(kinds(&ask(&mut session, b"{}")), request(3));
    let said = Said::default().reset(1, 0).ok(3).data(3, b"two", 0).head(3, &[("t", "1")], flag::END_STREAM);
    assert_eq!(read(&mut session, &[&said.0]).unwrap().body, b"two");
    assert!(session.keep_alive());
}

#[test]
fn a_head_can_be_all_there_is() {
    let said = Said::settings(&[]).head(1, &[(":status", "204"), ("content-length", "5")], flag::END_STREAM);
    assert_eq!(answered(said), Ok(Answer { status: 204, body: vec![], complete: true }));
}

#[test]
fn pings_and_settings_are_acknowledged_whenever_they_come() {
    let mut session = Session::default();
    session.greet();
    output(&mut session);
    assert!(session.between(&Said::settings(PLAIN).frame(kind::PING, 0, 0, b"12345678").0));
    let said = frames(&output(&mut session));
    let said: Vec<_> = said.iter().map(|(frame, payload)| (frame.kind, frame.flags, &payload[..])).collect();
    assert_eq!(said, [(kind::SETTINGS, flag::ACK, &b""[..]), (kind::PING, flag::ACK, b"12345678")]);
    assert!(session.between(&Said::default().frame(kind::PING, flag::ACK, 0, b"12345678").0));
    assert_eq!(output(&mut session), b"");
}

#[test]
fn what_breaks_the_rules_is_an_error_that_is_told_to_the_server() {
    let start = || Said::settings(&[]);
    let ok = || start().ok(1);
    let cases: Vec<(Said, &str)> = vec![
        (start().data(1, b"x", 0), "before its head (PROTOCOL_ERROR)"),
        (ok().data(3, b"x", 0), "never opened"),
        (ok().data(2, b"x", 0), "never opened"),
        (ok().frame(kind::PUSH_PROMISE, 4, 1, &[0; 8]), "not asked for"),
        (ok().frame(kind::CONTINUATION, 4, 1, b""), "hang together"),
        (start().frame(kind::HEADERS, 0, 1, &block(&[(":status", "200")])).data(1, b"", 0), "hang together"),
        (ok().data(1, &[9, 0, 0], flag::PADDED), "more padding"),
        (ok().data(1, b"", flag::PADDED), "FRAME_SIZE_ERROR"),
        (ok().data(1, &[0; 16_385], 0), "16385 bytes"),
        (ok().frame(kind::PING, 0, 0, b"short"), "wrong length (FRAME_SIZE_ERROR)"),
        (ok().frame(kind::PING, 0, 1, b"12345678"), "wrong stream"),
        (ok().frame(kind::SETTINGS, 0, 1, b""), "wrong stream"),
        (ok().frame(kind::RST_STREAM, 0, 0, &[0; 4]), "wrong stream"),
        (ok().window(0, 0), "by nothing"),
        (ok().window(0, i32::MAX as u32), "FLOW_CONTROL_ERROR"),
        (ok().window(1, i32::MAX as u32), "FLOW_CONTROL_ERROR"),
        (Said::settings(&[(setting::INITIAL_WINDOW_SIZE, u32::MAX)]), "FLOW_CONTROL_ERROR"),
        (Said::settings(&[(setting::MAX_FRAME_SIZE, 100)]), "limit on frames"),
        (Said::settings(&[(setting::ENABLE_PUSH, 1)]), "pushes"),
        (start().head(1, &[(":status", "101")], 0), "switched protocols"),
        (start().head(1, &[(":status", "100")], flag::END_STREAM), "interim"),
        (start().head(1, &[(":status", "2000")], 0), "not a status"),
        (start().head(1, &[("content-type", "a")], 0), "without a status"),
        (start().head(1, &[("a", "b"), (":status", "200")], 0), "out of place"),
        (start().head(1, &[(":status", "200"), (":status", "200")], 0), "out of place"),
        (start().head(1, &[(":status", "200"), ("connection", "close")], 0), "\"connection\""),
        (start().frame(kind::HEADERS, 4, 1, b"\x00\x01A\x01b"), "not the name of a field"),
        (start().frame(kind::HEADERS, 4, 1, b"\xc5"), "COMPRESSION_ERROR"),
        (ok().head(1, &[(":status", "200")], 0), "second head"),
        (ok().head(1, &[("t", "1")], 0), "second head"),
        (start().head(1, &[(":status", "200"), ("content-length", "3")], 0).data(1, b"four", 0), "longer than"),
        (start().head(1, &[(":status", "200"), ("content-length", "3")], 0).data(1, b"ab", 1), "after 2 of 3"),
        (start().head(1, &[(":status", "200"), ("content-length", "3")], flag::END_STREAM), "after 0 of 3"),
        (start().head(1, &[(":status", "200"), ("content-length", "x")], 0), "not a content-length"),
        (start().head(1, &[(":status", "200"), ("x", &"y".repeat(70_000))], 0), "bytes, where 16384"),
    ];
    for (said, says) in cases {
        let (mut session, _) = asked(b"{}");
        let stopped = read(&mut session, &[&said.0]);
        let Err(Stop::Bad(what)) = stopped else { panic!("{says}: {stopped:?}") };
        assert!(what.contains(says), "{what} lacks {says}");
        assert!(!session.keep_alive());
        assert_eq!(frames(&output(&mut session)).last().map(|(frame, _)| frame.kind), Some(kind::GOAWAY), "{says}");
    }
}

#[test]
fn who_does_not_speak_it_is_quoted() {
    let said = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    for cut in 0..said.len() {
        let stopped = read(&mut asked(b"{}").0, &[&said[..cut], &said[cut..]]);
        let Err(Stop::Bad(what)) = stopped else { panic!("{stopped:?}") };
        assert!(what.starts_with("the server does not speak HTTP/2: it answered \"HTTP/1.1 "), "{what}");
    }
}

#[test]
fn the_server_gives_requests_back_or_breaks_them_off() {
    let start = || Said::settings(&[]);
    let words = |said: Said| match answered(said) {
        Err(Stop::Refused(why)) => format!("refused: {why}"),
        Err(Stop::Reset(why)) => format!("reset: {why}"),
        other => format!("{other:?}"),
    };
    assert_eq!(words(start().reset(1, 7)), "refused: the server refused the request (REFUSED_STREAM)");
    assert_eq!(words(start().ok(1).reset(1, 7)), "reset: the server broke the answer off (REFUSED_STREAM)");
    assert_eq!(words(start().reset(1, 0xd)), "reset: the server broke the answer off (HTTP_1_1_REQUIRED)");
    assert_eq!(words(start().ok(1).reset(1, 99)), "reset: the server broke the answer off (error 0x63)");
    assert_eq!(
        words(start().goodbye(0, 11, "slow\n")),
        "refused: the server said goodbye (ENHANCE_YOUR_CALM: slow\\n)"
    );
    // A goodbye that covers the request lets its answer come, and no other.
    let (mut session, _) = asked(b"{}");
    let said = start().goodbye(1, 0, "").ok(1).data(1, b"x", flag::END_STREAM);
    assert!(read(&mut session, &[&said.0]).unwrap().complete);
    assert!(!session.keep_alive());
}

#[test]
fn what_the_end_of_the_connection_means() {
    let close_after = |said: Said| {
        let (mut session, _) = asked(b"{}");
        read(&mut session, &[&said.0]).unwrap();
        (session.close(), session.farewell())
    };
    assert_eq!(close_after(Said::default()), (Cut::Nothing, Some("it may not speak HTTP/2".into())));
    assert_eq!(close_after(Said::settings(&[])), (Cut::Nothing, None));
    assert_eq!(close_after(Said::settings(&[]).ok(1).data(1, b"x", 0)), (Cut::Broken, None));
    let said = Said::settings(&[]).ok(1).goodbye(1, 2, "");
    assert_eq!(close_after(said), (Cut::Broken, Some("the server said goodbye (INTERNAL_ERROR)".into())));
    assert_eq!(close_after(Said::settings(&[]).ok(1).data(1, b"x", 1)), (Cut::End, None));
}

#[test]
fn a_head_without_end_comes_to_one() {
    for fragment in [vec![], vec![0; 1000]] {
        let (mut session, _) = asked(b"{}");
        let mut stopped = read(&mut session, &[&Said::settings(&[]).frame(kind::HEADERS, 0, 1, &fragment).0]);
        for _ in 0..10_000 {
            stopped = stopped
                .and_then(|_| read(&mut session, &[&Said::default().frame(kind::CONTINUATION, 0, 1, &fragment).0]));
        }
        assert!(matches!(stopped, Err(Stop::Bad(what)) if what.contains("longer than")));
    }
}

#[test]
fn so_do_demands_for_acknowledgements() {
    let mut session = Session::default();
    session.greet();
    let mut said = Said::settings(&[]);
    for _ in 0..20_000 {
        said = said.frame(kind::PING, 0, 0, b"12345678");
    }
    assert!(!session.between(&said.0));
    assert!(output(&mut session).len() < 200_000);
}

#[test]
fn a_long_body_never_runs_out_of_window() {
    const HALF: u32 = 1 << 30;
    let (mut session, _) = asked(b"{}");
    read(&mut session, &[&Said::settings(&[]).ok(1).0]).unwrap();
    output(&mut session);
    // As after a gigabyte, all but a little, of which the stream's share came with this answer.
    session.taken = HALF - 40_000;
    session.stream.taken = HALF - 60_000;
    let frame = Said::default().data(1, &[7; 16_384], 0).0;
    let mut leave = Vec::new();
    for sent in 1..=5 {
        let mut input = &frame[..];
        while session.next(&mut input).unwrap().is_some() {}
        for (frame, payload) in frames(&output(&mut session)) {
            assert_eq!(frame.kind, kind::WINDOW_UPDATE);
            leave.push((sent, frame.stream, u32::from_be_bytes(payload.try_into().unwrap())));
        }
    }
    assert_eq!(leave, [(3, 0, HALF - 40_000 + 3 * 16_384), (4, 1, HALF - 60_000 + 4 * 16_384)]);
    assert_eq!((session.taken, session.stream.taken), (2 * 16_384, 16_384));
}

proptest! {
    /// Frames that make sense or nearly: never a panic, and little is kept.
    #[test]
    fn no_frames_make_it_panic_or_grow(
        list in proptest::collection::vec(
            (0u8..12, any::<u8>(), 0u32..5, proptest::collection::vec(any::<u8>(), 0..60), 0usize..9), 0..40),
        piece in 1usize..40,
    ) {
        let mut said = Said::settings(&[]);
        for (kind, flags, stream, payload, lie) in list {
            said = match lie {
                0 => said.ok(1),
                1 => said.frame(kind, flags, stream, &payload[..payload.len().min(4)]),
                2 => Said([&said.0[..], &payload].concat()),
                _ => said.frame(kind, flags, stream, &payload),
            };
        }
        let (mut session, _) = asked(&[b'x'; 100_000]);
        let pieces: Vec<&[u8]> = said.0.chunks(piece).collect();
        let _ = read(&mut session, &pieces);
        session.close();
    }

    #[test]
    fn no_bytes_make_it_panic(noise in proptest::collection::vec(any::<u8>(), 0..300), settled in any::<bool>()) {
        let front = if settled { Said::settings(&[]).0 } else { vec![] };
        let _ = read(&mut asked(b"{}").0, &[&front, &noise]);
    }
}
