//! Integration tests of the trace crate.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: helpers are not seen as such by the lint")]

mod cycles;
mod expected;
mod fit;
mod messy;
mod readers;
mod servegen;
mod synthetic;
mod trips;

use std::path::PathBuf;

/// Where the public slices lie; `None` (with a remark) where they are not at hand, except in CI.
pub fn data() -> Option<PathBuf> {
    let root = std::env::var_os("TAILBOUND_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let workloads = root.join("workloads");
    if workloads.is_dir() {
        return Some(workloads);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no data at {}", workloads.display());
    println!("skipped: no data at {}", workloads.display());
    None
}
