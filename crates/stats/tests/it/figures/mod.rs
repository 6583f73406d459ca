//! Rows to figures: definitions, corners, parity with numpy.
#![allow(clippy::unwrap_used, reason = "a test that cannot read its own vectors must fail")]

mod goodput;
mod in_flight;
mod latency;
mod make;
mod numpy;
mod properties;
mod verdict;
