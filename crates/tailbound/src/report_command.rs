//! `tailbound report DIR`: a run's report, made again from what its folder kept.

use crate::bench::serve::args::Format;
use crate::bench::serve::judge::Judged;
use crate::bench::serve::{again, journal, page, tell};
use crate::bundle;
use crate::failure::Outcome;
use crate::sim;
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
    /// Write a page of the run: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the formula of every metric too
    #[arg(long)]
    pub explain: bool,
    /// Exit with 0 even if the run is INVALID or an objective was missed
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
}

/// Reads, judges and prints. A run that died is reported as interrupted, with every request that had ended.
pub fn run(args: &ReportDirArgs) -> Outcome<u8> {
    if let Some(simulated) = sim::folder::read(&args.dir)? {
        let code = sim::told(&simulated, args.format)?;
        return Ok(if args.no_fail { 0 } else { code });
    }
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
    let argv = kept.names.argv.clone();
    let mut again = again(kept)?;
    let report = &mut again.args.report;
    (report.format, report.explain, report.no_fail) = (args.format, args.explain, args.no_fail);
    let judged = Judged::new(&again.args, &again.ran)?;
    if let Some(file) = &args.html {
        let page = page::page(&again.args, &again.ran, &judged, &argv);
        bundle::write(file, page.html().as_bytes())?;
    }
    tell(&again.args, &again.ran)
}
