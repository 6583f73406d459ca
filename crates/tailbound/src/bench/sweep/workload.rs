//! `sweep workload`: each combination over levels of load, from one request after another to all at once.

use super::args::WorkloadArgs;
use super::experiment::{Combination, Experiment, Running, number};
use super::results::{RunData, figure, invalid};
use crate::failure::{Failure, Outcome};
use crate::{output, units};
use tailbound_os::signals;
use tailbound_sweep::Params;
use tailbound_sweep::explore::{self, Point, Variable};

/// How many requests a benchmark sends if nothing says so.
const DEFAULT_REQUESTS: u64 = 1000;

/// Runs the command.
pub fn run(args: &WorkloadArgs) -> Outcome<u8> {
    let variable = Variable::from(args.workload_var);
    if args.workload_iters < 2 {
        return Err(Failure::usage("--workload-iters: both ends are levels, so there are at least 2"));
    }
    let mut experiment = Experiment::new(&args.sweep)?;
    if experiment.bench.iter().any(|b| b.get(variable.key()).is_some()) {
        return Err(Failure::usage(format!("--bench-params: it sets {}, which is what is explored", variable.key())));
    }
    let (serve, bench) = (experiment.serve.clone(), experiment.bench.clone());
    if args.sweep.dry_run {
        return dry_run(args, &experiment, variable);
    }
    signals::watch();
    for serve in &serve {
        let mut running = None;
        for bench in &bench {
            if !experiment.linked(serve, bench) {
                continue;
            }
            let mut explored = Exploration { args, variable, serve, bench, running: &mut running };
            if !explored.run(&mut experiment)? {
                break;
            }
        }
        if let Some(running) = running {
            running.stop();
        }
    }
    experiment.finish()
}

struct Exploration<'a, 'r> {
    args: &'a WorkloadArgs,
    variable: Variable,
    serve: &'a Params,
    bench: &'a Params,
    /// Started when the first level needs it: a resumed exploration may need none.
    running: &'r mut Option<Running>,
}

impl<'a> Exploration<'a, '_> {
    /// Measures level after level, and keeps them in the order of the load. Whether the server is still of use.
    fn run(&mut self, experiment: &mut Experiment<'_>) -> Outcome<bool> {
        let mut levels: Vec<(f64, String, Vec<RunData>)> = Vec::new();
        let alive = self.explore(experiment, &mut levels)?;
        levels.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, name, runs) in levels {
            experiment.keep(&name, runs);
        }
        Ok(alive)
    }

    fn explore(
        &mut self,
        experiment: &mut Experiment<'_>,
        levels: &mut Vec<(f64, String, Vec<RunData>)>,
    ) -> Outcome<bool> {
        let all = requests(experiment, self.bench)?;
        let mut points = Vec::new();
        for (end, clients) in [("serial", 1), ("batch", all)] {
            let combination = self.end(experiment, end, clients)?;
            let Some(runs) = self.level(experiment, &combination)? else { return Ok(false) };
            let means = means(&runs);
            // Whatever they came to, the ends are the first and the last.
            levels.push((if end == "serial" { 0.0 } else { f64::INFINITY }, combination.name.clone(), runs));
            let Some((throughput, latency)) = means else {
                eprintln!("warning: without both ends there is no range to explore: {}", combination.name);
                return Ok(true);
            };
            let level = explore::end_level(self.variable, throughput, latency);
            points.push(Point { level, throughput, latency });
        }
        while let Some(level) = explore::next(self.variable, self.args.workload_iters as usize, &points) {
            let key = self.variable.key();
            let value = number(level);
            let name = format!("{key}={}", tailbound_sweep::python::text(&value));
            let combination = experiment.combination(self.serve, self.bench, &["WL-", &name])?;
            let combination = Combination { bench: self.bench.with(key, value), ..combination };
            let Some(runs) = self.level(experiment, &combination)? else { return Ok(false) };
            let means = means(&runs);
            levels.push((level, combination.name, runs));
            let Some((throughput, latency)) = means else { return Ok(true) };
            points.push(Point { level, throughput, latency });
        }
        if let Some(knee) = explore::knee(&points) {
            let unit = match self.variable {
                Variable::RequestRate => "requests/s",
                Variable::MaxConcurrency => "clients",
            };
            eprintln!("throughput ÷ latency is greatest at {} {unit}", super::table::short(knee.level));
        }
        Ok(true)
    }

    /// An end of the range: so many clients, each sending as soon as it may. (vLLM throttles the serial end to one request a second when
    /// it explores rates, and so never sees what a faster server does.)
    fn end(&self, experiment: &Experiment<'_>, end: &str, clients: u64) -> Outcome<Combination<'a>> {
        let combination = experiment.combination(self.serve, self.bench, &["WL-", end])?;
        let bench = self.bench.with("max_concurrency", clients);
        let bench = match self.variable {
            Variable::RequestRate => bench.with("request_rate", "inf"),
            Variable::MaxConcurrency => bench,
        };
        Ok(Combination { bench, serve: self.serve, name: combination.name })
    }

    /// A level's runs; `None` if there is no server to measure any more.
    fn level(&mut self, experiment: &mut Experiment<'_>, level: &Combination<'_>) -> Outcome<Option<Vec<RunData>>> {
        if self.running.is_none() && !experiment.complete(level) {
            *self.running = experiment.start(self.serve)?;
            if self.running.is_none() {
                return Ok(None);
            }
        }
        let (runs, alive) = experiment.measure(self.running.as_mut(), level)?;
        Ok(alive.then_some(runs))
    }
}

