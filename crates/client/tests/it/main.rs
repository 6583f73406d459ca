//! The client against small servers written for one misbehaviour each.

mod bodies;
mod connections;
mod failures;
mod fetching;
mod server;
mod stamps;
mod stopping;
mod tls;
