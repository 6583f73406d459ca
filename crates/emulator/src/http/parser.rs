//! One request out of a connection's bytes, however they are cut.

use super::chunked::Chunked;
use super::head::{Framing, Head};
use super::{Limits, Refusal};

/// Remembers how far a connection's input has been understood, so that no byte is looked at twice.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    scanned: usize,
    head: Option<Head>,
    chunked: Chunked,
    decoded: Vec<u8>,
    continued: bool,
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not yet a whole request.
    More,
    /// The head is whole and its sender waits for `100 Continue`. Said once a request.
    Continue,
    /// A whole request, which the first `used` bytes make up.
    Whole { used: usize },
    /// Not a request that will be served.
    Refused(Refusal),
}

impl Parser {
    /// Looks at all that has arrived since the last whole request. After [`Progress::Whole`] the next request needs a new parser.
    pub(crate) fn advance(&mut self, bytes: &[u8], limits: &Limits) -> Progress {
        match self.step(bytes, limits) {
            Ok(progress) => progress,
            Err(refusal) => Progress::Refused(refusal),
        }
    }

    /// The head, once [`Progress::Whole`] was given.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The body, once [`Progress::Whole`] was given.
    pub(crate) fn body<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        match &self.head {
            Some(Head { framing: Framing::Length(n), end, .. }) => &bytes[*end..*end + *n],
            Some(_) => &self.decoded,
            None => &[],
        }
    }

    fn step(&mut self, bytes: &[u8], limits: &Limits) -> Result<Progress, Refusal> {
        if self.head.is_none() {
            let Some(head) = self.find_head(bytes, limits)? else { return Ok(Progress::More) };
            if matches!(head.framing, Framing::Length(n) if n > limits.body) {
                return Err(Refusal::BodyTooLarge);
            }
            self.head = Some(head);
        }
        let Some(head) = &self.head else { return Ok(Progress::More) };
        let used = match head.framing {
            Framing::Length(n) => (bytes.len() >= head.end + n).then_some(head.end + n),
            Framing::Chunked => {
                self.chunked.advance(&bytes[head.end..], &mut self.decoded, limits.body)?.map(|n| head.end + n)
            }
        };
        if let Some(used) = used {
            return Ok(Progress::Whole { used });
        }
        if head.expects_continue && !self.continued {
            self.continued = true;
            return Ok(Progress::Continue);
        }
        Ok(Progress::More)
    }

    fn find_head(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Head>, Refusal> {
        // A client may send an empty line after the last body (RFC 9112, 2.2).
        let start = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        if start > 4 {
            return Err(Refusal::Malformed("nothing but empty lines"));
        }
        if bytes.get(start).is_some_and(|b| !b.is_ascii_alphabetic()) {
            return Err(Refusal::Malformed("this is not HTTP"));
        }
        let from = self.scanned.max(start);
        for newline in memchr::memchr_iter(b'\n', &bytes[from..]) {
            let at = from + newline;
            if at == 0 || bytes[at - 1] != b'\r' {
                return Err(Refusal::Malformed("a line ends without a carriage return"));
            }
            if at >= start + 3 && bytes[at - 2] == b'\n' {
                if at + 1 - start > limits.head {
                    return Err(Refusal::HeadTooLarge);
                }
                return Head::parse(bytes, start, at + 1).map(Some);
            }
        }
        if bytes.len() - start > limits.head {
            return Err(Refusal::HeadTooLarge);
        }
        self.scanned = bytes.len();
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Method;
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { head: 1000, body: 5000 };

    type Requests = Vec<(Method, Vec<u8>, Vec<u8>)>;

    /// Feeds `bytes` in pieces cut at `cuts`; gives each request's (method, path, body) and how it ended.
    fn feed(bytes: &[u8], cuts: &[usize]) -> (Requests, Option<Refusal>, usize) {
        let mut cuts: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let (mut parser, mut held, mut done, mut continues) = (Parser::default(), Vec::new(), Vec::new(), 0);
        let mut from = 0;
        for to in cuts {
            held.extend_from_slice(&bytes[from..to]);
            from = to;
            loop {
                match parser.advance(&held, &LIMITS) {
                    Progress::More => break,
                    Progress::Continue => continues += 1,
                    Progress::Refused(why) => return (done, Some(why), continues),
                    Progress::Whole { used } => {
                        let head = parser.head().unwrap();
                        let body = parser.body(&held).to_vec();
                        done.push((head.method, held[head.path.clone()].to_vec(), body));
                        held.drain(..used);
                        parser = Parser::default();
                    }
                }
            }
        }
        (done, None, continues)
    }

    fn refused(bytes: &[u8]) -> Option<u16> {
        feed(bytes, &[]).1.map(Refusal::status)
    }

    #[test]
    fn reads_a_pipeline_of_every_framing_however_it_is_cut() {
        let bytes = b"GET /health?deep=1 HTTP/1.1\r\nHost: a\r\n\r\n\
            POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n\
            POST http://h:1/b HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n002\r\nde\r\n0\r\nt: v\r\n\r\n\
            HEAD / HTTP/1.0\r\n\r\n";
        let expected = vec![
            (Method::Get, b"/health".to_vec(), vec![]),
            (Method::Post, b"/a".to_vec(), b"hello".to_vec()),
            (Method::Post, b"/b".to_vec(), b"abcde".to_vec()),
            (Method::Head, b"/".to_vec(), vec![]),
        ];
        assert_eq!(feed(bytes, &[]), (expected.clone(), None, 0));
        assert_eq!(feed(bytes, &(0..bytes.len()).collect::<Vec<_>>()), (expected.clone(), None, 0));
        for cut in 0..bytes.len() {
            assert_eq!(feed(bytes, &[cut]), (expected.clone(), None, 0), "cut at {cut}");
        }
    }

    #[test]
    fn asks_to_continue_once_and_only_while_the_body_is_missing() {
        let whole = b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\nbody";
        assert_eq!(feed(whole, &[]).2, 0);
        let cut = whole.len() - 4;
        let (done, refusal, continues) = feed(whole, &[cut, cut + 1, cut + 2]);
        assert_eq!((done.len(), refusal, continues), (1, None, 1));
    }

    #[test]
    fn what_is_not_http_is_refused_at_once() {
        for (bytes, status) in [
            (&b"\x16\x03\x01\x02"[..], 400),
            (b"PRI * HTTP/2.0\r\n\r\n", 505),
            (b"GET / HTTP/1.1\n\n", 400),
            (b"GET /\r\n\r\n", 400),
            (b"GET\r\n\r\n", 400),
            (b"GET  HTTP/1.1\r\n\r\n", 400),
            (b"G@T / HTTP/1.1\r\n\r\n", 400),
            (b"GET /a b HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nname : v\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\na: v\r\n folded\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\na: \x00\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\na: b\rc\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: 5001\r\n\r\n", 413),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 400),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1389\r\n", 413),
            (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffff\r\n", 413),
            (b"\r\n\r\n\r\n\r\n", 400),
        ] {
            assert_eq!(refused(bytes), Some(status), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_endless_head_or_chunk_line_is_refused() {
        let mut head = b"GET / HTTP/1.1\r\n".to_vec();
        head.extend(std::iter::repeat_n(&b"a: b\r\n"[..], 200).flatten());
        assert_eq!(refused(&head), Some(431));
        let mut body = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        body.extend(std::iter::repeat_n(b'0', 5000));
        assert_eq!(refused(&body), Some(400));
        let mut trailers = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n".to_vec();
        trailers.extend(std::iter::repeat_n(&b"a: b\r\n"[..], 2000).flatten());
        assert_eq!(refused(&trailers), Some(413));
    }

    proptest! {
        /// Random bytes neither panic nor hang, and every cut of them comes to the same end.
        #[test]
        fn any_bytes_in_any_pieces(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
            prop_assert_eq!(feed(&bytes, &[]), feed(&bytes, &cuts));
        }

        /// The same for bytes that look like HTTP.
        #[test]
        fn any_pieces_of_http(parts in prop::collection::vec(prop::sample::select(vec![
            "GET ", "POST ", "/", "/v1/x?a=b", " HTTP/1.1", " HTTP/1.0", "\r\n", "\r\n\r\n", "\n", "\r", "content-length: ", "3", "0", "1",
            "transfer-encoding: chunked", "expect: 100-continue", "abc", ":", "a: b", ";", "connection: close", " ", "ff",
        ]), 0..24), cuts in prop::collection::vec(any::<usize>(), 0..8)) {
            let bytes = parts.concat().into_bytes();
            let (whole, pieces) = (feed(&bytes, &[]), feed(&bytes, &cuts));
            prop_assert_eq!(whole.0, pieces.0);
            prop_assert_eq!(whole.1, pieces.1);
        }
    }
}
