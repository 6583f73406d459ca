//! `tailbound check endpoints DIR`: a submission, before it is handed in.

use crate::bench::serve::args::Format;
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use clap::{Args, Subcommand};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tailbound_stats::loadgen::endpoints::check::{Finding, Folder, Severity, check, passes};

/// Check what is to be handed in.
#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(subcommand)]
    command: CheckCommand,
}

#[derive(Subcommand, Debug)]
enum CheckCommand {
    /// A folder for MLPerf Endpoints, rule by rule; exit codes: 0 no errors, 3 errors, 1 unreadable
    Endpoints(EndpointsArgs),
}

#[derive(Args, Debug)]
struct EndpointsArgs {
    /// The folder that holds `results/`, or one above it
    dir: PathBuf,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Outcome<u8> {
    let CheckCommand::Endpoints(args) = &args.command;
    let mut folder = Folder::default();
    load(&args.dir, "", &mut folder)?;
    let mut findings = check(&folder);
    findings.sort_by_key(|f| f.severity);
    let passed = passes(&findings);
    output::print(&match args.format {
        Format::Text => text(&findings, passed),
        Format::Json => format!("{:#}\n", json!({ "passed": passed, "findings": findings })),
    })?;
    Ok(if passed { 0 } else { exit::INVALID })
}

/// Reads a folder; `inside` is its path from the top. Links to folders are not followed: they may lead round in circles.
fn load(dir: &Path, inside: &str, folder: &mut Folder) -> Outcome<()> {
    let failed = |path: &Path, e: io::Error| Failure::new(format!("failed to read {}: {e}", path.display()));
    for entry in fs::read_dir(dir).map_err(|e| failed(dir, e))? {
        let entry = entry.map_err(|e| failed(dir, e))?;
        let path = entry.path();
        let name = entry.file_name();
        let below = if inside.is_empty() { String::new() } else { format!("{inside}/") };
        let below = below + &name.to_string_lossy();
        let kind = entry.file_type().map_err(|e| failed(&path, e))?;
        if kind.is_dir() {
            folder.insert_folder(&below);
            load(&path, &below, folder)?;
        } else if path.is_file() {
            folder.insert(&below, content(&path).map_err(|e| failed(&path, e))?);
        }
    }
    Ok(())
}

/// A file's content. Of what isn't JSON or YAML only the beginning: logs and sources may be huge, and only their being there counts.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    let read_whole = path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let mut bytes = Vec::new();
    File::open(path)?.take(if read_whole { u64::MAX } else { 4096 }).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(findings: &[Finding], passed: bool) -> String {
    let line = |f: &Finding| {
        let (word, colour) = match f.severity {
            Severity::Error => ("error", "31"),
            Severity::Warning => ("warning", "33"),
        };
        let word = format!("{word:<8}");
        let word = if output::color() { format!("\x1b[{colour}m{word}\x1b[0m") } else { word };
        let place = if f.path.is_empty() { "." } else { &f.path };
        format!("{word} {}  {place}\n         {}\n", f.rule, f.message)
    };
    let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
    let warnings = findings.len() - errors;
    let fate = if passed { "would be accepted" } else { "would be rejected" };
    findings
        .iter()
        .map(line)
        .chain([format!("errors: {errors}, warnings: {warnings}; the submission {fate}\n")])
        .collect()
}
