//! HTTP/1.1, as far as a client that measures needs it: requests out, responses in. No I/O.
//!
//! Responses are read strictly: what breaks the grammar is an error, never a guess, because a guess here would turn into a wrong
//! number there. Heads are parsed by `httparse`; framing is ours.

mod fields;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use request::HeadTemplate;

use crate::http::{Cut, Head, Part, quote, take};
use fields::Fields;
use std::borrow::Cow;

/// Bytes that break HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad(pub String);

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
