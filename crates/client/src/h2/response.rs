//! From the fields of a response's header block to what matters of them. What makes a response malformed (RFC 9113, 8.1.1) is an error.

use crate::http::{Head, content_length, quote};

/// The fields of one block.
#[derive(Default)]
pub(super) struct Fields {
    status: Option<u16>,
    /// An ordinary field has come; after it none may begin with a colon.
    ordinary: bool,
    /// What the fields count towards the limit on their list.
    size: usize,
    pub length: Option<u64>,
    content_type: Option<Box<str>>,
    content_encoding: Option<Box<str>>,
    location: Option<Box<str>>,
}

/// Fields that belong to a connection, which HTTP/2 has others ways for (RFC 9113, 8.2.2).
const OF_CONNECTIONS: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

impl Fields {
    pub fn add(&mut self, name: &[u8], value: &[u8], limit: usize) -> Result<(), String> {
        self.size += name.len() + value.len() + 32;
        if self.size > limit {
            return Err(format!("the response's head is longer than {limit} bytes"));
        }
        if name.is_empty() || name.iter().any(|b| b.is_ascii_uppercase() || !(0x21..0x7f).contains(b)) {
            return Err(format!("not the name of a field: {}", quote(name)));
        }
        if name[0] == b':' {
            return self.add_status(name, value);
        }
        self.ordinary = true;
        let text = || Some(String::from_utf8_lossy(value).trim_ascii().into());
        match name {
            b"content-length" => self.length = Some(content_length(value, self.length)?),
            b"content-type" => self.content_type = text(),
            b"content-encoding" => self.content_encoding = text(),
            b"location" => self.location = text(),
            _ if OF_CONNECTIONS.contains(&name) => {
                return Err(format!("a field that HTTP/2 does not allow: {}", quote(name)));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_status(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        if name != b":status" || self.ordinary || self.status.is_some() {
            return Err(format!("a field out of place: {}", quote(name)));
        }
        if value.len() != 3 || !value.iter().all(u8::is_ascii_digit) || value[0] == b'0' {
            return Err(format!("not a status: {}", quote(value)));
        }
        self.status = Some(value.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')));
        Ok(())
    }

    /// Of a trailer, which has no status; whether it is one.
    pub fn is_trailer(&self) -> bool {
        self.status.is_none()
    }

    pub fn head(self) -> Result<Head, String> {
        let status = self.status.ok_or("a response without a status")?;
        if status == 101 {
            return Err("the server switched protocols, which HTTP/2 does not have".into());
        }
        let Fields { content_type, content_encoding, location, .. } = self;
        Ok(Head { status, content_type, content_encoding, location })
    }
}
