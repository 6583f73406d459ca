//! A curve from the plan to the submission, its folder verified, killed, garbled.

use crate::program::{command, run, start, wait_for};
use crate::servers::{config, emulator};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Seven points of 12 passes over 10 samples, each over in a moment.
const FLAGS: &str = "--c-min 4 --c-max 36 --dataset-samples 10 --input-len 8 --random-output-len 4 --passes 12";
/// A window that any machine reaches, whatever its noise spoils; and a log of nothing but rows, as a look at a server falls anywhere among them.
const LENIENT: &str = "--min-window 10ms --no-fail --no-server-metrics";

fn curve_args(url: &str, dir: &Path, more: &str) -> Vec<String> {
    let all = format!("bench curve --base-url {url} --output-dir {} {FLAGS} {LENIENT} {more}", dir.display());
    all.split_whitespace().map(str::to_owned).collect()
}

/// A curve measured once for every test that only reads it: its folder and its result.
fn measured() -> &'static (TempDir, Value) {
    static MEASURED: OnceLock<(TempDir, Value)> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let (server, folder) = (emulator(config(2)), tempfile::tempdir().unwrap());
        let dir = folder.path().join("curve");
        let result = run(&curve_args(&server.url(), &dir, "--format json")).exits(0).json();
        (folder, result)
    })
}

/// A copy of it, to be spoilt.
fn copy() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("curve");
    copy_into(&measured().0.path().join("curve"), &to);
    (folder, to)
}

fn copy_into(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_into(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn verify(dir: &Path) -> crate::program::Ended {
    run(&["verify", dir.to_str().unwrap(), "--format", "json"])
}

/// Where the records of a log begin.
fn records(log: &[u8]) -> Vec<usize> {
    let mut starts = vec![8];
    while let Some(lead) = log.get(*starts.last().unwrap()..).and_then(|rest| rest.first_chunk::<4>()) {
        starts.push(starts.last().unwrap() + 8 + u32::from_le_bytes(*lead) as usize);
    }
    starts.pop();
    starts
}

#[test]
fn every_point_is_measured_and_its_figures_follow_from_its_rows() {
    let (folder, result) = measured();
    let rows = result["curve"]["rows"].as_array().unwrap();
    let concurrencies: Vec<u64> = rows.iter().map(|r| r["plan"]["concurrency"].as_u64().unwrap()).collect();
    assert_eq!((concurrencies.len(), concurrencies[0], concurrencies[6]), (7, 4, 36));
    for row in rows {
        let f = &row["figures"];
        assert_eq!((&f["issued"], &f["completed"], &f["failed"]), (&120.into(), &120.into(), &0.into()), "{row}");
        let figure = |name: &str| f[name].as_f64().unwrap_or_else(|| panic!("{name} of {f}"));
        // A step is 2 ms; four tokens of 120 requests.
        assert!(figure("tpot_p90_ms") > 1.9 && figure("ttft_p90_ms") <= figure("ttft_p95_ms"), "{f}");
        assert!((figure("tps_per_user") - 1000.0 / figure("tpot_p90_ms")).abs() < 1e-9);
        assert!((figure("system_tps") * figure("duration_s") - 480.0).abs() < 1e-6, "{f}");
        assert!(figure("ttft_p90_early_stopping_ms") >= figure("ttft_p90_ms"), "{f}");
        // P95 takes 130 requests, and there are 120.
        assert!(f["ttft_p95_early_stopping_ms"].is_null(), "{f}");
    }
    assert_eq!(rows[6]["plan"]["offline"], "elected");
    let dir = folder.path().join("curve");
    let verified = verify(&dir).exits(0).json();
    assert_eq!((&verified["verified"], &verified["rows"]), (&true.into(), &(7 * 120).into()));
    assert!(verified["figures"].as_u64().unwrap() > 1000, "{verified}");
    // One point by itself, and its report as a run.
    verify(&dir.join("r4")).exits(0);
    let report = run(&["report", dir.join("r4").to_str().unwrap(), "--no-fail"]).exits(0);
    assert_eq!(report.line("Successful requests:"), "120");
}

#[test]
fn every_pass_sends_every_sample_and_no_prompt_is_known_from_before() {
    // Requests by the prompt tokens that the server knew already.
    let known = |more: &str| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("truth.jsonl");
        let server = crate::servers::truthful(config(1), &log);
        let only = format!("--only 4 --random-input-len 70 --warmup-requests 8 {more}");
        let args = curve_args(&server.url(), &folder.path().join("curve"), &only);
        let ended = run(&args).exits(0);
        assert!(ended.stderr.contains("still open: the points of concurrency 6, "), "{}", ended.stderr);
        assert_eq!(server.stop().unwrap().requests, 120 + 8);
        let truth = fs::read_to_string(&log).unwrap();
        let cached =
            truth.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["cached_tokens"].as_u64().unwrap());
        cached.filter(|&n| n > 0).count()
    };
    assert_eq!(known(""), 0);
    // Without salt the server knows the warm-ups' eight prompts, and from the second pass on all ten.
    let unsalted = known("--no-salt");
    assert!((110..=118).contains(&unsalted), "{unsalted}");
}

