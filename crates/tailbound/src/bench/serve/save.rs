//! Files that a run leaves behind.

use super::args::ServeArgs;
use super::judge::{Judged, detail};
use crate::failure::{Failure, Outcome};
use std::path::PathBuf;
use tailbound_report::json::{self, Mode};

/// Whether the result will have a folder to go to: known before the run rather than after it.
pub fn check(args: &ServeArgs) -> Outcome<()> {
    let Some(folder) = &args.report.result_dir else { return Ok(()) };
    let existing = folder.ancestors().find(|f| f.exists());
    match existing.filter(|f| !f.is_dir()) {
        Some(file) if saves(args) => {
            Err(Failure::usage(format!("--result-dir {}: {} is not a folder", folder.display(), file.display())))
        }
        _ => Ok(()),
    }
}

fn saves(args: &ServeArgs) -> bool {
    args.report.save_result || args.report.append_result
}

/// `--save-result`: the result as JSON, under vLLM's file name unless another was given.
pub fn result(args: &ServeArgs, judged: &Judged<'_>) -> Outcome<()> {
    if !saves(args) {
        return Ok(());
    }
    let run = judged.run();
    let name = args.report.result_filename.clone().unwrap_or_else(|| json::file_name(run.description, run.facts));
    let path = args.report.result_dir.clone().unwrap_or_default().join(PathBuf::from(name));
    let mode = if args.report.append_result { Mode::Append } else { Mode::Replace };
    json::save(&run, detail(args), &path, mode).map_err(Failure::new)?;
    eprintln!("result saved to {}", path.display());
    Ok(())
}
