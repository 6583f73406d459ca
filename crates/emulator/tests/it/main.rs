//! The emulator over real sockets, compared with what vLLM sent.

mod bad;
mod client;
mod faults;
mod life;
mod metrics;
mod shapes;
mod streams;
