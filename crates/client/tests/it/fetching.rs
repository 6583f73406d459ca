use crate::server::*;
use std::io::Write;
use tailbound_client::{ClientError, Request, fetch, one};
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