#[test]
fn a_dry_run_prints_plan_hash_and_duration_and_needs_no_server() {
    let nobody = crate::servers::nobody();
    let flags = format!(
        "bench curve --base-url {nobody} --model m --c-max 256 --dataset-samples 198 --request-time 2s --request-time-at-max 6s --dry-run"
    );
    let text = run(&flags.split(' ').collect::<Vec<_>>()).exits(0);
    assert_eq!(text.line("plan").len(), 64, "{}", text.stdout);
    assert!(text.line("takes").starts_with("about "), "{}", text.stdout);
    let json = run(&format!("{flags} --format json").split(' ').collect::<Vec<_>>()).exits(0).json();
    assert_eq!(json["hash"].as_str().unwrap(), text.line("plan"));
    let points = json["plan"]["points"].as_array().unwrap();
    let sum: f64 = points.iter().map(|p| p["expected_s"].as_f64().unwrap()).sum();
    assert!((json["expected_s"].as_f64().unwrap() - sum).abs() < 1e-6);
    // Another seed set, another load, another hash.
    let other = run(&format!("{flags} --format json --passes 9").split(' ').collect::<Vec<_>>()).exits(0).json();
    assert_ne!(other["hash"], json["hash"]);
    // Without a time nobody knows how long it takes.
    let open = flags.replace(" --request-time 2s --request-time-at-max 6s", "");
    let open = run(&open.split(' ').collect::<Vec<_>>()).exits(0);
    assert!(open.line("takes").contains("to count, at least"), "{}", open.stdout);
}

#[test]
fn after_a_kill_the_same_command_goes_on_and_measures_nothing_twice() {
    let (server, folder) = (emulator(config(4)), tempfile::tempdir().unwrap());
    let dir = folder.path().join("curve");
    let args = curve_args(&server.url(), &dir, "--format json");
    let running = start(command(&args));
    wait_for("the first point to end", || dir.join("r4/manifest.json").exists());
    wait_for("the next to begin", || {
        let logs = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path().join("events.log"));
        logs.filter(|l| fs::metadata(l).is_ok_and(|m| m.len() > 2_000)).count() > 1
    });
    running.signal("KILL");
    assert_eq!(running.ended().code, None);
    let log = dir.join("r4/events.log");
    let first = fs::read(&log).unwrap();
    let finished =
        fs::read_dir(&dir).unwrap().filter(|e| e.as_ref().unwrap().path().join("manifest.json").exists()).count();

    let ended = run(&args).exits(0);
    assert!(ended.stderr.contains(&format!("{} points to measure", 7 - finished)), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("{finished} are there")), "{}", ended.stderr);
    let result = ended.json();
    assert_eq!(fs::read(&log).unwrap(), first);
    for row in result["curve"]["rows"].as_array().unwrap() {
        assert_eq!(row["figures"]["completed"], 120);
    }
    verify(&dir).exits(0);
    // Once more: nothing is left to do, and the result is the same.
    assert_eq!(run(&args).exits(0).json(), result);
    // Another plan is not mixed in.
    run(&curve_args(&server.url(), &dir, "--seed 5")).refuses(2, &["another plan"]);
}

