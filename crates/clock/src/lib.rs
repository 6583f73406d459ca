//! Time as an argument.
//!
//! Nothing in the pure crates reads a clock: a moment is a [`Time`], a length of time a [`Dur`], both in integer
//! nanoseconds, and randomness comes from a named stream of a [`Seed`]. The same code therefore runs in real time
//! (moments of the monotonic clock) and in virtual time (moments of an event heap), and a run can be replayed.

mod seed;
mod time;

pub use seed::{Rng, Seed};
pub use time::{Dur, Time};
