//! `tailbound report DIR`: the report of a run, a comparison or a search, made again from what its folder kept.

mod files;

use crate::bench::serve::args::Format;
use crate::bench::serve::judge::Judged;
use crate::bench::serve::{again, journal, page, tell};
use crate::bench::{capacity, compare};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::sim;
use clap::Args;
use files::FileArgs;
use std::path::PathBuf;
use tailbound_record::log::Damage;

/// Rebuild a report.
#[derive(Args, Debug, Clone)]
pub struct ReportDirArgs {
    /// The folder of a run (`bench serve`, `sim`), of a comparison or of a capacity search
    pub dir: PathBuf,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    #[command(flatten)]
    pub files: FileArgs,
    /// Print the formula of every metric too
    #[arg(long)]
    pub explain: bool,
    /// Exit with 0 even if the run is INVALID or an objective was missed
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
}

/// Reads, judges and prints; the exit code is that of the command that measured.
pub fn run(args: &ReportDirArgs) -> Outcome<u8> {
    args.files.check()?;
    let code = of_folder(args)?;
    Ok(if args.no_fail { 0 } else { code })
}

fn of_folder(args: &ReportDirArgs) -> Outcome<u8> {
    if let Some(file) = compare::of_folder(&args.dir)? {
        args.files.without_rows("a comparison", "SIDE/round-N")?;
        args.files.write_page(&file.page())?;
        output::print(&compare::printed(&file, args.format))?;
        return Ok(compare::code(&file));
    }
    if let Some((found, code)) = capacity::of_folder(&args.dir)? {
        args.files.without_rows("a capacity search", "probe-NNN")?;
        args.files.write_page(&found.page())?;
        output::print(&match args.format {
            Format::Text => found.sentence.clone() + "\n",
            Format::Json => found.json(),
        })?;
        return Ok(code);
    }
    if let Some(simulated) = sim::folder::read(&args.dir)? {
        let told = sim::Told::new(&simulated)?;
        told.with(|run| args.files.write_rows(run))?;
        args.files.write_page(&told.page(&args.dir))?;
        return sim::tell(&told, args.format);
    }
    of_run(args)
}

/// A run that died is reported as interrupted, with every request that had ended.
fn of_run(args: &ReportDirArgs) -> Outcome<u8> {
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
    if args.files.any() {
        let judged = Judged::new(&again.args, &again.ran)?;
        args.files.write_rows(&judged.run())?;
        args.files.write_page(&page::page(&again.args, &again.ran, &judged, &argv))?;
    }
    tell(&again.args, &again.ran)
}

impl FileArgs {
    /// Refuses files of rows for what has none of its own.
    fn without_rows(&self, what: &str, inside: &str) -> Outcome<()> {
        match self.rows() {
            None => Ok(()),
            Some(flag) => Err(Failure::usage(format!("{flag}: {what} has no requests of its own"))
                .hint(format!("each run in it has: tailbound report DIR/{inside} {flag} FILE"))),
        }
    }
}
