//! Sweeps over emulators that the sweep itself starts and stops.

use crate::program::{Ended, command, run, start, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// A sweep in a folder of its own, whose server can be told from every other process.
struct Sweep {
    folder: tempfile::TempDir,
    port: u16,
    model: String,
    step: &'static str,
}

impl Sweep {
    fn new(step: &'static str) -> Sweep {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let model = format!("swept-{}-{port}", std::process::id());
        Sweep { folder: tempfile::tempdir().unwrap(), port, model, step }
    }

    fn file(&self, name: &str, content: &Value) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn args(&self, what: &str, bench: &str, more: &[&str]) -> Vec<String> {
        let server = format!(
            "tailbound emulate --port {} --served-model-name {} --step-time {}",
            self.port, self.model, self.step
        );
        let bench = format!(
            "tailbound bench serve --port {} --random-input-len 8 --random-output-len 4 --disable-tqdm {bench}",
            self.port
        );
        let out = self.folder.path().join("results").to_str().unwrap().to_owned();
        let fixed = ["bench", "sweep", what, "--serve-cmd", &server, "--bench-cmd", &bench, "-o", &out, "--no-fail"];
        fixed.iter().chain(more).map(|&arg| arg.to_owned()).collect()
    }

    fn results(&self, experiment: &str) -> PathBuf {
        self.folder.path().join("results").join(experiment)
    }

    /// No process of the server's is left.
    fn is_gone(&self) -> bool {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        !entries.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok()).any(|line| {
            let words: Vec<&[u8]> = line.split(|&b| b == 0).collect();
            words.contains(&b"emulate".as_slice()) && words.contains(&self.model.as_bytes())
        })
    }
}

