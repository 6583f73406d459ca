//! HTTP/1.1, as far as a client that measures needs it: requests out, responses in. No I/O.
//!
//! Responses are read strictly: what breaks the grammar is an error, never a guess, because a guess here would turn into a wrong
//! number there. Heads are parsed by `httparse`; framing is ours.

use std::borrow::Cow;
use std::io::Write as _;

/// What a response's head says, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    pub content_type: Option<Box<str>>,
    pub content_encoding: Option<Box<str>>,
    pub location: Option<Box<str>>,
}

/// What the next bytes of a response were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The head of the final response (interim 1xx heads are passed over).
    Head(Head),
    /// Bytes of the body, without framing.
    Body(&'a [u8]),
    /// The response is complete.
    End,
}

/// Bytes that break HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad(pub String);

/// What the end of the connection means to the response being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Not a byte of a response had come.
    Nothing,
    /// It ended the body in good order (no length was promised).
    End,
    /// It broke the response off.
    Broken,
}

/// Reads one response after another from a connection's bytes.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    at: At,
    /// A head, or a line of chunked framing, that is not yet whole. Empty otherwise.
    partial: Vec<u8>,
    /// The connection may be used again once the response is complete.
    keep_alive: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// So many bytes of the body are left.
    Length(u64),
    ChunkSize,
    Chunk(u64),
    /// The line end after a chunk; whether its CR has come.
    ChunkEnd(bool),
    Trailer,
    UntilClose,
    Done,
}

const HEAD_LIMIT: usize = 64 << 10;
const MOST_HEADERS: usize = 128;
const LINE_LIMIT: usize = 4 << 10;

impl Reader {
    /// Gets ready for the next response on the same connection.
    pub fn restart(&mut self) {
        self.at = At::Head;
        self.partial.clear();
        self.keep_alive = false;
    }

    /// Whether the connection may carry another request. Meaningful once the response is complete.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Bytes came after the response that nobody asked for: the connection is not to be used again.
    pub fn spoil(&mut self) {
        self.keep_alive = false;
    }

    /// Whether the body ends only with the connection.
    pub fn until_close(&self) -> bool {
        self.at == At::UntilClose
    }

