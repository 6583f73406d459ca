//! The flags of `tailbound bench compare`, parsed and dumb. Target, load, payload, data set and client are those of `bench serve`.

use crate::bench::point::Shape;
use crate::bench::serve::args::unset;
use crate::bench::serve::args::{ClientArgs, Format, LoadArgs, PayloadArgs, ReportArgs, ServeArgs, TargetArgs};
use crate::bench::serve::data_args::DataArgs;
use crate::bench::serve::preset::Preset;
use crate::bench::serve::refused::RefusedArgs;
use crate::bench::serve::trace_args::TraceArgs;
use crate::units;
use clap::Args;
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;
use tailbound_stats::compare::Measure;

/// Compare systems.
#[derive(Args, Debug, Clone)]
pub struct CompareArgs {
    /// Two or more, each `[NAME=]WHAT`; all are compared with the first. WHAT is a server's URL; `cmd:COMMAND`, a server to be started and
    /// stopped for each run; `profile:NAME`, the engine model in virtual time; or saved runs: folders of `bench serve --run-dir`
    /// (several with commas, or a folder of such folders), or a result file of `vllm bench serve --save-detailed`
    #[arg(value_name = "SIDE", required = true, num_args = 2..)]
    pub sides: Vec<String>,
    #[command(flatten)]
    pub how: HowArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub report: CompareReportArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// How sides are compared.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Comparison")]
pub struct HowArgs {
    /// Rounds: in each every side runs once, in the order A B, then B A. --num-prompts is split over them. Fewer than 3 can't tell what differs from
    /// run to run
    #[arg(long, value_name = "N", default_value = "4", value_parser = units::some32)]
    pub rounds: u32,
    /// The metric that decides: mean_, median_ or pNN_ with ttft, tpot, itl or e2e; requests_per_s, output_tokens_per_s, goodput_per_s, attainment,
    /// completed
    #[arg(long, value_name = "METRIC", default_value = "p99_ttft")]
    pub primary: Measure,
    /// Exit with 99 if the primary metric is shown to be worse than the first side's by more than this
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub tolerance: Option<f64>,
    /// With --tolerance: exit with 99 too, unless it is shown not to be worse by more than that
    #[arg(long, requires = "tolerance")]
    pub prove: bool,
    /// Latencies and rates this close count as the same
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// Attainment and completed shares this close, in points, count as the same
    #[arg(long, value_name = "POINTS", default_value = "1%", value_parser = share)]
    pub share_margin: f64,
    /// Chance of a false claim: about the primary metric, and of any about the others together
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub alpha: f64,
    /// Bootstrap replicates
    #[arg(long, value_name = "N", default_value = "4000", value_parser = units::some32)]
    pub replicates: u32,
    /// Several presets of `bench serve`, a comparison for each, instead of a data set
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    pub preset: Vec<Preset>,
    /// Compare the answers too (sends temperature 0, unless --temperature is given): how many are the same, and where the others part
    #[arg(long)]
    pub agreement: bool,
    /// `cmd:` servers are ready when this path answers with 2xx
    #[arg(long, value_name = "PATH", default_value = "/health")]
    pub ready_path: String,
    /// … within this time
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = units::duration)]
    pub server_ready_timeout: Dur,
}

/// What is reported, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Reporting")]
pub struct CompareReportArgs {
    /// Keep every run (SIDE/round-N inside, for `tailbound report` and later comparisons), server logs, and comparison.json here
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Write a page of the comparison: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Objectives per request, in ms or with a unit: ttft:500 tpot:50 e2el:10s
    #[arg(long, value_name = "METRIC:MS", num_args = 1..)]
    pub goodput: Vec<String>,
    /// Share of failed requests above which a run is INVALID
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub max_error_share: f64,
    /// Print what would be run, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// No progress lines
    #[arg(long, visible_alias = "quiet")]
    pub disable_tqdm: bool,
    /// Exit with 0 even if a run is INVALID or the gate fails
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
}

impl CompareArgs {
    /// Requests of one run: a side's, split over its rounds. `None` where a trace or a length of time says how many.
    pub fn requests(&self) -> Option<u64> {
        let traced = ["trace", "timed_trace", "mooncake", "azure", "record"].contains(&self.data.dataset_name.as_str());
        let bounded = self.load.duration.is_some() || (traced && self.how.preset.is_empty());
        let all = self.load.num_prompts.or((!bounded).then_some(1000));
        all.map(|n| n.div_ceil(u64::from(self.how.rounds)).max(1))
    }

    /// One run as `bench serve` would be asked for it; `url` is its side's.
    pub fn serve(&self, shape: Shape, url: Option<&str>, dir: Option<&Path>) -> ServeArgs {
        let mut target = self.target.clone();
        target.base_url = url.map(str::to_owned).or(target.base_url);
        let mut payload = self.payload.clone();
        if self.how.agreement {
            payload.temperature = payload.temperature.or(Some(0.0));
        }
        let report = ReportArgs {
            goodput: self.report.goodput.clone(),
            max_error_share: self.report.max_error_share,
            disable_tqdm: self.report.disable_tqdm,
            save_detailed: self.how.agreement, // which keeps the texts
            run_dir: dir.map(Path::to_owned),
            ..unset()
        };
        ServeArgs {
            target,
            load: LoadArgs {
                num_prompts: Some(shape.requests).filter(|n| *n > 0),
                seed: shape.seed.unwrap_or(self.load.seed),
                ..self.load.clone()
            },
            payload,
            data: self.data.clone(),
            preset: shape.preset,
            trace: self.trace.clone(),
            report,
            client: self.client.clone(),
            refused: unset::<RefusedArgs>(),
        }
    }
}

/// `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 0.01),
        None => (text.trim(), 1.0),
    };
    let value: f64 = number.parse().map_err(|_| format!("`{text}` is no share: write 5% or 0.05"))?;
    match value * scale {
        share if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}`: a share here lies from 0 to under 1 (100%)")),
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_percents_or_plain() {
        assert_eq!((share("5%"), share("0.05"), share("0")), (Ok(0.05), Ok(0.05), Ok(0.0)));
        for bad in ["5", "-1%", "x", "", "100%", "nan"] {
            assert!(share(bad).unwrap_err().contains(bad));
        }
    }
}
