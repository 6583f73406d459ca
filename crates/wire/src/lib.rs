//! Bytes to meaning: request bodies and stream decoding for each API; the SSE parser; pages of metrics. No I/O, no clock.
//!
//! A client makes one [`Decoder`] per response, tells it the [head](Decoder::head), pushes the body's bytes as they come, and stamps
//! whatever each push hands out; [`Decoder::finish`] says how it ended. What counts as a token, and what as a failure, is decided
//! here and nowhere else.

mod api;
pub mod body;
pub mod cases;
mod complaint;
mod decode;
mod json;
pub mod metrics;
pub mod sse;
mod usage;

pub use api::Api;
pub use decode::{Decoder, End, Eof, Event, Fault, Head, Notes, Outcome, Output, Text};
pub use usage::Usage;
