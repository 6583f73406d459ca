//! Where a sweep's results lie: vLLM's folders and names.

use crate::Params;
use std::path::{Path, PathBuf};

/// The summary of a combination: a list of its runs.
pub const SUMMARY: &str = "summary.json";
/// All runs of an experiment as a table.
pub const TABLE: &str = "summary.csv";
/// The warm-up of a combination.
pub const WARMUP: &str = "warmup.json";
/// What servers and benchmarks said, which vLLM doesn't keep.
pub const LOGS: &str = "logs";

/// A name with nothing in it that a folder's name can't hold, as vLLM makes it.
pub fn sanitized(name: &str) -> String {
    name.replace('/', "_").replace("..", "__").trim_matches('\'').trim_matches('"').to_owned()
}

/// The name of a combination's folder; empty for no parameters at all, where the experiment's own folder is it.
pub fn name(serve: &Params, bench: &Params, more: &[&str]) -> String {
    let mut parts = Vec::new();
    if !serve.0.is_empty() {
        parts.extend(["SERVE-".to_owned(), serve.name()]);
    }
    if !bench.0.is_empty() {
        parts.extend(["BENCH-".to_owned(), bench.name()]);
    }
    parts.extend(more.iter().map(|&part| part.to_owned()));
    sanitized(&parts.join("-"))
}

/// The folder of that name.
pub fn folder(experiment: &Path, name: &str) -> PathBuf {
    if name.is_empty() { experiment.to_owned() } else { experiment.join(name) }
}

/// One run's result.
pub fn run(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("run={number}.json"))
}

/// Why there is no result of that path.
pub fn failure(result: &Path) -> PathBuf {
    result.with_extension("failure.json")
}

/// The rows behind a result, if the benchmark is ours.
pub fn rows(result: &Path) -> PathBuf {
    result.with_extension("")
}

/// Why a server's combinations have no results.
pub fn server_failure(experiment: &Path, serve: &Params) -> PathBuf {
    let name = Some(serve.name()).filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
    experiment.join(sanitized(&format!("SERVE-{name}-failure.json")))
}

/// What a server said.
pub fn server_log(experiment: &Path, serve: &Params) -> PathBuf {
    let name = Some(serve.name()).filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
    experiment.join(LOGS).join(sanitized(&format!("SERVE--{name}.log")))
}

/// What a benchmark said.
pub fn bench_log(experiment: &Path, combination: &str, result: &Path) -> PathBuf {
    let run = result.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = if combination.is_empty() { run } else { format!("{combination}.{run}") };
    experiment.join(LOGS).join(format!("{name}.log"))
}
