//! HTTP/2, against a server written frame by frame.

mod peer;

use crate::server::*;
use crate::tls::{tls_server_of, tls_target};
use peer::*;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use tailbound_client::{Config, Control, Header, Request, Requests, Target, Trust, fetch, one, probe, run};
use tailbound_clock::Dur;
use tailbound_os::clock;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row};
use tailbound_wire::Api;
use tailbound_workload::{IntentId, Load};

fn start2(serve: impl Fn(&mut Peer<'_, TcpStream>, usize) + Send + Sync + 'static) -> SocketAddr {
    start(move |mut stream, i| {
        let _ = stream.set_nodelay(true);
        if let Some(mut peer) = Peer::greet(&mut stream, &[(3, 100)]) {
            serve(&mut peer, i);
        }
    })
}

fn target2(addr: SocketAddr) -> Target {
    Target { http2: true, ..target(addr) }
}

fn ask2(addr: SocketAddr) -> Row {
    drive(&spec(1, 1), &target2(addr), &quick(), &Control::new()).0.remove(0)
}

/// How a request failed.
fn failed(row: &Row) -> (Phase, Blame, Cause, &str) {
    match &row.end {
        End::Failed { phase, blame, cause, detail } => (*phase, *blame, *cause, detail),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_after_another_goes_over_each_connection() {
    let addr = start2(|peer, _| peer.serve_well(5));
    let (rows, log) = drive(&spec(6, 2), &target2(addr), &quick(), &Control::new());
    for row in &rows {
        assert_eq!((&row.end, row.text.as_deref()), (&End::Done(Finish::Length), Some("w0 w1 w2 w3 w4 ")));
        assert_eq!((row.chunks.len(), row.tokens.output_server, row.net.status), (5, Some(5), 200));
        for moment in [Moment::Written, Moment::Headers, Moment::FirstToken, Moment::Usage, Moment::StreamEnd] {
            assert!(row.at.get(moment).is_some(), "no {}", moment.name());
        }
    }
    assert_eq!((log.connections, rows.iter().filter(|row| row.net.reused).count()), (2, 4));
}

#[test]
fn the_request_is_what_was_asked_for() {
    let (sender, seen) = mpsc::channel();
    let addr = start2(move |peer, _| {
        let asked = peer.request().expect("a request");
        let _ = peer.answer(asked.id, 1);
        let _ = sender.send(asked);
        peer.request();
    });
    let mut target = Target { http2: true, ..Target::parse(&format!("http://{addr}/openai/")).unwrap() };
    target.headers.push(Header::new("Authorization", "Bearer k").unwrap());
    let (rows, _) = drive(&spec(1, 1), &target, &quick(), &Control::new());
    assert!(rows[0].ok(), "{:?}", rows[0].end);
    let asked = seen.recv().unwrap();
    assert_eq!((asked.id, &asked.body[..]), (1, &b"{\"prompt\":\"x\"}"[..]));
    let has = |what: &[u8]| asked.head.windows(what.len()).any(|window| window == what);
    for part in ["\x04\x16/openai/v1/completions", "\x0dauthorization\x08Bearer k", "\x0cx-request-id\x010"] {
        assert!(has(part.as_bytes()), "no {part:?} in {}", asked.head.escape_ascii());
    }
    assert!(asked.head.starts_with(b"\x83") && has(addr.to_string().as_bytes()) && !has(b"host"));
    assert!(has(b"\x10\x0dauthorization"), "a key must be kept in no table on its way");
}

#[test]
fn every_event_is_attributed_to_the_read_that_brought_it() {
    let (sender, log) = mpsc::channel();
    let addr = start2(move |peer, _| {
        let asked = peer.request().expect("a request");
        peer.frame(HEADERS, 4, asked.id, SSE_HEAD);
        let mut writes = Vec::new();
        for i in 0..8 {
            pause(12);
            writes.push(clock::now());
            peer.frame(DATA, 0, asked.id, event(&format!("{i} "), None).as_bytes());
            pause(12);
            peer.frame(PING, 0, 0, b"between.");
        }
        peer.frame(DATA, 1, asked.id, event("", Some("stop")).as_bytes());
        peer.request();
        let _ = sender.send((writes, peer.acknowledged));
    });
    let row = ask2(addr);
    let (writes, acknowledged) = log.recv().unwrap();
    assert_eq!((row.chunks.len(), acknowledged), (8, 9), "a row's tokens, and the settings and pings acknowledged");
    for (chunk, &write) in row.chunks.as_slice().iter().zip(&writes) {
        assert!(chunk.at.minus(write) > -60_000, "stamped before it was written");
    }
    let next_write = row.chunks.as_slice().iter().zip(&writes[1..]);
    let shared = row.chunks.as_slice().windows(2).filter(|pair| pair[0].read == pair[1].read).count();
    assert!(shared > 0 || next_write.into_iter().all(|(chunk, &next)| chunk.at < next), "stamped after the next write");
}

struct Long(Vec<u8>);

impl Requests for Long {
    fn request(&self, _: IntentId) -> Request<'_> {
        Request::new(Api::Completions, "/v1/completions", &self.0[..])
    }
}

#[test]
fn a_body_larger_than_the_servers_window_arrives_whole() {
    let (addr, pem) = tls_server_of(&[b"h2"], |stream| echo_length(&mut Peer::greet(stream, &[]).expect("a client")));
    let file = std::env::temp_dir().join(format!("tailbound-client-h2-{}.pem", std::process::id()));
    std::fs::write(&file, pem).unwrap();
    let plain = start2(|peer, _| echo_length(peer));
    let secure = Target { http2: true, ..tls_target(addr, Trust::File(file.clone())) };
    for target in [target2(plain), secure] {
        for length in [65_534, 65_536, 3_000_001] {
            let requests = Long((0..length).map(|i| b'a' + (i % 23) as u8).collect());
            let mut load = Load::new(spec(2, 1).plan().unwrap().into());
            let mut rows = Vec::new();
            run(&mut load, &requests, &target, &quick(), &Control::new(), &mut |row| rows.push(row)).unwrap();
            for row in rows {
                assert_eq!((row.end, row.text), (End::Done(Finish::Stop), Some(format!("{length}").into())));
            }
            let reply = fetch(&target, "/tokenize", Some(&requests.0), Dur::from_secs(10)).unwrap();
            assert_eq!(reply.body, event(&length.to_string(), Some("stop")).as_bytes());
        }
    }
    std::fs::remove_file(file).unwrap();
}

/// Answers with the length of what was asked, if it is what it should be.
fn echo_length(peer: &mut Peer<'_, impl std::io::Read + Write>) {
    while let Some(asked) = peer.request() {
        let right = asked.body.iter().enumerate().all(|(i, &b)| b == b'a' + (i % 23) as u8);
        let text = if right { asked.body.len().to_string() } else { "wrong".into() };
        peer.frame(HEADERS, 4, asked.id, SSE_HEAD);
        if peer.frame(DATA, 1, asked.id, event(&text, Some("stop")).as_bytes()).is_none() {
            return;
        }
    }
}

#[test]
fn connections_opened_ahead_are_looked_after_until_they_are_used() {
    let (sender, seen) = mpsc::channel();
    let addr = start2(move |peer, _| {
        peer.frame(PING, 0, 0, b"at once.");
        peer.serve_well(2);
        let _ = sender.send(peer.acknowledged);
    });
    let config = Config { preconnect: 2, ..quick() };
    let spec = tailbound_workload::Spec { request_rate: Some(20.0), ..spec(2, 2) };
    let (rows, log) = drive(&spec, &target2(addr), &config, &Control::new());
    assert!(rows.iter().all(Row::ok));
    assert!(rows.iter().all(|row| row.at.get(Moment::ConnectStart).is_none()), "{rows:?}");
    assert_eq!(log.connections, 2);
    assert_eq!([seen.recv(), seen.recv()], [Ok(2), Ok(2)]);
}

#[test]
fn a_request_that_the_server_gives_back_is_sent_once_more() {
    type GiveBack = fn(&mut Peer<'_, TcpStream>, u32) -> Option<()>;
    let ways: [GiveBack; 3] = [
        |peer, id| peer.frame(RST_STREAM, 0, id, &7u32.to_be_bytes()),
        |peer, id| peer.frame(GOAWAY, 0, 0, &[&(id - 2).to_be_bytes()[..], &[0; 4]].concat()),
        |_, _| None, // just hangs up
    ];
    for give_back in ways {
        let addr = start2(move |peer, i| {
            if i > 0 {
                return peer.serve_well(2);
            }
            let first = peer.request().expect("a request");
            peer.answer(first.id, 2);
            let second = peer.request().expect("another");
            if give_back(peer, second.id).is_some() {
                peer.request();
            }
        });
        let (rows, log) = drive(&spec(2, 1), &target2(addr), &quick(), &Control::new());
        assert!(rows.iter().all(Row::ok), "{:?}", rows[1].end);
        assert_eq!((rows[0].net.retries, rows[1].net.retries, log.retries, log.connections), (0, 1, 1, 2));
    }
}

#[test]
fn a_goodbye_between_requests_costs_a_connection_and_no_request() {
    let addr = start2(move |peer, i| {
        let Some(asked) = peer.request() else { return };
        if i == 0 {
            peer.frame(GOAWAY, 0, 0, &[&asked.id.to_be_bytes()[..], &[0; 4]].concat());
            peer.answer(asked.id, 3);
            assert!(peer.request().is_none(), "the connection is not used again");
        } else {
            peer.answer(asked.id, 3);
            peer.serve_well(3);
        }
    });
    let (rows, log) = drive(&spec(3, 1), &target2(addr), &quick(), &Control::new());
    assert!(rows.iter().all(Row::ok));
    assert_eq!((log.retries, log.connections), (0, 2));
}

#[test]
fn failures_say_what_the_server_said() {
    let row = ask2(start2(|peer, _| {
        let asked = peer.request().expect("a request");
        peer.frame(HEADERS, 4, asked.id, SSE_HEAD);
        peer.frame(DATA, 0, asked.id, event("a ", None).as_bytes());
        peer.frame(RST_STREAM, 0, asked.id, &2u32.to_be_bytes());
        peer.request();
    }));
    let why = "the server broke the answer off (INTERNAL_ERROR)";
    assert_eq!(failed(&row), (Phase::Stream, Blame::Server, Cause::Reset, why));
    assert_eq!(row.chunks.len(), 1);
    // On its first request a connection's refusal is the answer.
    let row = ask2(start2(|peer, _| {
        let asked = peer.request().expect("a request");
        peer.frame(RST_STREAM, 0, asked.id, &7u32.to_be_bytes());
        peer.request();
    }));
    let why = "the server refused the request (REFUSED_STREAM)";
    assert_eq!(failed(&row), (Phase::Headers, Blame::Server, Cause::Reset, why));
    assert_eq!(row.net.retries, 0);
    let row = ask2(start2(|peer, _| {
        let asked = peer.request().expect("a request");
        peer.frame(DATA, 0, asked.id, b"x");
        peer.request();
    }));
    assert_eq!(failed(&row).2, Cause::Protocol);
    let row = ask2(start2(|peer, _| {
        let asked = peer.request().expect("a request");
        peer.frame(HEADERS, 4, asked.id, SSE_HEAD);
        peer.frame(GOAWAY, 0, 0, &[&asked.id.to_be_bytes()[..], &11u32.to_be_bytes(), b"too many"].concat());
    }));
    let why = "the server said goodbye (ENHANCE_YOUR_CALM: too many)";
    assert_eq!(failed(&row), (Phase::FirstToken, Blame::Server, Cause::Reset, why));
}

#[test]
fn who_speaks_http_1_only_is_told_apart() {
    let row = ask2(start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-length: 0\r\n\r\n");
        hold(stream);
    }));
    let (.., cause, detail) = failed(&row);
    assert_eq!(cause, Cause::Protocol);
    assert!(detail.contains("does not speak HTTP/2: it answered \"HTTP/1.1 505"), "{detail}");
    let row = ask2(start(|mut stream, _| drop(read_request(&mut stream))));
    assert!(failed(&row).3.ends_with("(it may not speak HTTP/2)"), "{:?}", row.end);
}

#[test]
fn over_tls_it_is_agreed_upon_in_the_handshake() {
    let (addr, _) = tls_server_of(&[b"http/1.1", b"h2"], |stream| {
        if let Some(mut peer) = Peer::greet(stream, &[]) {
            peer.serve_well(4);
        }
    });
    let target = Target { http2: true, ..tls_target(addr, Trust::Anything) };
    let config = Config { preconnect: 1, ..quick() };
    let (rows, log) = drive(&spec(6, 2), &target, &config, &Control::new());
    for row in &rows {
        assert_eq!((&row.end, row.text.as_deref()), (&End::Done(Finish::Length), Some("w0 w1 w2 w3 ")));
    }
    assert_eq!((log.connections, log.retries), (2, 0));
    for (protocols, says) in [
        (&[&b"http/1.1"[..]][..], "does not speak HTTP/2 (ALPN); leave --http2 out"),
        (&[], "agreed to none, so HTTP/1.1"),
    ] {
        let (addr, _) = tls_server_of(protocols, |stream| {
            Peer::greet(stream, &[]);
        });
        let target = Target { http2: true, ..tls_target(addr, Trust::Anything) };
        let (rows, _) = drive(&spec(1, 1), &target, &quick(), &Control::new());
        let (phase, _, cause, detail) = failed(&rows[0]);
        assert_eq!((phase, cause), (Phase::Tls, Cause::Tls));
        assert!(detail.contains(says), "{detail}");
        assert!(fetch(&target, "/v1/models", None, Dur::from_secs(5)).is_err());
    }
}

#[test]
fn a_server_may_speak_together_with_the_last_words_of_its_handshake() {
    let (sender, acknowledged) = mpsc::channel();
    let (addr, _) = tls_server_of(&[b"h2"], move |stream| {
        // Not yet sent: it goes out with what the handshake says last.
        let _ = stream.conn.writer().write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]);
        let Some(mut peer) = Peer::greeted(stream) else { return };
        peer.serve_well(4);
        let _ = sender.send(peer.acknowledged);
    });
    let target = Target { http2: true, ..tls_target(addr, Trust::Anything) };
    for preconnect in [0, 2] {
        let config = Config { preconnect, ..quick() };
        let (rows, log) = drive(&spec(4, 2), &target, &config, &Control::new());
        assert!(rows.iter().all(Row::ok), "{:?}", rows[0].end);
        assert_eq!(log.connections, 2);
        assert_eq!([acknowledged.recv(), acknowledged.recv()], [Ok(1), Ok(1)]);
    }
    assert_eq!(fetch(&target, "/v1/models", None, Dur::from_secs(5)).unwrap().status, 200);
}

#[test]
fn small_questions_and_probes_are_asked_over_it_too() {
    let addr = start2(|peer, _| peer.serve_well(3));
    let reply = fetch(&target2(addr), "/v1/models", None, Dur::from_secs(5)).unwrap();
    assert_eq!((reply.status, reply.content_type.as_deref()), (200, Some("text/event-stream")));
    assert_eq!(reply.body, stream_of(3).as_bytes());
    let request = Request::new(Api::Completions, "/v1/completions", &b"{}"[..]);
    assert!(one(&request, &target2(addr), &quick()).unwrap().ok());
    assert!(probe(&request, &target2(addr), &quick()).unwrap().row.ok());
}

#[test]
fn headers_that_it_does_not_allow_are_refused_by_name() {
    let mut target = target2("127.0.0.1:1".parse().unwrap());
    target.headers.push(Header::new("Keep-Alive", "timeout=5").unwrap());
    let e = fetch(&target, "/", None, Dur::from_secs(1)).unwrap_err().to_string();
    assert!(e.contains("\"keep-alive\": HTTP/2 does not allow it"), "{e}");
}
