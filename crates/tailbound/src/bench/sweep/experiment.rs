//! One experiment: its folder, its server of the moment, its runs one after another.

mod one_run;

use super::args::ServeSweepArgs;
use super::follow::Follower;
use super::results::{self, RunData, figure, invalid};
use super::table::Table;
use crate::bundle;
use crate::failure::{Failure, Outcome, exit};
use crate::output;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tailbound_client::Target;
use tailbound_os::clock::{self, WallAnchor};
use tailbound_os::date::LocalDate;
use tailbound_os::signals;
use tailbound_sweep::{Links, Params, Server, ServerCommand, ServerError, join, layout, split};

/// An experiment as it goes on.
pub struct Experiment<'a> {
    args: &'a ServeSweepArgs,
    /// Its folder.
    pub dir: PathBuf,
    serve_cmd: Vec<String>,
    bench_cmd: Vec<String>,
    after_cmd: Vec<String>,
    /// Combinations of the server's parameters.
    pub serve: Vec<Params>,
    /// Combinations of the benchmark's.
    pub bench: Vec<Params>,
    links: Links,
    done: u32,
    /// Every run so far, in order.
    all: Vec<RunData>,
    table: Table,
}

/// A server that runs.
pub struct Running {
    server: Server,
    _shown: Option<Follower>,
}

/// A combination to be measured, and the folder it is measured into.
pub struct Combination<'a> {
    /// The server's parameters.
    pub serve: &'a Params,
    /// The benchmark's.
    pub bench: Params,
    /// The folder's name.
    pub name: String,
}

/// Why something has no result, in vLLM's words for it.
struct Failed {
    kind: &'static str,
    why: String,
    /// The server is gone, so that nothing more can be measured with it.
    server: bool,
}

