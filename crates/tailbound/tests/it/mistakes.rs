//! Bad input: each mistake is one line that names the flag, the file and row, or the address; the exit code tells whose it is.

use crate::machine::codes;
use crate::program::{KEY, bench, bench_args, command, run, start};
use crate::servers::{answering, config, emulator, nobody, respond};
use std::io::{Read, Write};
use std::path::Path;
use tailbound_emulator::Config;

/// Wrong usage is noticed before anybody is asked: nobody listens here.
#[test]
fn wrong_usage_names_the_flag_and_asks_nobody() {
    let url = nobody();
    for (flags, part) in [
        ("--max-concurrency 0", "--max-concurrency 0: must be at least 1"),
        ("--max-concurrency -3", "--max-concurrency -3"),
        ("--request-rate -1", "--request-rate -1: must be greater than 0"),
        ("--request-rate 0", "--request-rate 0"),
        ("--request-rate nan", "--request-rate"),
        ("--request-rate 5/fortnight", "unknown unit `/fortnight`"),
        ("--burstiness -1 --request-rate 2", "--burstiness -1"),
        ("--num-prompts 0", "--num-prompts 0"),
        ("--num-prompts -1", "--num-prompts"),
        ("--num-prompts many", "--num-prompts"),
        ("--num-warmups -1", "--num-warmups -1"),
        ("--probe-request-rate -2", "--probe-request-rate -2"),
        ("--duration -3", "--duration"),
        ("--duration 3parsecs", "--duration"),
        ("--threads 0", "--threads"),
        ("--timeout never", "--timeout"),
        ("--ramp-up-strategy linear", "--ramp-up-start-rps"),
        ("--ramp-up-start-rps 1", "--ramp-up-strategy"),
        ("--ramp-up-strategy square", "--ramp-up-strategy"),
        ("--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 5 --request-rate 3", "--request-rate"),
        ("--ramp-up-strategy exponential --ramp-up-start-rps 0 --ramp-up-end-rps 5", "--ramp-up-start-rps 0"),
        ("--ramp-up-strategy linear --ramp-up-start-rps 5 --ramp-up-end-rps -5", "--ramp-up-end-rps -5"),
        ("--dataset-name sharegpt", "--dataset-name sharegpt needs --dataset-path"),
        ("--random-range-ratio 1.5", "--random-range-ratio"),
        ("--random-range-ratio wide", "--random-range-ratio"),
        ("--endpoint /v1/foo", "--endpoint /v1/foo"),
        ("--goodput ttft", "--goodput ttft"),
        ("--goodput speed:3", "--goodput speed:3"),
        ("--goodput ttft:-1", "--goodput ttft:-1"),
        ("--attainment 1.5", "--attainment 1.5"),
        ("--metadata nokey", "--metadata nokey: not of the form KEY=VALUE"),
        ("--header nokey", "--header nokey: not of the form KEY=VALUE"),
        ("--header bad(name)=1", "--header bad(name)"),
        ("--extra-body {broken", "--extra-body: not JSON"),
        ("--extra-body [1]", "--extra-body: not a JSON object"),
        ("--api-key-file /nonexistent/key", "--api-key-file /nonexistent/key"),
        ("--tokenizer-mode slow", "--tokenizer-mode slow is refused"),
        ("--http2 --header te=trailers", "\"te\": HTTP/2 does not allow it"),
        ("--api-key-env NO_SUCH_VARIABLE", "--api-key-env NO_SUCH_VARIABLE: the variable is not set"),
        ("--percentile-metrics ttft,speed", "--percentile-metrics speed"),
        ("--metric-percentiles 101", "--metric-percentiles 101"),
        ("--metric-percentiles half", "--metric-percentiles"),
        ("--save-result --result-dir /dev/null/results", "--result-dir /dev/null/results"),
        ("--cacert", "--cacert"),
    ] {
        bench(&url, flags).refuses(2, &[part]);
    }
}

#[test]
fn an_address_that_is_none_is_named_with_its_mend() {
    let args = ["bench", "serve", "--base-url", "localhost:8000"];
    run(&args).refuses(2, &["--base-url localhost:8000"]).hints("--base-url http://localhost:8000");
}

