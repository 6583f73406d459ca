//! `tailbound bench …`.

pub mod capacity;
pub mod compare;
pub mod curve;
pub mod loadgen;
pub mod point;
pub mod scenario;
pub mod serve;
pub mod sweep;