impl<'a> Experiment<'a> {
    /// Checks everything that can be checked before anything is run.
    pub fn new(args: &'a ServeSweepArgs) -> Outcome<Experiment<'a>> {
        let words = |flag: &str, line: &str| {
            let words = split(line).map_err(|e| Failure::usage(format!("{flag}: failed to {e}")))?;
            if words.is_empty() { Err(Failure::usage(format!("{flag}: the command is empty"))) } else { Ok(words) }
        };
        let serve_cmd = words("--serve-cmd", &args.serve_cmd)?;
        let bench_cmd = words("--bench-cmd", &args.bench_cmd)?;
        let after_cmd =
            args.after_bench_cmd.as_deref().map_or(Ok(Vec::new()), |line| words("--after-bench-cmd", line))?;
        let links = Links::parse(&args.link_vars).map_err(|part| {
            Failure::usage(format!("--link-vars: `{part}` is no pair")).hint("as in max_num_seqs=max_concurrency")
        })?;
        let name = args.experiment_name.clone().unwrap_or_else(|| {
            LocalDate::of_unix_ns(WallAnchor::take().unix_ns(clock::now())).compact().replace('-', "_")
        });
        let dir = args.output_dir.join(name);
        match (args.resume, dir.exists()) {
            (true, false) => {
                return Err(Failure::usage(format!("--resume: there is no experiment {}", dir.display()))
                    .hint("-o and -e name it, as when it was begun"));
            }
            (false, true) => {
                return Err(Failure::usage(format!("{} is there already", dir.display()))
                    .hint("--resume goes on with it; -e names another"));
            }
            _ => {}
        }
        let experiment = Experiment {
            serve: params("--serve-params", args.serve_params.as_deref())?,
            bench: params("--bench-params", args.bench_params.as_deref())?,
            args,
            dir,
            serve_cmd,
            bench_cmd,
            after_cmd,
            links,
            done: 0,
            all: Vec::new(),
            table: Table::default(),
        };
        experiment.server_command(&Params::default())?;
        Ok(experiment)
    }

    /// The benchmark's command.
    pub fn bench_cmd(&self) -> &[String] {
        &self.bench_cmd
    }

    /// Whether two combinations go together.
    pub fn linked(&self, serve: &Params, bench: &Params) -> bool {
        self.links.hold(serve, bench)
    }

    /// A combination; names that differ by nothing a folder can show are refused.
    pub fn combination<'p>(&self, serve: &'p Params, bench: &Params, more: &[&str]) -> Outcome<Combination<'p>> {
        let name = layout::name(serve, bench, more);
        // "run=N.failure.json" and log names come on top.
        if name.len() > 220 {
            return Err(Failure::usage(format!("the name of the combination is too long for a folder: {name}"))
                .hint("give combinations names: an object of objects, {\"name\": {…}}"));
        }
        Ok(Combination { serve, bench: bench.clone(), name })
    }

    /// Whether a combination has all its runs.
    pub fn complete(&self, combination: &Combination<'_>) -> bool {
        let folder = layout::folder(&self.dir, &combination.name);
        (0..self.args.num_runs).all(|number| self.finished(&layout::run(&folder, number)).is_some())
    }

    fn server_command(&self, serve: &Params) -> Outcome<ServerCommand> {
        let argv = own(&serve.apply(&self.serve_cmd))?;
        let wrong = |e| Failure::usage(format!("--serve-cmd: failed to {e}"));
        let mut command = ServerCommand::new(argv, layout::server_log(&self.dir, serve)).map_err(wrong)?;
        if let Some(url) = &self.args.server_url {
            command.target = Target::parse(url).map_err(|e| Failure::usage(format!("--server-url: failed to {e}")))?;
        }
        command.ready_path.clone_from(&self.args.server_ready_path);
        command.ready_timeout = self.args.server_ready_timeout;
        // vLLM forgets its caches on request only in this mode.
        command.env.push(("VLLM_SERVER_DEV_MODE".into(), "1".into()));
        Ok(command)
    }

    /// Starts the server of a combination, unless nothing is run. `None`: it failed, and what failed is to be passed over.
    pub fn start(&self, serve: &Params) -> Outcome<Option<Running>> {
        let command = self.server_command(serve)?;
        eprintln!("starting {}", join(&command.argv));
        let shown = self.follow(&command.log);
        match Server::start(command, &stopped) {
            Ok(server) => {
                results::remove(&layout::server_failure(&self.dir, serve))?;
                Ok(Some(Running { server, _shown: shown }))
            }
            Err(ServerError::Stopped) => Err(self.interrupted()),
            Err(e) => {
                let kind = match &e {
                    ServerError::NotReady { .. } => "TimeoutError",
                    ServerError::Spawn { .. } => "FileNotFoundError",
                    _ => "RuntimeError",
                };
                self.server_failed(serve, Failed { kind, why: format!("failed to {e}"), server: true })?;
                Ok(None)
            }
        }
    }

    fn follow(&self, log: &Path) -> Option<Follower> {
        self.args.show_stdout.then(|| Follower::start(log))
    }

    fn server_failed(&self, serve: &Params, failed: Failed) -> Outcome<()> {
        if !self.args.continue_on_error {
            return Err(self.early(&failed.why));
        }
        let path = layout::server_failure(&self.dir, serve);
        make(&self.dir)?;
        eprintln!("warning: {}\n  noted in {}", failed.why, path.display());
        results::write(&path, &json!({ "error_type": failed.kind, "error": failed.why, "serve_overrides": serve.0 }), 2)
    }

    /// Runs a combination as often as asked, or reads what is there of it. Whether the server (if there is one) still runs.
    pub fn measure(
        &mut self,
        running: Option<&mut Running>,
        combination: &Combination<'_>,
    ) -> Outcome<(Vec<RunData>, bool)> {
        let mut running = running;
        let folder = layout::folder(&self.dir, &combination.name);
        let missing = !self.complete(combination);
        if self.args.warmup_num_prompts > 0 && missing && running.is_some() {
            let warmup = combination.bench.with("num_prompts", self.args.warmup_num_prompts);
            let path = folder.join(layout::WARMUP);
            results::clear(&path)?;
            match self.measure_one(running.as_deref_mut(), combination, &warmup, -1, &path)? {
                Ok(_) => {}
                Err(failed) if failed.server => {
                    self.server_failed(combination.serve, failed)?;
                    return Ok((Vec::new(), false));
                }
                Err(failed) => self.run_failed(combination, -1, &path, &failed)?,
            }
        }
        let mut runs = Vec::new();
        for number in 0..self.args.num_runs {
            let path = layout::run(&folder, number);
            match self.measure_one(running.as_deref_mut(), combination, &combination.bench, i64::from(number), &path)? {
                Ok(run) => {
                    self.tell(combination, number, &run);
                    runs.push(run);
                }
                Err(failed) if failed.server => {
                    self.server_failed(combination.serve, failed)?;
                    return Ok((runs, false));
                }
                Err(failed) => self.run_failed(combination, i64::from(number), &path, &failed)?,
            }
        }
        if runs.is_empty() {
            eprintln!("warning: no run of {} succeeded; --resume tries again", shown(&combination.name));
        } else {
            results::write(&folder.join(layout::SUMMARY), &runs, 4)?;
        }
        Ok((runs, true))
    }

    /// Takes a combination's runs into the experiment's table.
    pub fn keep(&mut self, name: &str, runs: Vec<RunData>) {
        self.table.add(shown(name), &runs);
        self.all.extend(runs);
    }

    fn tell(&self, combination: &Combination<'_>, number: u32, run: &RunData) {
        let of = |key: &str, unit: &str| {
            figure(run, key).map_or_else(String::new, |v| format!(", {} {unit}", super::table::short(v)))
        };
        let verdict = invalid(run).map_or_else(String::new, |why| format!("; INVALID: {why}"));
        eprintln!(
            "{} run {number}{}{}{}{verdict}",
            shown(&combination.name),
            of("request_throughput", "requests/s"),
            of("output_throughput", "tokens/s"),
            of("median_ttft_ms", "ms to the first token (median)"),
        );
    }

    fn interrupted(&self) -> Failure {
        let terminated = signals::terminates() > 0 && signals::interrupts() == 0;
        let mut failure = Failure::new("interrupted; the run under way will be measured again")
            .hint("--resume goes on with the experiment; -o and -e must name it")
            .during(format!("running the experiment {}", self.dir.display()));
        failure.exit = if terminated { exit::TERMINATED } else { exit::INTERRUPTED };
        failure
    }

    fn early(&self, why: &str) -> Failure {
        Failure::new(why).hint(format!(
            "--resume with -o and -e as now goes on ({}); --continue-on-error passes over what fails",
            self.dir.display()
        ))
    }

    /// The table of all runs, written and printed; the exit code tells whether they count.
    pub fn finish(self) -> Outcome<u8> {
        make(&self.dir)?;
        bundle::write(&self.dir.join(layout::TABLE), tailbound_sweep::csv(&self.all).as_bytes())?;
        eprintln!("{} runs, {} of them new; the experiment is in {}", self.all.len(), self.done, self.dir.display());
        output::print(&self.table.text(output::color()))?;
        let bad = self.all.iter().any(|run| invalid(run).is_some()) && !self.args.no_fail;
        Ok(if bad { exit::INVALID } else { 0 })
    }

    /// What would be run, of one server.
    pub fn dry_server(&self, serve: &Params) -> Outcome<String> {
        Ok(format!("server: {}\n", join(&self.server_command(serve)?.argv)))
    }

    /// What would be run, of one combination.
    pub fn dry_bench(&self, combination: &Combination<'_>) -> Outcome<String> {
        let folder = layout::folder(&self.dir, &combination.name);
        let mut out = format!("  {}: {} runs\n", shown(&combination.name), self.args.num_runs);
        let path = layout::run(&folder, 0);
        out += &format!("    {}\n", join(&self.bench_argv(&combination.bench, &path)?));
        Ok(out)
    }
}

