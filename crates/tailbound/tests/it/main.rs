//! The program as a stranger meets it: the built binary against emulators and against servers that misbehave. Figures are checked to
//! what any machine can hold; how exact they are is measured under `benches/`.
#![allow(clippy::unwrap_used)] // a test that cannot go on has failed
#![allow(clippy::print_stdout)] // what is skipped is said
#![allow(clippy::type_complexity)] // tables of checks

mod bundles;
mod capacity;
mod commands;
mod compare;
mod curve;
mod fit;
mod loadgen_cli;
mod loadgen_run;
mod machine;
mod mistakes;
mod pages;
mod pasted;
mod program;
mod replay;
mod scenario;
mod server_metrics;
mod servers;
mod signals;
mod sim;
mod sweep;
mod truth;
mod verdicts;
mod workload_cli;
