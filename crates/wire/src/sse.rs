//! Server-sent events, by the rules of the WHATWG HTML standard ("Parsing an event stream"): bytes in, events out.
//!
//! Incremental: the bytes may be cut anywhere. An event that lies inside one pushed slice is handed out as a borrow of that slice;
//! only what straddles two pushes is copied. Two things go beyond the standard, and both are marked: an event that the end of the
//! body cut off before its blank line, and lines that belong to no known field (a server that writes bare JSON, for example).

use memchr::memchr2;

/// The longest event that is taken unless [`Parser::with_limit`] says otherwise, in bytes.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// What was found in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A complete event.
    Event(Event<'a>),
    /// A line whose field is none of `data`, `event`, `id`, `retry`. The standard drops it; an error message may want to quote it.
    Stray(&'a [u8]),
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` field; empty if there was none (the standard's type is then `message`).
    pub name: &'a [u8],
    /// The `data:` lines, joined by `\n`.
    pub data: &'a [u8],
    /// False if the body ended before the blank line that ends an event.
    pub terminated: bool,
}

/// An event was longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream event is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

/// The parser of one stream.
#[derive(Clone, Debug)]
pub struct Parser {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of an unfinished event that began in an earlier push, or had several lines.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    id: Vec<u8>,
    retry: Option<u64>,
    /// The last byte was a CR that ended a line: a LF right after it belongs to it.
    after_cr: bool,
    /// How many bytes of the byte order mark were seen; 3 once the start of the stream is past.
    bom: u8,
    limit: usize,
}

/// The parts of the current event that lie in the slice being pushed.
#[derive(Default)]
struct Here<'b> {
    data: Option<&'b [u8]>,
    name: Option<&'b [u8]>,
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl Default for Parser {
    fn default() -> Parser {
        Parser::new()
    }
}

impl Parser {
    /// A parser with the [`DEFAULT_LIMIT`].
    pub fn new() -> Parser {
        Parser::with_limit(DEFAULT_LIMIT)
    }

    /// A parser that refuses events longer than `limit` bytes.
    pub fn with_limit(limit: usize) -> Parser {
        Parser {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: Vec::new(),
            id: Vec::new(),
            retry: None,
            after_cr: false,
            bom: 0,
            limit,
        }
    }

    /// The last `id:` field; empty if there was none.
    pub fn last_id(&self) -> &[u8] {
        &self.id
    }

    /// The last `retry:` field, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry
    }

    /// Takes the next bytes and hands out every event that they complete, in order.
    ///
    /// # Errors
    /// When an event passes the limit. The parser is of no further use then.
    pub fn push(&mut self, bytes: &[u8], mut on: impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        let mut at = if self.bom < 3 { self.skip_bom(bytes) } else { 0 };
        let mut here = Here::default();
        while at < bytes.len() {
            if std::mem::take(&mut self.after_cr) && bytes[at] == b'\n' {
                at += 1;
                continue;
            }
            let Some(length) = memchr2(b'\r', b'\n', &bytes[at..]) else {
                self.line.extend_from_slice(&bytes[at..]);
                break;
            };
            let end = at + length;
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[at..end], &mut here, &mut on)?;
            } else {
                self.line.extend_from_slice(&bytes[at..end]);
                self.spill(&mut here);
                self.take_held_line(&mut on)?;
            }
            at = end + 1;
        }
        self.spill(&mut here);
        self.check(0)
    }

    /// The body has ended: hands out an event that lacks only its blank line, marked as not terminated.
    ///
    /// # Errors
    /// When that event passes the limit.
    pub fn finish(&mut self, mut on: impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        if (1..3).contains(&self.bom) {
            self.line.splice(0..0, BOM[..usize::from(self.bom)].iter().copied());
        }
        self.bom = 3;
        if !self.line.is_empty() {
            self.take_held_line(&mut on)?;
        }
        if self.has_data {
            on(Item::Event(Event { name: &self.name, data: &self.data, terminated: false }));
        }
        self.forget();
        Ok(())
    }

    fn skip_bom(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && self.bom < 3 {
            if bytes[at] != BOM[usize::from(self.bom)] {
                // Not a mark after all: what looked like its start is the start of a line.
                self.line.extend_from_slice(&BOM[..usize::from(self.bom)]);
                self.bom = 3;
                return at;
            }
            self.bom += 1;
            at += 1;
        }
        at
    }

    /// A line that was put together in `self.line`; it is never empty, so it can't end an event.
    fn take_held_line(&mut self, on: &mut impl FnMut(Item<'_>)) -> Result<(), TooLong> {
        let mut line = std::mem::take(&mut self.line);
        let mut held = Here::default();
        let result = self.take_line(&line, &mut held, on);
        self.spill(&mut held);
        line.clear();
        self.line = line;
        result
    }

    fn take_line<'b>(
        &mut self,
        line: &'b [u8],
        here: &mut Here<'b>,
        on: &mut impl FnMut(Item<'_>),
    ) -> Result<(), TooLong> {
        if line.is_empty() {
            self.dispatch(here, on);
            return Ok(());
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            return self.add_data(value.strip_prefix(b" ").unwrap_or(value), here);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(()),
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => return self.add_data(value, here),
            b"event" => {
                self.name.clear();
                here.name = Some(value);
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
                return self.check(self.id.len());
            }
            b"id" => {}
            b"retry" => {
                if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
                    self.retry = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                }
            }
            _ => on(Item::Stray(line)),
        }
        Ok(())
    }

    fn add_data<'b>(&mut self, value: &'b [u8], here: &mut Here<'b>) -> Result<(), TooLong> {
        self.check(value.len() + here.data.map_or(0, <[u8]>::len))?;
        if !self.has_data && here.data.is_none() {
            here.data = Some(value);
            return Ok(());
        }
        self.spill(here);
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, here: &mut Here<'_>, on: &mut impl FnMut(Item<'_>)) {
        let name = here.name.take();
        match here.data.take() {
            Some(data) => {
                let name = name.unwrap_or(&self.name);
                on(Item::Event(Event { name, data, terminated: true }));
            }
            None if self.has_data => {
                let name = name.unwrap_or(&self.name);
                on(Item::Event(Event { name, data: &self.data, terminated: true }));
            }
            None => {}
        }
        self.forget();
    }

    fn forget(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    /// Copies what was borrowed, because the slice goes away or more data joins it.
    fn spill(&mut self, here: &mut Here<'_>) {
        if let Some(name) = here.name.take() {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        if let Some(data) = here.data.take() {
            self.data.clear();
            self.data.extend_from_slice(data);
            self.has_data = true;
        }
    }

    fn check(&self, more: usize) -> Result<(), TooLong> {
        let length = self.line.len() + self.data.len() + self.name.len() + more;
        if length > self.limit { Err(TooLong { limit: self.limit }) } else { Ok(()) }
    }
}
