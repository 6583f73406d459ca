//! The few fields of a response's head that matter.

use super::Bad;
use crate::http::{content_length, quote};

#[derive(Default)]
pub(super) struct Fields {
    pub length: Option<u64>,
    pub chunked: bool,
    pub close: bool,
    pub keep_alive: bool,
    pub content_type: Option<Box<str>>,
    pub content_encoding: Option<Box<str>>,
    pub location: Option<Box<str>>,
}

impl Fields {
    pub fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Bad> {
        let mut fields = Fields::default();
        for header in headers {
            let name = header.name;
            let value = header.value.trim_ascii();
            if name.eq_ignore_ascii_case("content-length") {
                fields.length = Some(content_length(value, fields.length).map_err(Bad)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Bad(format!("a transfer-encoding that was not asked for: {}", quote(value))));
                }
                fields.chunked = true;
            } else if name.eq_ignore_ascii_case("connection") {
                let has = |what: &[u8]| value.split(|&b| b == b',').any(|t| t.trim_ascii().eq_ignore_ascii_case(what));
                fields.close |= has(b"close");
                fields.keep_alive |= has(b"keep-alive");
            } else if name.eq_ignore_ascii_case("content-type") {
                fields.content_type = Some(String::from_utf8_lossy(value).into());
            } else if name.eq_ignore_ascii_case("content-encoding") {
                fields.content_encoding = Some(String::from_utf8_lossy(value).into());
            } else if name.eq_ignore_ascii_case("location") {
                fields.location = Some(String::from_utf8_lossy(value).into());
            }
        }
        Ok(fields)
    }
}
