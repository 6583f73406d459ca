//! The tables of names and values that a header block may point into: the fixed one (RFC 7541, appendix A) and the one that the
//! blocks before it have filled.

use std::collections::VecDeque;

/// RFC 7541, appendix A.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// What an entry counts beside its bytes (RFC 7541, 4.1).
const OVERHEAD: usize = 32;

/// Both tables, under one numbering.
#[derive(Debug)]
pub(super) struct Table {
    /// Newest first.
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    /// Name and value.
    bytes: Box<[u8]>,
    name: usize,
}

impl Entry {
    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

impl Table {
    /// At most so many bytes.
    pub fn new(most: usize) -> Table {
        Table { entries: VecDeque::new(), size: 0, most }
    }

    /// Name and value of that number, from 1.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        match STATIC.get(index) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => self.entries.get(index - STATIC.len()).map(|entry| entry.bytes.split_at(entry.name)),
        }
    }

    /// Adds an entry, at the cost of the oldest ones. One that is larger than the table empties it.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let entry = Entry { bytes: [name, value].concat().into(), name: name.len() };
        self.shrink(self.most.saturating_sub(entry.size()));
        if entry.size() <= self.most {
            self.size += entry.size();
            self.entries.push_front(entry);
        }
    }

    /// Sets how many bytes it may hold.
    pub fn resize(&mut self, most: usize) {
        self.most = most;
        self.shrink(most);
    }

    /// Bytes in it, by the measure of RFC 7541.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.size
    }

    fn shrink(&mut self, most: usize) {
        while self.size > most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }
}
