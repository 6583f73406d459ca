//! The emulator over real sockets, compared with what vLLM sent.
#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

mod bad;
mod client;
mod faults;
mod life;
mod metrics;
mod shapes;
mod streams;
