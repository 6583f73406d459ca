//! `tailbound bench …`.

pub mod loadgen;
pub mod serve;