    /// Takes one part off the front of `input`. `None`: more bytes are needed, and `input` is used up.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Part<'a>>, Bad> {
        loop {
            match self.at {
                At::Done => return Ok(None),
                At::Length(0) => {
                    self.at = At::Done;
                    return Ok(Some(Part::End));
                }
                _ if input.is_empty() => return Ok(None),
                At::Head => match self.head(input)? {
                    Some(head) => return Ok(Some(Part::Head(head))),
                    None if input.is_empty() => return Ok(None),
                    None => {} // an interim response; the final one follows
                },
                At::Length(left) => {
                    let body = take(input, left);
                    self.at = At::Length(left - body.len() as u64);
                    return Ok(Some(Part::Body(body)));
                }
                At::UntilClose => return Ok(Some(Part::Body(std::mem::take(input)))),
                At::Chunk(left) => {
                    let body = take(input, left);
                    let left = left - body.len() as u64;
                    self.at = if left == 0 { At::ChunkEnd(false) } else { At::Chunk(left) };
                    return Ok(Some(Part::Body(body)));
                }
                At::ChunkEnd(cr) => {
                    let byte = take(input, 1)[0];
                    self.at = match (cr, byte) {
                        (false, b'\r') => At::ChunkEnd(true),
                        (true, b'\n') => At::ChunkSize,
                        _ => return Err(Bad("a chunk is longer than its stated size".into())),
                    };
                }
                At::ChunkSize => {
                    let Some(line) = self.line(input)? else { return Ok(None) };
                    let size = chunk_size(&line)?;
                    self.at = if size == 0 { At::Trailer } else { At::Chunk(size) };
                }
                At::Trailer => {
                    let Some(line) = self.line(input)? else { return Ok(None) };
                    if line.is_empty() {
                        self.at = At::Done;
                        return Ok(Some(Part::End));
                    }
                }
            }
        }
    }

    /// The peer has closed its side: what that means for the response.
    pub fn close(&mut self) -> Cut {
        let cut = match self.at {
            At::Head if self.partial.is_empty() => Cut::Nothing,
            At::Done | At::UntilClose => Cut::End,
            _ => Cut::Broken,
        };
        self.keep_alive = false;
        self.at = At::Done;
        cut
    }

    fn head(&mut self, input: &mut &[u8]) -> Result<Option<Head>, Bad> {
        if self.partial.is_empty() {
            if let Some((used, head)) = self.parse_head(input)? {
                *input = &input[used..];
                return Ok(head);
            }
            self.partial.extend_from_slice(input);
            *input = &[];
        } else {
            let before = self.partial.len();
            self.partial.extend_from_slice(input);
            let partial = std::mem::take(&mut self.partial);
            let parsed = self.parse_head(&partial)?;
            if let Some((used, head)) = parsed {
                *input = &input[used - before..];
                return Ok(head);
            }
            self.partial = partial;
            *input = &[];
        }
        if self.partial.len() > HEAD_LIMIT {
            return Err(Bad(format!("the response's head is longer than {HEAD_LIMIT} bytes")));
        }
        Ok(None)
    }

    /// `None`: not whole yet. Inner `None`: an interim response.
    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<(usize, Option<Head>)>, Bad> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let used = match response.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(used)) => used,
            Err(e) => return Err(Bad(format!("not an HTTP/1 response ({e}): {}", quote(bytes)))),
        };
        let status = response.code.unwrap_or(0);
        if status == 101 {
            return Err(Bad("the server switched protocols, which was not asked for".into()));
        }
        if (100..200).contains(&status) {
            return Ok(Some((used, None)));
        }
        let fields = Fields::read(response.headers)?;
        self.keep_alive = match response.version {
            Some(1) => !fields.close,
            _ => fields.keep_alive && !fields.close,
        };
        self.at = if matches!(status, 204 | 304) {
            At::Length(0)
        } else if fields.chunked {
            self.keep_alive &= fields.length.is_none(); // both are smuggling or a bug: read it, and hang up
            At::ChunkSize
        } else if let Some(length) = fields.length {
            At::Length(length)
        } else {
            self.keep_alive = false;
            At::UntilClose
        };
        let Fields { content_type, content_encoding, location, .. } = fields;
        let head = Head { status, content_type, content_encoding, location };
        Ok(Some((used, Some(head))))
    }

    /// A line of chunked framing, without its end.
    fn line<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Bad> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            self.partial.extend_from_slice(input);
            *input = &[];
            if self.partial.len() > LINE_LIMIT {
                return Err(Bad("a line of chunked framing is too long".into()));
            }
            return Ok(None);
        };
        let (line, rest) = input.split_at(end + 1);
        *input = rest;
        let without_cr = |line: &[u8]| line.strip_suffix(b"\r\n").map(<[u8]>::len);
        let bare = || Bad("a line of chunked framing ends without a carriage return".into());
        if self.partial.is_empty() {
            let len = without_cr(line).ok_or_else(bare)?;
            return Ok(Some(Cow::Borrowed(&line[..len])));
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(line);
        let len = without_cr(&whole).ok_or_else(bare)?;
        whole.truncate(len);
        Ok(Some(Cow::Owned(whole)))
    }
}

fn take<'a>(input: &mut &'a [u8], most: u64) -> &'a [u8] {
    let n = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    let (taken, rest) = input.split_at(n);
    *input = rest;
    taken
}

