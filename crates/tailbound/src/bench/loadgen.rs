//! `tailbound bench loadgen …`: MLPerf LoadGen.

mod args;
mod audit;
mod folder;
mod heard;
mod improved;
mod isca;
mod live;
mod logs;
mod rules;
mod run;
mod told;
mod verdict;
mod virtual_time;

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
    /// Run a test against a server, or in virtual time; exit codes: 0 VALID, 3 INVALID, 1 could not run, 2 wrong usage
    #[command(after_help = EXAMPLES)]
    Run(Box<args::RunArgs>),
    /// Judge a run again from its logs; exit codes: 0 VALID, 3 INVALID, 1 not to be judged
    Verdict(verdict::VerdictArgs),
    /// Judge an audit run by one of the compliance tests that apply to LLMs
    Audit(audit::AuditArgs),
}

const EXAMPLES: &str = "\
Examples:
  tailbound bench loadgen run --port 8000 --scenario Server --set target_qps=4 --set target_latency=2000 --set min_duration=60000
  tailbound bench loadgen run --port 8000 --benchmark llama3_1-8b --scenario Interactive --user-conf user.conf --output-dir logs --improved
  tailbound bench loadgen run --virtual --profile llama-3.1-8b-h100 --benchmark llama3_1-8b --set target_qps=10 --mode find-peak --improved
  tailbound bench loadgen run --virtual --rules isca2020 --task gnmt --scenario MultiStream --random-input-len 32 --random-output-len 4";

/// Runs the command.
pub fn run(args: &LoadgenArgs) -> Outcome<u8> {
    match &args.command {
        LoadgenCommand::Run(args) => run::run(args),
        LoadgenCommand::Verdict(args) => verdict::run(args),
        LoadgenCommand::Audit(args) => audit::run(args),
    }
}
