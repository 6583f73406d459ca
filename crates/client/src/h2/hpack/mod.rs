//! Header compression (RFC 7541): header blocks to names and values, and back.
//!
//! **Why not a crate.** Those without I/O of their own build a hash table for every compressed string they read, which costs more than
//! all the rest of a response's head. What is needed is little: blocks are read in full, and written without compression.

mod huffman;
mod table;
#[cfg(test)]
mod tests;

use table::Table;

/// The size of the table of a peer that has not been told otherwise (RFC 9113, 6.5.2).
pub(super) const TABLE_SIZE: usize = 4096;
/// No number in a block has any business to be larger.
const LARGEST: usize = 1 << 24;

/// What is wrong with a header block.
pub(super) type Wrong = &'static str;

/// Reads one header block after another of a connection.
#[derive(Debug)]
pub(super) struct Decoder {
    table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { table: Table::new(TABLE_SIZE), name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Hands each field's name and value to `on`, which may say what is wrong with it. After an error the connection's compression
    /// is out of step for good.
    pub fn decode<E: From<Wrong>>(
        &mut self,
        mut block: &[u8],
        mut on: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at_front = true;
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                let size = integer(&mut block, 5)?;
                if !at_front {
                    return Err("a change of the table's size after a field".into());
                }
                if size > TABLE_SIZE {
                    return Err("a larger table than was allowed".into());
                }
                self.table.resize(size);
                continue;
            }
            at_front = false;
            if first & 0x80 != 0 {
                let index = integer(&mut block, 7)?;
                let (name, value) = self.table.get(index).ok_or(NO_ENTRY)?;
                on(name, value)?;
                continue;
            }
            let kept = first & 0x40 != 0;
            self.literal(&mut block, if kept { 6 } else { 4 })?;
            on(&self.name, &self.value)?;
            if kept {
                self.table.add(&self.name, &self.value);
            }
        }
        Ok(())
    }

    /// A field whose value, and perhaps name, is spelt out.
    fn literal(&mut self, block: &mut &[u8], prefix: u32) -> Result<(), Wrong> {
        self.name.clear();
        self.value.clear();
        match integer(block, prefix)? {
            0 => string(block, &mut self.name)?,
            index => self.name.extend_from_slice(self.table.get(index).ok_or(NO_ENTRY)?.0),
        }
        string(block, &mut self.value)
    }
}

const NO_ENTRY: Wrong = "a field that is in no table";
const CUT_SHORT: Wrong = "a block that ends within a field";

/// RFC 7541, 5.1.
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, Wrong> {
    let mut next = || -> Result<usize, Wrong> {
        let (&byte, rest) = block.split_first().ok_or(CUT_SHORT)?;
        *block = rest;
        Ok(usize::from(byte))
    };
    let mask = (1 << prefix) - 1;
    let mut value = next()? & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21, 28] {
        let byte = next()?;
        value += (byte & 0x7f) << shift;
        if value > LARGEST {
            break;
        }
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number that is too large")
}

/// RFC 7541, 5.2.
fn string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Wrong> {
    let compressed = block.first().ok_or(CUT_SHORT)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(CUT_SHORT)?;
    *block = rest;
    if compressed {
        return huffman::decode(bytes, out);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Fields of the fixed table, whole or by name.
pub(super) mod known {
    pub const AUTHORITY: u8 = 1;
    pub const GET: u8 = 2;
    pub const POST: u8 = 3;
    pub const PATH: u8 = 4;
    pub const HTTP: u8 = 6;
    pub const HTTPS: u8 = 7;
    pub const CONTENT_LENGTH: u8 = 28;
}

/// A field of the fixed table.
pub(super) fn put_known(out: &mut Vec<u8>, index: u8) {
    out.push(0x80 | index);
}

/// A field with a name from the fixed table, to be kept in no table.
pub(super) fn put_value(out: &mut Vec<u8>, name: u8, value: &[u8]) {
    put_integer(out, 0, 4, usize::from(name));
    put_string(out, value);
}

/// A field, to be kept in no table; a `secret` one nowhere on its way either.
pub(super) fn put_field(out: &mut Vec<u8>, name: &str, value: &[u8], secret: bool) {
    out.push(if secret { 0x10 } else { 0 });
    put_integer(out, 0, 7, name.len());
    out.extend(name.bytes().map(|b| b.to_ascii_lowercase()));
    put_string(out, value);
}

/// The table for what we send shrinks to nothing: a peer may have little room, and we keep nothing there.
pub(super) fn put_empty_table(out: &mut Vec<u8>) {
    put_integer(out, 0x20, 5, 0);
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_integer(out, 0, 7, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let mask = (1 << prefix) - 1;
    if value < mask {
        return out.push(first | value as u8);
    }
    out.push(first | mask as u8);
    let mut left = value - mask;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}
