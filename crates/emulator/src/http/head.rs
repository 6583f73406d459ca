//! The request line and the headers.

use std::ops::Range;

use super::Refusal;

/// The methods that some endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// How the body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// What the emulator wants to know from a request's head. Ranges point into the bytes it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub method: Method,
    pub path: Range<usize>,
    pub query: Range<usize>,
    /// HTTP/1.0: the reply may not be chunked.
    pub old: bool,
    pub keep_alive: bool,
    pub expects_continue: bool,
    pub framing: Framing,
    pub request_id: Option<Range<usize>>,
    pub authorization: Option<Range<usize>>,
    /// Where the body starts.
    pub end: usize,
}

impl Head {
    /// Reads `bytes[start..end]`, which ends with the empty line.
    pub(crate) fn parse(bytes: &[u8], start: usize, end: usize) -> Result<Head, Refusal> {
        let mut at = start;
        let line = next_line(bytes, &mut at, end);
        let mut head = request_line(bytes, line)?;
        head.end = end;

        let mut length: Option<usize> = None;
        let mut chunked = false;
        loop {
            let line = next_line(bytes, &mut at, end);
            if line.is_empty() {
                break;
            }
            let (name, value) = header_line(bytes, line)?;
            match Known::of(&bytes[name]) {
                Some(Known::ContentLength) => {
                    let n = decimal(&bytes[value]).ok_or(Refusal::Malformed("content-length is not a number"))?;
                    if length.is_some_and(|l| l != n) {
                        return Err(Refusal::Malformed("two different content-lengths"));
                    }
                    length = Some(n);
                }
                Some(Known::TransferEncoding) => {
                    if chunked || !bytes[value].eq_ignore_ascii_case(b"chunked") {
                        return Err(Refusal::UnknownCoding);
                    }
                    chunked = true;
                }
                Some(Known::Connection) => {
                    for option in bytes[value].split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                        if option.eq_ignore_ascii_case(b"close") {
                            head.keep_alive = false;
                        } else if option.eq_ignore_ascii_case(b"keep-alive") && head.old {
                            head.keep_alive = true;
                        }
                    }
                }
                Some(Known::Expect) => head.expects_continue = bytes[value].eq_ignore_ascii_case(b"100-continue"),
                Some(Known::RequestId) => head.request_id = Some(value),
                Some(Known::Authorization) => head.authorization = Some(value),
                None => {}
            }
        }
        head.framing = match (chunked, length) {
            (true, Some(_)) => return Err(Refusal::Malformed("both content-length and transfer-encoding")),
            (true, None) => Framing::Chunked,
            (false, length) => Framing::Length(length.unwrap_or(0)),
        };
        Ok(head)
    }
}

#[derive(Clone, Copy)]
enum Known {
    ContentLength,
    TransferEncoding,
    Connection,
    Expect,
    RequestId,
    Authorization,
}

impl Known {
    fn of(name: &[u8]) -> Option<Known> {
        const NAMES: [(&[u8], Known); 6] = [
            (b"content-length", Known::ContentLength),
            (b"transfer-encoding", Known::TransferEncoding),
            (b"connection", Known::Connection),
            (b"expect", Known::Expect),
            (b"x-request-id", Known::RequestId),
            (b"authorization", Known::Authorization),
        ];
        NAMES.iter().find(|(n, _)| name.eq_ignore_ascii_case(n)).map(|&(_, known)| known)
    }
}

/// The next line without its CRLF; moves `at` past it. The head is known to end with an empty line.
fn next_line(bytes: &[u8], at: &mut usize, end: usize) -> Range<usize> {
    let start = *at;
    // Each line feed is known to follow a carriage return; a stray carriage return stays in the line and is refused there.
    let length = memchr::memchr(b'\n', &bytes[start..end]).unwrap_or(end - start);
    *at = (start + length + 1).min(end);
    start..start + length.saturating_sub(1)
}

fn request_line(bytes: &[u8], line: Range<usize>) -> Result<Head, Refusal> {
    let text = &bytes[line.clone()];
    let space = memchr::memchr(b' ', text).ok_or(Refusal::Malformed("no target in the request line"))?;
    let last = memchr::memrchr(b' ', text).unwrap_or(space);
    if last == space {
        return Err(Refusal::Malformed("no version in the request line"));
    }
    let method = match &text[..space] {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        other if !other.is_empty() && other.iter().all(|&b| is_token(b)) => Method::Other,
        _ => return Err(Refusal::Malformed("the method is not a token")),
    };
    let old = match &text[last + 1..] {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        v if v.starts_with(b"HTTP/") => return Err(Refusal::Version),
        _ => return Err(Refusal::Malformed("no version in the request line")),
    };
    let target = &text[space + 1..last];
    if target.is_empty() || !target.iter().all(|b| b.is_ascii_graphic() || *b >= 0x80) {
        return Err(Refusal::Malformed("the target has characters that no URL has"));
    }
    let target_start = line.start + space + 1;
    let target_end = line.start + last;
    let path_start = target_start + origin_length(target);
    let path_end = memchr::memchr(b'?', &bytes[path_start..target_end]).map_or(target_end, |q| path_start + q);
    Ok(Head {
        method,
        path: path_start..path_end,
        query: (path_end + 1).min(target_end)..target_end,
        old,
        keep_alive: !old,
        expects_continue: false,
        framing: Framing::Length(0),
        request_id: None,
        authorization: None,
        end: 0,
    })
}

/// The length of `http://host` in a target of the absolute form, as proxies send it.
fn origin_length(target: &[u8]) -> usize {
    let Some(rest) = target.strip_prefix(b"http://") else { return 0 };
    7 + memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len())
}

fn header_line(bytes: &[u8], line: Range<usize>) -> Result<(Range<usize>, Range<usize>), Refusal> {
    let text = &bytes[line.clone()];
    let colon = memchr::memchr(b':', text).ok_or(Refusal::Malformed("a header without a colon"))?;
    if colon == 0 || !text[..colon].iter().all(|&b| is_token(b)) {
        return Err(Refusal::Malformed("a header's name is not a token"));
    }
    let value = &text[colon + 1..];
    if value.iter().any(|&b| (b < 0x20 && b != b'\t') || b == 0x7f) {
        return Err(Refusal::Malformed("a control character in a header"));
    }
    let start = line.start + colon + 1 + (value.len() - value.trim_ascii_start().len());
    let end = start.max(line.start + colon + 1 + value.trim_ascii_end().len());
    Ok((line.start..line.start + colon, start..end))
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// Digits only: no sign, no spaces, no overflow.
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0usize, |n, &b| {
        let digit = b.is_ascii_digit().then(|| usize::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}
