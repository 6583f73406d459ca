//! The server's own view of a run: against the emulator's metrics, and against servers that answer with anything.

use crate::program::{KEY, bench, pause, run, wait_for};
use crate::servers::{answering, config, emulator, nobody, respond};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tailbound_clock::Dur;
use tailbound_engine::Speculation;

/// Long enough for two looks within the run.
const LONG: &str = "--random-input-len 32 --random-output-len 20 --max-concurrency 4 --num-prompts 400 --duration 2500ms --no-fail \
                    --disable-tqdm";
const SHORT: &str = "--random-input-len 8 --random-output-len 2 --num-prompts 4 --no-fail --disable-tqdm";

fn view(result: &Value) -> &Value {
    &result["tailbound"]["server_metrics"]
}

#[test]
fn the_emulators_counters_are_the_runs_and_a_folder_gives_them_back() {
    let (server, folder) = (emulator(config(4)), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    let flags = format!("{LONG} --num-warmups 3 --format json --save-detailed --run-dir {}", dir.display());
    let result = bench(&server.url(), &flags).exits(0).json();
    let summary = server.stop().unwrap();
    let [told] = view(&result)["endpoints"].as_array().unwrap().as_slice() else { panic!("{}", view(&result)) };
    assert_eq!((&told["system"], &told["restarts"], &told["missed"]), (&"vLLM".into(), &0.into(), &0.into()));
    let scrapes = told["scrapes"].as_u64().unwrap();
    assert!(scrapes >= 4, "before, twice within, and after: {scrapes}");
    let grown = |name: &str| told["counters"][name]["growth"].as_f64().unwrap();
    assert_eq!(grown("finished_requests"), summary.requests as f64);
    // Warm-ups are the server's too: two tokens more for each of them than for the measured.
    let measured = result["total_output_tokens"].as_f64().unwrap();
    assert_eq!(grown("generated_tokens"), measured + 3.0 * 20.0);
    assert_eq!(grown("prompt_tokens"), result["total_input_tokens"].as_f64().unwrap() + 3.0 * 32.0);
    for (name, at_most) in [("running", 4.0), ("kv_use", 1.0)] {
        let most = told["gauges"][name]["max"].as_f64().unwrap();
        assert!(most > 0.0 && most <= at_most, "{name}: {most}");
    }
    let ttft = &view(&result)["ttft_s"];
    assert_eq!(ttft["server"]["n"].as_f64(), Some(summary.requests as f64));
    assert_eq!(ttft["here"]["n"].as_u64(), Some(summary.requests));
    assert_ne!(ttft["gap"], "other_requests");
    let over_time = &told["over_time"];
    assert_eq!(over_time["at_s"].as_array().unwrap().len() as u64, scrapes);
    assert!(over_time["at_s"][0].as_f64().unwrap() < 0.0, "the first look is before the load: {over_time}");
    assert_eq!(over_time["waiting"].as_array().unwrap().len() as u64, scrapes);

    let again = run(&["report", dir.to_str().unwrap(), "--format", "json"]).json();
    assert_eq!(view(&again), view(&result));
    let text = run(&["report", dir.to_str().unwrap()]);
    for line in ["Requests running, mean / max:", "KV cache in use, mean / max:", "TTFT p99, by it / here (ms):"] {
        assert_ne!(text.line(line), "n/a");
    }
    run(&["verify", dir.to_str().unwrap()]).exits(0);
    let page = folder.path().join("page.html");
    run(&["report", dir.to_str().unwrap(), "--no-fail", "--html", page.to_str().unwrap()]).exits(0);
    let page = std::fs::read_to_string(page).unwrap();
    for title in ["Requests at the server, as it says", "KV cache in use", "by two clocks"] {
        assert!(page.contains(title), "{title}");
    }
}

#[test]
fn accepted_drafts_are_the_servers_count() {
    let mut config = config(1);
    config.engine.speculation = Some(Speculation { tokens: 2, acceptance: 0.5, draft_time: Dur::ZERO });
    let server = emulator(config);
    let result = bench(
        &server.url(),
        "--random-input-len 8 --random-output-len 64 --num-prompts 4 --no-fail --disable-tqdm --format json",
    )
    .exits(0)
    .json();
    server.stop().unwrap();
    let told = &view(&result)["endpoints"][0];
    let grown = |name: &str| told["counters"][name]["growth"].as_f64();
    assert_eq!(result["spec_decode_draft_tokens"].as_f64(), grown("draft_tokens"));
    assert_eq!(result["spec_decode_accepted_tokens"].as_f64(), grown("accepted_tokens"));
    let share = told["acceptance_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
}

#[test]
fn what_is_not_wanted_is_not_read() {
    let server = emulator(config(1));
    let result = bench(&server.url(), &format!("{SHORT} --format json --no-server-metrics")).exits(0).json();
    assert_eq!(view(&result), &Value::Null);
    let wrong = |flags: &str, says: &str| drop(bench(&server.url(), flags).refuses(2, &[says]));
    wrong("--server-metrics ftp://x", "--server-metrics");
    wrong("--no-server-metrics --server-metrics http://x", "--no-server-metrics");
    wrong("--server-metrics http://me:sk-secret@x/metrics", "(hidden)");
    server.stop().unwrap();
}

/// Writes what it can of an answer without an end.
fn for_ever(stream: &mut TcpStream, piece: &[u8], pieces: u64) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n");
    for _ in 0..pieces {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

#[test]
fn what_is_no_page_of_metrics_is_said_once_and_costs_nothing() {
    let server = emulator(config(1));
    let line = b"vllm:num_requests_running 1\n";
    let html = answering(|_, s| respond(s, "200 OK", "text/html", "<!doctype html><title>Welcome</title>"));
    let missing = answering(|_, s| respond(s, "404 Not Found", "application/json", "{}"));
    let moved = answering(|_, s| respond(s, "301 Moved Permanently", "text/plain", ""));
    let strange = answering(|_, s| respond(s, "200 OK", "text/plain", "up 1\n"));
    let cut = answering(|_, s| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nvllm:num_requests_running 1\n");
    });
    let gzip = answering(|_, s| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 12\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff");
    });
    let huge = answering(|_, s| for_ever(s, &b"vllm:num_requests_running 1\n".repeat(4096), 1000));
    let trickle = answering(|_, s| {
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n");
        while s.write_all(b"#").is_ok() {
            pause();
        }
    });
    let silent = answering(|_, s| drop(s.read(&mut [0])));
    let all = [
        (nobody(), "connect"),
        (html, "line 1 is not in Prometheus' format"),
        (missing, "status 404"),
        (moved, "status 301"),
        (strange, "no figure in it is known"),
        (cut, "hung up in the middle"),
        (gzip, "compressed"),
        (huge, "longer than 8388608 bytes"),
        (trickle, "nothing came in time"),
        (silent, "nothing came in time"),
    ];
    assert!(line.len() * 4096 * 1000 > 100_000_000);
    let urls: Vec<&str> = all.iter().map(|(url, _)| url.as_str()).collect();
    let ended = bench(&server.url(), &format!("{SHORT} --server-metrics {}", urls.join(" "))).exits(0);
    server.stop().unwrap();
    for (url, says) in &all {
        let about: Vec<&str> = ended.stdout.lines().filter(|l| l.contains(url.as_str())).collect();
        let [note] = about.as_slice() else { panic!("{about:?} about {url} in {}", ended.stdout) };
        assert!(note.starts_with("note: no server metrics from") && note.contains(says), "{says}: {note}");
    }
    assert!(ended.line("Metrics of:").starts_with("vLLM, "), "the emulator's are read all the same");
}

#[test]
fn a_server_that_falls_silent_or_begins_again_is_seen() {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    let server = emulator(config(4));
    let restarted = answering(|_, s| {
        let tokens = [500, 700, 3].get(LOOKS.fetch_add(1, Ordering::Relaxed) as usize).copied().unwrap_or(40);
        respond(s, "200 OK", "text/plain", &format!("vllm:generation_tokens_total{{engine=\"0\"}} {tokens}\n"));
    });
    let dying = answering(|_, s| match ANSWERS.fetch_add(1, Ordering::Relaxed) {
        0 => respond(s, "200 OK", "text/plain", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\n"),
        _ => respond(s, "500 Internal Server Error", "text/plain", ""),
    });
    let ended = bench(&server.url(), &format!("{LONG} --server-metrics {restarted} {dying} --format json")).exits(0);
    server.stop().unwrap();
    let result = ended.json();
    let all = view(&result)["endpoints"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    let (restarted, dying) = (&all[1], &all[2]);
    assert_eq!((&restarted["restarts"], &restarted["missed"]), (&1.into(), &0.into()), "{restarted}");
    assert_eq!(restarted["counters"]["generated_tokens"]["growth"].as_f64(), Some(200.0 + 40.0));
    assert_eq!((&dying["system"], &dying["scrapes"]), (&"DCGM".into(), &1.into()));
    assert!(dying["missed"].as_u64().unwrap() >= 2, "{dying}");
}

#[test]
fn a_key_goes_to_the_server_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(String::new()));
    let kept = heard.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let n = stream.read(&mut bytes).unwrap_or(0);
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            respond(&mut stream, "200 OK", "text/plain", "DCGM_FI_DEV_GPU_UTIL 50\n");
        }
    });
    let server = emulator(config(1));
    bench(&server.url(), &format!("{SHORT} --header x-mine=1 --server-metrics {other}/metrics?all=1")).exits(0);
    server.stop().unwrap();
    wait_for("a look", || !heard.lock().unwrap().is_empty());
    let heard = heard.lock().unwrap();
    assert!(heard.starts_with("GET /metrics?all=1 HTTP/1.1\r\n"), "{heard}");
    for secret in [KEY, "x-mine"] {
        assert!(!heard.to_lowercase().contains(secret), "{heard}");
    }
}