impl Running {
    /// Ends the server.
    pub fn stop(self) {
        self.server.stop();
    }
}

/// Whether nobody waits any more.
pub fn stopped() -> bool {
    signals::interrupts() + signals::terminates() > 0
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "(no parameters)" } else { name }
}

/// `tailbound` is this very program.
fn own(argv: &[String]) -> Outcome<Vec<String>> {
    let mut argv = argv.to_vec();
    if argv.first().is_some_and(|program| program == "tailbound") {
        let exe = std::env::current_exe()
            .map_err(|e| Failure::new(format!("failed to find this program's own file: {e}")))?;
        argv[0] = exe.to_string_lossy().into_owned();
    }
    Ok(argv)
}

fn make(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))
}

/// The combinations of a file; one of nothing if there is no file.
fn params(flag: &str, path: Option<&Path>) -> Outcome<Vec<Params>> {
    let Some(path) = path else { return Ok(vec![Params::default()]) };
    let failed = |why: String| Failure::usage(format!("{flag} {}: failed to {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| failed(format!("read it: {e}")))?;
    let list = Params::read(&bytes).map_err(|e| failed(e.to_string()))?;
    if let Some((_, twice)) = list.iter().enumerate().find(|(i, p)| list[..*i].contains(p)) {
        return Err(failed(format!("tell its combinations apart: {} is there twice", shown(&twice.name()))));
    }
    Ok(list)
}

/// A JSON number of a level.
pub fn number(level: f64) -> Value {
    if level.is_infinite() {
        return "inf".into();
    }
    if level.fract() == 0.0 && level < 9e15 { Value::from(level as u64) } else { Value::from(level) }
}
