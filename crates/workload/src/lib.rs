//! From `Spec` (parsed) to `Plan` (validated, hashed, shardable) to `Load` (the machine that releases intents).
//!
//! [`Spec`] holds the flags as typed. [`Spec::plan`] checks them and draws the whole schedule, so that a [`Plan`] can be printed, hashed
//! and split before anything is sent. [`Load`] carries a plan out: it is told the time and what ended, and says what to send. It
//! reads no clock, so the live client and the simulation drive the same machine.

mod arrivals;
mod check;
mod load;
mod phases;
mod plan;
mod sessions;
mod spec;
mod turns;

pub use arrivals::{Law, Ramp};
pub use load::{IntentId, Load, LoadEffect, LoadEvent, Unsent};
pub use phases::{Arrivals, Executor, Phase, PhaseError, Phases, Stage as PhaseStage, WhenFull};
pub use plan::{Intent, Plan, PlanHash, RpsChange, Stage};
pub use sessions::{Sessions, Turn};
pub use spec::{Normalize, Spec, SpecError};
