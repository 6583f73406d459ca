//! A fleet in virtual time: requests go through the very router that serves live, on signals as stale as live ones, to modelled
//! engines, and come out as rows. No clock; the same scenario gives the same rows, bit for bit.
//!
//! [`Scenario`] (as written) → requests and their loads → the world, one heap of moments → [`Answered`], one per request.

mod replica;
mod requests;
mod scenario;
mod size;
mod world;

pub use scenario::{
    Arrivals, Engines, Fault, Leaving, Lengths, LoraSlots, Objective, Offload, Otherwise, Point, Prefix, RouterSpec,
    Scenario, ScenarioError, ServeGen, SharedPrefix, Speculative, Staleness, StepLaw, Sweep, Trace, Traffic,
    TransferBy, Turns, What,
};
pub use size::{Goal, Metric, Sizing, Tried, at_size, size};
pub use world::{Answered, Figures, Outcome, Routed, arrivals, run, run_into, run_logged};
