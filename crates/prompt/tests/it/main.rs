//! The tests of `tailbound-prompt`.
#![allow(clippy::unwrap_used)]

mod burstgpt;
mod custom;
mod data;
mod fit;
mod random;
mod rows;
mod sharegpt;
mod tokenizers;
