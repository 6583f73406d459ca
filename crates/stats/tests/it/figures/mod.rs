//! Rows to figures: definitions, corners, parity with numpy.

mod goodput;
mod in_flight;
mod latency;
mod make;
mod numpy;
mod properties;
mod verdict;
