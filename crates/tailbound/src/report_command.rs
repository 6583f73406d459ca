//! `tailbound report DIR`: a run's report, made again from what its folder kept.

use crate::bench::serve::args::{Format, ServeArgs};
use crate::bench::serve::{journal, live, plan, tell};
use crate::cli::{BenchCommand, Cli, Command, normalized};
use crate::failure::{Failure, Outcome};
use clap::{Args, Parser};
use std::path::PathBuf;
use tailbound_record::log::Damage;

/// Rebuild the report of a run.
#[derive(Args, Debug, Clone)]
pub struct ReportDirArgs {
    /// The run's folder
    pub dir: PathBuf,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print the formula of every metric too
    #[arg(long)]
    pub explain: bool,
    /// Exit with 0 even if the run is INVALID or an objective was missed
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
}

/// Reads, judges and prints. A run that died is reported as interrupted, with every request that had ended.
pub fn run(args: &ReportDirArgs) -> Outcome<u8> {
    let kept = journal::read(&args.dir)?;
    match (&kept.ending, kept.damage) {
        (None, _) => eprintln!(
            "note: the run ended before its report; this is made of the {} requests that had ended",
            kept.rows.len()
        ),
        (Some(_), Some(Damage::Torn)) => eprintln!("note: the log's last record is incomplete"),
        (Some(_), Some(_)) => eprintln!("note: the log is damaged; what follows the damage is left out"),
        (Some(_), None) => {}
    }
    let serve = flags(&kept.names.argv, args)?;
    let replay = kept.names.replay.as_ref();
    let plan = plan::fit(&serve.load, replay, plan::plan(&serve.load, replay)?, kept.names.num_prompts)?;
    let facts = plan::facts(&serve, &plan, replay)?;
    let ran = live::assemble(&serve, &plan, facts, &kept.names, kept.rows, kept.ending)?;
    tell(&serve, &ran)
}

/// The run's own flags, with what is asked of this report.
fn flags(argv: &[String], args: &ReportDirArgs) -> Outcome<ServeArgs> {
    let cli = Cli::try_parse_from(normalized(argv.iter().map(Into::into)))
        .map_err(|e| Failure::new(format!("failed to understand the run's own command: {}", e.kind())))?;
    let Command::Bench(bench) = cli.command else {
        return Err(Failure::new("the folder does not hold a run of `bench serve`"));
    };
    let BenchCommand::Serve(mut serve) = bench.command else {
        return Err(Failure::new("the folder does not hold a run of `bench serve`"));
    };
    serve.report.format = args.format;
    serve.report.explain = args.explain;
    serve.report.no_fail = args.no_fail;
    (serve.report.save_result, serve.report.append_result) = (false, false);
    Ok(*serve)
}