#[test]
fn an_interrupt_leaves_a_curve_that_goes_on() {
    let (server, folder) = (emulator(config(4)), tempfile::tempdir().unwrap());
    let dir = folder.path().join("curve");
    let running = start(command(&curve_args(&server.url(), &dir, "")));
    wait_for("the first point to begin", || dir.join("r4/events.log").exists());
    running.signal("INT");
    let ended = running.ended().exits(130);
    assert!(ended.stderr.contains("goes on with the curve"), "{}", ended.stderr);
    assert!(!dir.join("r4/manifest.json").exists());
    run(&["verify", dir.to_str().unwrap()]).refuses(1, &["manifest.json", "did not come to its end"]);
    run(&["verify", dir.join("r4").to_str().unwrap()]).refuses(1, &["manifest.json"]);
}

#[test]
fn a_point_that_is_too_short_is_invalid_and_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        format!("bench curve --virtual --output-dir {} {FLAGS} --min-window 1h", folder.path().join("curve").display());
    let ended = run(&flags.split(' ').collect::<Vec<_>>()).exits(3);
    assert!(ended.stdout.contains("no server was measured"), "{}", ended.stdout);
    assert_eq!(ended.stdout.matches("is INVALID [window_too_short]").count(), 7, "{}", ended.stdout);
    assert!(ended.stdout.contains("of the 3600 s it needs: issue about "), "{}", ended.stdout);
}

#[test]
fn one_changed_byte_of_one_row_is_found_and_the_figures_are_named() {
    let (_folder, dir) = copy();
    let log = dir.join("r4/events.log");
    let whole = fs::read(&log).unwrap();
    let starts = records(&whole);
    assert_eq!(starts.len(), 120 + 8 + 2);
    // Every byte of one row in turn: whatever it is, the record is named.
    let (from, to) = (starts[60], starts[61]);
    let mut named = 0;
    for at in (from..to).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x20;
        fs::write(&log, &changed).unwrap();
        let found = verify(&dir.join("r4")).exits(1).json();
        let mismatches = found["mismatches"].as_array().unwrap();
        let record = mismatches[0]["what"].as_str().unwrap();
        assert!(record.starts_with("row 60 ") && record.contains(&format!("at byte {from})")), "byte {at}: {record}");
        named += mismatches.iter().filter_map(|m| m["figures"].as_array()).map(Vec::len).sum::<usize>();
    }
    assert!(named > 10, "{named} figures named");
    // The row's checksum made to fit again: the digest tells, and so do the figures.
    fs::write(&log, &whole).unwrap();
    verify(&dir).exits(0);
}

#[test]
fn a_figure_that_was_touched_up_is_named() {
    let (_folder, dir) = copy();
    let path = dir.join("result.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut result: Value = serde_json::from_str(&text).unwrap();
    result["curve"]["rows"][3]["figures"]["system_tps"] = 1e6.into();
    fs::write(&path, result.to_string()).unwrap();
    let found = verify(&dir).exits(1).json();
    let figures = &found["mismatches"][0]["figures"];
    assert_eq!(figures[0]["figure"], "curve.rows[3].figures.system_tps", "{found}");
    assert_eq!(figures.as_array().unwrap().len(), 1);
    let told = run(&["verify", dir.to_str().unwrap()]).exits(1);
    assert!(told.stdout.contains("published 1000000.0, by the rows "), "{}", told.stdout);
    // Blanks are no figures, but the file is another.
    fs::write(&path, text.replacen('\n', "\n ", 1)).unwrap();
    let told = run(&["verify", dir.to_str().unwrap()]).exits(1);
    assert!(told.stdout.contains("though no figure was"), "{}", told.stdout);
}

#[test]
fn garbled_folders_are_refused_in_a_line() {
    let (_folder, dir) = copy();
    let at = dir.to_str().unwrap();
    for (file, what) in
        [("r4/manifest.json", "manifest.json"), ("curve.json", "curve.json"), ("result.json", "result.json")]
    {
        let path = dir.join(file);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, "{").unwrap();
        run(&["verify", at]).refuses(1, &[what]);
        fs::remove_file(&path).unwrap();
        run(&["verify", at]).refuses(1, &[if file == "curve.json" { "holds no curve" } else { what }]);
        fs::write(&path, whole).unwrap();
    }
    fs::write(dir.join("r4/events.log"), "no log").unwrap();
    run(&["verify", at]).refuses(1, &["events.log", "not a run's log"]);
    run(&["verify", "/nonexistent"]).refuses(1, &["/nonexistent"]);
    run(&["export", "endpoints", "/nonexistent", "--output", "/tmp/x", "--submission", "/nonexistent.yaml"])
        .refuses(1, &["/nonexistent.yaml"]);
}

