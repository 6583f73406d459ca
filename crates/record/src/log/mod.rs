//! The crash-proof log of a run: every ended request is in it before anybody asks, and whatever kills the program, all records
//! that had reached the file are read back.
//!
//! A log is eight bytes of magic and then records, each on its own: length (u32 LE), CRC-32 of what follows (u32 LE), kind (u8),
//! payload. Nothing is ever rewritten. A record that was being written when the program died is a torn tail: [`Reader`] stops
//! before it and says so. Rows are packed (about 4 bytes a token); notes are named bytes (the manifest, the client's own figures).

mod crc;
mod pack;

use crate::Row;
use pack::{Input, Output};
use std::fmt;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"TBLOG\0\x01\n";
const ROW: u8 = 1;
const NOTE: u8 = 2;
/// No record is longer: a length beyond this is damage, not a reason to ask for memory.
const LONGEST: usize = 1 << 30;

/// Appends records to anything that can be written to.
///
/// What it has been given is handed on at every record; buffer underneath and [`flush`](Writer::flush) at least every second.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    frame: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a log.
    ///
    /// # Errors
    /// What writing says.
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        Ok(Writer::append(out))
    }

    /// Goes on with a log whose end is whole (see [`Reader::whole`] for where that is).
    pub fn append(out: W) -> Writer<W> {
        Writer { out, frame: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// What writing says.
    pub fn row(&mut self, row: &Row) -> io::Result<()> {
        let mut out = Output(self.begin(ROW));
        pack::row(&mut out, row);
        self.end()
    }

    /// Appends bytes under a name (at most 255 bytes long).
    ///
    /// # Errors
    /// What writing says; a name that is too long.
    pub fn note(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let length = u8::try_from(name.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the name of a note is longer than 255 bytes"))?;
        let frame = self.begin(NOTE);
        frame.push(length);
        frame.extend_from_slice(name.as_bytes());
        frame.extend_from_slice(bytes);
        self.end()
    }

    /// Sees to it that what was appended has left this process's buffers.
    ///
    /// # Errors
    /// What flushing says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What it writes to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn begin(&mut self, kind: u8) -> &mut Vec<u8> {
        self.frame.clear();
        self.frame.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, kind]);
        &mut self.frame
    }

    fn end(&mut self) -> io::Result<()> {
        let length = self.frame.len() - 8;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record of the log is longer than 1 GiB"));
        }
        let crc = crc::of(&self.frame[8..]);
        self.frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
        self.frame[4..8].copy_from_slice(&crc.to_le_bytes());
        self.out.write_all(&self.frame)
    }
}

/// One record.
#[derive(Clone, Debug)]
pub enum Record {
    /// An ended request.
    Row(Box<Row>),
    /// Named bytes.
    Note {
        /// Their name.
        name: String,
        /// They.
        bytes: Vec<u8>,
    },
}

/// Why a log could not be read on.
#[derive(Debug)]
pub enum LogError {
    /// It is no log of ours, or of a version this program does not know.
    NotALog,
    /// Reading failed.
    Io(io::Error),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::NotALog => f.write_str("not a run's log, or of a version that this program does not know"),
            LogError::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for LogError {}

impl From<io::Error> for LogError {
    fn from(e: io::Error) -> LogError {
        LogError::Io(e)
    }
}

/// Where and how a log ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last record was being written when the program died. Nothing that had ended is missing but perhaps that one.
    Torn,
    /// A record does not match its checksum, or makes no sense: what follows it is not read.
    Corrupt,
}

/// Reads a log's records in order, up to its end or to where it is damaged.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: R,
    whole: u64,
    damage: Option<Damage>,
    over: bool,
}

impl<R: Read> Reader<R> {
    /// Opens a log. Buffer underneath. An empty file is a log whose first bytes never got out: it has no records, and is torn.
    ///
    /// # Errors
    /// Not a log; or what reading says.
    pub fn new(mut input: R) -> Result<Reader<R>, LogError> {
        let mut magic = [0; MAGIC.len()];
        let got = fill(&mut input, &mut magic)?;
        if magic[..got] != MAGIC[..got] {
            return Err(LogError::NotALog);
        }
        let whole = got == MAGIC.len();
        Ok(Reader {
            input,
            whole: if whole { got as u64 } else { 0 },
            damage: (!whole).then_some(Damage::Torn),
            over: !whole,
        })
    }

