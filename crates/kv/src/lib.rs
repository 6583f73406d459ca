//! Block hashes and KV-cache events.
//!
//! A KV cache is cut into blocks of a fixed number of tokens. A full block is known by a hash that chains over all the
//! tokens before it, so that two requests with the same beginning (and the same salt and adapter) share blocks.
//! Events tell the outside which blocks an engine holds.

mod encode;
mod event;
mod hash;
mod msgpack;
pub mod published;
pub mod vllm;

pub use encode::{Encoding, encode};
pub use event::{Event, Log, Stored};
pub use hash::BlockHash;
