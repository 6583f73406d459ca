use crate::server::*;
use std::io::Write;
use std::net::TcpListener;
use tailbound_client::{Config, Timeouts};
use tailbound_clock::Dur;
use tailbound_record::{Blame, Cause, End, Finish, Limit, Moment, Phase, Row};

fn failure(row: &Row) -> (Phase, Blame, Cause, String) {
    match &row.end {
        End::Failed { phase, blame, cause, detail } => (*phase, *blame, *cause, detail.to_string()),
        other => panic!("not failed: {other:?}"),
    }
}

/// A server that answers every request with these bytes and hangs up.
fn says(bytes: impl Into<Vec<u8>>) -> std::net::SocketAddr {
    let bytes = bytes.into();
    start(move |mut stream, _| {
        if read_request(&mut stream).is_some() {
            let _ = stream.write_all(&bytes);
        }
    })
}

#[test]
fn a_refused_connection_is_the_networks() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let row = ask(addr, &quick());
    let (phase, blame, cause, detail) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Connect, Blame::Network, Cause::Refused));
    assert!(detail.contains(&addr.to_string()), "{detail}");
    assert_eq!(row.at.get(Moment::WriteStart), None);
    assert!(row.at.get(Moment::ConnectStart).is_some());
}

#[test]
fn a_server_that_hangs_up_at_once_is_not_asked_again() {
    let row = ask(start(|mut stream, _| drop(read_request(&mut stream))), &quick());
    let (phase, _, cause, _) = failure(&row);
    assert_eq!((phase, cause, row.net.retries), (Phase::Headers, Cause::Reset, 0));
    // Without reading the request first, closing sends a reset instead of an end.
    let row = ask(start(|_, _| pause(20)), &quick());
    let (_, _, cause, _) = failure(&row);
    assert_eq!((cause, row.net.retries), (Cause::Reset, 0));
}

#[test]
fn a_stream_cut_off_in_the_middle_keeps_what_came() {
    let row =
        ask(says(format!("{SSE_CHUNKED}{}{}", chunk(&event("a", None)), &chunk(&event("b", None))[..20])), &quick());
    let (phase, blame, cause, _) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Stream, Blame::Network, Cause::Reset));
    assert_eq!(row.chunks.len(), 1);
    assert_eq!(row.text.as_deref(), Some("a"));
    assert!(row.at.get(Moment::StreamEnd).is_some());
}

#[test]
fn a_clean_end_without_a_finish_is_a_failure() {
    let row = ask(says(format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk(&event("a", None)))), &quick());
    let (phase, blame, cause, _) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Stream, Blame::Server, Cause::EndedEarly));
}

#[test]
fn an_answer_without_a_token_is_a_failure() {
    let row = ask(says(format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk("data: [DONE]\n\n"))), &quick());
    assert_eq!(failure(&row).2, Cause::NoTokens);
}

#[test]
fn an_error_object_is_told_in_the_servers_words() {
    let body = chunk("data: {\"error\":{\"message\":\"out of blocks\",\"code\":500}}\n\n");
    let row = ask(says(format!("{SSE_CHUNKED}{}{body}0\r\n\r\n", chunk(&event("a", None)))), &quick());
    let (phase, blame, cause, detail) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Stream, Blame::Server, Cause::ErrorObject));
    assert!(detail.contains("out of blocks"), "{detail}");
}

