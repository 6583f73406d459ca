//! What is refused, and how.

use serde_json::{Value, json};
use tailbound_clock::Dur;
use tailbound_emulator::{Config, Emulator};

use crate::client::*;

#[test]
fn bad_bodies_name_what_is_wrong() {
    let emulator = start(config());
    let messages = json!([{"role": "user", "content": "a"}]);
    let (completions, chat) = ("/v1/completions", "/v1/chat/completions");
    for (path, body, status, param) in [
        (completions, json!({}), 400, "body.prompt"),
        (completions, json!({"prompt": null}), 400, "body.prompt"),
        (completions, json!({"prompt": 5}), 400, "body.prompt"),
        (completions, json!({"prompt": ""}), 400, "prompt"),
        (completions, json!({"prompt": []}), 400, "prompt"),
        (completions, json!({"prompt": [-1]}), 400, "body.prompt"),
        (completions, json!({"prompt": [4_000_000_000u64]}), 400, "prompt"),
        (completions, json!({"prompt": ["a", "b"]}), 400, "prompt"),
        (completions, json!({"prompt": "a", "max_tokens": 0}), 400, "max_tokens"),
        (completions, json!({"prompt": "a", "max_tokens": -3}), 400, "max_tokens"),
        (completions, json!({"prompt": "a", "max_tokens": "many"}), 400, "body.max_tokens"),
        (completions, json!({"prompt": "a", "max_tokens": 2.5}), 400, "body.max_tokens"),
        (completions, json!({"prompt": "a", "max_tokens": 2048}), 400, "max_tokens"),
        (completions, json!({"prompt": "a", "min_tokens": 17}), 400, "min_tokens"),
        (completions, json!({"prompt": vec![9; 2048]}), 400, "input_tokens"),
        (completions, json!({"prompt": "a", "temperature": "hot"}), 400, "body.temperature"),
        (completions, json!({"prompt": "a", "top_p": 0}), 400, "top_p"),
        (completions, json!({"prompt": "a", "top_p": 1.01}), 400, "top_p"),
        (completions, json!({"prompt": "a", "top_k": -2}), 400, "top_k"),
        (completions, json!({"prompt": "a", "min_p": -0.1}), 400, "min_p"),
        (completions, json!({"prompt": "a", "presence_penalty": 2.1}), 400, "presence_penalty"),
        (completions, json!({"prompt": "a", "repetition_penalty": 0}), 400, "repetition_penalty"),
        (completions, json!({"prompt": "a", "n": 0}), 400, "n"),
        (completions, json!({"prompt": "a", "n": 2}), 400, "n"),
        (completions, json!({"prompt": "a", "logprobs": 21}), 400, "logprobs"),
        (completions, json!({"prompt": "a", "echo": true}), 400, "echo"),
        (completions, json!({"prompt": "a", "suffix": "z"}), 400, "suffix"),
        (completions, json!({"prompt": "a", "stop": [""]}), 400, "stop"),
        (completions, json!({"prompt": "a", "stop": [1]}), 400, "body.stop"),
        (completions, json!({"prompt": "a", "stop": ["1", "2", "3", "4", "5"]}), 400, "body.stop"),
        (completions, json!({"prompt": "a", "stream": "maybe"}), 400, "body.stream"),
        (completions, json!({"prompt": "a", "stream_options": {"include_usage": true}}), 400, "stream_options"),
        (completions, json!({"prompt": "a", "response_format": {"type": "json_object"}}), 400, "response_format"),
        (completions, json!({"prompt": "a", "model": 7}), 400, "body.model"),
        (completions, json!({"prompt": "a", "model": "nope"}), 404, "model"),
        (completions, json!([1]), 400, "body"),
        (chat, json!({}), 400, "body.messages"),
        (chat, json!({"messages": []}), 400, "body.messages"),
        (chat, json!({"messages": "hi"}), 400, "body.messages"),
        (chat, json!({"messages": ["hi"]}), 400, "body.messages.0"),
        (chat, json!({"messages": [{"content": "a"}]}), 400, "body.messages.0.role"),
        (chat, json!({"messages": [{"role": "user"}]}), 400, "body.messages.0.content"),
        (chat, json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}), 400, "messages"),
        (chat, json!({"messages": messages, "top_logprobs": 2}), 400, "top_logprobs"),
        (chat, json!({"messages": messages, "max_completion_tokens": 0}), 400, "max_tokens"),
        ("/tokenize", json!({}), 400, "body.prompt"),
        ("/tokenize", json!({"prompt": "a", "model": "nope"}), 404, "model"),
        ("/detokenize", json!({}), 400, "body.tokens"),
        ("/detokenize", json!({"tokens": ["a"]}), 400, "body.tokens"),
    ] {
        let reply = ask(emulator.addr(), path, &body);
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["param"]), (status, &json!(param)), "{path} {body}: {error}");
        assert_eq!(error["code"], status);
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
    }
    assert_eq!(metric(emulator.addr(), "vllm:num_requests_running"), 0.0);
    let anthropic = ask(emulator.addr(), "/v1/messages", &json!({"messages": messages})).json();
    assert_eq!((&anthropic["type"], &anthropic["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
}

#[test]
fn unknown_paths_and_wrong_methods() {
    let emulator = start(config());
    let missing = get(emulator.addr(), "/v2/models");
    assert_eq!((missing.status, missing.json()["error"]["code"].clone()), (404, json!(404)));
    let wrong = get(emulator.addr(), "/v1/completions");
    assert_eq!((wrong.status, wrong.json()["error"]["message"].clone()), (405, json!("Method Not Allowed")));
    assert_eq!(ask(emulator.addr(), "/v1/models", &Value::Null).status, 405);
    let mut client = Client::connect(emulator.addr());
    client.send(b"HEAD /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\n");
    client.wait_for("200 OK");
    assert_eq!(client.reply().status, 405);
}

#[test]
fn broken_http_is_refused_and_the_connection_closed() {
    let emulator = start(Config { max_body: 1000, ..config() });
    for (bytes, status) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00"[..], 400),
        (b"GET /health\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\nhost: x\n\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        (b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: 1001\r\n\r\n", 413),
        (b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n", 413),
    ] {
        let mut client = Client::connect(emulator.addr());
        client.send(bytes);
        let reply = client.reply();
        assert_eq!(reply.status, status, "{:?}", String::from_utf8_lossy(bytes));
        assert_eq!(reply.json()["error"]["code"], status);
        assert_eq!(reply.header("connection"), Some("close"));
        assert!(client.is_closed());
    }
}

#[test]
fn a_client_that_sends_too_much_still_sees_why_it_was_refused() {
    let emulator = start(Config { max_body: 1000, ..config() });
    let mut client = Client::connect(emulator.addr());
    client.post("/v1/completions", &"x".repeat(3_000_000));
    assert_eq!(client.reply().status, 413);
}

#[test]
fn what_does_not_arrive_in_time_is_refused_and_idle_connections_are_closed() {
    let emulator = start(Config { request_timeout: Dur::from_ms(50), idle_timeout: Dur::from_ms(300), ..config() });
    let mut slow = Client::connect(emulator.addr());
    slow.send(b"POST /v1/completions HTTP/1.1\r\ncontent-le");
    assert_eq!(slow.reply().status, 408);
    assert!(slow.is_closed());
    assert!(Client::connect(emulator.addr()).is_closed());
}

#[test]
fn a_key_is_asked_for_where_there_is_one() {
    let emulator = start(Config { api_key: Some("sesame".to_owned()), ..config() });
    assert_eq!(get(emulator.addr(), "/v1/models").status, 401);
    assert_eq!(get(emulator.addr(), "/health").status, 200);
    for (key, status) in [("Bearer sesame", 200), ("Bearer wrong", 401), ("sesame", 401)] {
        let mut client = Client::connect(emulator.addr());
        client.send(format!("GET /v1/models HTTP/1.1\r\nauthorization: {key}\r\n\r\n").as_bytes());
        assert_eq!(client.reply().status, status, "{key}");
    }
}

#[test]
fn impossible_settings_are_named() {
    let bad = |change: &dyn Fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Emulator::bind(config).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(bad(&|c| c.served_model_names.clear()).contains("served model name"));
    assert!(bad(&|c| c.data_parallel_size = 0).contains("data_parallel_size"));
    assert!(bad(&|c| c.faults.error_rate = 2.0).contains("error_rate"));
    assert!(bad(&|c| c.engine.num_blocks = 1).contains("num_blocks"));
    assert!(bad(&|c| c.tokenizer = Some("/nowhere/tokenizer.json".into())).contains("/nowhere/tokenizer.json"));
    assert!(bad(&|c| c.truth_log = Some("/nowhere/truth.jsonl".into())).contains("/nowhere/truth.jsonl"));
    let taken = start(config());
    assert!(bad(&|c| c.listen = taken.addr()).contains(&taken.addr().to_string()));
}