/// Mean requests/s, and mean end-to-end latency in s, over the runs that count, or over all if none does.
fn means(runs: &[RunData]) -> Option<(f64, f64)> {
    let count: Vec<&RunData> = runs.iter().filter(|r| invalid(r).is_none()).collect();
    let count = if count.is_empty() { runs.iter().collect() } else { count };
    let mean = |key: &str| -> Option<f64> {
        let values: Vec<f64> = count.iter().map(|r| figure(r, key)).collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / values.len() as f64).filter(|m| m.is_finite() && *m > 0.0)
    };
    Some((mean("request_throughput")?, mean("mean_e2el_ms")? / 1e3))
}

/// How many requests a benchmark sends.
fn requests(experiment: &Experiment<'_>, bench: &Params) -> Outcome<u64> {
    let argv = bench.apply(experiment.bench_cmd());
    let given = argv.iter().enumerate().find_map(|(i, arg)| {
        let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
        let named = name.replace('_', "-") == "--num-prompts";
        named.then(|| value.or_else(|| argv.get(i + 1).map(String::as_str)).unwrap_or_default().to_owned())
    });
    match given {
        None => Ok(DEFAULT_REQUESTS),
        Some(text) => units::count(&text)
            .map_err(|e| Failure::usage(format!("--num-prompts {text} in the benchmark's command: {e}"))),
    }
}

fn dry_run(args: &WorkloadArgs, experiment: &Experiment<'_>, variable: Variable) -> Outcome<u8> {
    let mut out = String::new();
    let mut pairs = 0;
    for serve in &experiment.serve {
        out += &experiment.dry_server(serve)?;
        for bench in experiment.bench.iter().filter(|b| experiment.linked(serve, b)) {
            pairs += 1;
            let mut running = None;
            let explored = Exploration { args, variable, serve, bench, running: &mut running };
            for (end, clients) in [("serial", 1), ("batch", requests(experiment, bench)?)] {
                out += &experiment.dry_bench(&explored.end(experiment, end, clients)?)?;
            }
        }
    }
    let between = args.workload_iters - 2;
    let runs = pairs * args.workload_iters * args.sweep.num_runs;
    out += &format!(
        "{between} levels of {} between both ends follow from what they come to: at most {runs} runs; the experiment would be in {}\n",
        variable.key(),
        experiment.dir.display()
    );
    output::print(&out)?;
    Ok(0)
}
