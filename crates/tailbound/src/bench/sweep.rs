//! `tailbound bench sweep …`: many benchmarks of many servers, in vLLM's folders.

pub mod args;
mod experiment;
mod follow;
mod judged;
mod pareto;
mod plot;
pub mod plot_args;
mod product;
mod results;
mod select;
mod table;
mod workload;

use crate::failure::Outcome;
use args::SweepCommand;

/// Runs the command.
pub fn run(command: &SweepCommand) -> Outcome<u8> {
    match command {
        SweepCommand::Serve(args) => product::run(args),
        SweepCommand::Workload(args) => workload::run(args),
        SweepCommand::Plot(args) => plot::run(args),
        SweepCommand::PlotPareto(args) => pareto::run(args),
    }
}
