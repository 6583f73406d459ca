//! The command line: which command, and its flags. `_` and `-` are the same in flag names, as in vLLM.

use crate::bench::serve::args::ServeArgs;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;

/// Measure LLM serving systems: what they deliver, what of it was worth anything, and whether the run counted.
#[derive(Parser, Debug)]
#[command(name = "tailbound", version, max_term_width = 120, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Colour: auto, always or never (NO_COLOR is honoured)
    #[arg(long, global = true, default_value = "auto", value_parser = ["auto", "always", "never"], hide_short_help = true)]
    pub color: String,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Put a load on a server and report what it delivered
    Bench(BenchArgs),
    /// Run a fleet in virtual time, router and engines, and report as if it had been measured
    #[command(after_help = SIM_EXAMPLES)]
    Sim(crate::sim::SimArgs),
    /// Learn from a measured run how long a server's steps take, for the emulator and the simulator
    Fit(crate::fit::FitArgs),
    /// Serve a model that isn't there: an OpenAI-compatible server around a simulated engine
    Emulate(Box<crate::emulate::EmulateArgs>),
    /// See it work in a few seconds: no model, no accelerator, no network
    Demo(crate::demo::DemoArgs),
    /// Check a server, and this machine, before a run
    Doctor(crate::doctor::DoctorArgs),
    /// Rebuild the report of a run from its folder (`bench serve --run-dir DIR`)
    Report(crate::report_command::ReportDirArgs),
    /// Measure this machine as a client: how true its figures are, and up to what load
    Calibrate(crate::calibrate::CalibrateArgs),
    /// Traces of real traffic: describe one, learn its clients, generate from them, convert it
    Workload(Box<crate::workload::WorkloadArgs>),
    /// Write what is to be handed in, from what was measured
    Export(Box<crate::export::ExportArgs>),
    /// Check what is to be handed in
    Check(crate::check::CheckArgs),
    /// Make every published figure again from the rows, and say what doesn't match; exit codes: 0 verified, 1 not
    Verify(crate::verify::VerifyArgs),
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub command: BenchCommand,
}

#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// One load against one server (the flags of `vllm bench serve` mean the same here)
    #[command(after_help = SERVE_EXAMPLES, allow_negative_numbers = true)]
    Serve(Box<ServeArgs>),
    /// Which of two or more systems is faster, and whether that can be told: interleaved runs, intervals, a sentence, a gate
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<crate::bench::compare::args::CompareArgs>),
    /// MLPerf Endpoints: the curve of system throughput against speed for each user, point by point
    #[command(after_help = CURVE_EXAMPLES)]
    Curve(Box<crate::bench::curve::args::CurveArgs>),
    /// A load described in a file: phases, classes, objectives, thresholds, repetitions
    #[command(after_help = RUN_EXAMPLES)]
    Run(crate::bench::scenario::RunArgs),
    /// Many benchmarks of many servers, started and stopped in turn (vLLM's flags, files and folders)
    Sweep(crate::bench::sweep::args::SweepArgs),
    /// The largest rate (or concurrency) at which the objectives hold, with an interval; exit codes: 0 found, 99 none or not the one expected
    #[command(after_help = CAPACITY_EXAMPLES)]
    Capacity(Box<crate::bench::capacity::args::CapacityArgs>),
    /// MLPerf LoadGen: run its scenarios against a server or a model, judge runs again, audit them
    Loadgen(crate::bench::loadgen::LoadgenArgs),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  tailbound bench serve --port 8000 --num-prompts 200 --request-rate 10/s
  tailbound bench serve --base-url http://host:8000 --backend openai-chat --dataset-name sharegpt --dataset-path F.json --max-concurrency 16
  tailbound bench serve --port 8000 --request-rate 20 --goodput ttft:300 tpot:40 --save-result

Exit codes: 0 valid and objectives met, 1 could not run, 2 wrong usage, 3 the run is INVALID, 99 an objective was missed, 130 interrupted.
See also: tailbound doctor URL, tailbound report DIR, tailbound demo";

const COMPARE_EXAMPLES: &str = "\
Examples:
  tailbound bench compare old=http://127.0.0.1:8000 new=http://127.0.0.1:8001 --request-rate 8/s --num-prompts 2000
  tailbound bench compare f16='cmd:llama-server -m f16.gguf --port 8000' q8='cmd:llama-server -m q8.gguf --port 8000' --max-concurrency 4 --agreement
  tailbound bench compare profile:llama-3.1-8b-h100 profile:llama-3.1-8b-h200 --request-rate 8/s
  tailbound bench compare runs/main runs/branch --primary mean_tpot --tolerance 3%

Exit codes: 0 compared, 1 could not run, 2 wrong usage, 3 a run is INVALID (nothing is claimed), 99 worse than --tolerance allows, 130 interrupted.
How it measures and judges: docs/compare.md";

