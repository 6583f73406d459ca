//! Runs that were made before: folders of `bench serve --run-dir`, and vLLM's result files.

use super::measured::Measured;
use super::vllm;
use crate::bench::serve::journal::{self, FILE};
use crate::bench::serve::{again, judge::Judged};
use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};

/// The runs of a side, in order.
pub fn read(paths: &[PathBuf]) -> Outcome<Vec<Measured>> {
    let mut runs = Vec::new();
    for path in paths {
        if path.is_file() && path.file_name().is_some_and(|name| name != FILE) {
            runs.push(vllm::read(path)?);
            continue;
        }
        let inside = folders(path)?;
        if inside.is_empty() {
            return Err(Failure::new(format!("failed to read {}: it holds no run", path.display()))
                .hint("a run's folder is what `bench serve --run-dir` named"));
        }
        for folder in inside {
            runs.push(run(&folder)?);
        }
    }
    Ok(runs)
}

/// The folder itself if it is a run's, else those in it that are, by name (`round-2` before `round-10`).
fn folders(path: &Path) -> Outcome<Vec<PathBuf>> {
    if path.is_file() || path.join(FILE).exists() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |e: std::io::Error| Failure::new(format!("failed to read {}: {e}", path.display()));
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let inside = entry.map_err(failed)?.path();
        if inside.join(FILE).exists() {
            folders.push(inside);
        }
    }
    folders.sort_by_key(|f| (f.as_os_str().len(), f.clone()));
    Ok(folders)
}

fn run(folder: &Path) -> Outcome<Measured> {
    let again = again(journal::read(folder)?)?;
    let judged = Judged::new(&again.args, &again.ran)?;
    let mut run = Measured::new(&again.args, &judged, again.ran.facts.interrupted);
    run.folder = Some(folder.to_owned());
    // The same plan and the same words are the same requests.
    let args = &again.args;
    run.requests = Some(format!("{} {:?} {:?} {:?}", again.ran.plan, args.load.seed, args.data, args.preset));
    drop(judged);
    run.take(again.ran);
    Ok(run)
}
