//! Loads that were not what was asked for, and what the verdict says of them.

use crate::machine::codes;
use crate::program::{bench, bench_args, start};
use crate::servers::{config, emulator};
use std::process::Command;
use tailbound_clock::Dur;
use tailbound_emulator::{Config, Faults};

/// A server that takes `seats` at once and needs `step_ms` a token.
fn narrow(seats: u32, step_ms: u64) -> Config {
    let mut config = config(step_ms);
    config.engine.max_num_seqs = seats;
    config
}

fn cautions(result: &serde_json::Value) -> Vec<String> {
    let all = result["tailbound"]["verdict"]["cautions"].as_array().unwrap();
    all.iter().map(|c| c["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn asked_for_four_times_what_the_server_can_do() {
    // 5 seats, 10 ms a request of one token: 500 requests/s.
    let server = emulator(narrow(5, 10));
    let flags =
        "--request-rate 2000/s --num-prompts 1000 --random-input-len 8 --random-output-len 1 --format json --no-fail";
    let result = bench(&server.url(), flags).exits(0).json();
    assert_eq!(result["completed"], 1000);
    // On a machine so busy that the client could not send at that rate either, that is what is to be told.
    let told = [codes(&result), cautions(&result)].concat();
    assert!(told.iter().any(|code| code == "server_backlog" || code == "rate_short"), "{told:?}");
    // The server's rate, not the one asked for, and the wait in the headline.
    let rate = result["request_throughput"].as_f64().unwrap();
    assert!(rate < 600.0, "{rate} requests/s");
    let ttft = &result["tailbound"]["latency"]["ttft_scheduled_s"]["max"];
    assert!(ttft.as_f64().unwrap() > 0.5, "{ttft}");
}

#[test]
fn a_cap_that_shapes_an_open_loop_makes_it_invalid_and_the_wait_is_shown() {
    // 1 seat, 100 ms a request of 10 tokens: 10 requests/s.
    let server = emulator(narrow(1, 10));
    let flags =
        "--request-rate 100/s --max-concurrency 20 --num-prompts 60 --random-input-len 8 --random-output-len 10";
    let ended = bench(&server.url(), &format!("{flags} --format json")).exits(3);
    let result = ended.json();
    assert!(codes(&result).contains(&"cap_shaped_the_load".to_owned()), "{:?}", codes(&result));
    let latency = &result["tailbound"]["latency"];
    let (write, arrival) = (&latency["ttft_s"]["max"], &latency["ttft_scheduled_s"]["max"]);
    assert!(
        arrival.as_f64().unwrap() > write.as_f64().unwrap() + 2.0,
        "{arrival} from arrival, {write} from the write"
    );
    let queue = latency["client_queue_s"]["max"].as_f64().unwrap();
    assert!(queue > 2.0, "{queue} s in the client's queue");
    assert_eq!(result["tailbound"]["concurrency"]["peak"], 20);
}

#[test]
fn a_client_without_a_cpu_says_that_it_was_the_bottleneck() {
    if Command::new("taskset").args(["-c", "0", "nice", "true"]).status().is_err() {
        return eprintln!("skipped: there is no taskset here");
    }
    let server = emulator(config(5));
    // Three busy loops on the core that the client has to share with them.
    let mut hogs: Vec<_> = (0..3)
        .map(|_| {
            Command::new("taskset")
                .args(["-c", "0", "timeout", "20", "sh", "-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        })
        .collect();
    let flags = "--request-rate 400/s --num-prompts 120 --random-input-len 8 --random-output-len 10 --format json";
    let mut starved = Command::new("taskset");
    starved
        .args(["-c", "0", "nice", "-n", "2", env!("CARGO_BIN_EXE_tailbound")])
        .args(bench_args(&server.url(), flags));
    let ended = start(starved).ended();
    for hog in &mut hogs {
        // `timeout` ends its loop with itself.
        let _ = Command::new("kill").arg(hog.id().to_string()).status();
        let _ = hog.wait();
    }
    let ended = ended.exits(3);
    let told = codes(&ended.json());
    let own = ["sends_late", "rate_short", "client_saturated", "reads_shared", "reader_late"];
    assert!(told.iter().any(|code| own.contains(&code.as_str())), "{told:?}");
    assert!(!told.contains(&"server_errors".to_owned()), "{told:?}");
}

#[test]
fn the_reason_stands_in_the_report_and_no_fail_gives_0_back() {
    let server = emulator(narrow(1, 5));
    let flags = "--request-rate 200/s --max-concurrency 2 --num-prompts 20 --random-input-len 8 --random-output-len 4";
    let ended = bench(&server.url(), flags).exits(3);
    assert_eq!(ended.line("Verdict:"), "INVALID");
    assert!(ended.stdout.contains("[cap_shaped_the_load]") && ended.stdout.contains("mend: "), "{}", ended.stdout);
    bench(&server.url(), &format!("{flags} --no-fail")).exits(0);
}

#[test]
fn lateness_in_the_report_is_the_lateness_that_is_judged() {
    let server = emulator(config(2));
    let flags =
        "--request-rate 400/s --num-prompts 100 --random-input-len 8 --random-output-len 2 --format json --no-fail";
    let result = bench(&server.url(), flags).exits(0).json();
    let late = result["tailbound"]["latency"]["lateness_s"]["nearest_rank"]["p99"].as_f64().unwrap();
    let reasons = result["tailbound"]["verdict"]["reasons"].as_array().unwrap();
    match reasons.iter().find(|r| r["code"] == "sends_late") {
        Some(reason) => {
            let judged = reason["figures"]["lateness_p99_ms"].as_f64().unwrap();
            // A connect that begins is a little later than the moment it was decided on.
            assert!((late * 1e3 - judged).abs() < judged * 0.5 + 1.0, "{late} s shown, {judged} ms judged");
        }
        None => assert!(late < 1.5e-3, "{late} s late, and not a word of it"),
    }
}

#[test]
fn errors_beyond_the_allowed_share_are_counted_by_cause() {
    let faults = Faults { error_rate: 0.3, cut_rate: 0.3, ..Faults::default() };
    let server = emulator(Config { faults, ..config(2) });
    let flags = "--num-prompts 40 --random-input-len 8 --random-output-len 6";
    let ended = bench(&server.url(), flags).exits(3);
    assert!(ended.stdout.contains("[server_errors]"), "{}", ended.stdout);
    assert!(ended.stdout.contains("HTTP status 50"), "{}", ended.stdout);
    assert!(ended.stdout.contains("closed by the server in the middle"), "{}", ended.stdout);
    let (good, bad): (u32, u32) =
        (ended.line("Successful requests:").parse().unwrap(), ended.line("Failed requests:").parse().unwrap());
    assert!(good > 0 && bad > 0 && good + bad == 40, "{good} + {bad}");
    let allowed = bench(&server.url(), &format!("{flags} --max-error-share 1 --format json --no-fail")).exits(0).json();
    assert!(!codes(&allowed).contains(&"server_errors".to_owned()));
}

#[test]
fn an_objective_that_is_missed_is_no_fault_of_the_run() {
    let server = emulator(config(5));
    let flags = "--max-concurrency 1 --num-prompts 8 --random-input-len 8 --random-output-len 4 --format json";
    let met = bench(&server.url(), &format!("{flags} --goodput ttft:10s tpot:1s e2el:20s --no-fail")).exits(0).json();
    assert_eq!(met["tailbound"]["goodput"]["attainment"], 1.0);
    let ended = bench(&server.url(), &format!("{flags} --goodput e2el:1"));
    let missed = ended.json();
    assert_eq!((&missed["request_goodput"], &missed["tailbound"]["goodput"]["met"]), (&0.0.into(), &false.into()));
    // A busy machine may have spoiled the run besides.
    let code = if missed["tailbound"]["verdict"]["valid"] == true { 99 } else { 3 };
    ended.exits(code);
}

#[test]
fn time_outs_end_what_a_server_leaves_hanging() {
    let stalls = Faults { stall_rate: 1.0, stall: Dur::from_secs(20), ..Faults::default() };
    let server = emulator(Config { faults: stalls, ..config(2) });
    let flags = "--num-prompts 3 --random-input-len 8 --random-output-len 8";
    let gap = bench(&server.url(), &format!("{flags} --gap-timeout 200ms")).exits(3);
    assert_eq!(gap.line("Failed requests:"), "3");
    assert!(gap.stdout.contains("timed out"), "{}", gap.stdout);
    let whole = bench(&server.url(), &format!("{flags} --timeout 300ms")).exits(3);
    assert_eq!(whole.line("Failed requests:"), "3");

    let late = Faults { slow_first_byte_rate: 1.0, slow_first_byte: Dur::from_secs(20), ..Faults::default() };
    let server = emulator(Config { faults: late, ..config(2) });
    let first = bench(&server.url(), &format!("{flags} --first-token-timeout 200ms")).exits(3);
    assert_eq!(first.line("Failed requests:"), "3");
    assert!(first.stdout.contains("[nothing_completed]"), "{}", first.stdout);
}

#[test]
fn a_duration_ends_the_sending() {
    let server = emulator(config(2));
    let flags =
        "--duration 400ms --request-rate 100/s --random-input-len 8 --random-output-len 2 --format json --no-fail";
    let result = bench(&server.url(), flags).exits(0).json();
    let (sent, seconds) = (result["completed"].as_u64().unwrap(), result["duration"].as_f64().unwrap());
    assert!((15..80).contains(&sent), "{sent} requests in {seconds} s");
    assert_eq!(result["failed"], 0);
}
