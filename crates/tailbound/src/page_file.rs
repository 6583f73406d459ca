//! A page as a file.

use crate::failure::{Failure, Outcome};
use crate::workload::place;
use std::io::Write;
use std::path::Path;
use tailbound_report::page::Page;

/// Refuses a file that could not be written, before anything is measured for it.
pub fn check(file: Option<&Path>) -> Outcome<()> {
    let Some(file) = file.filter(|file| *file != Path::new("-")) else { return Ok(()) };
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = |what: String| Err(Failure::usage(format!("failed to write {}: {what}", file.display())));
    if file.is_dir() {
        return wrong("it is a folder".into());
    }
    if !folder.is_dir() { wrong(format!("there is no folder {}", folder.display())) } else { Ok(()) }
}

/// Writes a page, whole or not at all; `-` is standard output.
pub fn write(file: &Path, page: &Page) -> Outcome<()> {
    let failed = |e: std::io::Error| Failure::new(format!("failed to write {}: {e}", place::name(file)));
    place::write(file, |out| out.write_all(page.html().as_bytes()).map_err(failed))
}
