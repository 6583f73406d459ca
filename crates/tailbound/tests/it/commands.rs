//! The commands beside `bench serve`, and what is said of the run before it is made.

use crate::program::{KEY, bench, command, run, start, wait_for};
use crate::servers::{config, emulator, nobody};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tailbound_emulator::Config;

#[test]
fn doctor_finds_a_good_server_good() {
    let server = emulator(Config { api_key: Some(KEY.into()), ..config(20) });
    let ended = run(&["doctor", &server.url()]).exits(0);
    assert_eq!(ended.stderr, "");
    for (what, found) in [
        ("reachable", "answers in"),
        ("key", "accepted"),
        ("model", "tiny (listed: tiny)"),
        ("answers", "/v1/chat/completions works"),
        ("usage", "16 output tokens"),
    ] {
        let line = ended
            .stdout
            .lines()
            .find(|l| l.split_whitespace().nth(1) == Some(what))
            .unwrap_or_else(|| panic!("{what}"));
        assert!(line.starts_with("ok ") && line.contains(found), "{line}");
    }
}

#[test]
fn doctor_names_a_fault_and_its_mend() {
    let url = nobody();
    let ended = run(&["doctor", &url]).exits(1);
    assert!(
        ended.stdout.contains("fault    reachable") && ended.stdout.contains("mend: start the server"),
        "{}",
        ended.stdout
    );

    let server = emulator(Config { api_key: Some("sk-another".into()), ..config(1) });
    let ended = run(&["doctor", &server.url()]).exits(1);
    assert!(ended.stdout.contains("fault    key") && ended.stdout.contains("OPENAI_API_KEY"), "{}", ended.stdout);

    let server = emulator(config(1));
    let ended = run(&["doctor", &server.url(), "--model", "tinny"]).exits(1);
    assert!(ended.stdout.contains("warning  model") && ended.stdout.contains("fault    answers"), "{}", ended.stdout);
}

#[test]
fn doctor_alone_checks_this_machine() {
    let ended = run(&["doctor"]).exits(0);
    assert!(ended.stdout.contains("open files") && ended.stdout.contains("scheduler"), "{}", ended.stdout);
}

#[test]
fn the_emulator_lists_its_profiles_and_serves_until_it_is_told_to_stop() {
    let list = run(&["emulate", "--list-profiles"]).exits(0);
    assert!(list.stdout.lines().any(|l| l.starts_with("llama-3.1-8b-h100 ")), "{}", list.stdout);

    let mut server = command(&["emulate", "--port", "0", "--step-time", "1ms", "--served-model-name", "tiny"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.strip_prefix("listening on ").unwrap().trim();
    let ended = bench(url, "--num-prompts 2 --random-input-len 8 --random-output-len 2 --no-fail").exits(0);
    assert_eq!(ended.line("Total generated tokens:"), "4");
    assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    wait_for("the emulator to end", || server.try_wait().unwrap().is_some());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn an_emulator_that_cannot_listen_says_where() {
    let server = emulator(config(1));
    let port = server.addr().port().to_string();
    run(&["emulate", "--port", &port]).refuses(1, &["127.0.0.1", &port]);
    run(&["emulate", "--error-rate", "2"]).refuses(2, &["error_rate"]);
    run(&["emulate", "--truth-log", "/nonexistent/truth.jsonl", "--port", "0"])
        .refuses(1, &["/nonexistent/truth.jsonl"]);
}

#[test]
fn a_dry_run_tells_the_plan_and_sends_nothing() {
    let server = emulator(config(1));
    let flags =
        "--dry-run --num-prompts 10 --request-rate 5/s --max-concurrency 4 --num-warmups 2 --random-input-len 8";
    let first = bench(&server.url(), flags).exits(0);
    for (name, value) in
        [("requests", "10"), ("warm-ups", "2"), ("concurrency cap", "4"), ("model", "tiny"), ("data set", "random")]
    {
        assert_eq!(first.line(name), value);
    }
    assert!(first.line("target").starts_with(&server.url()), "{}", first.stdout);
    let hash = first.line("plan").to_owned();
    assert_eq!(hash.len(), 64);
    assert_eq!(bench(&server.url(), flags).exits(0).line("plan"), hash, "the same plan has the same hash");
    assert_ne!(bench(&server.url(), &format!("{flags} --seed 1")).exits(0).line("plan"), hash);
    assert_eq!(server.stop().unwrap().requests, 0);
    // With a model named, nobody need be there.
    bench(&nobody(), "--dry-run --model tiny --num-prompts 3 --skip-tokenizer-init").exits(0);
}

#[test]
fn figures_are_explained_on_demand() {
    let server = emulator(config(1));
    let flags = "--num-prompts 3 --random-input-len 8 --random-output-len 4 --no-fail";
    let explained = bench(&server.url(), &format!("{flags} --explain")).exits(0).stdout;
    for formula in [
        "(last token - first token) / (n - 1)",
        "first token - first byte of the request written",
        "input tokens of successful requests / duration",
    ] {
        let words: Vec<&str> = explained.split_whitespace().collect();
        assert!(words.join(" ").contains(formula), "`{formula}` is not in {explained}");
    }
    assert!(!bench(&server.url(), flags).exits(0).stdout.contains("(last token - first token)"));
}

#[test]
fn help_is_grouped_and_shows_how() {
    let help = run(&["bench", "serve", "-h"]).exits(0);
    for heading in ["Target:", "Load:", "Payload:", "Data set:", "Reporting:", "Client:", "Examples:", "Exit codes:"] {
        assert!(help.stdout.lines().any(|l| l.starts_with(heading)), "{heading}");
    }
    assert!(!help.stdout.contains("--use-beam-search"), "what is refused is not offered");
    assert!(!help.stdout.contains(KEY) && help.stderr.is_empty());
    for command in ["bench", "emulate", "demo", "doctor", "report"] {
        assert!(run(&["--help"]).exits(0).stdout.contains(command), "{command}");
        run(&[command, "--help"]).exits(0);
    }
    assert!(run(&["--version"]).exits(0).stdout.starts_with("tailbound "));
    let bare = start(command::<&str>(&[])).ended();
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage:"), "{bare:?}");
}

#[test]
fn colour_is_for_those_who_want_it() {
    let server = emulator(config(1));
    let flags = "--num-prompts 2 --random-input-len 8 --random-output-len 2 --no-fail";
    let escape = '\x1b';
    assert!(!bench(&server.url(), flags).exits(0).stdout.contains(escape), "no terminal, no colour");
    assert!(bench(&server.url(), &format!("{flags} --color always")).exits(0).stdout.contains(escape));
    let mut forced = command(&["doctor"]);
    forced.env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1");
    assert!(!start(forced).ended().stdout.contains(escape), "NO_COLOR wins");
}
