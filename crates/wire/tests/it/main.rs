//! What the bytes mean, against captured engines, the conformance suite and slower readers of the same bytes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]
#![allow(clippy::type_complexity)] // tables of checks

mod bodies;
mod captures;
mod metrics;
mod reference;
mod robustness;
mod truth_table;