/// Hours of it in seconds; and what a live curve of such length would have to show as well.
#[test]
fn a_modelled_curve_lasts_as_long_as_the_rules_ask_and_is_the_same_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |name: &str, more: &str| {
        let flags = format!(
            "bench curve --virtual --profile llama-3.1-70b-l40s-tp4 --c-min 4 --c-max 36 --dataset-samples 30 --random-input-len 32 \
             --random-output-len 400 --request-time 15s --format json --output-dir {} {more}",
            folder.path().join(name).display()
        );
        run(&flags.split_whitespace().collect::<Vec<_>>())
    };
    let result = measure("a", "").exits(0).json();
    assert_eq!(result["valid"], true, "{result}");
    let rows = result["curve"]["rows"].as_array().unwrap();
    for row in rows {
        let window = row["steady"]["window"]["required"]["window_s"].as_f64().unwrap();
        assert!(row["steady"]["found"] == true && window >= row["plan"]["min_window_s"].as_f64().unwrap(), "{row}");
    }
    let speeds: Vec<f64> = rows.iter().map(|r| r["figures"]["tps_per_user"].as_f64().unwrap()).collect();
    assert!(speeds.windows(2).all(|w| w[0] >= w[1]), "{speeds:?}");
    measure("b", "--only 4").exits(0);
    let point = |name: &str| fs::read_to_string(folder.path().join(name).join("r4/point.json")).unwrap();
    let figures = |text: String| serde_json::from_str::<Value>(&text).unwrap()["figures"].clone();
    assert_eq!(figures(point("a")), figures(point("b")));
    let dir = folder.path().join("a");
    assert_eq!(verify(&dir).exits(0).json()["verified"], true);
    // As a submission nothing is held against it, and it says what it is.
    let (file, out) = (submission(folder.path(), &result), folder.path().join("out"));
    let args = ["export", "endpoints", dir.to_str().unwrap(), "--output", out.to_str().unwrap(), "--submission"];
    let ended = run(&[&args[..], &[file.to_str().unwrap()]].concat()).exits(0);
    assert!(ended.stdout.contains("finds nothing against it"), "{}", ended.stdout);
    assert!(ended.stderr.contains("nothing to hand in"), "{}", ended.stderr);
}

#[test]
fn impossible_curves_are_refused_before_anything_is_sent() {
    let nobody = crate::servers::nobody();
    let refuses = |flags: &str, parts: &[&str]| {
        let all = format!("bench curve --base-url {nobody} --output-dir /nonexistent/x --dataset-samples 10 {flags}");
        run(&all.split_whitespace().collect::<Vec<_>>()).refuses(2, parts);
    };
    refuses("--c-max 32", &["--c-max", "more than 32"]);
    refuses("--c-max 64 --c-min 33", &["--c-min", "between 1 and 32"]);
    refuses("--c-max 64 --points 6", &["--points", "7 to 32"]);
    refuses("--c-max 64 --passes 4", &["--passes", "needs 4"]);
    refuses("--c-max 64 --offline dedicated", &["--offline dedicated", "fewer than the maximum concurrency"]);
    refuses("--c-max 64 --no-stream", &["--no-stream"]);
    refuses("--c-max 64 --dataset-name custom", &["--dataset-path"]);
    let missing = "bench curve --c-max 64";
    run(&missing.split(' ').collect::<Vec<_>>()).refuses(2, &["--output-dir"]);
}

