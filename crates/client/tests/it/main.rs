//! The client against small servers written for one misbehaviour each.

mod answers;
mod bodies;
mod connections;
mod failures;
mod fetching;
mod http2;
mod server;
mod stamps;
mod stopping;
mod tls;
