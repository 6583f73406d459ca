//! Comparisons from the command to the sentence: in virtual time, of servers, of commands, of saved runs.

use crate::program::{Ended, command, run, start, wait_for};
use crate::servers::{config, emulator};
use serde_json::Value;
use std::path::Path;

/// `tailbound bench compare` and the flags, which are split at blanks.
fn compare(flags: &str) -> Ended {
    run(&args(flags))
}

fn args(flags: &str) -> Vec<String> {
    format!("bench compare {flags}").split_whitespace().map(str::to_owned).collect()
}

/// A port at which nothing listens.
fn free_port() -> u16 {
    let url = crate::servers::nobody();
    url.rsplit(':').next().unwrap().parse().unwrap()
}

const VIRTUAL: &str =
    "--request-rate 8 --random-input-len 200 --random-output-len 30 --num-prompts 400 --replicates 500";

fn primary(result: &Value) -> &Value {
    &result["comparisons"][0]["contrasts"][0]["findings"][0]
}

#[test]
fn two_profiles_are_told_apart_in_virtual_time_and_the_gate_says_so() {
    let flags = "old=profile:llama-3.1-8b-h200 new=profile:llama-3.1-8b-h100 --primary mean_tpot --tolerance 5%";
    let result = compare(&format!("{flags} {VIRTUAL} --format json")).exits(99).json();
    let found = primary(&result);
    assert_eq!(
        (&found["metric"], &found["claim"], &found["better"]),
        (&"mean_tpot".into(), &"higher".into(), &false.into())
    );
    assert!(found["ratio"]["low"].as_f64().unwrap() > 1.05, "{found}");
    let comparison = &result["comparisons"][0];
    assert_eq!(comparison["contrasts"][0]["pairing"], "requests");
    assert_eq!(comparison["gate"]["passes"], false);
    let orders = |side: usize| -> Vec<u64> {
        comparison["sides"][side]["runs"].as_array().unwrap().iter().map(|r| r["order"].as_u64().unwrap()).collect()
    };
    assert_eq!((orders(0), orders(1)), (vec![1, 4, 5, 8], vec![2, 3, 6, 7]));
    let ended = compare(&format!("{flags} {VIRTUAL}")).exits(99);
    assert!(
        ended.stdout.contains("new's mean TPOT is ") && ended.stdout.contains("% higher at 8 requests/s than old's"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("gate FAILED: mean TPOT is more than 5 % worse"), "{}", ended.stdout);
}

#[test]
fn an_engine_is_the_same_as_itself_and_the_gate_passes() {
    let flags = "a=profile:llama-3.1-8b-h100 b=profile:llama-3.1-8b-h100 --tolerance 1% --prove --primary mean_ttft";
    let result = compare(&format!("{flags} {VIRTUAL} --format json")).exits(0).json();
    assert_eq!(
        (&primary(&result)["claim"], &result["comparisons"][0]["gate"]["passes"]),
        (&"same".into(), &true.into())
    );
}

#[test]
fn servers_take_turns_their_runs_are_kept_and_say_the_same_again() {
    let (slow, fast) = (emulator(config(6)), emulator(config(3)));
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("kept");
    let flags = format!(
        "slow={} fast={} --rounds 3 --num-prompts 120 --max-concurrency 4 --random-input-len 8 --random-output-len 8 --primary mean_tpot \
         --replicates 500 --agreement --no-fail --format json --output-dir {}",
        slow.url(),
        fast.url(),
        dir.display()
    );
    let result = compare(&flags).exits(0).json();
    let told = primary(&result);
    assert!(told["ratio"]["value"].as_f64().unwrap() < 0.8, "{told}");
    let agreement = &result["comparisons"][0]["contrasts"][0]["agreement"];
    assert_eq!(agreement["pairs"], 120, "{agreement}");
    let kept: Value = serde_json::from_slice(&std::fs::read(dir.join("comparison.json")).unwrap()).unwrap();
    assert_eq!(kept, result);
    // A machine that is busy may have made a run INVALID; then nothing may be claimed.
    let valid = result["comparisons"][0]["valid"].as_bool().unwrap();
    assert_eq!(told["claim"], if valid { "lower" } else { "withheld" });

    // The same runs, read back.
    let saved = format!(
        "slow={0}/slow fast={0}/fast --primary mean_tpot --replicates 500 --no-fail --format json",
        dir.display()
    );
    let again = compare(&saved).exits(0).json();
    assert_eq!((&primary(&again)["ratio"], &primary(&again)["claim"]), (&told["ratio"], &told["claim"]));
    assert_eq!(again["comparisons"][0]["contrasts"][0]["pairing"], "requests");
    let report =
        run(&["report", dir.join("slow/round-2").to_str().unwrap(), "--no-fail", "--format", "json"]).exits(0).json();
    assert_eq!(report["completed"], 40);
    compare(&flags).refuses(2, &["--output-dir", "it holds something"]);
}

#[test]
fn an_invalid_run_is_shown_and_nothing_is_claimed() {
    let (good, bad) = (emulator(config(1)), emulator(config(1)));
    let url = bad.url();
    let folder = tempfile::tempdir().unwrap();
    let one = |name: &str, url: &str, extra: &str| {
        let dir = folder.path().join(name);
        let flags = format!(
            "--num-prompts 60 --random-input-len 8 --random-output-len 4 --run-dir {} --no-fail {extra}",
            dir.display()
        );
        crate::program::bench(url, &flags).exits(0);
        dir
    };
    let a = one("a", &good.url(), "");
    // A time limit nobody can keep: every request fails.
    let b = one("b", &url, "--timeout 1us");
    let flags = format!("a={} b={} --primary median_e2e --replicates 500", a.display(), b.display());
    let ended = compare(&flags).exits(3);
    assert!(ended.stdout.contains("INVALID round 1: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("nothing is claimed"), "{}", ended.stdout);
}

#[test]
fn servers_are_started_in_turn_on_one_port_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let binary = env!("CARGO_BIN_EXE_tailbound");
    let server = |name: &str, ms: u32| format!("{name}=cmd:{binary} emulate --port {port} --step-time {ms}ms");
    let dir = folder.path().join("kept");
    let rest = format!(
        "--rounds 3 --num-prompts 60 --max-concurrency 2 --random-input-len 8 --random-output-len 4 --replicates 500 --primary mean_e2e --no-fail \
         --format json --output-dir {}",
        dir.display()
    );
    let mut all = vec!["bench".to_owned(), "compare".to_owned(), server("slow", 8), server("fast", 2)];
    all.extend(rest.split_whitespace().map(str::to_owned));
    let result = run(&all).exits(0).json();
    assert!(primary(&result)["ratio"]["value"].as_f64().unwrap() < 0.8, "{result}");
    let logs = std::fs::read_dir(dir.join("logs")).unwrap().count();
    assert_eq!(logs, 6);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "a server is left");
}

#[test]
fn an_interrupt_ends_the_comparison_and_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let binary = env!("CARGO_BIN_EXE_tailbound");
    let dir = folder.path().join("kept");
    let side = |name: &str| format!("{name}=cmd:{binary} emulate --port {port} --step-time 5ms");
    let mut all = vec!["bench".to_owned(), "compare".to_owned(), side("a"), side("b")];
    let rest = format!(
        "--num-prompts 100000 --request-rate 50 --random-input-len 8 --random-output-len 4 --output-dir {}",
        dir.display()
    );
    all.extend(rest.split_whitespace().map(str::to_owned));
    let running = start(command(&all));
    let log = dir.join("a/round-1/events.log");
    wait_for("requests to end", || std::fs::metadata(&log).is_ok_and(|m| m.len() > 4_000));
    running.signal("INT");
    running.ended().exits(130);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "the server is left");
}

