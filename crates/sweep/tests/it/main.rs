//! Servers and parameters as a sweep meets them.
#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

mod explore;
mod params;
mod server;
