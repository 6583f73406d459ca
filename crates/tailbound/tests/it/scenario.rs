//! Scenarios from a file, against an emulator.

use crate::machine::{codes, only_noise};
use crate::program::{Ended, run};
use crate::servers::{config, emulator};
use std::path::Path;
use tailbound_emulator::Handle;

const PHASES: &str = r#"
[[phase]]
name = "steady"
executor = "constant-arrival-rate"
rate = "40/s"
duration = "500ms"
class = "chat"
[[phase]]
name = "beside"
executor = "per-client-iterations"
start = "100ms"
clients = 3
iterations = 4
class = "batch"
[[phase]]
name = "ramp"
executor = "ramping-vus"
start = "600ms"
stages = [{ duration = "100ms", target = 4 }, { duration = "200ms", target = 4 }]
class = "chat"
"#;

fn scenario(folder: &Path, server: &Handle, more: &str) -> String {
    let head = format!(
        "[serve]\nbase-url = \"{}\"\nrandom-input-len = 8\nrandom-output-len = 4\ndisable-tqdm = true\n",
        server.url()
    );
    let path = folder.join("scenario.toml");
    std::fs::write(&path, format!("{more}\n{head}{PHASES}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_dry_run_prints_plan_hash_and_duration_without_a_server() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    let file = scenario(folder.path(), &server, "");
    server.stop().unwrap();
    let dry = |flags: &[&str]| -> Ended { run(&[&["bench", "run", &file, "--dry-run"], flags].concat()).exits(0) };
    let first = dry(&[]);
    for part in [
        "steady             0s to 500ms: 40/s, 20 requests, class chat",
        "600.1s at most",
        "clients from 1 to 4 in 100ms",
    ] {
        assert!(first.stdout.contains(part), "{part} is not in {}", first.stdout);
    }
    let hash = |ended: &Ended| ended.line("plan").to_owned();
    assert_eq!(hash(&first), hash(&dry(&[])));
    assert_ne!(hash(&first), hash(&dry(&["--", "--seed", "7"])));
}

#[test]
fn a_scenario_that_makes_no_sense_is_refused() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    for (more, flags, says) in [
        ("speed = 3", vec![], "unknown field `speed`"),
        ("class = { none = { ttft = 1 } }", vec![], "class `none`: no phase sends it"),
        ("objectives = { speed = 1 }", vec![], "--goodput speed:1"),
        ("", vec!["--", "--request-rate", "3"], "--request-rate: contradicts the phases"),
        ("", vec!["--", "--num-prompts", "3"], "--num-prompts: contradicts the phases"),
        ("", vec!["--", "--no-such-flag"], "unexpected argument '--no-such-flag'"),
    ] {
        let file = scenario(folder.path(), &server, more);
        run(&[&["bench", "run", file.as_str()], &flags[..]].concat()).refuses(2, &[says]);
    }
    run(&["bench", "run", "/no/such/file"]).refuses(2, &["/no/such/file: failed to read it"]);
}

fn group<'a>(result: &'a serde_json::Value, by: &str, name: &str) -> &'a serde_json::Value {
    let all = result["tailbound"]["groups"][by].as_array().unwrap();
    all.iter().find(|group| group["name"] == name).unwrap_or_else(|| panic!("no {by} {name} in {all:?}"))
}

#[test]
fn phases_run_one_after_another_and_beside_each_other() {
    let (server, folder) = (emulator(config(2)), tempfile::tempdir().unwrap());
    let file = scenario(folder.path(), &server, "");
    let kept = folder.path().join("kept");
    let args = ["bench", "run", &file, "--output-dir", kept.to_str().unwrap(), "--", "--format", "json", "--no-fail"];
    let result = run(&args).exits(0).json();
    let summary = server.stop().unwrap();
    only_noise(&result);
    let planned = |by, name| group(&result, by, name)["planned"].as_u64().unwrap();
    let completed = |by, name| group(&result, by, name)["completed"].as_u64().unwrap();
    assert_eq!((completed("phase", "steady"), completed("phase", "beside")), (20, 12));
    let ramp = completed("phase", "ramp");
    assert!(ramp >= 4, "four clients send at least a request each: {ramp}");
    assert_eq!((completed("class", "chat"), completed("class", "batch")), (20 + ramp, 12));
    assert_eq!((planned("phase", "steady"), planned("class", "batch")), (20, 12));
    assert_eq!((&result["completed"], summary.requests), (&(32 + ramp).into(), 32 + ramp));
    // The folder needs the file no more.
    std::fs::remove_file(&file).unwrap();
    let again = run(&["report", kept.to_str().unwrap(), "--format", "json", "--no-fail"]).exits(0).json();
    assert_eq!(again["tailbound"]["groups"], result["tailbound"]["groups"]);
}

