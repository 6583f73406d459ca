//! `tailbound bench …`.

pub mod capacity;
pub mod compare;
pub mod curve;
pub mod loadgen;
pub mod point;
pub mod serve;
pub mod sweep;
