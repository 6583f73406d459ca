//! Connections that come, go, hurry and dawdle.

use serde_json::json;
use tailbound_clock::Dur;
use tailbound_emulator::Config;

use crate::client::*;

fn long() -> String {
    json!({"prompt": "a", "max_tokens": 2000, "ignore_eos": true, "stream": true}).to_string()
}

#[test]
fn a_client_that_leaves_is_aborted_in_the_engine() {
    let emulator = start(config());
    let addr = emulator.addr();
    let mut clients: Vec<Client> = (0..12).map(|_| Client::connect(addr)).collect();
    for client in &mut clients {
        client.post("/v1/completions", &long());
    }
    clients[0].wait_for("\"text\"");
    eventually("eight run and four wait", || {
        metric(addr, "vllm:num_requests_running") == 8.0 && metric(addr, "vllm:num_requests_waiting") == 4.0
    });
    assert_eq!(get(addr, "/load").json()["server_load"], 12);
    drop(clients);
    eventually("nothing runs", || {
        metric(addr, "vllm:num_requests_running") == 0.0 && metric(addr, "vllm:num_requests_waiting") == 0.0
    });
    assert_eq!(metric(addr, "vllm:kv_cache_usage_perc"), 0.0);
    assert_eq!(metric(addr, "vllm:request_success_total"), 12.0, "all of them aborts");
    assert_eq!(get(addr, "/load").json()["server_load"], 0);
}

#[test]
fn a_connection_serves_many_requests_even_sent_at_once() {
    let emulator = start(config());
    let mut client = Client::connect(emulator.addr());
    let body = |n: u32, stream: bool| {
        json!({"prompt": "a", "max_tokens": n, "ignore_eos": true, "stream": stream}).to_string()
    };
    let mut bytes = post("/v1/completions", &body(3, true));
    bytes.extend(post("/v1/completions", &body(4, false)));
    bytes.extend_from_slice(b"GET /version HTTP/1.1\r\n\r\n");
    bytes.extend(post("/v1/completions", &body(5, true)));
    client.send(&bytes);
    assert_eq!(client.reply().events().len(), 3);
    assert_eq!(client.reply().json()["usage"]["completion_tokens"], 4);
    assert!(client.reply().json()["version"].is_string());
    assert_eq!(client.reply().events().len(), 5);
    client.send(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_body_may_come_in_chunks_and_wait_for_leave() {
    let emulator = start(config());
    let mut client = Client::connect(emulator.addr());
    client.send(b"POST /tokenize HTTP/1.1\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n");
    assert_eq!(client.reply().status, 100);
    for piece in
        [&b"a\r\n{\"prompt\":\r\n"[..], b"c;ext=1\r\n\"Hello world", b"\r\n2\r\n\"}\r\n0\r\ntrailer: x\r\n", b"\r\n"]
    {
        client.send(piece);
    }
    assert_eq!(client.reply().json()["count"], 2);
}

#[test]
fn a_client_that_does_not_read_is_dropped_and_holds_up_nobody() {
    let law = tailbound_engine::Law::Constant { step: Dur::from_us(20), per_prefill_token: Dur::ZERO };
    let mut engine = tailbound_engine::Config::new(law, 1 << 17, 1 << 20);
    engine.max_num_seqs = 8;
    let emulator = start(Config { max_unsent: 4096, ..Config::new(engine) });
    let addr = emulator.addr();
    let mut lazy = Client::connect(addr);
    lazy.post(
        "/v1/completions",
        &json!({"prompt": "a", "max_tokens": 1_000_000, "ignore_eos": true, "stream": true}).to_string(),
    );
    lazy.wait_for("\"text\"");
    let quick = json!({"prompt": "b", "max_tokens": 20, "ignore_eos": true, "stream": true});
    assert_eq!(ask(addr, "/v1/completions", &quick).events().len(), 20);
    let mut rounds = 0;
    while metric(addr, "vllm:num_requests_running") > 0.0 {
        rounds += 1;
        assert!(rounds < 5_000, "the client that does not read was never dropped");
    }
    let summary = emulator.stop().unwrap();
    assert!(summary.blocked_writes > 0);
}

#[test]
fn stopping_gives_up_what_is_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let emulator = start(Config { truth_log: Some(path.clone()), ..config() });
    let mut client = Client::connect(emulator.addr());
    client.post("/v1/completions", &long());
    client.wait_for("\"text\"");
    assert_eq!(emulator.stop().unwrap().requests, 1);
    let row: serde_json::Value = serde_json::from_str(std::fs::read_to_string(path).unwrap().trim()).unwrap();
    assert_eq!(row["finish"], "abort");
    assert!(!client.reply().whole);
}

#[test]
fn requests_spread_over_replicas() {
    let emulator = start(Config { data_parallel_size: 4, ..config() });
    let addr = emulator.addr();
    let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(addr)).collect();
    for client in &mut clients {
        client.post("/v1/completions", &long());
        client.wait_for("\"text\"");
    }
    for rank in 0..4 {
        let name = format!("vllm:num_requests_running{{engine=\"{rank}\",model_name=\"smollm2-135m\"}}");
        assert_eq!(metric(addr, &name), 5.0, "replica {rank}");
    }
}
