//! The captured official runs and vectors.

use std::path::PathBuf;

use serde_json::Value;

/// The folder of MLPerf vectors; `None` (and a line saying so) where they are absent.
pub fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let folder = root.join("mlperf");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "the MLPerf vectors are missing: {}", folder.display());
    eprintln!("skipped: no MLPerf vectors at {}", folder.display());
    None
}

/// A file of vectors, parsed.
pub fn vectors(name: &str) -> Option<Value> {
    let path = folder()?.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Some(serde_json::from_str(&text).unwrap())
}

/// The captured runs, in order.
pub fn runs() -> Vec<PathBuf> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut runs: Vec<PathBuf> = std::fs::read_dir(folder.join("runs")).unwrap().map(|d| d.unwrap().path()).collect();
    runs.sort();
    assert!(runs.len() >= 30, "only {} captured runs", runs.len());
    runs
}

/// A file of a run.
pub fn read(run: &std::path::Path, name: &str) -> String {
    std::fs::read_to_string(run.join(name)).unwrap_or_else(|e| panic!("{}/{name}: {e}", run.display()))
}

pub fn u64s(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}
