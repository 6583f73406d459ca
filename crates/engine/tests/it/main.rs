//! The engine from outside.

mod adapters;
mod driver;
mod golden;
mod hardware;
mod invariants;
mod memory;
mod prefix;
mod profiles;
mod quiet;
mod roles;
mod rtx4090;
mod scheduling;
mod speculation;
mod tiers;
