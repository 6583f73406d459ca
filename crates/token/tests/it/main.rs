//! The tests of `tailbound-token`.
#![allow(clippy::unwrap_used)]

mod hub;
mod tokenizer;
