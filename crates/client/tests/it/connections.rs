use crate::server::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tailbound_client::{Acks, ClientError, Config, Control, Target, run};
use tailbound_record::{Cause, End, Moment};
use tailbound_workload::Load;

#[test]
fn a_kept_alive_connection_found_closed_is_replaced_once_and_counted() {
    let addr = start(|mut stream, i| {
        if i > 0 {
            return serve_well(stream, 2);
        }
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
        read_request(&mut stream); // and hangs up over the second one
    });
    let (rows, log) = drive(&spec(2, 1), &target(addr), &quick(), &Control::new());
    assert!(rows.iter().all(|row| row.ok()), "{:?}", rows[1].end);
    assert_eq!((rows[0].net.retries, rows[1].net.retries), (0, 1));
    assert_eq!((log.retries, log.connections), (1, 2));
    assert!(rows[1].at.get(Moment::ConnectStart).is_some() && !rows[1].net.reused);
}

#[test]
fn it_is_not_sent_a_third_time() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let addr = start(move |mut stream, i| {
        if i == 0 {
            read_request(&mut stream);
            let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
        }
        if read_request(&mut stream).is_some() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (rows, log) = drive(&spec(2, 1), &target(addr), &quick(), &Control::new());
    assert!(matches!(rows[1].end, End::Failed { cause: Cause::Reset, .. }));
    assert_eq!((rows[1].net.retries, log.retries, asked.load(Ordering::Relaxed)), (1, 1, 2));
}

#[test]
fn a_stream_cut_after_its_first_byte_is_never_sent_again() {
    let addr = start(|mut stream, i| {
        while read_request(&mut stream).is_some() {
            let whole = format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
            if i == 0 && stream.write_all(whole.as_bytes()).is_ok() && read_request(&mut stream).is_some() {
                let _ = stream.write_all(b"HTTP/1.1 200");
                return;
            }
        }
    });
    let (rows, log) = drive(&spec(2, 1), &target(addr), &quick(), &Control::new());
    assert!(matches!(rows[1].end, End::Failed { cause: Cause::Reset, .. }), "{:?}", rows[1].end);
    assert_eq!((rows[1].net.retries, log.retries), (0, 0));
}

#[test]
fn two_thousand_requests_are_in_flight_together() {
    const N: usize = 2_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    tailbound_os::limits::raise_nofile().unwrap();
    tailbound_os::socket::widen_backlog(&listener, 4096).unwrap();
    let addr = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        // Nobody is answered before everybody is here.
        let mut streams: Vec<_> = listener.incoming().flatten().take(N).collect();
        for stream in &mut streams {
            read_request(stream);
        }
        for stream in &mut streams {
            let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
        }
        streams.len()
    });
    let config = Config { threads: 2, ..quick() };
    let (rows, log) = drive(&spec(N as u64, N as i64), &target(addr), &config, &Control::new());
    assert_eq!(rows.iter().filter(|row| row.ok()).count(), N);
    assert_eq!((log.connections, log.late.len(), log.loops), (N as u64, N, 2));
    let workers: std::collections::BTreeSet<_> = rows.iter().map(|row| row.worker).collect();
    assert_eq!(workers.len(), 2);
    assert_eq!(server.join().unwrap(), N);
}

#[test]
fn preconnected_requests_have_no_connect_of_their_own() {
    let addr = start(|stream, _| serve_well(stream, 2));
    let config = Config { preconnect: 5, threads: 2, ..quick() };
    let (rows, log) = drive(&spec(5, 5), &target(addr), &config, &Control::new());
    assert!(rows.iter().all(|row| row.ok()));
    // Five at once over two loops: three on one, two on the other, as the connections are.
    assert_eq!(log.connections, 5);
    assert!(rows.iter().all(|row| row.at.get(Moment::ConnectStart).is_none() && !row.net.reused));
}

#[test]
fn the_second_address_of_a_name_is_tried() {
    let addr = start(|stream, _| serve_well(stream, 2)); // on 127.0.0.1 only
    let target = Target::parse(&format!("http://localhost:{}", addr.port())).unwrap();
    let (rows, _) = drive(&spec(3, 3), &target, &quick(), &Control::new());
    assert!(rows.iter().all(|row| row.ok()), "{:?}", rows[0].end);
}

