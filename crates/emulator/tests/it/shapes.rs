//! Replies against captured ones: the same keys in the same order, the same kinds of values.

use serde_json::{Value, json};

use crate::client::*;

/// Keys in order, with the kind of each value; lists by their first element.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(items) => format!("[{}]", items.first().map(shape).unwrap_or_default()),
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", shape(v))).collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

/// The shapes of a stream's events, repeated ones once; an event's own name in front.
fn shapes(text: &str) -> Vec<String> {
    let mut name = "";
    let mut shapes: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(event) = line.strip_prefix("event: ") {
            name = event;
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let shape = if data == "[DONE]" { data.to_owned() } else { shape(&serde_json::from_str(data).unwrap()) };
        let shape = format!("{name} {shape}");
        if shapes.last() != Some(&shape) {
            shapes.push(shape);
        }
    }
    shapes
}

fn compare_stream(file: &str, path: &str, body: Value, details: bool) {
    let Some(theirs) = captured_body(file) else { return };
    let emulator = start(tailbound_emulator::Config { prompt_tokens_details: details, ..config() });
    let ours = ask(emulator.addr(), path, &body);
    assert_eq!(ours.status, 200);
    assert_eq!(ours.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(shapes(ours.text()), shapes(&theirs), "{file}");
}

fn compare_body(file: &str, path: &str, body: Value, details: bool) {
    let Some(theirs) = captured_body(file) else { return };
    let emulator = start(tailbound_emulator::Config { prompt_tokens_details: details, ..config() });
    let ours = ask(emulator.addr(), path, &body);
    assert_eq!(shape(&ours.json()), shape(&serde_json::from_str(&theirs).unwrap()), "{file}");
}

fn chat(max_tokens: u32) -> Value {
    json!({
        "model": "smollm2-135m", "max_tokens": max_tokens, "ignore_eos": true, "stream": true,
        "messages": [{"role": "user", "content": "Name three colours"}],
        "stream_options": {"include_usage": true},
    })
}

fn completion(max_tokens: u32) -> Value {
    json!({
        "model": "smollm2-135m", "max_tokens": max_tokens, "ignore_eos": true, "stream": true,
        "prompt": "The quick brown fox", "stream_options": {"include_usage": true},
    })
}

#[test]
fn chat_stream() {
    compare_stream("chat_stream.sse", "/v1/chat/completions", chat(12), false);
}

#[test]
fn chat_stream_with_usage_in_every_event() {
    let mut body = chat(12);
    body["stream_options"]["continuous_usage_stats"] = true.into();
    compare_stream("chat_stream_continuous_usage.sse", "/v1/chat/completions", body, false);
}

#[test]
fn completions_stream() {
    compare_stream("completions_stream.sse", "/v1/completions", completion(16), false);
}

#[test]
fn completions_stream_with_prompt_token_details() {
    compare_stream("completions_stream_bs32_a.sse", "/v1/completions", completion(2), true);
}

#[test]
fn completions_stream_with_logprobs_and_token_ids() {
    let Some(theirs) = captured_body("completions_stream_n2_logprobs.sse") else { return };
    let body = json!({
        "prompt": "Once upon a time", "max_tokens": 4, "ignore_eos": true, "stream": true, "logprobs": 2, "return_token_ids": true,
    });
    let emulator = start(config());
    let ours = ask(emulator.addr(), "/v1/completions", &body);
    // The capture has two answers in one stream; alternatives are keys, so their texts differ.
    let simple = |text: &str| -> Vec<String> {
        let events = data_lines(text).filter(|d| *d != "[DONE]").map(|d| serde_json::from_str::<Value>(d).unwrap());
        let of_first = events.filter(|e| e["choices"][0]["index"] == 0).map(|mut e| {
            e["choices"][0]["logprobs"]["top_logprobs"] = Value::Null;
            shape(&e)
        });
        of_first.collect()
    };
    assert_eq!(simple(ours.text()), simple(&theirs));
    let last = ours.events().pop().unwrap();
    assert_eq!(last["choices"][0]["logprobs"]["top_logprobs"][0].as_object().unwrap().len(), 2);
}

#[test]
fn chat_whole() {
    let body = json!({
        "messages": [{"role": "user", "content": "Name three colours"}], "max_tokens": 12, "ignore_eos": true,
        "return_token_ids": true,
    });
    compare_body("chat_nonstream.http", "/v1/chat/completions", body, false);
}

#[test]
fn anthropic_messages_stream() {
    let body = json!({
        "model": "smollm2-135m", "max_tokens": 8, "stream": true, "ignore_eos": true,
        "messages": [{"role": "user", "content": "hi"}],
    });
    compare_stream("anthropic_messages_stream.sse", "/v1/messages", body, false);
}

#[test]
fn responses_stream() {
    let body = json!({"input": "hi", "max_output_tokens": 8, "stream": true, "ignore_eos": true});
    compare_stream("responses_stream.sse", "/v1/responses", body, false);
}

#[test]
fn tokenizing() {
    compare_body("tokenize_prompt.http", "/tokenize", json!({"prompt": "Hello world"}), false);
    compare_body("tokenize_messages.http", "/tokenize", json!({"messages": [{"role": "user", "content": "x"}]}), false);
    compare_body("detokenize.http", "/detokenize", json!({"tokens": [8, 9]}), false);
}

#[test]
fn errors() {
    let long = json!({"prompt": vec![9; 2049], "stream": true});
    for (file, path, body) in [
        ("error_bad_param.http", "/v1/completions", json!({"prompt": "a", "temperature": -1.0})),
        ("error_wrong_model.http", "/v1/completions", json!({"prompt": "a", "model": "nope"})),
        ("error_too_long_stream.http", "/v1/completions", long),
        (
            "error_tool_auto_not_enabled.http",
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f"}}]}),
        ),
    ] {
        let Some(theirs) = capture(file) else { return };
        let emulator = start(config());
        let ours = ask(emulator.addr(), path, &body);
        let (head, body) = theirs.split_once("\r\n\r\n").unwrap();
        assert_eq!(ours.status, head.split(' ').nth(1).unwrap().parse::<u16>().unwrap(), "{file}");
        let (ours, theirs): (Value, Value) = (ours.json(), serde_json::from_str(body).unwrap());
        assert_eq!(shape(&ours), shape(&theirs), "{file}");
        for field in ["type", "param", "code"] {
            assert_eq!(ours["error"][field], theirs["error"][field], "{file}: {field}");
        }
    }
    let Some(theirs) = captured_body("error_bad_json.http") else { return };
    let emulator = start(config());
    let mut client = Client::connect(emulator.addr());
    client.post("/v1/completions", "{\"model\": \"smollm2-135m\", }");
    let (ours, theirs): (Value, Value) = (client.reply().json(), serde_json::from_str(&theirs).unwrap());
    assert_eq!(shape(&ours), shape(&theirs));
    assert_eq!(ours["error"]["type"], theirs["error"]["type"]);
}

#[test]
fn small_endpoints() {
    let emulator = start(config());
    for (file, path) in [("models.json", "/v1/models"), ("version.http", "/version"), ("load.http", "/load")] {
        let Some(theirs) = captured_body(file) else { return };
        let ours = get(emulator.addr(), path);
        assert_eq!(shape(&ours.json()), shape(&serde_json::from_str(&theirs).unwrap()), "{path}");
    }
    let models = get(emulator.addr(), "/v1/models").json();
    let names: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|m| &m["id"]).collect();
    assert_eq!(names, ["smollm2-135m", "alias"]);
    for path in ["/health", "/ping"] {
        let reply = get(emulator.addr(), path);
        assert_eq!((reply.status, reply.body.len()), (200, 0));
    }
    let reset = ask(emulator.addr(), "/reset_prefix_cache", &Value::Null);
    assert_eq!((reset.status, reset.json()), (200, json!({"success": true})));
}