/// A submission file that lacks nothing, with accuracy results for the points that need them.
fn submission(folder: &Path, result: &Value) -> PathBuf {
    for (file, text) in [("server/README.md", "How.\n"), ("docs/README.md", "Notes.\n")] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }
    let scores = r#"{"accuracy_scores": [{"dataset_name": "cnn_dailymail", "unit_samples": 13368, "num_repeats": 1, "complete": true,
        "score": {"rouge1": 38.8, "rouge2": 16.0, "rougel": 24.6, "rougelsum": 35.9, "gen_len": 8167644}}]}"#;
    fs::write(folder.join("a.json"), scores).unwrap();
    let template = run(&["export", "endpoints", "--template"]).exits(0).stdout;
    // A data set the checker knows no size of: ours has ten samples.
    let mut text = template.replace("cnn_dailymail", "made_up");
    text.truncate(text.find("accuracy:").unwrap());
    text += "accuracy:\n";
    for row in result["curve"]["rows"].as_array().unwrap().iter().filter(|r| r["plan"]["accuracy"] == true) {
        text += &format!("  {}: a.json\n", row["folder"].as_str().unwrap());
    }
    let path = folder.join("submission.yaml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn an_exported_curve_passes_our_checker() {
    let (folder, result) = measured();
    let work = tempfile::tempdir().unwrap();
    let (file, out) = (submission(work.path(), result), work.path().join("out"));
    let dir = folder.path().join("curve");
    let args = ["export", "endpoints", dir.to_str().unwrap(), "--output", out.to_str().unwrap(), "--allow-invalid"];
    let ended = run(&[&args[..], &["--submission", file.to_str().unwrap()]].concat()).exits(0);
    assert!(ended.stdout.contains("0 errors"), "{}", ended.stdout);
    let at = out.join("ExampleOrg");
    let found = run(&["check", "endpoints", at.to_str().unwrap(), "--format", "json"]).exits(0).json();
    for finding in found["findings"].as_array().unwrap() {
        let rule = finding["rule"].as_str().unwrap();
        assert!(["point-duration", "steady-state-basis"].contains(&rule), "{finding}");
    }
    let run_folder = out.join("runs/example_1x/llama3_1-8b/r4");
    for file in [
        "config.yaml",
        "point.yaml",
        "system_desc.json",
        "performance/result_summary.json",
        "accuracy/accuracy_results.json",
    ] {
        assert!(run_folder.join(file).is_file(), "{file}");
    }
    let summary: Value =
        serde_json::from_slice(&fs::read(run_folder.join("performance/result_summary.json")).unwrap()).unwrap();
    let figures = &result["curve"]["rows"][0]["figures"];
    assert_eq!(summary["tps"], figures["system_tps"]);
    let point = fs::read_to_string(run_folder.join("point.yaml")).unwrap();
    for part in ["steady_state:", "requests_issued: 8", "requests_completed: 8", "seed_set: \"A\""] {
        assert!(point.contains(part), "`{part}` in {point}");
    }
}

#[test]
fn what_a_submission_lacks_is_told_all_at_once() {
    let (folder, result) = measured();
    let work = tempfile::tempdir().unwrap();
    let dir = folder.path().join("curve");
    let export = |more: &[&str]| {
        let out = work.path().join("out");
        let args = ["export", "endpoints", dir.to_str().unwrap(), "--output", out.to_str().unwrap(), "--allow-invalid"];
        run(&[&args[..], more].concat())
    };
    let names = [
        "organisation (--organisation)",
        "target_cohort",
        "system_desc",
        "disclosure.model_precision",
        "source",
        "docs",
    ];
    export(&[]).refuses(2, &names).hints("--template");
    let file = submission(work.path(), result);
    let text = fs::read_to_string(&file).unwrap();
    let with = |from: &str, to: &str| {
        fs::write(&file, text.replace(from, to)).unwrap();
        export(&["--submission", file.to_str().unwrap()])
    };
    with("organisation: ExampleOrg", "organization: ExampleOrg").refuses(2, &["submission.yaml", "organization"]);
    with("ExampleOrg", "../up").refuses(1, &["organisation", "cannot name a folder"]);
    with("a.json", "b.json").refuses(1, &["b.json"]);
    with("  r4: a.json", "  r5: a.json").refuses(2, &["accuracy of r5"]);
    assert!(!work.path().join("out").exists());
}
