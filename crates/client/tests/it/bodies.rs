use crate::server::*;
use std::io::Write;
use tailbound_client::Control;
use tailbound_record::{End, Finish, Moment};

fn framed(kind: &str, body: &str) -> String {
    match kind {
        "chunked" => {
            let mut all = SSE_CHUNKED.to_owned();
            for piece in body.as_bytes().chunks(37) {
                all += &chunk(std::str::from_utf8(piece).expect("ascii"));
            }
            all + "0\r\nx-trailer: 1\r\n\r\n"
        }
        "length" => {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
        _ => format!("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}"),
    }
}

#[test]
fn every_framing_gives_the_same_answer_however_it_is_split() {
    for kind in ["chunked", "length", "close"] {
        for piece in [1, 7, 64, 100_000] {
            let answer = framed(kind, &stream_of(5));
            let closes = kind == "close";
            let addr = start(move |mut stream, _| {
                let _ = stream.set_nodelay(true);
                while read_request(&mut stream).is_some() {
                    for part in answer.as_bytes().chunks(piece) {
                        if stream.write_all(part).is_err() {
                            return;
                        }
                    }
                    if closes {
                        return;
                    }
                }
            });
            let (rows, log) = drive(&spec(2, 1), &target(addr), &quick(), &Control::new());
            for row in &rows {
                assert_eq!(row.end, End::Done(Finish::Length), "{kind} by {piece}");
                assert_eq!(row.text.as_deref(), Some("w0 w1 w2 w3 w4 "), "{kind} by {piece}");
                assert_eq!(
                    (row.chunks.len(), row.tokens.output_server, row.tokens.prompt_server),
                    (5, Some(5), Some(7))
                );
            }
            assert_eq!(log.connections, if closes { 2 } else { 1 }, "{kind}");
            assert_eq!(rows[1].net.reused, !closes);
        }
    }
}

#[test]
fn every_moment_is_there_and_in_order() {
    let row = ask(start(|stream, _| serve_well(stream, 4)), &quick());
    let expected = [
        Moment::Scheduled,
        Moment::Released,
        Moment::ConnectStart,
        Moment::Connected,
        Moment::WriteStart,
        Moment::Written,
        Moment::Headers,
        Moment::FirstByte,
        Moment::FirstEvent,
        Moment::FirstToken,
        Moment::LastToken,
        Moment::StreamEnd,
    ];
    let times: Vec<_> = expected.iter().map(|&m| row.at.get(m).unwrap_or_else(|| panic!("no {}", m.name()))).collect();
    // The kernel's stamp may precede the return of the write that caused it.
    let written = 5;
    let rest: Vec<_> = times.iter().enumerate().filter(|(i, _)| *i != written).map(|(_, t)| *t).collect();
    assert!(rest.is_sorted(), "{row:?}");
    assert!(times[4] <= times[5]);
    for moment in [Moment::FirstVisible, Moment::Finish, Moment::Usage] {
        assert!(row.at.get(moment).is_some(), "no {}", moment.name());
    }
    assert_eq!(row.at.get(Moment::TlsDone), None);
    assert_eq!((row.tokens.output_asked, row.worker, row.net.status), (Some(5), 0, 200));
    assert!(row.net.body_bytes > 100 && row.net.reads >= 1);
}

#[test]
fn a_reply_in_one_piece_has_one_event() {
    let body = "{\"choices\":[{\"index\":0,\"text\":\"hello\",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}";
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let addr = start(move |mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(answer.as_bytes());
        hold(stream);
    });
    let row = ask(addr, &quick());
    assert_eq!((row.end.clone(), row.chunks.len()), (End::Done(Finish::Stop), 1));
    assert_eq!(row.text.as_deref(), Some("hello"));
}

#[test]
fn gathering_changes_no_row() {
    let addr = start(|stream, _| serve_well(stream, 6));
    let mut results = Vec::new();
    for gather in [true, false] {
        let config = tailbound_client::Config { gather, ..quick() };
        let (rows, _) = drive(&spec(40, 8), &target(addr), &config, &Control::new());
        results.push(
            rows.into_iter()
                .map(|r| (r.id, r.end, r.text, r.tokens, r.chunks.len(), r.net.status, r.net.body_bytes))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(results[0].len(), 40);
    assert_eq!(results[0], results[1]);
}

#[test]
fn the_request_is_what_was_asked_for() {
    let (sender, seen) = std::sync::mpsc::channel();
    let addr = start(move |mut stream, _| {
        let _ = sender.send(read_request(&mut stream));
        let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(1)));
    });
    let mut target = tailbound_client::Target::parse(&format!("http://{addr}/openai/")).unwrap();
    target.headers.push(tailbound_client::Header::new("Authorization", "Bearer k").unwrap());
    let (rows, _) = drive(&spec(1, 1), &target, &quick(), &Control::new());
    assert!(rows[0].ok(), "{:?}", rows[0].end);
    let request = seen.recv().unwrap().unwrap();
    assert!(request.starts_with("POST /openai/v1/completions HTTP/1.1\r\n"), "{request}");
    for line in [
        format!("host: {addr}"),
        "accept-encoding: identity".into(),
        "content-type: application/json".into(),
        "authorization: Bearer k".into(),
        "x-request-id: 0".into(),
        "content-length: 14".into(),
    ] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "no {line} in {request}");
    }
    assert!(request.ends_with("\r\n\r\n{\"prompt\":\"x\"}"));
}
