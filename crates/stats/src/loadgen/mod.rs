//! MLPerf, exactly: LoadGen's scenarios and verdict, and the Endpoints curve.
//!
//! MLPerf is the field's referee, and the load generator decides whether a run counted. Everything here is a pure
//! function of settings and moments: random streams, schedules, early stopping, the decision and the logs agree bit for
//! bit with the official programs, and an improved mode says what those leave out.

pub mod accuracy;
pub mod audit;
pub mod benchmarks;
pub mod conf;
mod conf_apply;
pub mod detail;
mod detail_result;
pub mod dist;
pub mod early_stopping;
pub mod effective;
pub mod endpoints;
pub mod improved;
pub mod isca2020;
pub mod log;
mod number;
mod origin;
mod outcome;
mod pacing;
pub mod peak;
mod protocol;
pub mod rng;
pub mod round;
pub mod samples;
pub mod scenario;
pub mod schedule;
pub mod score;
pub mod settings;
pub mod spread;
mod stop;
pub mod stopping;
pub mod summary;
pub mod tokens;
pub mod trace;
pub mod verdict;
mod wall;

pub use conf_apply::Source;
pub use effective::{Effective, Impossible};
pub use settings::{Library, Mode, Scenario, Settings};
