//! `tailbound bench loadgen …`: MLPerf LoadGen.

mod folder;
mod improved;
mod verdict;

use crate::failure::Outcome;
use clap::{Args, Subcommand};

/// MLPerf LoadGen.
#[derive(Args, Debug)]
pub struct LoadgenArgs {
    #[command(subcommand)]
    command: LoadgenCommand,
}

#[derive(Subcommand, Debug)]
enum LoadgenCommand {
    /// Judge a run again from its logs; exit codes: 0 VALID, 3 INVALID, 1 not to be judged
    Verdict(verdict::VerdictArgs),
}

/// Runs the command.
pub fn run(args: &LoadgenArgs) -> Outcome<u8> {
    match &args.command {
        LoadgenCommand::Verdict(args) => verdict::run(args),
    }
}
