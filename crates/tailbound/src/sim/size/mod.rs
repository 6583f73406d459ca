//! `tailbound sim size`: how many replicas a load needs, and how many a simpler one would have planned.

mod page;

use super::wrong;
use crate::failure::{Outcome, exit};
use crate::{output, page_file};
use clap::Args;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tailbound_sim::{Goal, Scenario, Sizing, Tried, at_size, size};

/// `tailbound sim size`.
#[derive(Args, Debug)]
pub struct SizeArgs {
    /// The load that has to be served
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// What has to be kept: ttft_p99=2s, tpot_p90=50ms, e2e_p50=10s
    #[arg(long, value_name = "GOAL")]
    slo: Goal,
    /// A simpler load of the same mean: how many replicas it would have planned, and how late the first load is with them
    #[arg(long, value_name = "OTHER.toml")]
    against: Option<PathBuf>,
    /// Runs of each size; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// Give up above so many replicas
    #[arg(long, value_name = "N", default_value_t = 256)]
    max: u32,
    /// Write the result as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// One load and what it needs.
struct Load {
    name: String,
    about: String,
    sizing: Sizing,
}

/// What a plan made with a simpler load leads to.
struct Planned {
    load: Load,
    /// The real load on the fleet that was planned.
    then: Option<Tried>,
}

/// Exit code 99 if the goal can't be met with the most replicas.
pub fn run(args: &SizeArgs) -> Outcome<u8> {
    page_file::check(args.html.as_deref())?;
    let (real, scenario) = load(args, &args.scenario)?;
    let planned = match &args.against {
        None => None,
        Some(file) => {
            let (load, _) = load(args, file)?;
            let at = |count| at_size(&scenario, &args.slo, args.seeds, count).map_err(|e| wrong(&args.scenario, e));
            let then = load.sizing.needed.map(at).transpose()?;
            Some(Planned { load, then })
        }
    };
    output::print(&told(args, &real, planned.as_ref()))?;
    if let Some(file) = &args.html {
        page_file::write(file, &page::page(args, &real, planned.as_ref()))?;
    }
    Ok(if real.sizing.needed.is_some() { 0 } else { exit::OBJECTIVE_MISSED })
}

fn load(args: &SizeArgs, file: &Path) -> Outcome<(Load, Scenario)> {
    let scenario = Scenario::open(file).map_err(|e| wrong(file, e))?;
    let sizing = size(&scenario, &args.slo, args.seeds, args.max).map_err(|e| wrong(file, e))?;
    let name = file.file_stem().map_or_else(|| file.display().to_string(), |stem| stem.to_string_lossy().into_owned());
    Ok((Load { name, about: scenario.about.clone(), sizing }, scenario))
}

impl Load {
    fn needs(&self, most: u32) -> String {
        self.sizing.needed.map_or_else(|| format!("more than {most}"), |n| n.to_string())
    }
}

impl Planned {
    /// The share of the replicas that the simpler load would not have planned.
    fn short_by(&self, real: &Load) -> Option<f64> {
        Some(1.0 - f64::from(self.load.sizing.needed?) / f64::from(real.sizing.needed?))
    }
}

fn told(args: &SizeArgs, real: &Load, planned: Option<&Planned>) -> String {
    let mut out = format!("{}, the median of {} seeds\n", args.slo, args.seeds);
    for load in std::iter::once(real).chain(planned.map(|p| &p.load)) {
        let _ = writeln!(out, "{:<24} needs {} replicas", load.name, load.needs(args.max));
        for t in &load.sizing.tried {
            let _ = writeln!(
                out,
                "  {:>4} replicas: {:>10.3} s, {:>5.1} % late",
                t.count,
                t.value_ms / 1e3,
                100.0 * t.late
            );
        }
    }
    if let Some(planned) = planned {
        if let Some(short) = planned.short_by(real) {
            let _ = writeln!(out, "{} plans {:.1} % too few replicas", planned.load.name, 100.0 * short);
        }
        if let Some(then) = &planned.then {
            let _ = writeln!(
                out,
                "on them {} has {:.1} % of its requests late, the percentile at {:.1} s",
                real.name,
                100.0 * then.late,
                then.value_ms / 1e3
            );
        }
    }
    out
}
