//! The chunked transfer coding of a request body.

use super::Refusal;

/// A chunk-size line or a trailer longer than this is an attack, not an extension.
const LONGEST_LINE: usize = 4096;

/// Decodes as bytes arrive. Positions are relative to the start of the body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    /// How far the coding has been understood.
    at: usize,
    /// The last chunk was seen; only trailers are missing.
    in_trailers: bool,
}

impl Chunked {
    /// Takes what has arrived of the body, appends whole chunks to `body`; gives the coded length once the end is there.
    pub(super) fn advance(&mut self, coded: &[u8], body: &mut Vec<u8>, limit: usize) -> Result<Option<usize>, Refusal> {
        loop {
            let Some(line) = self.line(coded)? else { return Ok(None) };
            let next = self.at + line.len() + 2;
            if self.in_trailers {
                self.at = next;
                if line.is_empty() {
                    return Ok(Some(next));
                }
                if next > limit.saturating_add(LONGEST_LINE) {
                    return Err(Refusal::BodyTooLarge);
                }
                continue;
            }
            let size = chunk_size(line)?;
            if size == 0 {
                self.in_trailers = true;
                self.at = next;
                continue;
            }
            if size > limit.saturating_sub(body.len()) {
                return Err(Refusal::BodyTooLarge);
            }
            if coded.len() < next + size + 2 {
                return Ok(None);
            }
            if &coded[next + size..next + size + 2] != b"\r\n" {
                return Err(Refusal::Malformed("a chunk is longer than its size says"));
            }
            body.extend_from_slice(&coded[next..next + size]);
            self.at = next + size + 2;
        }
    }

    fn line<'a>(&self, coded: &'a [u8]) -> Result<Option<&'a [u8]>, Refusal> {
        let rest = &coded[self.at..];
        match memchr::memchr(b'\n', rest) {
            Some(end) if end > 0 && rest[end - 1] == b'\r' && end <= LONGEST_LINE => Ok(Some(&rest[..end - 1])),
            Some(_) => Err(Refusal::Malformed("a chunk's size line is broken")),
            None if rest.len() > LONGEST_LINE => Err(Refusal::Malformed("a chunk's size line is too long")),
            None => Ok(None),
        }
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, Refusal> {
    let digits = line.split(|&b| b == b';').next().unwrap_or(line).trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Refusal::Malformed("a chunk's size is not hexadecimal"));
    }
    let text = std::str::from_utf8(digits).map_err(|_| Refusal::Malformed("a chunk's size is not hexadecimal"))?;
    usize::from_str_radix(text, 16).map_err(|_| Refusal::BodyTooLarge)
}
