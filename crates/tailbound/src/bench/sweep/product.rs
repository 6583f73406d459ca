//! `sweep serve`: every pair of combinations.

use super::args::ServeSweepArgs;
use super::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::output;
use tailbound_os::signals;
use tailbound_sweep::Params;

/// Runs the command.
pub fn run(args: &ServeSweepArgs) -> Outcome<u8> {
    let mut experiment = Experiment::new(args)?;
    let (serve, bench) = (experiment.serve.clone(), experiment.bench.clone());
    let pairs = serve.iter().map(|s| bench.iter().filter(|b| experiment.linked(s, b)).count()).sum::<usize>();
    if pairs == 0 {
        return Err(Failure::usage(format!("--link-vars {}: no pair of combinations is left", args.link_vars)));
    }
    if args.dry_run {
        return dry_run(args, &experiment, pairs);
    }
    signals::watch();
    for serve in &serve {
        of_server(&mut experiment, serve, &bench)?;
    }
    experiment.finish()
}

fn of_server(experiment: &mut Experiment<'_>, serve: &Params, bench: &[Params]) -> Outcome<()> {
    let bench: Vec<&Params> = bench.iter().filter(|b| experiment.linked(serve, b)).collect();
    let combinations = bench.iter().map(|b| experiment.combination(serve, b, &[])).collect::<Outcome<Vec<_>>>()?;
    let mut running = None;
    if combinations.iter().any(|c| !experiment.complete(c)) {
        running = experiment.start(serve)?;
        if running.is_none() {
            return Ok(());
        }
    }
    for combination in &combinations {
        let (runs, alive) = experiment.measure(running.as_mut(), combination)?;
        experiment.keep(&combination.name, runs);
        if !alive {
            break;
        }
    }
    if let Some(running) = running {
        running.stop();
    }
    Ok(())
}

fn dry_run(args: &ServeSweepArgs, experiment: &Experiment<'_>, pairs: usize) -> Outcome<u8> {
    let mut out = String::new();
    for serve in &experiment.serve {
        out += &experiment.dry_server(serve)?;
        for bench in experiment.bench.iter().filter(|b| experiment.linked(serve, b)) {
            out += &experiment.dry_bench(&experiment.combination(serve, bench, &[])?)?;
        }
    }
    let runs = pairs as u64 * u64::from(args.num_runs);
    out += &format!("{pairs} combinations, {runs} runs; the experiment would be in {}\n", experiment.dir.display());
    output::print(&out)?;
    Ok(0)
}
