//! `bench loadgen verdict` and `check endpoints`, against what the official programs said of the same folders.

use crate::machine::data;
use crate::program::{Ended, run};
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_stats::loadgen::samples::{from_csv, to_csv};

fn verdict(dir: &Path, flags: &[&str]) -> Ended {
    let mut args = vec!["bench", "loadgen", "verdict", dir.to_str().unwrap()];
    args.extend(flags);
    run(&args)
}

fn runs() -> Vec<PathBuf> {
    let Some(folder) = data("mlperf/runs") else { return Vec::new() };
    let mut runs: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    runs.sort();
    assert!(runs.len() >= 30, "only {} runs", runs.len());
    runs
}

fn official(dir: &Path) -> String {
    fs::read_to_string(dir.join("mlperf_log_summary.txt")).unwrap()
}

/// A folder with these files of a run, the text of each changed by `edit`.
fn copied(dir: &Path, files: &[&str], edit: impl Fn(&str) -> String) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files {
        fs::write(copy.path().join(file), edit(&fs::read_to_string(dir.join(file)).unwrap())).unwrap();
    }
    copy
}

#[test]
fn every_run_gets_the_official_summary_and_its_exit_code() {
    for dir in runs() {
        let summary = official(&dir);
        let code = if summary.contains("Result is : INVALID") { 3 } else { 0 };
        let ended = verdict(&dir, &[]).exits(code);
        assert_eq!(ended.stdout, summary, "{}", dir.display());
        assert!(!ended.stderr.contains("contradiction"), "{}: {}", dir.display(), ended.stderr);
    }
}

#[test]
fn the_improved_judgement_follows_the_summary_and_gives_every_invalid_run_a_reason() {
    for dir in runs() {
        let (summary, ended) = (official(&dir), verdict(&dir, &["--improved"]));
        let more = ended.stdout.strip_prefix(&summary).unwrap_or_else(|| panic!("{}: another summary", dir.display()));
        let reasons: Vec<&str> = more.lines().filter(|l| l.starts_with(" * ")).collect();
        let own = reasons.iter().filter(|r| r.contains("the load generator was late")).count();
        let name = dir.display();
        assert_eq!(ended.code, Some(if reasons.is_empty() { 0 } else { 3 }), "{name}: {more}");
        assert_eq!(reasons.len() > own, summary.contains("Result is : INVALID"), "{name}: {more}");
        let alone = copied(&dir, &["mlperf_log_detail.txt"], str::to_owned);
        let code = if summary.contains("Result is : INVALID") { 3 } else { 0 };
        verdict(alone.path(), &["--improved"]).exits(code);
    }
}

#[test]
fn the_number_of_further_queries_is_loadgens_own() {
    let Some(dir) = data("mlperf/runs/16_server_token_both_invalid") else { return };
    let by_samples = verdict(Path::new(&dir), &["--improved"]).exits(3);
    let (_, improved) =
        by_samples.stdout.split_once("Improved judgement (by 692 samples in samples.csv): INVALID").unwrap();
    assert!(improved.contains("early stopping on TPOT") && improved.contains("at least 74847 more"), "{improved}");
    assert!(improved.contains("early stopping on TTFT"), "LoadGen stops at TPOT: {improved}");
    let alone = copied(Path::new(&dir), &["mlperf_log_detail.txt"], str::to_owned);
    let by_log = verdict(alone.path(), &["--improved"]).exits(3);
    let (_, improved) = by_log.stdout.split_once("Improved judgement (by the detail log alone): INVALID").unwrap();
    assert!(improved.contains("at least 74847 more") && improved.contains("were not judged"), "{improved}");
}

#[test]
fn the_improved_judgement_is_never_laxer_than_loadgens() {
    let Some(dir) = data("mlperf/runs/32_multistream_token") else { return };
    // Twice the samples: as many as the queries LoadGen wants, but its queries have four each.
    let twice = |text: &str| {
        if text.starts_with(':') {
            return text.to_owned();
        }
        let samples = from_csv(text).unwrap();
        let mut again = samples.clone();
        for s in &mut again {
            (s.seq, s.query, s.due_ns) = (s.seq + 400, s.query + 100, s.due_ns + 2_000_000_000);
        }
        to_csv(&[samples, again].concat())
    };
    let copy = copied(Path::new(&dir), &["mlperf_log_detail.txt", "samples.csv"], twice);
    let ended = verdict(copy.path(), &["--improved"]).exits(3);
    assert!(ended.stdout.contains("(by 800 samples in samples.csv): INVALID\n * early stopping"), "{}", ended.stdout);
}

