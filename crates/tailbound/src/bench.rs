//! `tailbound bench …`.

pub mod serve;