const CURVE_EXAMPLES: &str = "\
Examples:
  tailbound bench curve --port 8000 --c-max 256 --dataset-name custom --dataset-path gpqa.jsonl --request-time 6s --dry-run
  tailbound bench curve --port 8000 --c-max 256 --dataset-name custom --dataset-path gpqa.jsonl --output-dir curve
  tailbound bench curve --port 8000 --c-max 40 --dataset-samples 30 --passes 5 --min-window 5s --output-dir quick

Exit codes: 0 every point counts, 1 could not run, 2 wrong usage, 3 a point is INVALID, 130 interrupted (the same command goes on).
See also: tailbound export endpoints DIR, tailbound check endpoints DIR, tailbound verify DIR";

const CAPACITY_EXAMPLES: &str = "\
Examples:
  tailbound bench capacity --port 8000 --goodput ttft:500 tpot:50 --accelerators 4 --output-dir search
  tailbound bench capacity --port 8000 --threshold p99:ttft:2s p99:tpot:200 --certify
  tailbound bench capacity --port 8000 --goodput e2el:10s --expect 12
  tailbound bench capacity --virtual --profile llama-3.1-8b-h100 --goodput ttft:500 tpot:20 --random-input-len 512

Exit codes: 0 found (with --expect: yes), 1 could not run, 2 wrong usage, 3 undecided or limited by this client, 99 no load meets the
objectives (with --expect: no), 130 interrupted (the same command with --output-dir goes on).";

const RUN_EXAMPLES: &str = "\
A scenario:
  objectives = { ttft = \"500ms\", tpot = \"50ms\", attainment = 0.95 }
  [serve]                    # any flag of `bench serve`
  port = 8000
  random-input-len = 200
  [[phase]]
  name = \"up\"
  executor = \"ramping-arrival-rate\"
  stages = [{ duration = \"1min\", target = \"10/s\" }, { duration = \"5min\", target = \"10/s\" }]
  [[phase]]                  # begins when the one before has ended, unless it says `start`
  executor = \"constant-clients\"
  clients = 32
  duration = \"2min\"
  [[threshold]]
  metric = \"ttft\"
  percentile = 99
  below = \"2s\"
  abort = true
  [repeat]
  until = \"median_ttft_ms\"
  within = 0.05

Executors: shared-iterations, per-client-iterations, constant-clients, ramping-clients, constant-arrival-rate, ramping-arrival-rate (docs/scenario.md).
Exit codes: 0 valid and everything held, 2 wrong scenario, 3 INVALID, 99 an objective or a threshold was missed, 130 interrupted.";

const SIM_EXAMPLES: &str = "\
A scenario:
  seed = 1
  policy = \"picker.yaml\"     # an EndpointPickerConfig: a file beside this one, or its YAML in '''
  [engines]                  # several groups: [[engines]]
  count = 4
  profile = \"llama-3.1-8b-h100\"
  [traffic.arrivals]         # several classes: [[traffic]]
  law = \"poisson:20/s\"
  for_s = 60
  [traffic.lengths]          # or shared_prefix, trace, servegen
  input = \"lognormal:mean=800,cv=1\"
  output = \"uniform:50..250\"

All keys: docs/sim.md. Profiles: tailbound emulate --list-profiles.
The same scenario gives the same rows, bit for bit.
Exit codes: 0 valid and objectives met, 2 wrong scenario, 3 the run is INVALID, 99 an objective was missed.";

/// The arguments with `_` in flag names turned into `-`.
pub fn normalized(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    args.map(|arg| match arg.to_str() {
        Some(text) if text.starts_with("--") => {
            let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
            let name = name.replace('_', "-");
            value.map_or_else(|| name.clone(), |v| format!("{name}={v}")).into()
        }
        _ => arg,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn underscores_in_flag_names_are_dashes_and_values_are_left_alone() {
        let args = ["--num_prompts=3", "--dataset-path=a_b", "x_y", "--save_result"].map(OsString::from);
        let expected = ["--num-prompts=3", "--dataset-path=a_b", "x_y", "--save-result"].map(OsString::from);
        assert_eq!(normalized(args.into_iter()), expected);
    }

    /// The table in the documentation against the parser: what it says works is a visible flag, what it says is refused is refused by name.
    #[test]
    fn the_documented_flags_are_the_flags() {
        let table = include_str!("../../../docs/bench-serve.md");
        let command = Cli::command();
        let serve = command.find_subcommand("bench").and_then(|b| b.find_subcommand("serve")).unwrap();
        let mut seen = 0;
        for row in table.lines().filter(|l| l.starts_with("| `--")) {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let flag = cells.next().unwrap().trim_matches('`').trim_start_matches("--");
            let refused = crate::bench::serve::refused::REFUSED.iter().any(|(name, _)| *name == flag);
            let known = serve.get_arguments().any(|a| a.get_long() == Some(flag));
            assert!(known, "--{flag} is documented and unknown");
            assert_eq!(cells.next(), Some(if refused { "refused" } else { "works" }), "--{flag}");
            seen += 1;
        }
        assert!(seen > 90, "only {seen} rows");
    }
}