#[test]
fn what_is_misspelt_is_guessed() {
    let url = nobody();
    for (flags, part, guess) in [
        ("--max-concurency 3", "--max-concurency", "--max-concurrency"),
        ("--backend vlm", "--backend vlm", "did you mean vllm?"),
        ("--backend openai-chta", "--backend openai-chta", "openai-chat"),
        ("--dataset-name sharegp", "--dataset-name sharegp", "did you mean sharegpt?"),
        ("--dataset-name nonsense", "--dataset-name nonsense", "one of random, sharegpt"),
        ("--ramp-up-strategy square", "--ramp-up-strategy", "one of linear, exponential"),
    ] {
        bench(&url, flags).refuses(2, &[part]).hints(guess);
    }
    run(&["bench", "serv"]).refuses(2, &["serv"]).hints("serve");
    run(&["emulate", "--profile", "llama-9"]).refuses(2, &["--profile llama-9"]).hints("llama-3.1-8b-h100");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let url = nobody();
    for (flags, parts) in [
        ("--use-beam-search", &["--use-beam-search is refused"][..]),
        ("--hf-split train --plot-timeline", &["--hf-split is refused", "--plot-timeline is refused"]),
        ("--dataset-name random-mm", &["--dataset-name random-mm is refused", "multimodal"]),
        ("--backend openai-embeddings", &["--backend openai-embeddings is refused", "embeddings"]),
        ("--backend vllm-rerank", &["--backend vllm-rerank is refused"]),
        ("--backend openai-audio", &["--backend openai-audio is refused", "audio"]),
    ] {
        bench(&url, flags).refuses(2, parts);
    }
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_are_named_with_the_row_at_fault() {
    let server = emulator(config(1));
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{{\"prompt\":\"short\"}}\n{{\"prompt\":\"{}\"}}\n", "word ".repeat(300));
    for (name, data_set, text, parts) in [
        ("empty.json", "sharegpt", "[]", &["empty.json", "no conversations"][..]),
        ("empty.jsonl", "custom", "", &["empty.jsonl", "is empty"]),
        ("broken.json", "sharegpt", "[{\"conversations\":", &["broken.json"]),
        ("broken.jsonl", "custom", "{\"prompt\":\"a\"}\n{\"prompt\":\n", &["broken.jsonl", "line 2", "not JSON"]),
        ("field.jsonl", "custom", "{\"prompt\":\"a\"}\n{\"text\":\"b\"}\n", &["field.jsonl", "line 2", "\"prompt\""]),
        ("page.json", "sharegpt", "<html>not found</html>", &["page.json"]),
        ("empty.csv", "burstgpt", "", &["empty.csv"]),
        ("long.jsonl", "custom --disable-shuffle --max-model-len 300", &long, &["long.jsonl", "line 2", "300"]),
    ] {
        let path = file(folder.path(), name, text);
        bench(&server.url(), &format!("--num-prompts 2 --dataset-path {path} --dataset-name {data_set}"))
            .refuses(1, parts);
    }
    bench(&server.url(), "--dataset-name custom --dataset-path /nonexistent.jsonl").refuses(1, &["/nonexistent.jsonl"]);
    bench(&server.url(), "--dataset-name sharegpt --dataset-path /nonexistent.json")
        .refuses(1, &["/nonexistent.json", "no such file"])
        .hints("--dataset-name sample");
    bench(&server.url(), &format!("--dataset-name custom --dataset-path {}", folder.path().display()))
        .refuses(1, &[folder.path().to_str().unwrap()]);
    bench(&server.url(), "--tokenizer /nonexistent/tokenizer.json")
        .refuses(2, &["--tokenizer /nonexistent/tokenizer.json"]);
    let broken = file(folder.path(), "tokenizer.json", "{\"model\": 7}");
    bench(&server.url(), &format!("--tokenizer {broken}")).refuses(1, &["tokenizer.json"]);
}

#[test]
fn a_prompt_longer_than_the_model_is_told_before_the_run_or_by_the_server() {
    let server = emulator(config(1)); // contexts of 2,048 tokens
    bench(&server.url(), "--num-prompts 2 --random-input-len 200 --max-model-len 100")
        .refuses(2, &["--max-model-len 100", "200 tokens"]);
    let ended = bench(&server.url(), "--num-prompts 2 --random-input-len 3000").exits(3);
    assert!(ended.stdout.contains("HTTP status 400"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2048"), "the server's own words are missing: {}", ended.stdout);
}

#[test]
fn nobody_at_the_address() {
    let url = nobody();
    let address = url.trim_start_matches("http://");
    for flags in ["", "--model tiny", "--model tiny --tokenizer acme/tiny", "--model tiny --skip-tokenizer-init"] {
        bench(&url, flags).refuses(1, &["failed to connect", address]).hints("is the server up?");
    }
    bench("http://no-such-host.invalid:8000", "").refuses(1, &["no-such-host.invalid"]);
}

#[test]
fn a_server_that_comes_up_late_is_waited_for() {
    let address = nobody();
    let listen = address.trim_start_matches("http://").parse().unwrap();
    let flags = "--ready-check-timeout-sec 20 --num-prompts 2 --random-input-len 8 --random-output-len 2 --no-fail";
    let running = start(command(&bench_args(&address, flags)));
    tailbound_os::sleep::until(tailbound_os::clock::now() + tailbound_clock::Dur::from_ms(300));
    let _server = emulator(Config { listen, ..config(1) });
    assert_eq!(running.ended().exits(0).line("Successful requests:"), "2");
}

#[test]
fn a_server_that_is_broken_is_a_failed_run_with_its_reason() {
    const FLAGS: &str = "--model tiny --num-prompts 3 --random-input-len 8 --random-output-len 4";
    for (answer, words) in [
        (internal_error as fn(&str, &mut std::net::TcpStream), &["HTTP status 500", "out of memory"][..]),
        (web_page, &["not an event stream but a page: It works!"]),
        (cut_off, &["closed by the server in the middle"]),
        (error_first, &["the model is on fire"]),
        (no_tokens, &["3 x "]),
    ] {
        let url = answering(answer);
        let ended = bench(&url, FLAGS).exits(3);
        assert_eq!((ended.line("Successful requests:"), ended.line("Failed requests:")), ("0", "3"));
        assert!(ended.stdout.contains("[nothing_completed]"), "{}", ended.stdout);
        for word in words {
            assert!(ended.stdout.contains(word), "`{word}` is not in {}", ended.stdout);
        }
        let result = bench(&url, &format!("{FLAGS} --format json")).exits(3).json();
        assert_eq!(codes(&result)[0], "nothing_completed");
        assert!(result["tailbound"]["latency"]["ttft_s"]["mean"].is_null(), "a figure out of nothing");
    }
}

fn internal_error(_: &str, stream: &mut std::net::TcpStream) {
    respond(stream, "500 Internal Server Error", "application/json", r#"{"error":{"message":"out of memory"}}"#);
}

fn web_page(_: &str, stream: &mut std::net::TcpStream) {
    respond(stream, "200 OK", "text/html", "<!doctype html><html><body>It works!</body></html>");
}

fn error_first(request: &str, stream: &mut std::net::TcpStream) {
    if request.starts_with("GET") {
        return respond(stream, "200 OK", "text/plain", "");
    }
    respond(
        stream,
        "200 OK",
        "text/event-stream",
        "data: {\"error\":{\"message\":\"the model is on fire\"}}\n\ndata: [DONE]\n\n",
    );
}

fn no_tokens(request: &str, stream: &mut std::net::TcpStream) {
    if request.starts_with("GET") {
        return respond(stream, "200 OK", "text/plain", "");
    }
    respond(stream, "200 OK", "text/event-stream", "data: [DONE]\n\n");
}

fn cut_off(request: &str, stream: &mut std::net::TcpStream) {
    if request.starts_with("GET") {
        return respond(stream, "404 Not Found", "text/plain", "");
    }
    let event = "data: {\"choices\":[{\"index\":0,\"text\":\"so\"}]}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let _ = stream.write_all(format!("{head}{:x}\r\n{event}\r\n", event.len()).as_bytes());
}

fn hang_up(_: &str, _: &mut std::net::TcpStream) {}

fn say_nothing(_: &str, stream: &mut std::net::TcpStream) {
    // Until the other side has had enough.
    let _ = stream.read(&mut [0]);
}

fn not_http(_: &str, stream: &mut std::net::TcpStream) {
    let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
}

#[test]
fn a_server_that_is_no_such_server_is_named_before_the_run() {
    // It takes the whole of the client's patience; meanwhile the others.
    let silent = start(command(&bench_args(&answering(say_nothing), "--model tiny")));
    for (answer, words) in [
        (internal_error as fn(&str, &mut std::net::TcpStream), "status 500"),
        (web_page, "JSON"),
        (hang_up, "hung up"),
        (not_http, "HTTP"),
    ] {
        bench(&answering(answer), "").refuses(1, &[words]);
    }
    silent.ended().refuses(1, &["nothing came in time"]);
}

#[test]
fn a_server_that_refuses_the_rest_midway_leaves_what_was_measured() {
    let server = emulator(config(5));
    let flags = "--request-rate 100/s --num-prompts 120 --random-input-len 8 --random-output-len 20 --format json";
    let running = start(command(&bench_args(&server.url(), flags)));
    tailbound_os::sleep::until(tailbound_os::clock::now() + tailbound_clock::Dur::from_ms(700));
    drop(server);
    let result = running.ended().exits(3).json();
    let (good, bad) = (result["completed"].as_u64().unwrap(), result["failed"].as_u64().unwrap());
    assert!(good > 0 && bad > 0 && good + bad == 120, "{good} + {bad}");
    assert!(codes(&result).contains(&"server_errors".to_owned()), "{:?}", codes(&result));
}

#[test]
fn a_model_that_is_not_there() {
    let server = emulator(config(1));
    let flags = "--num-prompts 2 --random-input-len 8 --random-output-len 2";
    let ended = bench(&server.url(), &format!("--model tinny {flags}")).exits(3);
    assert!(ended.stdout.contains("HTTP status 404") && ended.stdout.contains("tinny"), "{}", ended.stdout);
    bench(&server.url(), &format!("--model tinny --ready-check-timeout-sec 1 {flags}"))
        .refuses(1, &["did not become ready", "tinny"])
        .hints("did you mean --model tiny?");
}

#[test]
fn keys_are_sent_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let key = file(folder.path(), "key", &format!("{KEY}\n"));
    let wrong = file(folder.path(), "wrong", "sk-other-secret\n");
    let server = emulator(Config { api_key: Some(KEY.into()), ..config(1) });
    let flags = format!(
        "--num-prompts 2 --random-input-len 8 --random-output-len 2 --save-result --save-detailed --no-fail --result-dir {0} \
         --result-filename result.json --run-dir {0}/run",
        folder.path().display()
    );
    // The environment's key works, and is looked for by `Running::ended` in everything that is printed.
    assert_eq!(bench(&server.url(), &flags).exits(0).line("Successful requests:"), "2");
    for file in ["result.json", "run/events.log"] {
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        assert!(!bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()), "the key is in {file}");
    }
    let by_file = format!("--num-prompts 2 --random-input-len 8 --random-output-len 2 --no-fail --api-key-file {key}");
    bench(&server.url(), &by_file).exits(0);
    let refused = bench(&server.url(), &format!("--api-key-file {wrong}")).refuses(1, &["401"]);
    assert!(!refused.stderr.contains("sk-other"), "{}", refused.stderr);
    let refused = bench(&server.url(), &format!("--model tiny --num-prompts 1 --api-key-file {wrong}")).exits(3);
    assert!(refused.stdout.contains("HTTP status 401") && !refused.stdout.contains("sk-other"), "{}", refused.stdout);
}

#[test]
fn a_result_that_cannot_be_saved_does_not_cost_the_report() {
    let server = emulator(config(1));
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("taken.json")).unwrap();
    let flags = format!(
        "--num-prompts 2 --random-input-len 8 --random-output-len 2 --save-result --result-dir {} --result-filename taken.json",
        folder.path().display()
    );
    let ended = bench(&server.url(), &flags).exits(1);
    assert!(ended.stderr.contains("error: failed to open") && ended.stderr.contains("taken.json"), "{}", ended.stderr);
    assert_eq!(ended.line("Successful requests:"), "2");
    let full = "--num-prompts 2 --random-input-len 8 --random-output-len 2 --save-result --result-filename /dev/full";
    let ended = bench(&server.url(), full).exits(1);
    assert!(ended.stderr.contains("error: failed to write /dev/full"), "{}", ended.stderr);
    assert_eq!(ended.line("Successful requests:"), "2");
}
