//! A fleet in virtual time: a plan's requests go through the very router that serves live, on signals as stale as live ones,
//! to modelled engines, and come out as rows. No clock, no I/O; the same scenario gives the same rows, bit for bit.

mod fleet;
mod prompts;
mod scenario;
mod world;

pub use scenario::{Arrivals, Engines, Scenario, ScenarioError, SharedPrefix, Staleness};
pub use world::{Outcome, run};
