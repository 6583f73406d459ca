//! `tailbound export endpoints DIR`: a measured curve as the folder that is handed in.

mod submission;

use crate::bench::curve::{folder, measure};
use crate::bench::serve::journal;
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use submission::{Given, SubmissionArgs};
use tailbound_record::{Moment, Row};
use tailbound_stats::loadgen::endpoints::check::{Folder, PUBLISHED, Severity, check};
use tailbound_stats::loadgen::endpoints::export::{
    CannotExport, MeasuredPoint, Submission, Warmup, export, run_folders,
};
use tailbound_stats::loadgen::endpoints::plan::{Offline, PlannedPoint};
use tailbound_stats::loadgen::endpoints::point::{Point, answered};

/// Write what is handed in.
#[derive(Args, Debug)]
pub struct ExportArgs {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Subcommand, Debug)]
enum ExportCommand {
    /// A curve of `bench curve` as an MLPerf Endpoints v1.0 submission; exit codes: 0 no errors, 3 the checker finds some, 1 could not write
    Endpoints(EndpointsArgs),
}

#[derive(Args, Debug)]
struct EndpointsArgs {
    /// The curve's folder (`bench curve --output-dir`)
    #[arg(required_unless_present = "template")]
    dir: Option<PathBuf>,
    /// Folder to write to: `<organisation>/` inside is the submission, `runs/` the same points as single run folders
    #[arg(long, value_name = "DIR", required_unless_present = "template")]
    output: Option<PathBuf>,
    /// Print a submission file to fill in, and exit
    #[arg(long)]
    template: bool,
    /// Export points that are INVALID too
    #[arg(long)]
    allow_invalid: bool,
    #[command(flatten)]
    submission: SubmissionArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Outcome<u8> {
    let ExportCommand::Endpoints(args) = &args.command;
    if args.template {
        output::print(submission::TEMPLATE)?;
        return Ok(0);
    }
    let (Some(dir), Some(to)) = (&args.dir, &args.output) else {
        return Err(Failure::usage("export endpoints needs the curve's folder and --output DIR"));
    };
    let given = Given::read(&args.submission)?;
    let submission = gather(dir, given, args.allow_invalid)?;
    let (folder, runs) = (export(&submission).map_err(cannot)?, run_folders(&submission).map_err(cannot)?);
    let files = write(&folder, to)? + write(&runs, &to.join("runs"))?;
    tell(&folder, files, &to.join(&submission.organisation))
}

fn cannot(e: CannotExport) -> Failure {
    Failure::new(format!("failed to export: {e}"))
}

/// Everything that is handed in, in memory.
fn gather(dir: &Path, given: Given, allow_invalid: bool) -> Outcome<Submission> {
    let (args, settings, plan) = measure::read(dir)?;
    let modelled = settings.virtual_profile.is_some();
    if modelled {
        output::note("this curve was modelled in virtual time; it measures no server and is nothing to hand in");
    }
    let mut accuracy = given.accuracy;
    let mut points = Vec::new();
    let mut invalid = Vec::new();
    for planned in &plan.points {
        let name = folder::name(planned);
        let of = folder::of(dir, planned);
        if !folder::finished(&of) {
            return Err(Failure::new(format!("failed to export: the point {name} has not been measured to its end"))
                .hint("the command it was begun with goes on with it (curve.json has it)"));
        }
        let kept = journal::read(&of)?;
        let warmup = warmup(&kept.rows, planned, &args.data.dataset_name, args.curve.no_salt);
        let (again, point) = measure::measured(planned, &settings, kept)?;
        if !point.valid() {
            invalid.push(name.clone());
        }
        points.push(measured_point(planned, &point, &again.ran.rows, warmup, &settings.model, accuracy.remove(&name)));
    }
    if let Some((unknown, _)) = accuracy.pop_first() {
        let known: Vec<String> = plan.points.iter().map(folder::name).collect();
        return Err(Failure::usage(format!("accuracy of {unknown}: the curve has no such point"))
            .hint(format!("its points are {}", known.join(", "))));
    }
    if !invalid.is_empty() && !allow_invalid {
        return Err(Failure::new(format!("failed to export: INVALID points: {}", invalid.join(", ")))
            .hint("bench curve says why; measure again, or export them all the same: --allow-invalid"));
    }
    Ok(Submission {
        organisation: given.organisation,
        id: given.submission_id,
        system: given.system,
        model: given.model,
        dataset: given.dataset,
        dataset_samples: settings.dataset_samples as usize,
        target_cohort: given.target_cohort,
        c_max: args.curve.c_max,
        system_desc: given.system_desc,
        disclosure: given.disclosure,
        source: given.source,
        docs: given.docs,
        version: format!(
            "tailbound {}{}",
            env!("CARGO_PKG_VERSION"),
            if modelled { " (engine model, virtual time)" } else { "" }
        ),
        points,
    })
}

fn measured_point(
    planned: &PlannedPoint,
    point: &Point,
    rows: &[Row],
    warmup: Warmup,
    model: &str,
    accuracy: Option<Value>,
) -> MeasuredPoint {
    let seeds = &PUBLISHED[PUBLISHED.len() - 1];
    let dedicated = planned.offline == Offline::Dedicated;
    let started_at_ms = point.summary.as_ref().and_then(|s| s["test_started_at"].as_u64()).unwrap_or(0);
    MeasuredPoint {
        concurrency: planned.concurrency,
        offline: planned.offline,
        samples: answered(rows),
        failed: point.figures.failed,
        warmup,
        started_at_ms,
        // As the reference client writes it, with the names of the seeds that Inference v6.1's checker looks for.
        config: json!({
            "type": if dedicated { "offline" } else { "online" },
            "model_params": { "name": model },
            "settings": {
                "load_pattern": {
                    "type": if dedicated { "max_throughput" } else { "concurrency" },
                    "target_concurrency": planned.concurrency,
                },
                "runtime": {
                    "n_samples_to_issue": planned.samples,
                    "dataloader_random_seed": seeds.sample_index,
                    "scheduler_random_seed": seeds.scheduler,
                },
            },
        }),
        accuracy,
    }
}

/// What was sent before the point, from its rows.
fn warmup(rows: &[Row], planned: &PlannedPoint, dataset: &str, unsalted: bool) -> Warmup {
    let sent: Vec<&Row> =
        rows.iter().filter(|r| r.id >= planned.samples && r.at.get(Moment::Released).is_some()).collect();
    let first = sent.iter().filter_map(|r| r.at.get(Moment::Released)).min();
    let last = sent.iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max();
    Warmup {
        duration_s: first.zip(last).map_or(0.0, |(first, last)| last.since(first).secs()),
        requests_issued: sent.len() as u64,
        requests_completed: sent.iter().filter(|r| r.ok()).count() as u64,
        data_source: format!("the first samples of {dataset}{}", if unsalted { "" } else { ", salted" }),
        concurrency: if sent.is_empty() { 0 } else { planned.concurrency },
    }
}

fn write(folder: &Folder, to: &Path) -> Outcome<usize> {
    let mut n = 0;
    for (path, content) in folder.files() {
        let path = to.join(path);
        let failed = |e: std::io::Error| Failure::new(format!("failed to write {}: {e}", path.display()));
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).map_err(failed)?;
        }
        std::fs::write(&path, content).map_err(failed)?;
        n += 1;
    }
    Ok(n)
}

/// What was written, and what the checker says of it.
fn tell(folder: &Folder, files: usize, at: &Path) -> Outcome<u8> {
    let found = check(folder);
    let errors = found.iter().filter(|f| f.severity == Severity::Error).count();
    let mut out = format!("{files} files written; the submission is {}\n", at.display());
    out += &match (errors, found.len() - errors) {
        (0, 0) => "our checker finds nothing against it\n".to_owned(),
        (errors, warnings) => {
            format!(
                "our checker finds {errors} errors and {warnings} warnings: tailbound check endpoints {}\n",
                at.display()
            )
        }
    };
    output::print(&out)?;
    Ok(if errors == 0 { 0 } else { exit::INVALID })
}
