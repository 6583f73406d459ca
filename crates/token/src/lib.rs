//! Tokenizers: Hugging Face `tokenizer.json` files, found locally or in the hub cache.
//!
//! Heavy (the `tokenizers` crate), so it stands apart: nothing on a hot path depends on it. Nothing here opens a socket.

mod error;
mod hub;
mod tokenizer;

pub use error::TokenError;
pub use hub::{Hub, Source};
pub use tokenizer::Tokenizer;
