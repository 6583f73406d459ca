//! `tailbound report DIR`: a run's report, made again from what its folder kept.

use crate::bench::serve::args::Format;
use crate::bench::serve::{again, journal, tell};
use crate::failure::Outcome;
use clap::Args;
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
    let mut again = again(kept)?;
    let report = &mut again.args.report;
    (report.format, report.explain, report.no_fail) = (args.format, args.explain, args.no_fail);
    tell(&again.args, &again.ran)
}
