//! `tailbound bench run SCENARIO.toml`: phases, classes, objectives, thresholds and repetitions from one file.

pub mod file;
pub mod thresholds;

use super::serve::args::ServeArgs;
use super::serve::judge::Judged;
use super::serve::{self, plan, tell};
use crate::bundle::{self, Kind};
use crate::cli::{BenchCommand, Cli, Command, normalized};
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use clap::{Args, Parser};
use file::{Phased, Repeat, Scenario};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use tailbound_clock::Dur;
use tailbound_workload::Executor;

/// A load described in a file.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The scenario's file (TOML)
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Print the plan, its hash and its length, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Keep the run's rows in this folder; those of repetitions in run=0, run=1 … within it
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Flags of `bench serve`, which win over the file's
    #[arg(last = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Outcome<u8> {
    let scenario = file::read(&args.scenario)?;
    let serve = serve_args(args, &scenario, None)?;
    let planned = plan::plan(&serve.load, None)?;
    plan::facts(&serve, &planned, None)?;
    if args.dry_run {
        output::print(&dry_run(&scenario, &planned))?;
        return Ok(0);
    }
    match &scenario.repeat {
        Some(repeat) => repeated(args, &scenario, repeat),
        None => serve::run(&serve),
    }
}

/// The scenario as flags of `bench serve`; of a repetition, with the seed moved on by its number.
fn serve_args(args: &RunArgs, scenario: &Scenario, repetition: Option<u64>) -> Outcome<ServeArgs> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().replace('_', "-");
    let given: Vec<String> = args.flags.iter().filter(|f| f.starts_with("--")).map(|f| name(f)).collect();
    let mut argv: Vec<String> = ["tailbound", "bench", "serve"].map(str::to_owned).into();
    // A flag's values, where they are words of their own, go with it.
    let mut kept = true;
    for word in &scenario.flags {
        if word.starts_with("--") {
            kept = !given.contains(&name(word));
        }
        if kept {
            argv.push(word.clone());
        }
    }
    argv.extend(args.flags.iter().cloned());
    let parsed = |argv: &[String]| -> Outcome<ServeArgs> {
        let cli = Cli::try_parse_from(normalized(argv.iter().map(Into::into)));
        let cli =
            cli.map_err(|e| crate::usage::explained(&e).during(format!("reading {}", args.scenario.display())))?;
        match cli.command {
            Command::Bench(bench) => match bench.command {
                BenchCommand::Serve(serve) => Ok(*serve),
                _ => Err(Failure::usage("the scenario's flags are not those of `bench serve`")),
            },
            _ => Err(Failure::usage("the scenario's flags are not those of `bench serve`")),
        }
    };
    let mut serve = parsed(&argv)?;
    if let Some(n) = repetition {
        argv.retain(|word| name(word) != "--seed");
        argv.push(format!("--seed={}", serve.load.seed + n));
        serve = parsed(&argv)?;
    }
    serve.load.phased = Some(Arc::new(scenario.phased.clone()));
    serve.report.argv = Some(argv);
    serve.report.run_dir = match (&args.output_dir, repetition) {
        (Some(dir), Some(n)) => Some(dir.join(format!("run={n}"))),
        (Some(dir), None) => Some(dir.clone()),
        (None, _) => serve.report.run_dir,
    };
    Ok(serve)
}

