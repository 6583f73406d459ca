//! The flags of `tailbound bench loadgen run`, parsed and dumb.

use crate::bench::serve::args::{ClientArgs, PayloadArgs, ServeArgs, TargetArgs};
use crate::bench::serve::data_args::DataArgs;
use crate::failure::{Failure, Outcome};
use crate::units;
use clap::{Args, Parser, ValueEnum};
use std::path::PathBuf;
use tailbound_clock::Dur;
use tailbound_stats::loadgen::Mode;

/// Run a LoadGen test.
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    #[command(flatten)]
    pub rules: RuleArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// `bench serve` without a flag.
#[derive(Parser)]
struct Bare {
    #[command(flatten)]
    serve: ServeArgs,
}

impl RunArgs {
    /// What `bench serve` would be told to reach the same server with `samples` of the same data set. Sample i of the library is the
    /// data set's i-th: nothing is shuffled, and nothing repeated to reach a number.
    pub fn serve(&self, samples: u32) -> Outcome<ServeArgs> {
        let bare = Bare::try_parse_from(["serve"]).map_err(|e| Failure::new(e.to_string()))?.serve;
        let data = DataArgs { disable_shuffle: true, no_oversample: true, ..self.data.clone() };
        let (target, payload, client) = (self.target.clone(), self.payload.clone(), self.client.clone());
        let mut serve = ServeArgs { target, payload, client, data, ..bare };
        serve.load.seed = self.rules.seed;
        serve.load.num_prompts = Some(u64::from(samples));
        Ok(serve)
    }
}

/// What is run, and by which rules.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Test")]
pub struct RuleArgs {
    /// SingleStream, MultiStream, Server, Offline; Interactive is Server with the limits of the benchmark's -interactive variant
    #[arg(long, value_name = "NAME", default_value = "Server")]
    pub scenario: String,
    /// What the run is for [default: what the configuration files say, else performance]
    #[arg(long, value_enum)]
    pub mode: Option<ModeName>,
    /// Benchmark of MLPerf Inference (llama2-70b, llama3_1-8b, llama3_1-8b-interactive, deepseek-r1 …): its limits on TTFT and TPOT, its counts
    #[arg(long, value_name = "NAME")]
    pub benchmark: Option<String>,
    /// Instead of the mlperf.conf that comes with the program
    #[arg(long, value_name = "FILE")]
    pub mlperf_conf: Option<PathBuf>,
    /// LoadGen's user.conf; what LoadGen would ignore in it is told
    #[arg(long, value_name = "FILE")]
    pub user_conf: Option<PathBuf>,
    /// An audit.config, or the built-in one of test04, test06, test07 or test09; it comes last and wins
    #[arg(long, value_name = "FILE|TEST")]
    pub audit_conf: Option<String>,
    /// A key of user.conf for this scenario, over the files: target_qps=4, min_duration=10000 (ms), ttft_latency=2000 (ms) …
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Samples in the library (LoadGen's QSL): the first N of the data set [default: the benchmark's, else 1024]
    #[arg(long, value_name = "N", value_parser = units::some32)]
    pub num_samples: Option<u32>,
    /// Seed of synthetic samples; the test's own seeds are those of mlperf.conf
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Draw the performance set as LoadGen did before 6.0: N of all samples instead of the first N
    #[arg(long)]
    pub legacy_qsl: bool,
    /// Write mlperf_log_summary.txt, mlperf_log_detail.txt, mlperf_log_accuracy.json and samples.csv here
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Judge more strictly than LoadGen, name every reason with what it would take; a peak is then one that holds
    #[arg(long)]
    pub improved: bool,
    /// Count a sample as lost when it is unanswered so long after its release; LoadGen waits for ever [default: 10min, Offline 6h]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub lost_after: Option<Dur>,
    /// At most so many requests in flight; samples beyond wait here, and the wait counts as latency
    #[arg(long, value_name = "N", value_parser = units::some32)]
    pub max_concurrency: Option<u32>,
    /// Today's rules, or those of the ISCA 2020 paper: MultiStream at a fixed interval scored by the streams sustained; needs --task
    #[arg(long, value_enum, default_value_t = RuleSet::Current)]
    pub rules: RuleSet,
    /// Task of the paper, for its bounds: resnet50, mobilenet, ssd-resnet34, ssd-mobilenet (vision, 1 %), gnmt (translation, 3 %)
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
    /// Streams of a MultiStream run by the paper's rules [default: search for the most]
    #[arg(long, value_name = "N", value_parser = units::some32)]
    pub streams: Option<u32>,
    /// Run in virtual time against the engine model --profile instead of a server: as fast as this machine can, and the same every time
    #[arg(long = "virtual")]
    pub virtual_time: bool,
    /// The replica to model (`tailbound emulate --list-profiles`)
    #[arg(long, value_name = "NAME", default_value = "llama-3.1-8b-h100")]
    pub profile: String,
    /// Print the settings and the plan, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// No progress line
    #[arg(long)]
    pub quiet: bool,
}

/// LoadGen's modes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeName {
    /// Timed
    #[value(alias = "PerformanceOnly")]
    Performance,
    /// Every sample once, answers logged, nothing timed
    #[value(alias = "AccuracyOnly")]
    Accuracy,
    /// Accuracy, then performance
    #[value(alias = "SubmissionRun")]
    Submission,
    /// The highest rate that meets the limits (Server)
    #[value(alias = "FindPeakPerformance")]
    FindPeak,
}

impl ModeName {
    /// The mode.
    pub fn mode(self) -> Mode {
        match self {
            ModeName::Performance => Mode::PerformanceOnly,
            ModeName::Accuracy => Mode::AccuracyOnly,
            ModeName::Submission => Mode::SubmissionRun,
            ModeName::FindPeak => Mode::FindPeakPerformance,
        }
    }
}

/// Whose rules.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSet {
    /// LoadGen 6.0
    Current,
    /// The paper
    Isca2020,
}
