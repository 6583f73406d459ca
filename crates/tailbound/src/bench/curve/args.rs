//! The flags of `tailbound bench curve`, parsed and dumb. Target, payload, data set and client are those of `bench serve`.

use crate::bench::point::Shape;
use crate::bench::serve::args::{ClientArgs, Format, LoadArgs, PayloadArgs, ReportArgs, ServeArgs, TargetArgs, unset};
use crate::bench::serve::data_args::DataArgs;
use crate::bench::serve::refused::RefusedArgs;
use crate::bench::serve::trace_args::TraceArgs;
use crate::units;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;

/// Measure a curve.
#[derive(Args, Debug, Clone)]
pub struct CurveArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub curve: PointsArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub report: CurveReportArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Which points, and how long each.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Curve")]
pub struct PointsArgs {
    /// The lowest concurrency, 1 to 32
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::count)]
    pub c_min: u64,
    /// The highest concurrency the system supports, over 32
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub c_max: u64,
    /// Points of fixed concurrency, at least 7
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub points: usize,
    /// The offline point: the highest one is elected, or a dedicated one sends the whole data set at once
    #[arg(long, value_enum, default_value_t = OfflineArg::Elected)]
    pub offline: OfflineArg,
    /// Samples of the data set: every point issues whole passes over them [default: all that the data set's file holds]
    #[arg(long, value_name = "N", value_parser = units::some32)]
    pub dataset_samples: Option<u32>,
    /// Time a request is expected to take alone, from which the passes are planned [default: measured beforehand]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub request_time: Option<Dur>,
    /// The same at --c-max [default: as alone, or measured beforehand]
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "request_time")]
    pub request_time_at_max: Option<Dur>,
    /// Passes over the data set at every point, instead of as many as the window is expected to need
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub passes: Option<u64>,
    /// What the steady window must last, instead of the rules' 10 min (20 min over a concurrency of 32): no curve to hand in
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub min_window: Option<Dur>,
    /// Requests before each point, left out of its figures [default: as many as the concurrency, at least 8]
    #[arg(long, value_name = "N", value_parser = units::count32)]
    pub warmup_requests: Option<u32>,
    /// Measure only the points of these concurrencies now; the others stay open
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = units::count)]
    pub only: Vec<u64>,
    /// Send prompts as they are, instead of with 64 random bits in front of each, without which a prefix cache would know every pass but the first
    #[arg(long)]
    pub no_salt: bool,
    /// Measure the engine model --profile in virtual time instead of a server: hours in seconds, and the same every time
    #[arg(long = "virtual")]
    pub virtual_time: bool,
    /// With --virtual: which replica (`tailbound emulate --list-profiles` names them all)
    #[arg(long, value_name = "NAME", requires = "virtual_time", default_value = "llama-3.1-8b-h100")]
    pub profile: String,
    /// Seed of made data
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// What is reported, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Reporting")]
pub struct CurveReportArgs {
    /// Folder of the curve, with one inside for each point; naming one that exists goes on with it
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub output_dir: Option<PathBuf>,
    /// Print the plan, its hash and how long it takes, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// No progress lines
    #[arg(long, visible_alias = "quiet")]
    pub disable_tqdm: bool,
    /// Exit with 0 even if a point is INVALID
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
    /// Share of failed requests above which a point is INVALID
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub max_error_share: f64,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineArg {
    Elected,
    Dedicated,
}

impl CurveArgs {
    /// A point as a run of `bench serve`.
    pub fn serve(&self, shape: Shape, run_dir: Option<&Path>) -> ServeArgs {
        let load = LoadArgs {
            num_prompts: Some(shape.requests),
            max_concurrency: shape.concurrency.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
            num_warmups: i64::from(shape.warmups),
            seed: self.curve.seed,
            ..unset()
        };
        let report = ReportArgs {
            disable_tqdm: self.report.disable_tqdm,
            format: self.report.format,
            max_error_share: self.report.max_error_share,
            run_dir: run_dir.map(Path::to_owned),
            ..unset()
        };
        ServeArgs {
            target: self.target.clone(),
            load,
            payload: self.payload.clone(),
            // The order is ours, and a pass is the data set as it is.
            data: DataArgs { no_oversample: true, disable_shuffle: true, ..self.data.clone() },
            preset: None,
            trace: unset::<TraceArgs>(),
            report,
            client: self.client.clone(),
            refused: unset::<RefusedArgs>(),
        }
    }
}
