use super::*;
use proptest::prelude::*;
use std::io::Write as _;

/// All of a connection's bytes, in pieces: each response's status, body, and whether it was complete.
fn read_all(pieces: &[&[u8]]) -> Result<Vec<(u16, Vec<u8>, bool)>, Bad> {
    let mut reader = Reader::default();
    let mut out: Vec<(u16, Vec<u8>, bool)> = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match reader.next(&mut input)? {
                Some(Part::Head(head)) => out.push((head.status, Vec::new(), false)),
                Some(Part::Body(body)) => out.last_mut().expect("a head came first").1.extend_from_slice(body),
                Some(Part::End) => {
                    out.last_mut().expect("a head came first").2 = true;
                    reader.restart();
                }
                None => break,
            }
        }
        assert!(input.is_empty(), "all of a piece is used");
    }
    if reader.close() == Cut::End
        && let Some(last) = out.last_mut()
    {
        last.2 = true;
    }
    Ok(out)
}

fn whole(bytes: &[u8]) -> Result<Vec<(u16, Vec<u8>, bool)>, Bad> {
    read_all(&[bytes])
}

#[test]
fn framings() {
    let ok = |bytes: &str, body: &str| {
        assert_eq!(whole(bytes.as_bytes()), Ok(vec![(200, body.into(), true)]), "{bytes:?}");
    };
    ok("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", "abc");
    ok("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", "abc");
    ok("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", "");
    ok("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc");
    ok("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n00A;x=y\r\n0123456789\r\n0\r\nt: 1\r\n\r\n", "0123456789");
    ok("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end");
    ok("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "x");
    assert_eq!(whole(b"HTTP/1.1 204 No\r\n\r\n"), Ok(vec![(204, vec![], true)]));
}

#[test]
fn what_breaks_the_grammar_is_an_error() {
    for (bytes, says) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n", "two different"),
        ("HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\n", "content-length"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", "transfer-encoding"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "size of a chunk"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n", "size of a chunk"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n", "longer than"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\nab\r\n", "carriage return"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "switched"),
        ("<html>", "not an HTTP"),
    ] {
        let said = whole(bytes.as_bytes()).expect_err(bytes).0;
        assert!(said.contains(says), "{bytes:?}: {said}");
    }
    let endless = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; HEAD_LIMIT]].concat();
    assert!(whole(&endless).is_err());
}

#[test]
fn what_the_end_of_the_connection_means() {
    let close_after = |bytes: &[u8]| {
        let mut reader = Reader::default();
        let mut input = bytes;
        while reader.next(&mut input).expect("fine so far").is_some() {}
        reader.close()
    };
    assert_eq!(close_after(b""), Cut::Nothing);
    assert_eq!(close_after(b"HTTP/1.1 20"), Cut::Broken);
    assert_eq!(close_after(b"HTTP/1.1 200 OK\r\n\r\nabc"), Cut::End);
    assert_eq!(close_after(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc"), Cut::Broken);
    assert_eq!(close_after(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"), Cut::Broken);
    assert_eq!(close_after(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"), Cut::Broken);
}

#[test]
fn whether_a_connection_can_be_used_again() {
    let again = |head: &str| {
        let bytes = format!("{head}\r\n\r\n");
        let mut reader = Reader::default();
        let mut input = bytes.as_bytes();
        while reader.next(&mut input).expect("fine").is_some() {}
        reader.keep_alive()
    };
    assert!(again("HTTP/1.1 200 OK\r\ncontent-length: 0"));
    assert!(again("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 0"));
    assert!(!again("HTTP/1.0 200 OK\r\ncontent-length: 0"));
    assert!(!again("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\ncontent-length: 0"));
    assert!(!again("HTTP/1.1 200 OK"));
}

fn response() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    let sizes = proptest::collection::vec(1usize..40, 1..20);
    (body, any::<bool>(), sizes).prop_map(|(body, chunked, sizes)| {
        if !chunked {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            return ([head.as_bytes(), &body].concat(), body);
        }
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let mut rest = &body[..];
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*size));
            let _ = write!(bytes, "{:X}\r\n", piece.len());
            rest = after;
            if piece.is_empty() {
                break;
            }
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        (bytes, body)
    })
}

proptest! {
    #[test]
    fn splits_do_not_matter(
        responses in proptest::collection::vec(response(), 1..4),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let bytes = responses.iter().map(|(bytes, _)| &bytes[..]).collect::<Vec<_>>().concat();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let expected: Vec<_> = responses.iter().map(|(_, body)| (200, body.clone(), true)).collect();
        prop_assert_eq!(read_all(&pieces), Ok(expected.clone()));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read_all(&single), Ok(expected));
    }

    #[test]
    fn no_bytes_make_it_panic_or_spin(
        noise in proptest::collection::vec(prop_oneof![
            Just(b"HTTP/1.1 200 OK\r\n".to_vec()), Just(b"transfer-encoding: chunked\r\n".to_vec()),
            Just(b"content-length: 9999999999999999999\r\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"fffffffffffffff\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..20),
        ], 0..20),
    ) {
        let pieces: Vec<&[u8]> = noise.iter().map(|piece| &piece[..]).collect();
        let _ = read_all(&pieces);
    }
}
