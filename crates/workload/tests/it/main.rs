//! The tests of `tailbound-workload`.
#![allow(clippy::unwrap_used)]

mod arrivals;
mod errors;
mod ks;
mod load;
mod phases;
mod plan;
mod sessions;