/// Every file below a folder, without the logs, whose number depends on how often something was tried.
fn files(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn done(args: &[String]) -> Ended {
    run(args).exits(0)
}

#[test]
fn a_sweep_fills_vllms_folders_and_leaves_no_server() {
    let sweep = Sweep::new("1ms");
    let serve = sweep.file("serve.json", &json!([{"max_num_seqs": 2}, {"max_num_seqs": 4}]));
    let bench = sweep.file("bench.json", &json!([{"max_concurrency": 2}, {"max_concurrency": 4}]));
    let flags = ["--serve-params", &serve, "--bench-params", &bench, "--link-vars", "max_num_seqs=max_concurrency"];
    let flags = [&flags[..], &["-e", "one", "--num-runs", "2", "--warmup-num-prompts", "3"]].concat();
    let ended = done(&sweep.args("serve", "--num-prompts 6", &flags));
    assert!(sweep.is_gone());
    let mut expected = BTreeSet::from(["summary.csv".to_owned()]);
    for n in [2, 4] {
        let name = format!("SERVE--max_num_seqs={n}-BENCH--max_concurrency={n}");
        assert!(ended.stdout.contains(&name), "{}", ended.stdout);
        expected.insert(format!("logs/SERVE--max_num_seqs={n}.log"));
        expected.insert(format!("logs/{name}.warmup.log"));
        for file in ["warmup.json", "run=0.json", "run=1.json", "summary.json"] {
            expected.insert(format!("{name}/{file}"));
        }
        for run in 0..2 {
            expected.insert(format!("logs/{name}.run={run}.log"));
            for file in ["events.log", "result.json", "manifest.json"] {
                expected.insert(format!("{name}/run={run}/{file}"));
            }
        }
        let summary = json_of(&sweep.results("one").join(&name).join("summary.json"));
        for run in 0..2 {
            let (kept, summed) =
                (json_of(&sweep.results("one").join(&name).join(format!("run={run}.json"))), &summary[run]);
            assert_eq!(&kept, summed);
            assert_eq!(
                (&kept["run_number"], &kept["max_num_seqs"], &kept["max_concurrency"], &kept["completed"]),
                (&run.into(), &n.into(), &n.into(), &6.into())
            );
            assert!(kept["p99_e2el_ms"].as_f64().unwrap() > 0.0);
        }
        let warmup = json_of(&sweep.results("one").join(&name).join("warmup.json"));
        assert_eq!((&warmup["completed"], &warmup["run_number"]), (&3.into(), &(-1).into()));
    }
    assert_eq!(files(&sweep.results("one")), expected);
    let table = std::fs::read_to_string(sweep.results("one").join("summary.csv")).unwrap();
    assert!(
        table.starts_with(",date,") && table.lines().next().unwrap().contains(",run_number,max_num_seqs"),
        "{table}"
    );

    // Nothing is run again, no server is started (its log does not grow), and the folder stays what it is.
    let log = sweep.results("one").join("logs/SERVE--max_num_seqs=2.log");
    let before = std::fs::metadata(&log).unwrap().len();
    run(&sweep.args("serve", "--num-prompts 6", &flags)).refuses(2, &["is there already"]).hints("--resume");
    let again = done(&sweep.args("serve", "--num-prompts 6", &[&flags[..], &["--resume"]].concat()));
    assert!(again.stderr.contains("4 runs, 0 of them new"), "{}", again.stderr);
    assert_eq!(again.stdout, ended.stdout);
    assert_eq!(std::fs::metadata(&log).unwrap().len(), before);
    assert_eq!(files(&sweep.results("one")), expected);
    // Each run's rows are a run like any other.
    let run_dir = sweep.results("one").join("SERVE--max_num_seqs=2-BENCH--max_concurrency=2/run=0");
    run(&["verify", run_dir.to_str().unwrap()]).exits(0);
}

/// Sweeps, cut off in the second combination by `signal`, and goes on; the files are those of a sweep that nobody disturbed.
fn resumed_after(signal: &str, code: Option<i32>) {
    let sweep = Sweep::new("5ms");
    let bench = sweep.file("bench.json", &json!({"slow": {"max_concurrency": 1}, "fast": {"max_concurrency": 8}}));
    let flags = |name: &'static str, more: &'static [&'static str]| {
        let fixed = ["--bench-params", &bench, "--num-runs", "2", "-e", name];
        sweep.args("serve", "--num-prompts 16", &[&fixed[..], more].concat())
    };
    let running = start(command(&flags("cut", &[])));
    let second = sweep.results("cut").join("BENCH--fast");
    wait_for("the second combination", || second.join("run=0/events.log").exists());
    running.signal(signal);
    let ended = running.ended();
    assert_eq!(ended.code, code, "{}", ended.stderr);
    wait_for("the server to end", || sweep.is_gone());
    if code.is_some() {
        assert!(ended.stderr.contains("hint: --resume goes on"), "{}", ended.stderr);
    }
    assert!(!sweep.results("cut").join("summary.csv").exists());
    let kept = std::fs::read(sweep.results("cut").join("BENCH--slow/run=0.json")).unwrap();
    let again = done(&flags("cut", &["--resume"]));
    assert!(again.stderr.contains("4 runs"), "{}", again.stderr);
    assert_eq!(
        std::fs::read(sweep.results("cut").join("BENCH--slow/run=0.json")).unwrap(),
        kept,
        "what was done is kept"
    );
    done(&flags("whole", &[]));
    assert_eq!(files(&sweep.results("cut")), files(&sweep.results("whole")));
    assert!(sweep.is_gone());
}

#[test]
fn a_sweep_that_was_killed_goes_on_to_the_same_folder() {
    resumed_after("KILL", None);
}

#[test]
fn a_sweep_that_was_interrupted_goes_on_to_the_same_folder() {
    resumed_after("INT", Some(130));
}

#[test]
fn a_workload_is_explored_between_both_ends() {
    let sweep = Sweep::new("5ms");
    let flags = ["-e", "levels", "--num-runs", "1", "--workload-var", "max_concurrency", "--workload-iters", "4"];
    let ended = done(&sweep.args("workload", "--num-prompts 32", &flags));
    let names: BTreeSet<String> = files(&sweep.results("levels"))
        .into_iter()
        .filter_map(|f| Some(f.strip_suffix("/summary.json")?.into()))
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains("WL--serial") && names.contains("WL--batch"), "{names:?}");
    let (serial, batch) = (
        json_of(&sweep.results("levels").join("WL--serial/run=0.json")),
        json_of(&sweep.results("levels").join("WL--batch/run=0.json")),
    );
    assert_eq!((&serial["max_concurrency"], &batch["max_concurrency"]), (&1.into(), &32.into()));
    assert!(ended.stderr.contains("throughput ÷ latency is greatest at"), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().filter(|l| l.starts_with("WL--")).collect();
    assert!(lines[0].starts_with("WL--serial") && lines[3].starts_with("WL--batch"), "{}", ended.stdout);
    // The same levels follow from the same figures.
    let again = done(&sweep.args("workload", "--num-prompts 32", &[&flags[..], &["--resume"]].concat()));
    assert!(again.stderr.contains("4 runs, 0 of them new"), "{}", again.stderr);
    assert!(sweep.is_gone());
}

#[test]
fn what_fails_is_told_and_can_be_passed_over() {
    let sweep = Sweep::new("1ms");
    let bench = sweep.file("bench.json", &json!({"good": {"num_prompts": 2}, "bad": {"num_prompts": "-7"}}));
    let flags = ["--bench-params", &bench, "--num-runs", "1", "-e", "stops"];
    run(&sweep.args("serve", "", &flags)).exits(1);
    assert!(sweep.is_gone());
    let flags = ["--bench-params", &bench, "--num-runs", "1", "-e", "goes-on", "--continue-on-error"];
    let ended = done(&sweep.args("serve", "", &flags));
    let line = ended.stdout.lines().find(|l| l.starts_with("BENCH--bad")).unwrap();
    assert!(line.ends_with("FAILED"), "{line}");
    let note = json_of(&sweep.results("goes-on").join("BENCH--bad/run=0.failure.json"));
    assert_eq!(note["error_type"], "CalledProcessError");
    assert!(note["error"].as_str().unwrap().contains("--num-prompts"), "{note}");
    assert_eq!(note["bench_overrides"]["_benchmark_name"], "bad");

    // A server that cannot be started.
    let serve = sweep.file("serve.json", &json!({"lame": {"profile": "no-such-profile"}, "sound": {}}));
    let flags = ["--serve-params", &serve, "--num-runs", "1", "-e", "lame"];
    let failed = run(&sweep.args("serve", "--num-prompts 2", &flags)).exits(1);
    assert!(
        failed.stderr.contains("it ended with exit code 2") && failed.stderr.contains("no-such-profile"),
        "{}",
        failed.stderr
    );
    let flags = ["--serve-params", &serve, "--num-runs", "1", "-e", "lame", "--resume", "--continue-on-error"];
    done(&sweep.args("serve", "--num-prompts 2", &flags));
    assert_eq!(json_of(&sweep.results("lame").join("SERVE-lame-failure.json"))["error_type"], "RuntimeError");
    assert!(sweep.results("lame").join("SERVE--sound/summary.json").exists());
}

#[test]
fn a_dry_run_prints_the_commands() {
    let sweep = Sweep::new("1ms");
    let bench = sweep.file("bench.json", &json!([{"request_rate": 0.5}, {"request_rate": "inf"}]));
    let ended = done(&sweep.args("serve", "", &["--bench-params", &bench, "-e", "dry", "--dry-run"]));
    assert!(ended.stdout.contains(&format!("emulate --port {}", sweep.port)), "{}", ended.stdout);
    assert!(ended.stdout.contains("--request-rate 0.5 --percentile-metrics ttft,tpot,itl,e2el"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 combinations, 6 runs"), "{}", ended.stdout);
    assert!(!sweep.results("dry").exists());
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused() {
    let sweep = Sweep::new("1ms");
    let bench = sweep.file("bench.json", &json!([{"request_rate": 1}]));
    let broken = sweep.file("broken.json", &json!([1]));
    for (what, flags, says) in [
        ("serve", vec!["--bench-params", "/no/such/file"], "--bench-params /no/such/file: failed to read it"),
        ("serve", vec!["--serve-params", &broken], "found 1 in the list"),
        ("serve", vec!["--link-vars", "a"], "--link-vars: `a` is no pair"),
        ("serve", vec!["--link-vars", "a=b"], "no pair of combinations is left"),
        ("serve", vec!["--resume", "-e", "absent"], "there is no experiment"),
        ("serve", vec!["--num-runs", "0"], "--num-runs"),
        ("serve", vec!["--after-bench-cmd", "a 'b"], "--after-bench-cmd: failed to find the end of the quotation"),
        ("workload", vec!["--bench-params", &bench], "--bench-params: it sets request_rate"),
        ("workload", vec!["--workload-iters", "1"], "--workload-iters"),
    ] {
        run(&sweep.args(what, "", &flags)).refuses(2, &[says]);
    }
}

#[test]
fn a_sweep_is_drawn_with_its_invalid_runs_hollow() {
    let sweep = Sweep::new("1ms");
    let runs = |clients: u64, bad: bool| -> Value {
        (0..2u64)
            .map(|n| {
                let verdict = json!({ "valid": !(bad && n == 1), "reasons": [{ "code": "sends_late" }] });
                json!({
                    "run_number": n, "max_concurrency": clients, "kind": if bad { "b" } else { "a" }, "request_rate": "inf",
                    "output_throughput": 100.0 * clients as f64 + n as f64, "total_token_throughput": 1.0, "median_ttft_ms": 10.0 * clients as f64 + n as f64,
                    "tailbound": { "verdict": verdict, "interactivity_tokens_per_s": { "percentiles": { "p50": 50.0 / clients as f64 } } },
                })
            })
            .collect()
    };
    let dir = sweep.folder.path().join("drawn");
    for (name, clients, bad) in [("one", 1, false), ("two", 2, false), ("four", 4, true)] {
        std::fs::create_dir_all(dir.join(name)).unwrap();
        std::fs::write(dir.join(name).join("summary.json"), runs(clients, bad).to_string()).unwrap();
    }
    let folder = dir.to_str().unwrap();
    let ended = run(&["bench", "sweep", "plot", folder, "--var-x", "max_concurrency", "--fig-by", "kind"]).exits(0);
    assert!(
        ended.stdout.contains("FIGURE-kind=a.svg") && ended.stdout.contains("FIGURE-kind=b.html"),
        "{}",
        ended.stdout
    );
    let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(page("FIGURE-kind=b.html").contains("INVALID") && !page("FIGURE-kind=a.html").contains("<b>INVALID</b>"));
    assert!(page("FIGURE-kind=a.svg").starts_with("<?xml"));
    // Means over the runs of a combination: 10.5 at one client, 20.5 at two.
    assert!(page("FIGURE-kind=a.html").contains("10.5") && page("FIGURE-kind=a.html").contains("20.5"));
    let args = |more: &[&'static str]| [&["bench", "sweep", "plot", folder], more].concat();
    let dry = run(&args(&[
        "--fig-dir",
        "elsewhere",
        "--filter-by",
        "max_concurrency<=2",
        "--var-x",
        "max_concurrency",
        "--bin-by",
        "max_concurrency%10",
        "--dry-run",
    ]));
    assert!(dry.exits(0).stdout.contains("elsewhere/FIGURE.svg: 1 points"));
    assert!(!dir.join("elsewhere").exists());
    for (more, says) in [
        (["--var-y", "speed"], "`speed` is no variable"),
        (["--curve-by", "speed"], "`speed` is no variable"),
        (["--filter-by", "kind<z"], "only numbers are greater or less"),
        (["--filter-by", "max_concurrency>9"], "no run passes"),
        (["--bin-by", "kind"], "--bin-by kind: not of the form"),
    ] {
        run(&args(&more)).refuses(2, &[says]);
    }
    run(&["bench", "sweep", "plot", sweep.folder.path().join("results").to_str().unwrap()])
        .refuses(2, &["failed to read the folder"]);
    // The frontier: one client gives a user the most, two give an accelerator the most; four have an INVALID run.
    let flags = ["--accelerators", "2", "--cost-per-accelerator-hour", "3.6"];
    let ended = run(&[&["bench", "sweep", "plot_pareto", folder], &flags[..]].concat()).exits(0);
    let line =
        |name: &str| ended.stdout.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!(
        line("one").contains("yes (") && line("two").contains("yes (") && line("four").ends_with("1 INVALID"),
        "{}",
        ended.stdout
    );
    // 100.25 tokens/s for an accelerator at 3.6 an hour: 1,000,000 / 100.25 s · 0.001/s.
    assert!(line("two").contains("9.98"), "{}", ended.stdout);
    assert!(page("pareto/PARETO.svg").contains("class=\"hollow\"") || page("pareto/PARETO.html").contains("hollow"));
    assert!(page("pareto/PARETO.html").contains("INVALID"));
    let quotient = ["--per-user", "quotient", "--dry-run"];
    let ended = run(&[&["bench", "sweep", "plot_pareto", folder], &quotient[..]].concat()).exits(0);
    assert!(ended.stdout.contains("100 ["), "throughput ÷ clients is 100 or 100.5 or so: {}", ended.stdout);
}
