//! As much of MessagePack as KV events need, read without trust: lengths are checked against what is there.

use std::str;

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// One value's head: containers say how many follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Head<'a> {
    Nil,
    Bool(bool),
    Uint(u64),
    Int(i64),
    Float(f64),
    Str(&'a str),
    Bin(&'a [u8]),
    Array(usize),
    Map(usize),
    Ext,
}

/// How deep containers may lie in each other.
const DEEPEST: u32 = 16;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// `None` where the bytes end too early or make no sense.
    pub(crate) fn head(&mut self) -> Option<Head<'a>> {
        let tag = self.bytes(1)?[0];
        Some(match tag {
            0x00..=0x7f => Head::Uint(u64::from(tag)),
            0x80..=0x8f => self.map(usize::from(tag & 0x0f))?,
            0x90..=0x9f => self.array(usize::from(tag & 0x0f))?,
            0xa0..=0xbf => self.str(usize::from(tag & 0x1f))?,
            0xc0 => Head::Nil,
            0xc1 => return None,
            0xc2 | 0xc3 => Head::Bool(tag == 0xc3),
            0xc4..=0xc6 => {
                let n = self.uint(1 << (tag - 0xc4))? as usize;
                Head::Bin(self.bytes(n)?)
            }
            0xc7..=0xc9 => {
                let n = self.uint(1 << (tag - 0xc7))? as usize;
                self.bytes(n.checked_add(1)?)?;
                Head::Ext
            }
            0xca => Head::Float(f64::from(f32::from_bits(self.uint(4)? as u32))),
            0xcb => Head::Float(f64::from_bits(self.uint(8)?)),
            0xcc..=0xcf => Head::Uint(self.uint(1 << (tag - 0xcc))?),
            0xd0..=0xd3 => {
                let size = 1 << (tag - 0xd0);
                let unused = 64 - 8 * size as u32;
                Head::Int((self.uint(size)? << unused) as i64 >> unused)
            }
            0xd4..=0xd8 => {
                self.bytes((1 << (tag - 0xd4)) + 1)?;
                Head::Ext
            }
            0xd9..=0xdb => {
                let n = self.uint(1 << (tag - 0xd9))? as usize;
                self.str(n)?
            }
            0xdc | 0xdd => {
                let n = self.uint(2 << (tag - 0xdc))? as usize;
                self.array(n)?
            }
            0xde | 0xdf => {
                let n = self.uint(2 << (tag - 0xde))? as usize;
                self.map(n)?
            }
            0xe0..=0xff => Head::Int(i64::from(tag as i8)),
        })
    }

    /// Passes over what belongs to a head that was read.
    pub(crate) fn skip(&mut self, head: Head) -> Option<()> {
        self.skip_at(head, 0)
    }

    fn skip_at(&mut self, head: Head, depth: u32) -> Option<()> {
        let values = match head {
            Head::Array(n) => n,
            Head::Map(n) => 2 * n,
            _ => return Some(()),
        };
        if depth == DEEPEST {
            return None;
        }
        for _ in 0..values {
            let head = self.head()?;
            self.skip_at(head, depth + 1)?;
        }
        Some(())
    }

    /// Every value takes a byte at least, so that no length can make anybody reserve more than was sent.
    fn array(&self, n: usize) -> Option<Head<'a>> {
        (n <= self.rest.len()).then_some(Head::Array(n))
    }

    fn map(&self, n: usize) -> Option<Head<'a>> {
        (n <= self.rest.len() / 2).then_some(Head::Map(n))
    }

    fn str(&mut self, n: usize) -> Option<Head<'a>> {
        Some(Head::Str(str::from_utf8(self.bytes(n)?).ok()?))
    }

    fn uint(&mut self, size: usize) -> Option<u64> {
        Some(self.bytes(size)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_keep_their_sign() {
        fn head(bytes: &[u8]) -> Option<Head<'_>> {
            Reader::new(bytes).head()
        }
        assert_eq!(head(&[0xff]), Some(Head::Int(-1)));
        assert_eq!(head(&[0xd0, 0x80]), Some(Head::Int(-128)));
        assert_eq!(head(&[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]), Some(Head::Int(-2)));
        assert_eq!(head(&[0xcd, 1, 0]), Some(Head::Uint(256)));
        assert_eq!(head(&[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]), Some(Head::Float(1.5)));
    }

    #[test]
    fn a_length_beyond_the_end_is_no_value() {
        assert_eq!(Reader::new(&[0xdd, 0xff, 0xff, 0xff, 0xff]).head(), None);
        assert_eq!(Reader::new(&[0xdb, 0, 0, 0, 9, b'a']).head(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while let Some(head) = reader.head() {
                if reader.skip(head).is_none() {
                    break;
                }
            }
        }
    }
}
