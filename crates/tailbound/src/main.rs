//! `tailbound`: measure LLM serving systems; the numbers are true, and where they can't be, it says so.

mod bench;
mod bundle;
mod calibrate;
mod check;
mod cli;
mod demo;
mod doctor;
mod emulate;
mod export;
mod failure;
mod fit;
mod http;
mod hub;
mod output;
mod page_file;
mod progress;
mod report_command;
mod server_metrics;
mod sim;
mod truth;
mod units;
mod usage;
mod verify;
mod workload;

use clap::Parser;
use cli::{BenchCommand, Cli, Command};
use failure::Outcome;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(cli::normalized(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    output::set_color(&cli.color);
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit)
        }
    }
}

fn run(command: Command) -> Outcome<u8> {
    match command {
        Command::Bench(bench) => match bench.command {
            BenchCommand::Serve(args) => bench::serve::run(&args),
            BenchCommand::Compare(args) => bench::compare::run(&args),
            BenchCommand::Curve(args) => bench::curve::run(&args),
            BenchCommand::Run(args) => bench::scenario::run(&args),
            BenchCommand::Sweep(args) => bench::sweep::run(&args.command),
            BenchCommand::Capacity(args) => bench::capacity::run(&args),
            BenchCommand::Loadgen(args) => bench::loadgen::run(&args),
        },
        Command::Sim(args) => sim::run(&args),
        Command::Fit(args) => fit::run(&args),
        Command::Emulate(args) => emulate::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Report(args) => report_command::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Workload(args) => workload::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Verify(args) => verify::run(&args),
    }
}