fn chunk_size(line: &[u8]) -> Result<u64, Bad> {
    let digits = line.split(|&b| b == b';').next().unwrap_or_default().trim_ascii_end();
    let wrong = || Bad(format!("not the size of a chunk: {}", quote(line)));
    if digits.is_empty() || digits.len() > 15 {
        return Err(wrong());
    }
    digits.iter().try_fold(0u64, |size, &b| {
        let digit = (b as char).to_digit(16).ok_or_else(wrong)?;
        Ok(size << 4 | u64::from(digit))
    })
}

#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    content_type: Option<Box<str>>,
    content_encoding: Option<Box<str>>,
    location: Option<Box<str>>,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Bad> {
        let mut fields = Fields::default();
        for header in headers {
            let name = header.name;
            let value = header.value.trim_ascii();
            if name.eq_ignore_ascii_case("content-length") {
                fields.add_length(value)?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Bad(format!("a transfer-encoding that was not asked for: {}", quote(value))));
                }
                fields.chunked = true;
            } else if name.eq_ignore_ascii_case("connection") {
                let has = |what: &[u8]| value.split(|&b| b == b',').any(|t| t.trim_ascii().eq_ignore_ascii_case(what));
                fields.close |= has(b"close");
                fields.keep_alive |= has(b"keep-alive");
            } else if name.eq_ignore_ascii_case("content-type") {
                fields.content_type = Some(String::from_utf8_lossy(value).into());
            } else if name.eq_ignore_ascii_case("content-encoding") {
                fields.content_encoding = Some(String::from_utf8_lossy(value).into());
            } else if name.eq_ignore_ascii_case("location") {
                fields.location = Some(String::from_utf8_lossy(value).into());
            }
        }
        Ok(fields)
    }

    fn add_length(&mut self, value: &[u8]) -> Result<(), Bad> {
        let wrong = || Bad(format!("not a content-length: {}", quote(value)));
        // A list of equal values is one value (RFC 9110, 8.6).
        for part in value.split(|&b| b == b',') {
            let digits = std::str::from_utf8(part.trim_ascii()).map_err(|_| wrong())?;
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(wrong());
            }
            let length: u64 = digits.parse().map_err(|_| wrong())?;
            if self.length.is_some_and(|before| before != length) {
                return Err(Bad("two different content-lengths".into()));
            }
            self.length = Some(length);
        }
        Ok(())
    }
}

/// The start of some bytes, for a message: one line, printable.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(60)];
    let dots = if bytes.len() > start.len() { "…" } else { "" };
    format!("\"{}{dots}\"", start.escape_ascii())
}

/// The parts of a request's head that are the same for every request to a target.
#[derive(Clone, Debug)]
pub(crate) struct HeadTemplate {
    prefix: String,
    fixed: Vec<u8>,
}

impl HeadTemplate {
    pub fn new(target: &crate::Target) -> HeadTemplate {
        let mut fixed = Vec::new();
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                fixed.extend_from_slice(part.as_bytes());
            }
        };
        line("host", &target.authority());
        line("accept-encoding", "identity");
        let own = |name: &str| target.headers.iter().any(|h| h.name == name);
        if !own("user-agent") {
            line("user-agent", concat!("tailbound/", env!("CARGO_PKG_VERSION")));
        }
        if !own("accept") {
            line("accept", "*/*");
        }
        if !own("content-type") {
            line("content-type", "application/json");
        }
        for header in &target.headers {
            line(&header.name, header.value());
        }
        HeadTemplate { prefix: target.prefix.clone(), fixed }
    }

    /// Writes the head of a request into `out`, which is emptied first.
    pub fn write(&self, out: &mut Vec<u8>, method: &str, request: &crate::Request<'_>) {
        out.clear();
        for part in [method, " ", &self.prefix, request.path, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.fixed);
        for (name, value) in &request.headers {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if method != "GET" {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "content-length: {}\r\n", request.body.len());
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        ok(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n00A;x=y\r\n0123456789\r\n0\r\nt: 1\r\n\r\n",
            "0123456789",
        );
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
}
