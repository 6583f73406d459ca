//! `tailbound sim`: scenario file → a fleet in virtual time → rows → the report of a measured run.

pub mod folder;
mod ran;
mod replay;
mod size;
mod table;

use crate::bench::serve::args::Format;
use crate::failure::{Failure, Outcome};
use crate::{output, page_file};
use clap::{Args, Subcommand};
use folder::{Journal, Kept};
pub use ran::Told;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tailbound_sim::{Figures, Point, Scenario, ScenarioError, Sweep};

/// `tailbound sim`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SimArgs {
    #[command(subcommand)]
    command: Option<SimCommand>,
    /// The scenario: engines, policy, requests and their arrivals, faults, as TOML
    #[arg(value_name = "SCENARIO.toml", required = true)]
    scenario: Option<PathBuf>,
    /// Draw from this seed instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Objectives per request, in ms or with a unit: ttft:500 tpot:50 e2el:10s; 90 % of the requests must meet them. Without it,
    /// those that the scenario's traffic asks for
    #[arg(long, value_name = "METRIC:MS", num_args = 1..)]
    goodput: Vec<String>,
    /// Keep every request in DIR, for `tailbound report DIR`; the points of a sweep in folders of their own
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Write a page of the run: one file that opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every event of the router and what it did, for `tailbound sim replay`
    #[arg(long, value_name = "FILE")]
    router_log: Option<PathBuf>,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum SimCommand {
    /// Tell a router what a log says again: the same decisions, or those of another policy
    Replay(replay::ReplayArgs),
    /// How many replicas a scenario needs to meet an objective; beside a simpler load, how many that one would have planned
    Size(size::SizeArgs),
}

/// Runs the command; the exit code tells the verdict.
pub fn run(args: &SimArgs) -> Outcome<u8> {
    match (&args.command, &args.scenario) {
        (Some(SimCommand::Replay(args)), _) => replay::run(args),
        (Some(SimCommand::Size(args)), _) => size::run(args),
        (None, Some(file)) => simulate(args, file),
        (None, None) => Err(Failure::usage("sim: name a scenario")),
    }
}

fn simulate(args: &SimArgs, file: &Path) -> Outcome<u8> {
    ran::check(&args.goodput)?;
    page_file::check(args.html.as_deref())?;
    let mut sweep = Sweep::open(file).map_err(|e| wrong(file, e))?;
    if let Some(seed) = args.seed {
        sweep.points.iter_mut().for_each(|point| point.scenario.seed = seed);
    }
    match &sweep.points[..] {
        [Point { values, scenario }] if values.is_empty() => {
            let told = Told::new(&one(args, file, scenario, args.run_dir.as_deref())?)?;
            if let Some(page) = &args.html {
                page_file::write(page, &told.page(file))?;
            }
            tell(&told, args.format)
        }
        _ if args.html.is_some() => Err(Failure::usage("--html: a sweep has many runs; name one point")
            .hint("with --run-dir DIR each is kept: tailbound report DIR/point-001 --html FILE")),
        _ if args.router_log.is_some() => Err(Failure::usage("--router-log: a sweep has many routers; name one point")),
        points => {
            let mut table = table::Table::new(&sweep.parameters);
            for (i, Point { values, scenario }) in points.iter().enumerate() {
                let folder = args.run_dir.as_ref().map(|dir| dir.join(format!("point-{:03}", i + 1)));
                table.add(values, &Told::new(&one(args, file, scenario, folder.as_deref())?)?);
            }
            output::print(&match args.format {
                Format::Text => table.text(),
                Format::Json => table.json(),
            })?;
            Ok(0)
        }
    }
}

/// Prints a run's report.
pub fn tell(told: &Told, format: Format) -> Outcome<u8> {
    output::print(&match format {
        Format::Json => told.json(),
        Format::Text => told.text(),
    })?;
    Ok(told.exit_code())
}

fn one(args: &SimArgs, file: &Path, scenario: &Scenario, folder: Option<&Path>) -> Outcome<Kept> {
    let about = folder::About::new(scenario, &args.goodput);
    let mut journal = Journal::open(folder, &about)?;
    let mut rows = Vec::new();
    let mut broken = None;
    let sink = |one: tailbound_sim::Answered| {
        if let Err(failure) = journal.row(&one.row) {
            broken.get_or_insert(failure);
        }
        rows.push(one.row);
    };
    let figures = match &args.router_log {
        None => tailbound_sim::run_into(scenario, sink).map_err(|e| wrong(file, e))?,
        Some(log) => logged(scenario, file, log, sink)?,
    };
    match broken {
        Some(failure) => return Err(failure),
        None => journal.close(&figures)?,
    }
    rows.sort_unstable_by_key(|row| row.id);
    Ok(Kept { about, rows, figures: Some(figures) })
}

/// Runs, and writes what the router is told and does.
fn logged(scenario: &Scenario, file: &Path, log: &Path, sink: impl FnMut(tailbound_sim::Answered)) -> Outcome<Figures> {
    let failed = |e: std::io::Error| Failure::new(format!("failed to write {}: {e}", log.display()));
    let mut out = std::io::BufWriter::new(std::fs::File::create(log).map_err(failed)?);
    let head = scenario.log_head().map_err(|e| wrong(file, e))?;
    let mut written = write_line(&mut out, &head);
    let figures = tailbound_sim::run_logged(scenario, sink, |entry| {
        if written.is_ok() {
            written = write_line(&mut out, &entry);
        }
    });
    written.and_then(|()| out.flush()).map_err(failed)?;
    figures.map_err(|e| wrong(file, e))
}

fn write_line(out: &mut impl std::io::Write, value: &impl serde::Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn wrong(file: &Path, e: ScenarioError) -> Failure {
    match e {
        ScenarioError::File(what) => Failure::usage(what),
        e => Failure::usage(format!("{}: {e}", file.display())),
    }
}
