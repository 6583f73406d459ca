//! `tailbound bench compare`: sides → runs in rounds → differences with intervals → sentences, table, exit code.

pub mod args;
mod measure;
mod measured;
mod saved;
mod side;
mod told;
mod vllm;

use crate::bench::serve::args::Format;
use crate::bench::serve::preset::Preset;
use crate::bench::serve::{live, plan, refused, requests};
use crate::bundle;
use crate::failure::{Failure, Outcome, exit};
use crate::{output, page_file};
use args::CompareArgs;
use measure::Sides;
use side::{Named, What};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tailbound_report::compare::{Compared, FORMAT, File};
use tailbound_report::text::Colour;

/// The comparison's file in its folder.
const RESULT: &str = "comparison.json";

/// Runs the command; the exit code tells the verdict and the gate.
pub fn run(args: &CompareArgs) -> Outcome<u8> {
    let sides = side::parse(&args.sides)?;
    check(args, &sides)?;
    if args.report.dry_run {
        output::print(&dry_run(args, &sides)?)?;
        return Ok(0);
    }
    page_file::check(args.report.html.as_deref())?;
    let mut all = Vec::new();
    let mut stopped = None;
    for preset in workloads(args) {
        let runs = runs(args, &sides, preset)?;
        stopped = runs.stopped;
        if runs.runs.iter().any(Vec::is_empty) {
            break; // stopped before every side had run: there is nothing to compare
        }
        all.push(told::compared(args, &sides, preset, runs.runs));
        if stopped.is_some() {
            break;
        }
    }
    let file = File::new(all.iter().map(Compared::record).collect());
    tell(args, &file)?;
    Ok(match stopped {
        Some(code) => code,
        None if args.report.no_fail => 0,
        None => code(&file),
    })
}

/// Presets, each a comparison of its own, or what the data set flags say.
fn workloads(args: &CompareArgs) -> Vec<Option<Preset>> {
    match args.how.preset.as_slice() {
        [] => vec![None],
        presets => presets.iter().copied().map(Some).collect(),
    }
}

fn runs(args: &CompareArgs, sides: &[Named], preset: Option<Preset>) -> Outcome<Sides> {
    let saved = |side: &Named| match &side.what {
        What::Saved(paths) => Some(saved::read(paths)),
        _ => None,
    };
    if let Some(runs) = sides.iter().map(saved).collect::<Option<Vec<_>>>() {
        return Ok(Sides { runs: runs.into_iter().collect::<Outcome<_>>()?, stopped: None });
    }
    measure::measure(args, sides, preset, folder(args, preset).as_deref())
}

/// Where a workload's runs are kept.
fn folder(args: &CompareArgs, preset: Option<Preset>) -> Option<PathBuf> {
    let dir = args.report.output_dir.as_ref()?;
    Some(match preset {
        Some(preset) if args.how.preset.len() > 1 => dir.join(preset.terms().name),
        _ => dir.clone(),
    })
}

/// What can be judged before anything is sent.
fn check(args: &CompareArgs, sides: &[Named]) -> Outcome<()> {
    if args.how.alpha <= 0.0 || args.how.alpha >= 0.5 {
        return Err(Failure::usage(format!("--alpha {}: it must be over 0 and under 50%", args.how.alpha)));
    }
    if args.how.replicates < 500 {
        return Err(Failure::usage(format!("--replicates {}: fewer than 500 say too little", args.how.replicates)));
    }
    let saved = matches!(sides[0].what, What::Saved(_));
    if saved && !args.how.preset.is_empty() {
        return Err(Failure::usage("--preset: saved runs are what they are"));
    }
    if args.how.agreement && matches!(sides[0].what, What::Profile(_)) {
        return Err(Failure::usage("--agreement: an engine model in virtual time writes no text"));
    }
    if saved {
        return Ok(());
    }
    for side in sides {
        if let What::Profile(name) = &side.what {
            crate::emulate::profile(name)?;
        }
    }
    for preset in workloads(args) {
        let shape = measure::shape(args, sides, 0, 0, preset);
        let serve = args.serve(shape, None, None);
        refused::check(&serve)?;
        requests::extra(&serve.payload)?;
        live::metadata(&serve)?;
        crate::bench::serve::preset::check(&serve)?;
        let replay = crate::bench::serve::replay::read(&serve)?;
        let planned = plan::plan(&serve.load, replay.as_ref().map(|r| &r.outline))?;
        plan::facts(&serve, &planned, replay.as_ref().map(|r| &r.outline))?;
    }
    match &args.report.output_dir {
        Some(dir) if has_something(dir) => {
            Err(Failure::usage(format!("--output-dir {}: it holds something", dir.display())).hint(
                "name a folder that is empty, or not there yet; to compare what it holds, name its folders as sides",
            ))
        }
        _ => Ok(()),
    }
}

fn has_something(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut inside| inside.next().is_some())
}

fn dry_run(args: &CompareArgs, sides: &[Named]) -> Outcome<String> {
    let mut out = String::new();
    for side in sides {
        let _ = writeln!(out, "{:<18} {}", side.name, side.source);
    }
    if matches!(sides[0].what, What::Saved(_)) {
        return Ok(out);
    }
    for preset in workloads(args) {
        for round in 0..args.how.rounds {
            let order: Vec<&str> =
                measure::order(round, sides.len()).into_iter().map(|i| sides[i].name.as_str()).collect();
            let shape = measure::shape(args, sides, 0, round, preset);
            let serve = args.serve(shape, None, None);
            let replay = crate::bench::serve::replay::read(&serve)?;
            let planned = plan::plan(&serve.load, replay.as_ref().map(|r| &r.outline))?;
            let workload = preset.map_or(args.data.dataset_name.as_str(), |p| p.terms().name);
            let _ = writeln!(
                out,
                "{:<18} {workload}: {}, {} requests each, last arrival {}, plan {}",
                format!("round {}", round + 1),
                order.join(" "),
                if planned.endless() { "endless".to_owned() } else { planned.requests().to_string() },
                planned.span(),
                planned.hash()
            );
        }
    }
    Ok(out)
}

fn tell(args: &CompareArgs, file: &File) -> Outcome<()> {
    if let Some(dir) = &args.report.output_dir {
        std::fs::create_dir_all(dir).map_err(|e| Failure::new(format!("failed to make {}: {e}", dir.display())))?;
        bundle::publish(dir, &[(RESULT, file.json())])?;
    }
    if let Some(path) = &args.report.html {
        page_file::write(path, &file.page())?;
    }
    output::print(&printed(file, args.report.format))
}

/// What goes to standard output.
pub fn printed(file: &File, format: Format) -> String {
    let colour = if output::color() { Colour::On } else { Colour::Off };
    match format {
        Format::Json => file.json(),
        Format::Text => file.text(colour),
    }
}

/// The exit code of what was found.
pub fn code(file: &File) -> u8 {
    match file.failings() {
        (true, _) => exit::INVALID,
        (false, true) => exit::OBJECTIVE_MISSED,
        (false, false) => 0,
    }
}

/// What a comparison's folder tells; `None` if it is not one of a comparison.
pub fn of_folder(dir: &Path) -> Outcome<Option<File>> {
    let path = dir.join(RESULT);
    if !path.is_file() {
        return Ok(None);
    }
    let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
    let bytes = std::fs::read(&path).map_err(|e| failed(e.to_string()))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|e| failed(e.to_string()))?;
    match file.format {
        FORMAT => Ok(Some(file)),
        other => Err(failed(format!("it has format {other}, and this program knows {FORMAT}"))),
    }
}
