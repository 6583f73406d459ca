//! The flags of `tailbound bench capacity`, parsed and dumb. Target, payload, data set and client are those of `bench serve`.

use crate::bench::point::Shape;
use crate::bench::serve::args::{ClientArgs, Format, LoadArgs, PayloadArgs, ReportArgs, ServeArgs, TargetArgs, unset};
use crate::bench::serve::data_args::DataArgs;
use crate::units;
use clap::Args;
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;

/// Search a capacity.
#[derive(Args, Debug, Clone)]
pub struct CapacityArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub asked: AskedArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub report: CapacityReportArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// What is asked of a load.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Objectives (one kind)")]
pub struct AskedArgs {
    /// DistServe's goodput: a request meets all of these, in ms or with a unit: ttft:500 tpot:50 e2el:10s
    #[arg(long, value_name = "METRIC:MS", num_args = 1..)]
    pub goodput: Vec<String>,
    /// Objectives of one class of requests instead of --goodput, `chat=ttft:500,tpot:50`; every class must reach the share by itself
    #[arg(long, value_name = "CLASS=METRIC:MS,…")]
    pub class_goodput: Vec<String>,
    /// Share of requests that must meet their objectives
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    pub attainment: f64,
    /// Limits on percentiles, each by itself, of any latency that a request has one of: 'p99:ttft:500ms' 'p90:tpot:40'
    #[arg(long, value_name = "pN:METRIC:MS", num_args = 1.., conflicts_with_all = ["goodput", "class_goodput"])]
    pub threshold: Vec<String>,
    /// etalon's capacity: requests miss at most --deadline-miss-rate-slo of their tokens' deadlines (fluidity-index, as its code counts)
    #[arg(long, conflicts_with_all = ["goodput", "class_goodput", "threshold"])]
    pub fluidity: bool,
    /// With --fluidity: when each token is due after the one before it
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = units::duration)]
    pub tbt_deadline: Dur,
    /// With --fluidity: when the first token is due; without it, 1 s after the prefill its prompt takes alone, which is measured
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub ttft_deadline: Option<Dur>,
    /// With --fluidity: deadlines that a request may miss, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub deadline_miss_rate_slo: f64,
    /// With --fluidity: the share of requests that must keep to that
    #[arg(long, value_name = "SHARE", default_value_t = 0.99)]
    pub deadline_miss_rate_percentile: f64,
    /// Certify as MLPerf's server scenario would: after the search, runs from its lower end, lower until one passes early stopping at 99 %
    /// and leaves no backlog, then higher up to what was found
    #[arg(long)]
    pub certify: bool,
}

/// How it is searched.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Only say whether this rate (with --concurrency: so many in flight) is borne
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub expect: Option<f64>,
    /// Search for the largest number of requests in flight, instead of the largest rate
    #[arg(long)]
    pub concurrency: bool,
    /// The load of the first probe (etalon's --start-qps) [default: 1 request/s, or 1 in flight]
    #[arg(long, value_name = "RATE", visible_alias = "start-qps", value_parser = units::rate)]
    pub first: Option<f64>,
    /// End when the interval reaches no further than this to either side, as a share of the answer
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub precision: f64,
    /// Confidence of the interval, and of yes or no
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub confidence: f64,
    /// Requests that all probes may take together
    #[arg(long, value_name = "N", default_value = "10000", value_parser = units::count)]
    pub budget: u64,
    /// Requests of a long probe; the first, which find the neighbourhood, take a third
    #[arg(long, value_name = "N", default_value = "1000", value_parser = units::count)]
    pub probe_requests: u64,
    /// Shape of the gamma-distributed gaps: 1 is Poisson, under 1 burstier, over 1 smoother, inf constant
    #[arg(long, default_value = "1", value_parser = units::rate)]
    pub burstiness: f64,
    /// GPUs or other accelerators under the endpoint: the answer is told for each, too
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub accelerators: Option<u64>,
    /// Send prompts as they are, instead of with 64 random bits in front of each, without which a prefix cache would know them from the probe before
    #[arg(long)]
    pub no_salt: bool,
    /// Search the engine model --profile in virtual time instead of a server: hours in seconds, and the same every time
    #[arg(long = "virtual")]
    pub virtual_time: bool,
    /// With --virtual: which replica (`tailbound emulate --list-profiles` names them all)
    #[arg(long, value_name = "NAME", requires = "virtual_time", default_value = "llama-3.1-8b-h100")]
    pub profile: String,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// What is reported, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Reporting")]
pub struct CapacityReportArgs {
    /// Folder of the search, with one inside for each probe; naming one that exists goes on with it
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Write a page of the search: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print what is asked for and the most it can take, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// No progress lines
    #[arg(long, visible_alias = "quiet")]
    pub disable_tqdm: bool,
    /// Exit with 0 whatever was found
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
    /// Share of failed requests above which a probe's own report is INVALID; here they are misses
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub max_error_share: f64,
}

impl CapacityArgs {
    /// A probe as a run of `bench serve`.
    pub fn serve(&self, shape: Shape, run_dir: Option<&Path>) -> ServeArgs {
        let load = LoadArgs {
            num_prompts: Some(shape.requests),
            request_rate: shape.rate,
            burstiness: shape.rate.map(|_| self.search.burstiness),
            max_concurrency: shape.concurrency.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
            num_warmups: i64::from(shape.warmups),
            seed: shape.seed.unwrap_or(self.search.seed),
            ..unset()
        };
        let report = ReportArgs {
            disable_tqdm: self.report.disable_tqdm,
            goodput: self.asked.goodput.clone(),
            attainment: Some(self.asked.attainment),
            max_error_share: self.report.max_error_share,
            run_dir: run_dir.map(Path::to_owned),
            ..unset()
        };
        ServeArgs {
            target: self.target.clone(),
            load,
            payload: self.payload.clone(),
            data: self.data.clone(),
            preset: None,
            trace: unset(),
            report,
            client: self.client.clone(),
            refused: unset(),
        }
    }
}
