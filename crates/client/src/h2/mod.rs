//! HTTP/2 (RFC 9113), as far as a client that measures needs it: one request after another on a connection, one in flight at a time,
//! exactly as over HTTP/1.1. No I/O.
//!
//! What is read is read strictly, and the body passes through without being gathered into frames, so that each event carries the stamp
//! of the read that completed it. Windows are as large as the protocol allows: flow control never shapes what is measured.
//! The server's own limits (its windows, its longest frame, its streams) are kept.

mod frame;
mod hpack;
mod reader;
mod request;
mod response;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use request::BlockTemplate;
pub(crate) use session::Session;
