//! The engine from outside.

mod driver;
mod golden;
mod hardware;
mod invariants;
mod memory;
mod prefix;
mod profiles;
mod rtx4090;
mod scheduling;
mod speculation;
