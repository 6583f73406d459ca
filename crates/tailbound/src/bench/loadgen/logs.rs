//! The logs a test leaves behind.

use crate::failure::{Failure, Outcome};
use std::path::Path;
use tailbound_stats::loadgen::samples::to_csv;
use tailbound_stats::loadgen::scenario::Test;

const DETAIL: &str = "mlperf_log_detail.txt";

/// Whether the logs will have a folder to go to: known before the run rather than after it. Logs that are there are never written over.
pub fn check(folder: Option<&Path>) -> Outcome<()> {
    let Some(folder) = folder else { return Ok(()) };
    let name = folder.display();
    if folder.join(DETAIL).exists() {
        return Err(Failure::usage(format!("--output-dir {name}: it already holds a run's logs"))
            .hint(format!("name another folder, or see what is in it: tailbound bench loadgen verdict {name}")));
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::usage(format!("--output-dir {name}: failed to make the folder: {e}")))
}

/// Writes them, each whole or not at all; the detail log last, so that where it is the others are.
pub fn write(folder: &Path, test: &Test, virtual_time: bool) -> Outcome<()> {
    let pid = if virtual_time { 0 } else { std::process::id() };
    if let Some(run) = test.result() {
        put(folder, "samples.csv", &to_csv(&run.outcome.samples))?;
    }
    put(folder, "mlperf_log_summary.txt", &test.summary())?;
    put(folder, "mlperf_log_accuracy.json", &test.accuracy_log())?;
    put(folder, DETAIL, &test.journal().write(pid, pid))
}

/// Writes a file under another name first.
pub fn put(folder: &Path, name: &str, text: &str) -> Outcome<()> {
    let (path, half) = (folder.join(name), folder.join(format!(".{name}.part")));
    std::fs::write(&half, text)
        .and_then(|()| std::fs::rename(&half, &path))
        .map_err(|e| Failure::new(format!("failed to write {}: {e}", path.display())))
}