#[test]
fn more_connections_than_descriptors_are_refused_up_front() {
    let mut load = Load::new(spec(50_000_000, 40_000_000).plan().unwrap().into());
    let target = Target::parse("http://127.0.0.1:1").unwrap();
    let refused = run(&mut load, &Same, &target, &quick(), &Control::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, ClientError::Descriptors { needed: 40_000_000, .. }), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("ulimit -n") && said.contains("--max-concurrency"), "{said}");
}

#[test]
fn a_name_without_an_address_is_an_error_before_the_run() {
    let mut load = Load::new(spec(1, 1).plan().unwrap().into());
    let target = Target::parse("http://nowhere.invalid:1").unwrap();
    let refused = run(&mut load, &Same, &target, &quick(), &Control::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, ClientError::Resolve { .. }), "{refused}");
}

/// llama.cpp's server does this: it promises to keep the connection, ends its side together with the answer, and goes on holding the socket.
#[test]
fn a_connection_whose_peer_closed_together_with_the_answer_is_not_used_again() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
        let _ = stream.shutdown(std::net::Shutdown::Write);
        hold(stream);
    });
    let mut config = quick();
    config.timeouts.first_token = tailbound_clock::Dur::from_secs(2);
    let (rows, log) = drive(&spec(20, 1), &target(addr), &config, &Control::new());
    assert!(rows.iter().all(|row| row.ok()), "{:?}", rows.iter().find(|row| !row.ok()).map(|row| &row.end));
    assert!(log.connections >= 20);
}

/// What has only been peeked at is taken out before the socket is closed: closing it with bytes unread would send a reset, and
/// the server would book a request that went wrong.
#[test]
fn an_answer_read_to_its_end_is_closed_in_good_order() {
    for acks in [Acks::AtOnce, Acks::Delayed] {
        for until_close in [false, true] {
            let (told, ends) = std::sync::mpsc::channel();
            let addr = start(move |mut stream, _| {
                read_request(&mut stream);
                let answer = if until_close {
                    format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
                        stream_of(4)
                    )
                } else {
                    format!(
                        "{}{}0\r\n\r\n",
                        SSE_CHUNKED.replacen("OK\r\n", "OK\r\nconnection: close\r\n", 1),
                        chunk(&stream_of(4))
                    )
                };
                // In so many pieces that the last ones are peeked at.
                let _ = stream.set_nodelay(true);
                for piece in answer.as_bytes().chunks(answer.len() / 14) {
                    let _ = stream.write_all(piece);
                    pause(2);
                }
                if until_close {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                let _ = told.send(stream.read(&mut [0; 64]).map_err(|e| e.kind()));
            });
            let config = Config { acks, ..quick() };
            let (rows, _) = drive(&spec(1, 1), &target(addr), &config, &Control::new());
            assert!(rows[0].ok(), "{:?}", rows[0].end);
            assert_eq!(rows[0].chunks.len(), 4);
            assert_eq!(ends.recv_timeout(std::time::Duration::from_secs(10)), Ok(Ok(0)), "{acks:?} {until_close}");
        }
    }
}

/// Longer answers than may stay in the socket, over one connection after the other: each row has its own events and bytes.
#[test]
fn what_stays_in_the_socket_is_given_to_no_row_twice() {
    let addr = start(|mut stream, _| {
        let _ = stream.set_nodelay(true);
        while read_request(&mut stream).is_some() {
            let _ = stream.write_all(SSE_CHUNKED.as_bytes());
            for i in 0..60 {
                let last = i == 59;
                let _ = stream.write_all(chunk(&event(&format!("w{i} "), last.then_some("length"))).as_bytes());
                if i % 7 == 0 {
                    pause(1);
                }
            }
            let _ = stream.write_all(format!("{}0\r\n\r\n", chunk("data: [DONE]\n\n")).as_bytes());
        }
    });
    let (rows, log) = drive(&spec(12, 2), &target(addr), &quick(), &Control::new());
    let text: String = (0..60).map(|i| format!("w{i} ")).collect();
    for row in &rows {
        assert!(row.ok(), "{:?}", row.end);
        assert_eq!((row.chunks.len(), row.text.as_deref()), (60, Some(text.as_str())));
        assert_eq!(row.net.body_bytes, rows[0].net.body_bytes);
    }
    assert_eq!(log.connections, 2);
}
