//! `tailbound bench curve`: flags → plan → one run after another, each in its own folder → table → exit code.

pub mod args;
pub mod folder;
pub mod measure;
pub mod plan;
pub mod table;

use crate::bench::point::{Shape, Sut};
use crate::bench::serve::args::{Format, ServeArgs};
use crate::bench::serve::{data, refused, requests};
use crate::bundle::{self, Manifest};
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use args::CurveArgs;
use folder::Settings;
use measure::Curve;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use table::Table;
use tailbound_prompt::PromptSet;

/// Runs the command.
pub fn run(args: &CurveArgs) -> Outcome<u8> {
    let any_point = any_point(args);
    refused::check(&any_point)?;
    requests::extra(&args.payload)?;
    data::data_set(&args.data)?;
    if args.payload.no_stream {
        return Err(Failure::usage("--no-stream: without a stream there is no TPOT, and so no tokens/s for each user"));
    }
    // What needs no server is judged first; so many passes stand for a time that is still to be measured.
    plan::curve(args, u64::from(args.curve.dataset_samples.unwrap_or(1 << 20)), Some([1.0, 0.0]))?;
    if args.report.dry_run {
        return dry_run(args, &any_point);
    }
    let dir = args.report.output_dir.clone().ok_or_else(|| Failure::usage("--output-dir is missing"))?;
    let (sut, prompts) = sut(args, &any_point)?;
    prompts.notes.iter().for_each(|note| output::note(note));
    let curve = Curve::prepare(args, dir, sut, prompts)?;
    curve.measure()?;
    let open: Vec<String> = curve.open().map(|p| p.concurrency.to_string()).collect();
    if !open.is_empty() {
        output::note(&format!("still open: the points of concurrency {}", open.join(", ")));
    }
    tell(args, &curve.table()?)
}

/// What stands for every point where the points don't differ.
fn any_point(args: &CurveArgs) -> ServeArgs {
    let mut serve = args.serve(Shape { requests: 1, concurrency: Some(1), ..Shape::default() }, None);
    serve.report.dry_run = args.report.dry_run;
    serve
}

/// What is measured, and the data set, counted by it.
fn sut(args: &CurveArgs, any_point: &ServeArgs) -> Outcome<(Sut, PromptSet)> {
    let sut = Sut::of(any_point, args.curve.virtual_time.then_some(args.curve.profile.as_str()))?;
    if sut.counts_words() {
        output::note("in virtual time a word is a token");
    }
    let prompts = prompts(args, any_point, &sut)?;
    Ok((sut, prompts))
}

/// The data set, once.
fn prompts(args: &CurveArgs, any_point: &ServeArgs, sut: &Sut) -> Outcome<PromptSet> {
    let data_set = data::data_set(&args.data)?;
    let mut set = sut.prompts(any_point, &data_set, args.curve.dataset_samples).map_err(|e| {
        let made = args.curve.dataset_samples.is_none() && args.data.dataset_path.is_none();
        if made { e.hint("say how many samples the data set has: --dataset-samples N") } else { e }
    })?;
    if let Some(wanted) = args.curve.dataset_samples.filter(|&n| (n as usize) > set.prompts.len()) {
        return Err(Failure::usage(format!(
            "--dataset-samples {wanted}: the data set has only {} samples",
            set.prompts.len()
        )));
    }
    if !args.curve.no_salt {
        set.prompts = crate::bench::serve::passes::salted(&set.prompts)?;
    }
    Ok(set)
}

/// Prints the plan. The server is asked only for what the flags leave open.
fn dry_run(args: &CurveArgs, any_point: &ServeArgs) -> Outcome<u8> {
    let known = args.target.model.clone().zip(args.curve.dataset_samples);
    let (model, dataset) = match known {
        Some((model, samples)) => (model, u64::from(samples)),
        None => {
            let (sut, prompts) = sut(args, any_point)?;
            (sut.model().id.clone(), prompts.prompts.len() as u64)
        }
    };
    let given = plan::given_request_s(args);
    let undecided = given.is_none() && args.curve.passes.is_none();
    // Requests that take for ever need the fewest passes.
    let mut planned = plan::curve(args, dataset, given.or(undecided.then_some([f64::MAX, 0.0])))?;
    let mut hash = None;
    if undecided {
        output::note(
            "a pilot will measure how long a request takes, and the passes follow from that; here are the fewest",
        );
        planned.points.iter_mut().for_each(|p| p.expected_s = None);
    } else {
        hash = Some(plan::hash(args, &planned, &model)?);
    }
    output::print(&match args.report.format {
        Format::Text => plan::describe(args, &planned, dataset, &model, hash.as_deref()),
        Format::Json => table::plan_json(&planned, &model, dataset, hash.as_deref()),
    })?;
    Ok(0)
}

fn tell(args: &CurveArgs, table: &Table) -> Outcome<u8> {
    output::print(&match args.report.format {
        Format::Text => table.text(output::color()),
        Format::Json => table.json(),
    })?;
    Ok(if args.report.no_fail || table.valid() { 0 } else { exit::INVALID })
}

/// Ties the curve's folder together: its table, its settings, its points.
fn seal(dir: &Path, hash: &str, table: &Table, points: &[PathBuf]) -> Outcome<()> {
    let results = bundle::publish(dir, &[(bundle::RESULT, table.json())])?;
    let mut manifests = BTreeMap::new();
    for point in points {
        let name = point.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        manifests.insert(name, bundle::file_digest(&point.join(bundle::MANIFEST))?);
    }
    Manifest::of_curve(hash.to_owned(), &Settings::bytes(dir)?, results, manifests)?.write(dir)
}
