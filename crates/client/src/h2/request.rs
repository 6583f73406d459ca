//! Requests as HTTP/2 writes them: a header block, compressed no further than by the fixed table.

use super::hpack::{known, put_field, put_known, put_value};
use crate::http::usual_headers;
use crate::{Request, Target};

/// The fields that are the same for every request to a target.
#[derive(Clone, Debug)]
pub(crate) struct BlockTemplate {
    prefix: String,
    /// Those that begin with a colon, which must stand first.
    front: Vec<u8>,
    rest: Vec<u8>,
}

impl BlockTemplate {
    pub fn new(target: &Target) -> BlockTemplate {
        let (mut front, mut rest) = (Vec::new(), Vec::new());
        put_known(&mut front, if target.tls { known::HTTPS } else { known::HTTP });
        put_value(&mut front, known::AUTHORITY, target.authority().as_bytes());
        for (name, value) in usual_headers(target) {
            let secret = target.headers.iter().any(|own| own.name == name);
            put_field(&mut rest, name, value.as_bytes(), secret);
        }
        BlockTemplate { prefix: target.prefix.clone(), front, rest }
    }

    /// Appends a request's header block to `out`.
    pub fn write(&self, out: &mut Vec<u8>, method: &str, request: &Request<'_>) {
        put_known(out, if method == "GET" { known::GET } else { known::POST });
        put_value(out, known::PATH, format!("{}{}", self.prefix, request.path).as_bytes());
        out.extend_from_slice(&self.front);
        out.extend_from_slice(&self.rest);
        for (name, value) in &request.headers {
            put_field(out, name, value.as_bytes(), false);
        }
        if method != "GET" {
            put_value(out, known::CONTENT_LENGTH, request.body.len().to_string().as_bytes());
        }
    }
}
