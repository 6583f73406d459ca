//! The flags of `tailbound bench sweep …`: vLLM's names and meanings, and a few of ours.

use crate::units;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tailbound_clock::Dur;
use tailbound_sweep::explore::Variable;

#[derive(Args, Debug)]
pub struct SweepArgs {
    #[command(subcommand)]
    pub command: SweepCommand,
}

#[derive(Subcommand, Debug)]
pub enum SweepCommand {
    /// Benchmark every combination of a server's and a benchmark's parameters
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeSweepArgs>),
    /// The same, each over levels of load from one request after another to all at once
    #[command(alias = "serve_workload", alias = "serve-workload", after_help = WORKLOAD_EXAMPLES)]
    Workload(Box<WorkloadArgs>),
    /// Draw one variable of a sweep's runs against another: SVG files and a page
    #[command(after_help = PLOT_EXAMPLES)]
    Plot(Box<super::plot_args::PlotArgs>),
    /// Draw speed for each user against speed for each accelerator, and the frontier of what nothing beats
    #[command(name = "plot_pareto", alias = "plot-pareto", alias = "pareto", after_help = PARETO_EXAMPLES)]
    PlotPareto(Box<super::plot_args::ParetoArgs>),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  tailbound bench sweep serve --serve-cmd 'vllm serve MODEL --port 8000' --serve-params serve.json \\
      --bench-cmd 'tailbound bench serve --port 8000 --num-prompts 200' --bench-params bench.json -o results -e first
  tailbound bench sweep serve … -e first --resume      # after Ctrl-C or a crash: the same folder as without

serve.json: [{\"max_num_seqs\": 32}, {\"max_num_seqs\": 64}]      or {\"small\": {\"max_num_seqs\": 32}, \"large\": {…}}

Exit codes: 0 all runs valid, 1 could not run, 2 wrong usage, 3 a run is INVALID, 130 interrupted.
See also: tailbound bench sweep plot, tailbound bench sweep plot_pareto, docs/sweep.md";

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  tailbound bench sweep workload --serve-cmd 'vllm serve MODEL' --bench-cmd 'tailbound bench serve --num-prompts 200'
  tailbound bench sweep workload --workload-var max_concurrency --workload-iters 12 …

Levels lie geometrically between both ends; half of them go where throughput ÷ latency is greatest.";

const PLOT_EXAMPLES: &str = "\
Examples:
  tailbound bench sweep plot results/first --var-x max_concurrency --var-y p99_ttft_ms --curve-by max_num_seqs
  tailbound bench sweep plot results/first --filter-by 'max_concurrency<=64' --fig-by model_id --scale-y log";

const PARETO_EXAMPLES: &str = "\
Examples:
  tailbound bench sweep plot_pareto results/first --accelerators 2 --cost-per-accelerator-hour 2.5
  tailbound bench sweep plot_pareto results/first --per-user quotient      # vLLM's throughput ÷ users";

/// What servers, benchmarks and folders are.
#[derive(Args, Debug, Clone)]
pub struct ServeSweepArgs {
    /// Command that runs the server; no shell reads it
    #[arg(long, value_name = "COMMAND")]
    pub serve_cmd: String,
    /// Command that runs the benchmark: `tailbound bench serve …`, or `vllm bench serve …`
    #[arg(long, value_name = "COMMAND")]
    pub bench_cmd: String,
    /// Command to run after each benchmark, instead of asking the server to forget its caches
    #[arg(long, value_name = "COMMAND")]
    pub after_bench_cmd: Option<String>,
    /// Show on standard error what servers and benchmarks say (their logs are kept either way)
    #[arg(long)]
    pub show_stdout: bool,
    /// Wait this long for a server to become ready
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = units::duration)]
    pub server_ready_timeout: Dur,
    /// Path that answers with a status of 2xx once the server is ready
    #[arg(long, value_name = "PATH", default_value = "/health")]
    pub server_ready_path: String,
    /// Where the server listens, if its command doesn't say (--host, --port)
    #[arg(long, value_name = "URL")]
    pub server_url: Option<String>,
    /// JSON file of the server's parameters: a list of objects, or an object of objects by name
    #[arg(long, value_name = "FILE")]
    pub serve_params: Option<PathBuf>,
    /// JSON file of the benchmark's parameters; with both files, every pair of combinations is run
    #[arg(long, value_name = "FILE")]
    pub bench_params: Option<PathBuf>,
    /// Keep only pairs in which these are equal: SERVER=BENCHMARK,… as in max_num_seqs=max_concurrency
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub link_vars: String,
    /// Folder of all experiments
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output_dir: PathBuf,
    /// Name of this one, and of its folder [default: the date and time]
    #[arg(short, long, value_name = "NAME")]
    pub experiment_name: Option<String>,
    /// Runs of each combination
    #[arg(long, value_name = "N", default_value = "3", value_parser = units::some32)]
    pub num_runs: u32,
    /// Requests of a run before each combination's, which is saved and left out of every figure
    #[arg(long, value_name = "N", default_value = "0", value_parser = units::count32)]
    pub warmup_num_prompts: u32,
    /// Record what failed, and go on
    #[arg(long)]
    pub continue_on_error: bool,
    /// Print the commands, and run none
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with an experiment: only what has no result yet is run
    #[arg(long)]
    pub resume: bool,
    /// Exit with 0 even if a run is INVALID
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
}

/// What the explorer adds.
#[derive(Args, Debug, Clone)]
pub struct WorkloadArgs {
    #[command(flatten)]
    pub sweep: ServeSweepArgs,
    /// What the level of load is counted in
    #[arg(long, value_enum, default_value_t = WorkloadVar::RequestRate)]
    pub workload_var: WorkloadVar,
    /// Levels to measure, both ends among them
    #[arg(long, value_name = "N", default_value = "10", value_parser = units::some32)]
    pub workload_iters: u32,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadVar {
    #[value(name = "request_rate", alias = "request-rate")]
    RequestRate,
    #[value(name = "max_concurrency", alias = "max-concurrency")]
    MaxConcurrency,
}

impl From<WorkloadVar> for Variable {
    fn from(var: WorkloadVar) -> Variable {
        match var {
            WorkloadVar::RequestRate => Variable::RequestRate,
            WorkloadVar::MaxConcurrency => Variable::MaxConcurrency,
        }
    }
}
