//! The edge to the operating system: the only clock, absolute sleep, kernel receive stamps, readiness, limits, pinning.
//!
//! Every other crate is free of `unsafe`; what needs it is here, one thin function per system call, each with the reason why
//! it is sound. Nothing here decides anything. The target is Linux: kernel stamps, `epoll` and absolute sleeps are what the
//! measuring client is made of.
#![allow(unsafe_code)] // the home of it; everywhere else it is denied

pub mod alloc;
pub mod clock;
pub mod date;
pub mod group;
pub mod limits;
pub mod poll;
mod probe;
pub mod sched;
pub mod signals;
pub mod sleep;
pub mod socket;
mod stamps;
pub mod usage;

pub use probe::{TimerNoise, TimerProbe};
pub use stamps::{StampMap, Stamped};