#[test]
fn loadgens_trace_stands_in_for_the_table_of_samples() {
    let Some(dir) = data("mlperf/runs/07_server_invalid_perf_constraint") else { return };
    let dir = Path::new(&dir);
    let copy = copied(dir, &["mlperf_log_detail.txt"], str::to_owned);
    let line = |s: &tailbound_stats::loadgen::samples::Sample| {
        let (whole, rest) = (s.due_ns / 1000, s.due_ns % 1000);
        format!(
            "{{\"name\":\"Sample\",\"cat\":\"default\",\"ph\":\"b\",\"ts\":{whole}.{rest:03},\"args\":{{\"sample_seq\":{},\
             \"query_seq\":{},\"sample_idx\":{},\"issue_start_ns\":{},\"complete_ns\":{}}}}},\n",
            s.seq, s.query, s.index, s.issue_delay_ns, s.latency_ns
        )
    };
    let samples = from_csv(&fs::read_to_string(dir.join("samples.csv")).unwrap()).unwrap();
    fs::write(copy.path().join("mlperf_log_trace.json"), samples.iter().map(line).collect::<String>()).unwrap();
    let of_trace = verdict(copy.path(), &["--improved"]).exits(3);
    let of_table = verdict(dir, &["--improved"]).exits(3);
    assert_eq!(of_trace.stdout, of_table.stdout.replace("samples.csv", "mlperf_log_trace.json"));
}

#[test]
fn an_edited_log_is_invalid_and_its_contradictions_are_told() {
    let Some(dir) = data("mlperf/runs/06_server_valid") else { return };
    let late = |text: &str| text.replace("\"value\": \"VALID\"", "\"value\": \"INVALID\"");
    let copy = copied(Path::new(&dir), &["mlperf_log_detail.txt", "samples.csv"], late);
    let ended = verdict(copy.path(), &[]).exits(3);
    let told: Vec<&str> = ended.stderr.lines().filter(|l| l.starts_with("contradiction: ")).collect();
    assert_eq!(told.len(), 2, "one by the log's own checks, one by the samples: {}", ended.stderr);
}

#[test]
fn what_cannot_be_judged_is_refused_with_the_file_and_the_line() {
    let empty = tempfile::tempdir().unwrap();
    verdict(empty.path(), &[]).refuses(1, &["mlperf_log_detail.txt", "No such file"]).hints("the folder LoadGen wrote");
    let Some(dir) = data("mlperf/runs/06_server_valid") else { return };
    let dir = Path::new(&dir);
    let cut = copied(dir, &["mlperf_log_detail.txt"], |text| text[..3000].to_owned());
    verdict(cut.path(), &[]).refuses(1, &["mlperf_log_detail.txt", "line 11", "cut off"]);
    let odd = copied(dir, &["mlperf_log_detail.txt"], |text| {
        text.replace(
            "\"key\": \"effective_target_qps\", \"value\": 500",
            "\"key\": \"effective_target_qps\", \"value\": fast",
        )
    });
    verdict(odd.path(), &[]).refuses(1, &["effective_target_qps", "fast"]);
    for (from, to, part) in [
        ("\n5,", "\nfive,", "line 7"),
        ("\n5,", "\n18446744073709551615,", "beyond any run's"),
        ("\n600,", "\n999999999,", "cannot span"),
    ] {
        let files = ["mlperf_log_detail.txt", "samples.csv"];
        let bad =
            copied(dir, &files, |text| if text.starts_with(':') { text.to_owned() } else { text.replace(from, to) });
        verdict(bad.path(), &["--improved"]).refuses(1, &["samples.csv", part]);
    }
}

#[test]
fn a_submission_is_checked_rule_by_rule() {
    let Some(good) = data("mlperf/endpoints_submission_v1") else { return };
    let ended = run(&["check", "endpoints", &good]).exits(0);
    assert_eq!(ended.stdout, "errors: 0, warnings: 0; the submission would be accepted\n");
    let copy = tempfile::tempdir().unwrap();
    copy_tree(Path::new(&good), copy.path());
    let curve = copy.path().join("ExampleOrg/sub-0001/results/sys_sim_1x/llama3_1-8b");
    fs::remove_file(curve.join("r48/point.yaml")).unwrap();
    let path = copy.path().to_str().unwrap();
    let ended = run(&["check", "endpoints", path]).exits(3);
    let order: Vec<&str> = ended.stdout.lines().filter_map(|l| l.split(' ').next()).filter(|w| !w.is_empty()).collect();
    assert_eq!(order, ["error", "warning", "errors:"], "{}", ended.stdout);
    assert!(ended.stdout.contains("measurement-points-present") && ended.stdout.contains("r48 has no point.yaml: add"));
    let json = run(&["check", "endpoints", path, "--format", "json"]).exits(3).json();
    assert_eq!((json["passed"].as_bool(), json["findings"].as_array().map(Vec::len)), (Some(false), Some(2)));
    run(&["check", "endpoints", "/nonexistent/folder"]).refuses(1, &["/nonexistent/folder"]);
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy_tree(&path, &target);
        } else {
            fs::write(&target, fs::read(&path).unwrap()).unwrap();
        }
    }
}
