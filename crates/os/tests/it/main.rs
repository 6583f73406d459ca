//! Stamped sockets against the real kernel.

use std::io::{Read, Write};
use std::net::TcpListener;
use tailbound_clock::Dur;
use tailbound_os::poll::{Epoll, Ready};
use tailbound_os::socket::{Socket, StampsOn};
use tailbound_os::{StampMap, clock};

fn wait_for(epoll: &mut Epoll, what: impl Fn(Ready) -> bool) {
    for _ in 0..100 {
        let n = epoll.wait(Dur::from_ms(100));
        if (0..n).any(|i| what(epoll.ready(i))) {
            return;
        }
    }
    panic!("never ready");
}

#[test]
fn a_stamp_lies_between_the_write_and_the_read_of_its_bytes() {
    let Some(_on) = StampsOn::hold() else {
        println!("skipped: this kernel gives no receive stamps");
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = Socket::connect(listener.local_addr().unwrap()).unwrap();
    let mut epoll = Epoll::new(16).unwrap();
    epoll.watch(&socket, 1).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    wait_for(&mut epoll, |r| r.writable);
    socket.connect_error().unwrap();

    assert_eq!(socket.send(b"GET ", b"/").unwrap(), Some(5));
    let mut got = [0u8; 5];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"GET /");

    let mut map = StampMap::new();
    let mut buf = [0u8; 64];
    for i in 0..50u8 {
        let before = clock::now();
        peer.write_all(&[i]).unwrap();
        let written = clock::now();
        wait_for(&mut epoll, |r| r.readable);
        map.refresh();
        let read = socket.receive(&mut buf).unwrap().unwrap();
        let now = clock::now();
        assert_eq!((read.len, buf[0]), (1, i));
        let at = map.map(read.wall_ns.expect("stamped"), before, now).expect("a plausible stamp");
        assert!(at >= before && at <= now);
        // Loopback delivers inside the write; allow for the mapping's own uncertainty.
        assert!(at <= written + Dur::from_us(60), "{} ns after the write", at.since(written).ns());
    }
    assert_eq!(socket.receive(&mut buf).unwrap(), None);
    drop(peer);
    wait_for(&mut epoll, |r| r.closed);
    assert_eq!(socket.receive(&mut buf).unwrap().unwrap().len, 0);
}

#[test]
fn a_late_reader_still_gets_the_early_stamp() {
    let Some(_on) = StampsOn::hold() else {
        println!("skipped: this kernel gives no receive stamps");
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = Socket::connect(listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let before = clock::now();
    peer.write_all(b"x").unwrap();
    let written = clock::now();
    tailbound_os::sleep::until(written + Dur::from_ms(20));
    let mut map = StampMap::new();
    map.refresh();
    let read = socket.receive(&mut [0; 8]).unwrap().unwrap();
    let at = map.map(read.wall_ns.expect("stamped"), before, clock::now()).expect("plausible");
    assert!(at.since(written) < Dur::from_ms(10), "the stamp is the kernel's, not the reader's");
}

#[test]
fn a_refused_connect_says_so() {
    let addr = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let refused = match Socket::connect(addr) {
        Err(e) => e,
        Ok(socket) => {
            let mut epoll = Epoll::new(16).unwrap();
            epoll.watch(&socket, 1).unwrap();
            wait_for(&mut epoll, |r| r.gone || r.writable);
            socket.connect_error().unwrap_err()
        }
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn peeking_goes_on_where_it_stopped_and_leaves_the_bytes_until_they_are_discarded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = Socket::connect(listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    if !socket.peek_onwards() {
        println!("skipped: this kernel cannot peek onwards on TCP");
        return;
    }
    let mut buf = [0; 16];
    let mut peek = || loop {
        tailbound_os::poll::wait_readable(&socket, Dur::from_secs(5));
        if let Some(stamped) = socket.peek(&mut buf).unwrap() {
            return buf[..stamped.len].to_vec();
        }
    };
    peer.write_all(b"one").unwrap();
    assert_eq!(peek(), b"one");
    peer.write_all(b"two").unwrap();
    assert_eq!(peek(), b"two");
    socket.discard(4);
    peer.write_all(b"three").unwrap();
    assert_eq!(peek(), b"three", "what was seen is not seen again, in the socket or not");
    assert_eq!(socket.receive(&mut buf).unwrap().unwrap().len, 7);
    assert_eq!(&buf[..7], b"wothree");
}
