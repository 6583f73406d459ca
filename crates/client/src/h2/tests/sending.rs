use super::super::frame::{Frame, flag, kind, setting};
use super::super::session::Session;
use super::{Said, ask, asked, frames, output, read};
use proptest::prelude::*;

fn body_of(frames: &[(Frame, Vec<u8>)]) -> (Vec<u8>, bool) {
    let data: Vec<_> = frames.iter().filter(|(frame, _)| frame.kind == kind::DATA).collect();
    let body = data.iter().flat_map(|(_, payload)| payload).copied().collect();
    (body, data.last().is_some_and(|(frame, _)| frame.has(flag::END_STREAM)))
}

fn numbered(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

#[test]
fn a_long_body_waits_for_the_servers_leave() {
    let body = numbered(200_000);
    let (mut session, sent) = asked(&body);
    let (front, ends) = body_of(&frames(&sent));
    assert_eq!((&front[..], ends), (&body[..65_535], false));
    assert!(!session.all_handed_over());
    // The stream's window alone is of no use, nor the connection's.
    let mut all = front;
    for (said, more) in [
        (Said::settings(&[]), 0),
        (Said::default().window(1, 100_000), 0),
        (Said::default().window(0, 50_000), 50_000),
        (Said::default().window(0, 500_000), 50_000),
        (Said::settings(&[(setting::INITIAL_WINDOW_SIZE, 65_635)]), 100),
        (Said::settings(&[(setting::INITIAL_WINDOW_SIZE, 10)]), 0),
        (Said::default().window(1, 65_000), 0),
        (Said::default().window(1, 100_000), 200_000 - 65_535 - 100_100),
    ] {
        read(&mut session, &[&said.0]).unwrap();
        let sent = frames(&output(&mut session));
        assert!(sent.iter().all(|(frame, _)| frame.length <= 16_384));
        let (piece, _) = body_of(&sent);
        assert_eq!(piece.len(), more);
        all.extend(piece);
    }
    assert!(all == body && session.all_handed_over());
}

#[test]
fn an_answer_that_does_not_wait_for_the_body_ends_it() {
    let (mut session, _) = asked(&numbered(100_000));
    let said = Said::settings(&[]).head(1, &[(":status", "413")], flag::END_STREAM);
    assert!(read(&mut session, &[&said.0]).unwrap().complete);
    output(&mut session);
    session.between(&Said::default().window(0, 100_000).window(1, 100_000).0);
    assert_eq!(output(&mut session), b"");
}

#[test]
fn the_servers_longest_frame_is_kept_and_used() {
    let mut session = Session::default();
    session.greet();
    output(&mut session);
    session.between(&Said::settings(&[(setting::MAX_FRAME_SIZE, 40_000), (setting::INITIAL_WINDOW_SIZE, 1 << 20)]).0);
    output(&mut session);
    let sent = frames(&ask(&mut session, &numbered(40_000)));
    assert_eq!(sent.iter().map(|(frame, _)| frame.kind).collect::<Vec<_>>(), [kind::HEADERS, kind::DATA]);
    assert_eq!(body_of(&sent), (numbered(40_000), true));
}

#[test]
fn a_long_head_goes_on_in_further_frames() {
    let mut session = Session::default();
    let mut out = Vec::new();
    let head = numbered(40_000);
    session.begin(&mut out, |out| out.extend_from_slice(&head), b"");
    let sent: Vec<_> = frames(&out).into_iter().filter(|(frame, _)| frame.stream == 1).collect();
    let shape: Vec<_> = sent.iter().map(|(frame, _)| (frame.kind, frame.flags, frame.length)).collect();
    let last = 40_000 - 2 * 16_384;
    assert_eq!(
        shape,
        [
            (kind::HEADERS, flag::END_STREAM, 16_384),
            (kind::CONTINUATION, 0, 16_384),
            (kind::CONTINUATION, flag::END_HEADERS, last)
        ]
    );
    assert_eq!(sent.iter().flat_map(|(_, payload)| payload).copied().collect::<Vec<_>>(), head);
}

#[test]
fn a_server_with_a_small_table_is_told_that_it_stays_empty() {
    let (mut session, _) = asked(b"{}");
    let said = Said::settings(&[(setting::HEADER_TABLE_SIZE, 0)]).ok(1).data(1, b"", flag::END_STREAM);
    assert!(read(&mut session, &[&said.0]).unwrap().complete);
    output(&mut session);
    let first_byte = |session: &mut Session| frames(&ask(session, b"{}"))[0].1[0];
    assert_eq!(first_byte(&mut session), 0x20);
    read(&mut session, &[&Said::default().ok(3).data(3, b"", flag::END_STREAM).0]).unwrap();
    assert_eq!(first_byte(&mut session), 0, "once is enough");
}

#[test]
fn a_server_that_takes_no_streams_gets_no_more() {
    let (mut session, _) = asked(b"{}");
    let said = Said::settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)]).ok(1).data(1, b"", flag::END_STREAM);
    assert!(read(&mut session, &[&said.0]).unwrap().complete);
    assert!(!session.keep_alive());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever leave a server gives, and when: never more is sent than it allows, and all of it in the end.
    #[test]
    fn no_window_is_overrun(
        length in 1usize..300_000,
        steps in proptest::collection::vec((0u8..3, 1u32..60_000), 0..30),
    ) {
        let body = numbered(length);
        let (mut session, sent) = asked(&body);
        let (mut windows, mut initial) = ([65_535i64; 2], 65_535i64);
        let (mut all, _) = body_of(&frames(&sent));
        windows.iter_mut().for_each(|window| *window -= all.len() as i64);
        let last = [(0, 400_000), (1, 400_000)];
        for (kind, value) in steps.into_iter().chain(last) {
            let said = match kind {
                2 => {
                    windows[1] += i64::from(value) - initial;
                    initial = i64::from(value);
                    Said::settings(&[(setting::INITIAL_WINDOW_SIZE, value)])
                }
                of => {
                    windows[usize::from(of)] += i64::from(value);
                    Said::default().window(u32::from(of), value)
                }
            };
            let front = if session.peer.settled { vec![] } else { Said::settings(&[]).0 };
            prop_assert!(read(&mut session, &[&front, &said.0]).is_ok());
            let sent = frames(&output(&mut session));
            prop_assert!(sent.iter().all(|(frame, _)| frame.length <= 16_384));
            let (piece, _) = body_of(&sent);
            windows.iter_mut().for_each(|window| *window -= piece.len() as i64);
            prop_assert!(piece.is_empty() || windows.iter().all(|&window| window >= 0));
            all.extend(piece);
            let room = windows[0].min(windows[1]);
            prop_assert!(room <= 0 || all.len() == body.len(), "what may be sent is sent");
        }
        prop_assert!(all == body && session.all_handed_over());
    }
}