#[test]
fn mistakes_are_named_before_anything_is_sent() {
    compare("profile:llama-3.1-8b-h100").refuses(2, &[]);
    compare("profile:llama-3.1-8b-h100 http://127.0.0.1:1").refuses(2, &["of one kind"]);
    compare("nowhere/a nowhere/b").refuses(2, &["nowhere/a is not there"]);
    compare("a=profile:x b=profile:y --request-rate 1").refuses(2, &["x"]);
    compare("a=profile:x b=profile:y --alpha 0").refuses(2, &["--alpha 0"]);
    compare("a=profile:x b=profile:y --replicates 10").refuses(2, &["--replicates 10"]);
    compare("a=profile:x b=profile:y --agreement").refuses(2, &["--agreement"]);
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    compare(&format!("a={empty} b={empty}")).refuses(1, &["it holds no run"]);
    let file = folder.path().join("x.json");
    std::fs::write(&file, "{}").unwrap();
    let file = Path::new(&file).display();
    compare(&format!("a={file} b={file}")).refuses(1, &["no array `ttfts`"]).hints("--save-detailed");
}

#[test]
fn the_dry_run_prints_the_rounds_and_sends_nothing() {
    let ended =
        compare("a=http://127.0.0.1:1 b=http://127.0.0.1:2 --request-rate 5 --num-prompts 100 --dry-run").exits(0);
    let rounds: Vec<&str> = ended.stdout.lines().filter(|l| l.starts_with("round ")).collect();
    assert_eq!(rounds.len(), 4, "{}", ended.stdout);
    assert!(
        rounds[0].contains("a b, 25 requests each") && rounds[1].contains("b a, 25 requests each"),
        "{}",
        ended.stdout
    );
}
