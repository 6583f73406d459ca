//! The router from outside: events in, effects out.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod configs;
mod disagg;
mod driver;
mod faults;
mod flow;
mod formulas;
mod golden;
mod kv;
mod memory;
mod predict;
mod prefix;
mod properties;
mod reload;
mod splits;
