use crate::server::*;
use std::io::Write;
use tailbound_client::{ClientError, Request, fetch, one, probe};
use tailbound_clock::Dur;
use tailbound_wire::Api;

#[test]
fn a_small_question_gets_its_whole_answer() {
    let addr = start(|mut stream, _| {
        let Some(request) = read_request(&mut stream) else { return };
        let line = request.lines().next().unwrap_or_default().to_owned();
        let _ = write!(stream, "HTTP/1.1 404 No\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n");
        let _ = write!(stream, "{}0\r\n\r\n", chunk(&line));
    });
    let reply = fetch(&target(addr), "/v1/models", None, Dur::from_secs(5)).unwrap();
    assert_eq!((reply.status, reply.content_type.as_deref()), (404, Some("text/plain")));
    assert_eq!(reply.body, b"GET /v1/models HTTP/1.1");
    let reply = fetch(&target(addr), "/tokenize", Some(b"{}"), Dur::from_secs(5)).unwrap();
    assert_eq!(reply.body, b"POST /tokenize HTTP/1.1");
}

#[test]
fn silence_and_half_answers_are_errors_that_name_the_address() {
    let silent = start(|stream, _| hold(stream));
    let e = fetch(&target(silent), "/", None, Dur::from_ms(100)).unwrap_err();
    assert!(matches!(e, ClientError::Exchange { phase: "wait for", .. }), "{e}");
    assert!(e.to_string().contains(&silent.to_string()));
    let cut = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    });
    let e = fetch(&target(cut), "/", None, Dur::from_secs(5)).unwrap_err();
    assert!(e.to_string().contains("in the middle"), "{e}");
}

#[test]
fn one_request_gives_its_row() {
    let addr = start(|stream, _| serve_well(stream, 3));
    let request = Request::new(Api::Completions, "/v1/completions", &b"{}"[..]);
    let row = one(&request, &target(addr), &quick()).unwrap();
    assert!(row.ok(), "{:?}", row.end);
    assert_eq!(row.chunks.len(), 3);
}

/// A stream of events 5 ms apart, through a socket that collects small writes (Nagle) or not.
fn dripping(nodelay: bool) -> std::net::SocketAddr {
    start(move |mut stream, _| {
        stream.set_nodelay(nodelay).expect("an option of the socket");
        read_request(&mut stream);
        let _ = stream.write_all(SSE_CHUNKED.as_bytes());
        for i in 0..24 {
            pause(5);
            let _ = stream.write_all(chunk(&event("x ", (i == 23).then_some("length"))).as_bytes());
        }
        let _ = stream.write_all(format!("{}0\r\n\r\n", chunk("data: [DONE]\n\n")).as_bytes());
        hold(stream);
    })
}

#[test]
fn a_probe_tells_who_waits_for_acknowledgements() {
    let request = Request::new(Api::Completions, "/v1/completions", &b"{}"[..]);
    for nodelay in [true, false] {
        let probe = probe(&request, &target(dripping(nodelay)), &quick()).unwrap();
        assert!(probe.row.ok(), "{:?}", probe.row.end);
        assert_eq!(probe.sends_at_once, nodelay);
    }
}

#[test]
fn delayed_acknowledgements_change_no_row_of_a_server_that_does_not_wait_for_them() {
    let addr = dripping(true);
    for acks in [tailbound_client::Acks::AtOnce, tailbound_client::Acks::Delayed] {
        let config = tailbound_client::Config { acks, ..quick() };
        let (rows, _) = drive(&spec(3, 3), &target(addr), &config, &tailbound_client::Control::new());
        for row in rows {
            assert!(row.ok(), "{:?}", row.end);
            assert_eq!(row.chunks.len(), 24);
        }
    }
}