#[test]
fn thresholds_are_told_and_end_a_run_that_misses_them() {
    let (server, folder) = (emulator(config(5)), tempfile::tempdir().unwrap());
    let wanted = "threshold = [{ metric = \"failed\", below = 0.5 }, { metric = \"e2el\", percentile = 90, below = \"1us\", class = \"chat\" }]";
    let aborting = wanted.replace("class = \"chat\"", "abort = true");
    let file = scenario(folder.path(), &server, wanted);
    let outcome = |file: &str| {
        let ended = run(&["bench", "run", file, "--", "--format", "json"]);
        let result = ended.json();
        // What a busy machine makes INVALID comes first.
        let code = if codes(&result).is_empty() { 99 } else { 3 };
        (ended.exits(code), result)
    };
    let (_, result) = outcome(&file);
    let [failed, e2el] = result["tailbound"]["thresholds"].as_array().unwrap().as_slice() else { panic!("two") };
    let keys = |t: &serde_json::Value| ["metric", "percentile", "class", "unit", "held"].map(|k| t[k].clone());
    assert_eq!(keys(failed).map(|v| v.to_string()), ["\"failed\"", "null", "null", "\"share\"", "true"]);
    assert_eq!(keys(e2el).map(|v| v.to_string()), ["\"e2el\"", "90.0", "\"chat\"", "\"s\"", "false"]);
    assert_eq!((&failed["below"], &failed["value"]), (&0.5.into(), &0.0.into()));
    assert!((e2el["below"].as_f64().unwrap() - 1e-6).abs() < 1e-12, "{e2el}");
    assert!(e2el["value"].as_f64().unwrap() > 0.01, "four tokens, 5 ms a step: {e2el}");
    assert_eq!(result["tailbound"]["requests"]["never_sent"], 0);

    let file = scenario(folder.path(), &server, &aborting);
    let (ended, result) = outcome(&file);
    assert!(ended.stderr.contains("ended early: threshold MISSED: p90 E2EL"), "{}", ended.stderr);
    let requests = &result["tailbound"]["requests"];
    assert!(requests["completed"].as_u64().unwrap() >= 10, "a few abort no run: {requests}");
    assert!(requests["completed"].as_u64().unwrap() < 32, "it was ended: {requests}");
    server.stop().unwrap();
}

#[test]
fn a_scenario_is_repeated_until_its_figure_is_known() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    let repeat = |until: &str, within: f64, max: u32| {
        format!("repeat = {{ until = \"{until}\", within = {within}, min = 2, max = {max} }}")
    };
    // Every run of this completes the same number of requests.
    let fixed = "phase = [{ executor = \"shared-iterations\", clients = 2, iterations = 30 }]\n";
    let file = |more: &str| {
        let path = folder.path().join("repeated.toml");
        let serve = format!(
            "[serve]\nbase-url = \"{}\"\nrandom-input-len = 8\nrandom-output-len = 4\ndisable-tqdm = true\n",
            server.url()
        );
        std::fs::write(&path, format!("{fixed}{more}\n{serve}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let kept = folder.path().join("kept");
    let path = file(&repeat("completed", 0.05, 8));
    let ended = run(&["bench", "run", &path, "--output-dir", kept.to_str().unwrap()]);
    let told: Vec<&str> = ended.stdout.lines().filter(|l| l.starts_with("run ")).collect();
    let valid = told.iter().filter(|l| !l.contains("INVALID")).count();
    assert!(valid == 2 || told.len() == 8, "two alike are enough, and INVALID ones don't count: {}", ended.stdout);
    if valid == 2 {
        assert!(ended.line("completed:").starts_with("mean 30.000, 95 % interval 30.000 to 30.000 over 2 runs"));
        assert!(ended.stdout.contains("tight enough (±5.0 % wanted)"), "{}", ended.stdout);
    }
    for n in 0..told.len() {
        let run_folder = kept.join(format!("run={n}"));
        run(&["verify", run_folder.to_str().unwrap()]).exits(0);
    }
    assert!(!kept.join(format!("run={}", told.len())).exists());

    let ended = run(&["bench", "run", &file(&repeat("median_e2el_ms", 1e-9, 2)), "--", "--percentile-metrics", "e2el"])
        .exits(3);
    let why = ["NOT tight enough, and no runs are left", "no two runs count"];
    assert!(why.iter().any(|why| ended.stdout.contains(why)), "{}", ended.stdout);
    run(&["bench", "run", &file(&repeat("speed", 0.1, 2))]).exits(2);
    server.stop().unwrap();
}