#[test]
fn a_status_other_than_2xx_keeps_its_words() {
    let cases = [
        ("application/json", "{\"error\":{\"message\":\"no such model\"}}", "no such model"),
        ("text/html", "<html><head><title>502 Bad Gateway</title></head><body>x</body></html>", "502 Bad Gateway"),
        ("text/plain", "overloaded", "overloaded"),
    ];
    for (kind, body, says_so) in cases {
        let answer = format!("HTTP/1.1 503 X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let row = ask(says(answer), &quick());
        let (phase, blame, cause, detail) = failure(&row);
        assert_eq!((blame, cause, row.net.status), (Blame::Server, Cause::Status(503), 503));
        assert_eq!(phase, Phase::FirstToken);
        assert!(detail.contains(says_so), "{kind}: {detail}");
    }
}

#[test]
fn bytes_that_are_not_http_are_quoted() {
    let row = ask(says("SSH-2.0-OpenSSH_9.2\r\n"), &quick());
    let (_, blame, cause, detail) = failure(&row);
    assert_eq!((blame, cause), (Blame::Server, Cause::Protocol));
    assert!(detail.contains("SSH-2.0"), "{detail}");
}

#[test]
fn a_compressed_answer_is_refused_by_name() {
    let row = ask(says("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\u{0}ab"), &quick());
    let (_, _, cause, detail) = failure(&row);
    assert_eq!(cause, Cause::Protocol);
    assert!(detail.contains("gzip"), "{detail}");
}

#[test]
fn an_answer_before_the_whole_request_was_read_still_counts() {
    // It answers and hangs up without reading: the write fails, or the connection is reset behind the answer.
    let addr = start(|mut stream, _| {
        let body = "{\"error\":{\"message\":\"too long\"}}";
        let _ = write!(stream, "HTTP/1.1 413 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let _ = stream.flush();
        pause(50);
    });
    let row = ask(addr, &quick());
    assert_eq!(failure(&row).2, Cause::Status(413));
}

fn limited(set: impl FnOnce(&mut Config)) -> Config {
    let mut config = quick();
    set(&mut config);
    config
}

#[test]
fn each_time_limit_is_named() {
    let silent = start(|mut stream, _| {
        read_request(&mut stream);
        hold(stream);
    });
    let row = ask(silent, &limited(|c| c.timeouts.first_token = Dur::from_ms(80)));
    let (phase, blame, cause, _) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Headers, Blame::Server, Cause::Timeout(Limit::FirstToken)));

    let row = ask(silent, &limited(|c| c.timeouts.request = Dur::from_ms(80)));
    assert_eq!(failure(&row).2, Cause::Timeout(Limit::Request));

    let stalling = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}", chunk(&event("a", None)));
        hold(stream);
    });
    let row = ask(stalling, &limited(|c| c.timeouts.gap = Dur::from_ms(80)));
    let (phase, blame, cause, _) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Stream, Blame::Server, Cause::Timeout(Limit::Gap)));
    assert_eq!(row.chunks.len(), 1);
}

/// The limits of a run without `--first-token-timeout` are hours long; the look at them must not hide a nearer one that comes later.
#[test]
fn a_gap_is_limited_even_where_nothing_before_it_is() {
    let stalling = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}", chunk(&event("a", None)));
        hold(stream);
    });
    let hours = Dur::from_secs(6 * 3600);
    let row = ask(
        stalling,
        &limited(|c| {
            c.timeouts = Timeouts { connect: hours, first_token: hours, gap: Dur::from_ms(80), request: hours };
        }),
    );
    assert_eq!(failure(&row).2, Cause::Timeout(Limit::Gap));
}

#[test]
fn connecting_has_a_limit_too() {
    // A listener with a full queue drops further SYNs.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    tailbound_os::socket::widen_backlog(&listener, 0).unwrap();
    let addr = listener.local_addr().unwrap();
    let fillers: Vec<_> = (0..4)
        .filter_map(|_| std::net::TcpStream::connect_timeout(&addr, std::time::Duration::from_millis(100)).ok())
        .collect();
    let row = ask(addr, &limited(|c| c.timeouts.connect = Dur::from_ms(150)));
    let (phase, blame, cause, _) = failure(&row);
    assert_eq!((phase, blame, cause), (Phase::Connect, Blame::Network, Cause::Timeout(Limit::Connect)));
    drop(fillers);
}

#[test]
fn an_answer_that_is_over_needs_no_end_of_its_body() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}", chunk(&stream_of(3)));
        hold(stream); // and the last chunk never comes
    });
    let row = ask(addr, &limited(|c| c.timeouts.gap = Dur::from_ms(100)));
    assert_eq!(row.end, End::Done(Finish::Length));
    assert_eq!(row.tokens.output_server, Some(3));
}
