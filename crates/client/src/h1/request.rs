//! Requests as HTTP/1.1 writes them.

use crate::http;
use std::io::Write as _;

/// The parts of a request's head that are the same for every request to a target.
#[derive(Clone, Debug)]
pub(crate) struct HeadTemplate {
    prefix: String,
    fixed: Vec<u8>,
}

impl HeadTemplate {
    pub fn new(target: &crate::Target) -> HeadTemplate {
        let mut fixed = Vec::new();
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                fixed.extend_from_slice(part.as_bytes());
            }
        };
        line("host", &target.authority());
        http::usual_headers(target).for_each(|(name, value)| line(name, value));
        HeadTemplate { prefix: target.prefix.clone(), fixed }
    }

    /// Writes the head of a request into `out`, which is emptied first.
    pub fn write(&self, out: &mut Vec<u8>, method: &str, request: &crate::Request<'_>) {
        out.clear();
        for part in [method, " ", &self.prefix, request.path, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(&self.fixed);
        for (name, value) in &request.headers {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if method != "GET" {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "content-length: {}\r\n", request.body.len());
        }
        out.extend_from_slice(b"\r\n");
    }
}