    /// How the log ends before its end, if it does. Known once the last record has been read.
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// How many bytes are whole so far: where to cut the file before appending to it.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    fn read(&mut self) -> Result<Option<Record>, LogError> {
        let mut lead = [0u8; 8];
        match fill(&mut self.input, &mut lead)? {
            0 => return Ok(None),
            8 => {}
            _ => return Ok(self.stop(Damage::Torn)),
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3] = lead;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length == 0 || length > LONGEST {
            return Ok(self.stop(Damage::Corrupt));
        }
        let mut payload = Vec::new();
        // Grown as bytes come, so that a damaged length does not ask for a gigabyte.
        (&mut self.input).take(length as u64).read_to_end(&mut payload)?;
        if payload.len() < length {
            return Ok(self.stop(Damage::Torn));
        }
        if crc::of(&payload) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Ok(self.stop(Damage::Corrupt));
        }
        self.whole += 8 + length as u64;
        match decode(&payload) {
            Some(record) => Ok(Some(record)),
            None => Ok(self.stop(Damage::Corrupt)),
        }
    }

    fn stop(&mut self, damage: Damage) -> Option<Record> {
        self.damage = Some(damage);
        None
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let record = self.read();
        self.over = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}

/// One record of a log that is being examined.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Whether it matches its checksum and makes sense.
    pub sound: bool,
    /// What it says, if it makes sense, even where its checksum differs.
    pub record: Option<Record>,
    /// Where it begins in the file.
    pub offset: u64,
}

/// Reads a log past its damage: every record it can make out, in order. Where a record's length is damaged, the next sound record is
/// looked for, and one entry stands for what lies between.
///
/// # Errors
/// Not a log; or what reading says.
pub fn examine(mut input: impl Read) -> Result<Vec<Examined>, LogError> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    if !bytes.starts_with(MAGIC) {
        return Err(LogError::NotALog);
    }
    let mut found = Vec::new();
    let mut at = MAGIC.len();
    while at < bytes.len() {
        let offset = at as u64;
        let framed = frame(&bytes[at..]).map(|(payload, crc, after)| (payload, crc, bytes.len() - after.len()));
        match framed {
            Some((payload, crc, next)) if crc::of(payload) == crc => {
                let record = decode(payload);
                found.push(Examined { sound: record.is_some(), record, offset });
                at = next;
            }
            // Its own length can be trusted if another record follows it.
            Some((payload, _, next)) if next == bytes.len() || sound(&bytes[next..]) => {
                found.push(Examined { sound: false, record: decode(payload), offset });
                at = next;
            }
            _ => {
                found.push(Examined { sound: false, record: None, offset });
                at = (at + 1..bytes.len()).find(|&i| sound(&bytes[i..])).unwrap_or(bytes.len());
            }
        }
    }
    Ok(found)
}

/// Whether a sound record begins here.
fn sound(bytes: &[u8]) -> bool {
    let framed = frame(bytes).filter(|(payload, ..)| matches!(payload.first(), Some(&ROW | &NOTE)));
    framed.is_some_and(|(payload, crc, _)| crc::of(payload) == crc && decode(payload).is_some())
}

/// A record's payload, its checksum, and what comes after it.
fn frame(bytes: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (payload, after) = rest.split_at_checked(length).filter(|_| length > 0)?;
    Some((payload, u32::from_le_bytes(*crc), after))
}

fn decode(payload: &[u8]) -> Option<Record> {
    let (&kind, rest) = payload.split_first()?;
    match kind {
        ROW => {
            let mut input = Input(rest);
            let row = pack::unrow(&mut input)?;
            input.0.is_empty().then(|| Record::Row(Box::new(row)))
        }
        NOTE => {
            let (&length, rest) = rest.split_first()?;
            let (name, bytes) = rest.split_at_checked(usize::from(length))?;
            Some(Record::Note { name: std::str::from_utf8(name).ok()?.to_owned(), bytes: bytes.to_vec() })
        }
        _ => None,
    }
}

/// Reads until `buf` is full or the input ends; how much it got.
fn fill(input: &mut impl Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buf.len() {
        match input.read(&mut buf[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
