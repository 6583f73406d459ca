//! JSON records one by one, without holding the file: lines, the elements of one array, or whole documents in a row.

use std::io::{self, BufRead, BufReader};

use crate::source::Bytes;

/// How the records follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One per line.
    Lines,
    /// The elements of a top-level array, or documents that span lines.
    Nested,
}

pub(crate) struct Items {
    source: BufReader<Bytes>,
    framing: Framing,
    item: Vec<u8>,
    /// Bytes taken so far.
    offset: u64,
    started: bool,
}

/// Where an item began, and whether it was complete.
pub(crate) struct Item<'a> {
    pub text: &'a [u8],
    pub offset: u64,
    pub complete: bool,
}

impl Items {
    /// `offset` is that of the first byte: 3 if a byte-order mark was taken off.
    pub(crate) fn new(source: Bytes, framing: Framing, offset: u64) -> Items {
        Items {
            source: BufReader::with_capacity(256 * 1024, source),
            framing,
            item: Vec::new(),
            offset,
            started: false,
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        match self.framing {
            Framing::Lines => self.next_line(),
            Framing::Nested => self.next_nested(),
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Item<'_>>> {
        loop {
            self.item.clear();
            let start = self.offset;
            let n = self.source.read_until(b'\n', &mut self.item)?;
            self.offset += n as u64;
            if n == 0 {
                return Ok(None);
            }
            if !self.item.trim_ascii().is_empty() {
                return Ok(Some(Item { text: self.item.trim_ascii_end(), offset: start, complete: true }));
            }
        }
    }

    fn next_nested(&mut self) -> io::Result<Option<Item<'_>>> {
        let Some(first) = self.skip_to_item()? else { return Ok(None) };
        let start = self.offset;
        self.item.clear();
        let complete = match first {
            b'{' | b'[' | b'"' => self.take_balanced()?,
            _ => self.take_scalar()?,
        };
        Ok(Some(Item { text: &self.item, offset: start, complete }))
    }

    /// Blanks, commas, and the brackets of the outer array.
    fn skip_to_item(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buf = self.source.fill_buf()?;
            let Some(&b) = buf.first() else { return Ok(None) };
            let outer = b == b'[' && !self.started;
            if !(outer || b.is_ascii_whitespace() || b == b',' || b == b']') {
                self.started = true;
                return Ok(Some(b));
            }
            self.started |= outer;
            self.source.consume(1);
            self.offset += 1;
        }
    }

    /// A string, object or array, to its closing character. False if the file ended first.
    fn take_balanced(&mut self) -> io::Result<bool> {
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        loop {
            let buf = self.source.fill_buf()?;
            if buf.is_empty() {
                return Ok(false);
            }
            let mut end = None;
            for (i, &b) in buf.iter().enumerate() {
                if in_string {
                    match b {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => in_string = false,
                        _ => continue,
                    }
                } else {
                    match b {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth = depth.saturating_sub(1),
                        _ => continue,
                    }
                }
                if depth == 0 && !in_string {
                    end = Some(i + 1);
                    break;
                }
            }
            let n = end.unwrap_or(buf.len());
            self.item.extend_from_slice(&buf[..n]);
            self.source.consume(n);
            self.offset += n as u64;
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn take_scalar(&mut self) -> io::Result<bool> {
        loop {
            let buf = self.source.fill_buf()?;
            let end = buf.iter().position(|b| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'[' | b'{'));
            let n = end.unwrap_or(buf.len());
            self.item.extend_from_slice(&buf[..n]);
            self.source.consume(n);
            self.offset += n as u64;
            if end.is_some() || n == 0 {
                // A stray character that begins nothing must not be met again.
                if self.item.is_empty() && n == 0 && end.is_some() {
                    self.source.consume(1);
                    self.offset += 1;
                }
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, framing: Framing) -> Vec<String> {
        let mut items = Items::new(Box::new(io::Cursor::new(text.to_owned())), framing, 0);
        let mut out = Vec::new();
        while let Some(item) = items.next().unwrap() {
            assert_eq!(&text.as_bytes()[item.offset as usize..][..item.text.len()], item.text);
            out.push(String::from_utf8(item.text.to_vec()).unwrap());
        }
        out
    }

    #[test]
    fn arrays_give_their_elements() {
        assert_eq!(
            all(r#" [ {"a":[1,"]}"]}, [2], "x\"]", 3 ,null] "#, Framing::Nested),
            [r#"{"a":[1,"]}"]}"#, "[2]", r#""x\"]""#, "3", "null"]
        );
        assert_eq!(all("[]", Framing::Nested), [""; 0]);
    }

    #[test]
    fn documents_may_span_lines() {
        assert_eq!(all("{\n \"a\": 1\n}\n{\"b\":2}", Framing::Nested), ["{\n \"a\": 1\n}", "{\"b\":2}"]);
    }

    #[test]
    fn blank_lines_are_no_records() {
        assert_eq!(all("{}\n\n  \n{\"a\":1}", Framing::Lines), ["{}", "{\"a\":1}"]);
    }

    #[test]
    fn an_unfinished_item_is_said_to_be() {
        let mut items = Items::new(Box::new(io::Cursor::new("[{\"a\":1},{\"b\"")), Framing::Nested, 0);
        assert!(items.next().unwrap().unwrap().complete);
        assert!(!items.next().unwrap().unwrap().complete);
    }
}
