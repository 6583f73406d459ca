//! One run of a benchmark beside its server: its command, what ends it, what it leaves.

use super::{Combination, Experiment, Failed, Running, make, own, stopped};
use crate::bench::sweep::results::{self, RunData};
use crate::bundle;
use crate::failure::{Failure, Outcome, exit};
use crate::http::Server as Asked;
use crate::output;
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;
use tailbound_client::Trust;
use tailbound_sweep::{Params, Step, StepError, complaint, join, layout};

impl Experiment<'_> {
    /// One run's result: the one that is there, or a new one.
    pub(super) fn measure_one(
        &mut self,
        running: Option<&mut Running>,
        combination: &Combination<'_>,
        bench: &Params,
        number: i64,
        path: &Path,
    ) -> Outcome<Result<RunData, Failed>> {
        let run = match (self.finished(path), running) {
            (Some(run), _) => run,
            (None, None) => return Err(Failure::new(format!("failed to find {}", path.display()))),
            (None, Some(running)) => match self.bench(running, combination, bench, path)? {
                Ok(run) => run,
                Err(failed) => return Ok(Err(failed)),
            },
        };
        let known = run.contains_key("run_number");
        let mut run = run;
        run.insert("run_number".into(), number.into());
        run.extend(combination.serve.0.iter().chain(&bench.0).map(|(k, v)| (k.clone(), v.clone())));
        if !known {
            results::write(path, &run, 4)?;
        }
        results::remove(&layout::failure(path))?;
        Ok(Ok(run))
    }

    /// A result that needs no measuring again. Ours is one only with its rows sealed.
    pub(super) fn finished(&self, path: &Path) -> Option<RunData> {
        let run = results::read(path)?;
        let sealed = !self.keeps_rows(path) || layout::rows(path).join(bundle::MANIFEST).is_file();
        sealed.then_some(run)
    }

    /// Whether rows are kept beside a result: the benchmark is ours, and the run is no warm-up.
    fn keeps_rows(&self, path: &Path) -> bool {
        let ours = Path::new(&self.bench_cmd[0]).file_stem() == Some(OsStr::new("tailbound"));
        let chosen = self.bench_cmd.iter().any(|arg| arg.starts_with("--run-dir") || arg.starts_with("--run_dir"));
        ours && !chosen && path.file_name() != Some(OsStr::new(layout::WARMUP))
    }

    pub(super) fn bench_argv(&self, bench: &Params, path: &Path) -> Outcome<Vec<String>> {
        let mut argv = own(&bench.apply(&self.bench_cmd))?;
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let folder = text(path.parent().map(Path::as_os_str));
        let words = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--result-dir"];
        argv.extend(words.map(str::to_owned));
        argv.extend([folder, "--result-filename".into(), text(path.file_name())]);
        if self.keeps_rows(path) {
            argv.extend(["--run-dir".into(), layout::rows(path).to_string_lossy().into_owned()]);
        }
        Ok(argv)
    }

    fn bench(
        &mut self,
        running: &mut Running,
        combination: &Combination<'_>,
        bench: &Params,
        path: &Path,
    ) -> Outcome<Result<RunData, Failed>> {
        results::clear(path)?;
        make(path.parent().unwrap_or(&self.dir))?;
        let log = layout::bench_log(&self.dir, &combination.name, path);
        let step = Step { argv: self.bench_argv(bench, path)?, log };
        if let Err(failed) = self.step(&step, running, &|code| code == 0 || self.judged(code))? {
            return Ok(Err(failed));
        }
        let Some(run) = results::read(path) else {
            let why = format!("the benchmark wrote no result to {}: {}", path.display(), join(&step.argv));
            return Ok(Err(Failed { kind: "FileNotFoundError", why, server: false }));
        };
        self.done += 1;
        Ok(self.after(running, combination, path)?.map(|()| run))
    }

    /// Our own benchmark's verdict is in its result; its exit code only repeats it.
    fn judged(&self, code: i32) -> bool {
        let ours = Path::new(&self.bench_cmd[0]).file_stem() == Some(OsStr::new("tailbound"));
        ours && [exit::INVALID, exit::OBJECTIVE_MISSED].map(i32::from).contains(&code)
    }

    fn step(&self, step: &Step, running: &mut Running, passes: &dyn Fn(i32) -> bool) -> Outcome<Result<(), Failed>> {
        let shown = self.follow(&step.log);
        let ended = step.run(Some(&mut running.server), &stopped);
        drop(shown);
        match ended {
            Ok(status) if status.code().is_some_and(passes) => Ok(Ok(())),
            Ok(_) if stopped() => Err(self.interrupted()),
            Ok(status) => {
                let why = format!("failed to run {}: {}", join(&step.argv), complaint(&status, &step.log));
                Ok(Err(Failed { kind: "CalledProcessError", why, server: false }))
            }
            Err(StepError::Stopped) => Err(self.interrupted()),
            Err(StepError::Server(e)) => {
                Ok(Err(Failed { kind: "RuntimeError", why: format!("failed to {e}"), server: true }))
            }
            Err(e) => {
                let kind = "FileNotFoundError";
                Ok(Err(Failed { kind, why: format!("failed to {e}: {}", join(&step.argv)), server: false }))
            }
        }
    }

    /// What is to happen between two benchmarks, so that the second doesn't find the first one's caches.
    fn after(&self, running: &mut Running, combination: &Combination<'_>, path: &Path) -> Outcome<Result<(), Failed>> {
        if !self.after_cmd.is_empty() {
            let log = layout::bench_log(&self.dir, &combination.name, path);
            return self.step(&Step { argv: own(&self.after_cmd)?, log }, running, &|code| code == 0);
        }
        let command = running.server.command();
        let asked = Asked::new(&command.target.to_string(), &[], Trust::System)?;
        let vllm = Path::new(&command.argv[0]).file_name().is_some_and(|name| name.to_string_lossy().ends_with("vllm"));
        let paths: &[&str] = match vllm {
            true => &["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"],
            false => &["/reset_prefix_cache"],
        };
        for path in paths {
            match asked.ask(path, Some(&json!({}))) {
                Ok(reply) if (200..300).contains(&reply.status) => {}
                _ if !vllm => output::note(
                    "the server does not forget its prefix cache on request, so later runs may find earlier prompts in it (--after-bench-cmd)",
                ),
                Ok(reply) => {
                    let why =
                        format!("failed to reset the server's caches: {path} answered with status {}", reply.status);
                    return Ok(Err(Failed { kind: "HTTPError", why, server: false }));
                }
                Err(e) => {
                    return Ok(Err(Failed { kind: "ConnectionError", why: e.cause().to_owned(), server: false }));
                }
            }
        }
        Ok(Ok(()))
    }

    pub(super) fn run_failed(
        &self,
        combination: &Combination<'_>,
        number: i64,
        path: &Path,
        failed: &Failed,
    ) -> Outcome<()> {
        if !self.args.continue_on_error {
            return Err(self.early(&failed.why));
        }
        let failure = layout::failure(path);
        make(path.parent().unwrap_or(&self.dir))?;
        eprintln!("warning: {}\n  noted in {}", failed.why, failure.display());
        let note = json!({
            "run_number": number,
            "error_type": failed.kind,
            "error": failed.why,
            "serve_overrides": combination.serve.0,
            "bench_overrides": combination.bench.0,
        });
        results::write(&failure, &note, 2)
    }
}
