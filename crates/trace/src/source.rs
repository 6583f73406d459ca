//! Bytes of a file: decompressed by content, byte-order mark taken off, the beginning kept for a look, the rest counted.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How much of the beginning is looked at to tell the format.
const HEAD: usize = 256 * 1024;

pub(crate) type Bytes = Box<dyn Read + Send>;

/// A file's bytes from the first after the byte-order mark.
pub(crate) struct Source {
    /// The beginning (all of a small file).
    pub head: Vec<u8>,
    /// Everything, the beginning included.
    pub bytes: Bytes,
    pub tally: Arc<Tally>,
}

/// What the bytes themselves look like.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    crlf: AtomicU64,
    escapes: AtomicU64,
    ends_with_newline: AtomicBool,
    bom: AtomicBool,
}

/// What the bytes of a file look like, after decompression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FileBytes {
    /// Length in bytes, the byte-order mark included.
    pub bytes: u64,
    /// Whether it begins with a UTF-8 byte-order mark.
    pub bom: bool,
    /// Line ends of the form CR LF.
    pub crlf_lines: u64,
    /// `\u` escapes.
    pub escaped_unicode: u64,
    /// Whether the last byte is a newline.
    pub ends_with_newline: bool,
}

impl Source {
    pub(crate) fn new(raw: Bytes) -> io::Result<Source> {
        let mut bytes = decompress(raw)?;
        let tally = Arc::new(Tally::default());
        let mut head = take_head(&mut bytes)?;
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
            tally.bom.store(true, Relaxed);
            tally.bytes.store(3, Relaxed);
        }
        let counted = Counted { inner: Cursor::new(head.clone()).chain(bytes), tally: tally.clone(), last: [0; 1] };
        Ok(Source { head, bytes: Box::new(counted), tally })
    }

    /// Whether the head is the whole file.
    pub(crate) fn is_whole(&self) -> bool {
        self.head.len() < HEAD - 3
    }
}

impl Tally {
    pub(crate) fn figures(&self) -> FileBytes {
        FileBytes {
            bytes: self.bytes.load(Relaxed),
            bom: self.bom.load(Relaxed),
            crlf_lines: self.crlf.load(Relaxed),
            escaped_unicode: self.escapes.load(Relaxed),
            ends_with_newline: self.ends_with_newline.load(Relaxed),
        }
    }
}

fn take_head(bytes: &mut Bytes) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    bytes.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn decompress(mut raw: Bytes) -> io::Result<Bytes> {
    let mut magic = Vec::new();
    (&mut raw).take(4).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let all = Cursor::new(magic).chain(raw);
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(flate2::read::MultiGzDecoder::new(all)),
        (_, true) => Box::new(zstd::stream::read::Decoder::new(all)?),
        _ => Box::new(all),
    })
}

struct Counted<R> {
    inner: R,
    tally: Arc<Tally>,
    last: [u8; 1],
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        let Some((&end, _)) = buf[..n].split_last() else { return Ok(0) };
        let seen = &buf[..n];
        self.tally.bytes.fetch_add(n as u64, Relaxed);
        // A pair may straddle two reads.
        let straddles = |first: u8, second: u8| u64::from(self.last[0] == first && seen[0] == second);
        let crlf = memchr::memchr_iter(b'\r', seen).filter(|&i| seen.get(i + 1) == Some(&b'\n')).count() as u64;
        let escapes = memchr::memchr_iter(b'\\', seen).filter(|&i| seen.get(i + 1) == Some(&b'u')).count() as u64;
        self.tally.crlf.fetch_add(crlf + straddles(b'\r', b'\n'), Relaxed);
        self.tally.escapes.fetch_add(escapes + straddles(b'\\', b'u'), Relaxed);
        self.tally.ends_with_newline.store(end == b'\n', Relaxed);
        self.last = [end];
        Ok(n)
    }
}