/// Runs again and again, until the mean of a figure is known well enough.
fn repeated(args: &RunArgs, scenario: &Scenario, repeat: &Repeat) -> Outcome<u8> {
    let (mut values, mut invalid, mut worst) = (Vec::new(), 0, 0);
    let mut out = String::new();
    for n in 0..repeat.max {
        let serve = serve_args(args, scenario, Some(u64::from(n)))?;
        let Some(ran) = serve::measure(&serve)? else { return Ok(0) };
        let judged = Judged::new(&serve, &ran)?;
        let result = judged.json(&serve);
        if let Some(folder) = &serve.report.run_dir {
            bundle::seal(folder, Kind::Run, ran.plan.clone(), &[(bundle::RESULT, result.clone() + "\n")])?;
        }
        if ran.facts.interrupted {
            return tell(&serve, &ran);
        }
        let value = figure(&result, &repeat.until)?;
        let valid = judged.run().verdict.valid();
        let code = judged.exit_code();
        // INVALID weighs more than an objective that was missed.
        worst = if worst == exit::INVALID || code == 0 { worst } else { code };
        let _ = writeln!(
            out,
            "run {n}: {} {value:.3}{}",
            repeat.until,
            if valid { "" } else { "  INVALID, does not count" }
        );
        if valid {
            values.push(value)
        } else {
            invalid += 1
        }
        let Some(mean) = tailbound_stats::mean_interval(&values, 0.05) else { continue };
        let reach = (mean.high - mean.low) / 2.0;
        eprintln!("run {n}: {} {value:.3}; mean {:.3} ± {reach:.3}", repeat.until, mean.value);
        if values.len() as u32 >= repeat.min && reach <= repeat.within * mean.value.abs() {
            break;
        }
    }
    match tailbound_stats::mean_interval(&values, 0.05) {
        None => out += "no two runs count, so there is no interval\n",
        Some(mean) => {
            let reach = (mean.high - mean.low) / 2.0;
            let tight = reach <= repeat.within * mean.value.abs() && values.len() as u32 >= repeat.min;
            let word = if tight { "tight enough" } else { "NOT tight enough, and no runs are left" };
            let _ = writeln!(
                out,
                "{}: mean {:.3}, 95 % interval {:.3} to {:.3} over {} runs{}: {word} (±{:.1} % wanted)",
                repeat.until,
                mean.value,
                mean.low,
                mean.high,
                values.len(),
                if invalid > 0 { format!(", {invalid} INVALID left out") } else { String::new() },
                repeat.within * 100.0
            );
            if !tight && worst == 0 {
                worst = exit::INVALID;
            }
        }
    }
    output::print(&out)?;
    Ok(worst)
}

/// A figure of a result by its key, with dots between nested ones.
fn figure(result: &str, key: &str) -> Outcome<f64> {
    let value: serde_json::Value = serde_json::from_str(result).map_err(Failure::new)?;
    let found = key.split('.').try_fold(&value, |value, key| value.get(key));
    found.and_then(serde_json::Value::as_f64).ok_or_else(|| {
        Failure::usage(format!("repeat: until: the result has no figure `{key}`"))
            .hint("its keys are those of --format json, as in median_ttft_ms or tailbound.goodput.attainment")
    })
}

fn dry_run(scenario: &Scenario, planned: &tailbound_workload::Plan) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<18} {value}");
    };
    line("plan", planned.hash().to_string());
    line("duration", format!("{} at most, and what is in flight then", planned.span()));
    line(
        "requests",
        if planned.endless() { "as many as the clients send".into() } else { planned.requests().to_string() },
    );
    let Phased { phases, classes, class_of, thresholds } = &scenario.phased;
    for (i, (phase, class)) in phases.iter().zip(class_of).enumerate() {
        let planned = planned.phases().and_then(|p| p.planned(i));
        let requests = planned.map_or(String::new(), |n| format!(", {n} requests"));
        let end = phase.start + phase.executor.duration();
        line(
            &phase.name,
            format!(
                "{} to {end}: {}{requests}, class {}",
                phase.start,
                words(&phase.executor),
                classes[*class as usize]
            ),
        );
    }
    line("thresholds", thresholds.len().to_string());
    if let Some(r) = &scenario.repeat {
        line(
            "repetitions",
            format!("{} to {}, until {} is known to ±{:.1} %", r.min, r.max, r.until, r.within * 100.0),
        );
    }
    line("flags", tailbound_sweep::join(&scenario.flags));
    out
}

fn words(executor: &Executor) -> String {
    let stages = |stages: &[tailbound_workload::PhaseStage], unit: &str| {
        let one = |s: &tailbound_workload::PhaseStage| format!("{}{unit} in {}", s.target, s.duration);
        stages.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let limit = |d: &Dur| format!("{d}");
    match executor {
        Executor::SharedIterations { clients, iterations, max_duration } => {
            format!("{iterations} requests shared by {clients} clients within {}", limit(max_duration))
        }
        Executor::PerClientIterations { clients, iterations, max_duration } => {
            format!("{iterations} requests of each of {clients} clients within {}", limit(max_duration))
        }
        Executor::ConstantClients { clients, .. } => format!("{clients} clients"),
        Executor::RampingClients { start, stages: all } => format!("clients from {start} to {}", stages(all, "")),
        Executor::ConstantArrivalRate { rate, .. } => format!("{rate}/s"),
        Executor::RampingArrivalRate { start, stages: all, .. } => format!("from {start}/s to {}", stages(all, "/s")),
    }
}
