//! Runs that are stopped, and what is left of them.

use crate::program::{Running, bench, bench_args, command, run, start, wait_for};
use crate::servers::{config, emulator, truthful};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use tailbound_emulator::Handle;

/// A run that would take 100 s, of which at least 20 requests have ended.
fn under_way(server: &Handle, folder: &Path, more: &str) -> Running {
    let run = folder.join("run");
    let flags = format!(
        "--num-prompts 10000 --request-rate 100/s --random-input-len 8 --random-output-len 8 --run-dir {} {more}",
        run.display()
    );
    let running = start(command(&bench_args(&server.url(), &flags)));
    wait_for("requests to end", || std::fs::metadata(run.join("events.log")).is_ok_and(|m| m.len() > 4_000));
    running
}

#[test]
fn an_interrupt_drains_and_reports_everything() {
    let (server, folder) = (emulator(config(5)), tempfile::tempdir().unwrap());
    let running = under_way(&server, folder.path(), "--format json --no-fail");
    running.signal("INT");
    let ended = running.ended().exits(130);
    assert!(ended.stderr.contains("interrupted: nothing more is sent"), "{}", ended.stderr);
    let result = ended.json();
    let requests = &result["tailbound"]["requests"];
    assert_eq!(
        (&result["tailbound"]["interrupted"], &result["failed"], &requests["cancelled"]),
        (&true.into(), &0.into(), &0.into())
    );
    assert!(result["completed"].as_u64().unwrap() >= 10, "{requests}");

    // The folder tells the same story.
    let again = run(&["report", folder.path().join("run").to_str().unwrap(), "--format", "json"]).exits(130).json();
    for key in ["completed", "total_output_tokens", "duration", "mean_ttft_ms", "date", "latencies"] {
        assert_eq!(again[key], result[key], "{key}");
    }
}

#[test]
fn the_report_of_an_interrupted_run_says_so() {
    let (server, folder) = (emulator(config(5)), tempfile::tempdir().unwrap());
    let running = under_way(&server, folder.path(), "");
    running.signal("INT");
    let ended = running.ended().exits(130);
    assert!(ended.stdout.contains("interrupted"), "{}", ended.stdout);
}

#[test]
fn a_second_interrupt_ends_at_once() {
    // A token a second: draining would take a minute.
    let (server, folder) = (emulator(config(1_000)), tempfile::tempdir().unwrap());
    let flags = "--num-prompts 20 --random-input-len 8 --random-output-len 60 --grace 10min --format json";
    let log = folder.path().join("run");
    let running = start(command(&bench_args(&server.url(), &format!("{flags} --run-dir {}", log.display()))));
    wait_for("the run to begin", || log.join("events.log").exists());
    tailbound_os::sleep::until(tailbound_os::clock::now() + tailbound_clock::Dur::from_ms(300));
    running.signal("INT");
    tailbound_os::sleep::until(tailbound_os::clock::now() + tailbound_clock::Dur::from_ms(300));
    running.signal("INT");
    let result = running.ended().exits(130).json();
    assert_eq!((&result["completed"], &result["tailbound"]["requests"]["cancelled"]), (&0.into(), &20.into()));
}

#[test]
fn grace_bounds_the_draining() {
    let (server, folder) = (emulator(config(1_000)), tempfile::tempdir().unwrap());
    let flags = "--num-prompts 20 --random-input-len 8 --random-output-len 60 --grace 200ms --format json";
    let log = folder.path().join("run");
    let running = start(command(&bench_args(&server.url(), &format!("{flags} --run-dir {}", log.display()))));
    wait_for("the run to begin", || log.join("events.log").exists());
    tailbound_os::sleep::until(tailbound_os::clock::now() + tailbound_clock::Dur::from_ms(300));
    running.signal("INT");
    let result = running.ended().exits(130).json();
    assert_eq!(result["tailbound"]["requests"]["cancelled"], 20);
}

#[test]
fn a_polite_kill_has_its_own_exit_code() {
    let (server, folder) = (emulator(config(5)), tempfile::tempdir().unwrap());
    let running = under_way(&server, folder.path(), "--no-fail");
    running.signal("TERM");
    let ended = running.ended().exits(143);
    assert!(ended.stdout.contains("Verdict:"), "{}", ended.stdout);
}

#[test]
fn after_a_kill_every_finished_request_is_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("truth.jsonl");
    let server = truthful(config(5), &log);
    let running = under_way(&server, folder.path(), "--request-id-prefix it-");
    running.signal("KILL");
    assert_eq!(running.ended().code, None);
    server.stop().unwrap();

    let dir = folder.path().join("run");
    let dir = dir.to_str().unwrap();
    let ended = run(&["report", dir, "--format", "json"]).exits(130);
    assert!(ended.stderr.contains("the run ended before its report"), "{}", ended.stderr);
    let result = ended.json();
    assert_eq!(result["tailbound"]["interrupted"], true);

    // What the server had finished, less what was still on its way when the client died.
    let truth = std::fs::read_to_string(&log).unwrap();
    let finished: BTreeSet<String> = truth
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|row| row["finish"] == "length")
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    let (kept, served) = (result["completed"].as_u64().unwrap() as usize, finished.len());
    assert!(kept >= 10 && kept <= served && served - kept <= 5, "{kept} kept of {served} served");
    assert_eq!(result["total_output_tokens"].as_u64().unwrap() as usize, kept * 8);

    let text = run(&["report", dir, "--no-fail"]);
    assert_eq!(text.line("Successful requests:"), kept.to_string());
}

#[test]
fn a_log_torn_in_its_last_record_keeps_the_rest() {
    let (server, folder) = (emulator(config(1)), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    let flags =
        format!("--num-prompts 10 --random-input-len 8 --random-output-len 2 --no-fail --run-dir {}", dir.display());
    bench(&server.url(), &flags).exits(0);
    let dir = dir.to_str().unwrap();
    assert_eq!(run(&["report", dir, "--no-fail"]).exits(0).line("Successful requests:"), "10");

    let log = format!("{dir}/events.log");
    let whole = std::fs::read(&log).unwrap();
    for cut in [whole.len() - 1, whole.len() * 3 / 4] {
        std::fs::write(&log, &whole[..cut]).unwrap();
        let ended = run(&["report", dir]).exits(130);
        assert!(ended.stderr.contains("ended before its report"), "{}", ended.stderr);
        let kept: u32 = ended.line("Successful requests:").parse().unwrap();
        assert!((1..=10).contains(&kept), "{kept} kept of {cut} bytes");
    }
    std::fs::write(&log, &whole[..4]).unwrap();
    run(&["report", dir]).refuses(1, &["events.log"]);

    // A folder that holds a run is never written over.
    bench(&server.url(), &flags).refuses(2, &["--run-dir", "already holds a run"]);
    assert_eq!(std::fs::read(&log).unwrap().len(), 4);
    run(&["report", folder.path().to_str().unwrap()]).refuses(1, &["events.log"]);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let server = emulator(config(1));
    let flags = "--num-prompts 2 --random-input-len 8 --random-output-len 2 --no-fail --explain";
    for args in [bench_args(&server.url(), flags), vec!["bench".into(), "serve".into(), "--help".into()]] {
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // `| head -1`: one line is read, then the pipe is closed.
        let mut line = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{errors}");
        assert!(!line.is_empty() && !errors.contains("panicked") && !errors.contains("error"), "{errors}");
    }
}
