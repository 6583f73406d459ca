//! What an answer says, how long it is, and that all counts of it agree.

use serde_json::{Value, json};
use tailbound_emulator::{AnswerLength, Config};

use crate::client::*;

fn said(events: &[Value]) -> String {
    let choice = |e: &Value| e["choices"].get(0).cloned().unwrap_or_default();
    let text = |c: &Value| c["text"].as_str().or(c["delta"]["content"].as_str()).unwrap_or("").to_owned();
    events.iter().map(|e| text(&choice(e))).collect()
}

fn count(addr: std::net::SocketAddr, text: &str) -> u64 {
    ask(addr, "/tokenize", &json!({"prompt": text})).json()["count"].as_u64().unwrap()
}

#[test]
fn usage_truth_log_metrics_and_tokenize_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let emulator = start(Config { truth_log: Some(path.clone()), ..config() });
    let addr = emulator.addr();
    let prompt = "Tell me, in few words, what 日本 means & why.\n";
    let body = json!({
        "prompt": prompt, "max_tokens": 40, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true},
    });
    let mut client = Client::connect(addr);
    let text = body.to_string();
    client.send(
        format!(
            "POST /v1/completions HTTP/1.1\r\nx-request-id: mine-7\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        )
        .as_bytes(),
    );
    let reply = client.reply();
    assert_eq!(reply.header("x-request-id"), Some("mine-7"));
    let events = reply.events();
    let usage = &events.last().unwrap()["usage"];
    assert_eq!(events[0]["id"], "cmpl-mine-7");
    assert_eq!(events.len(), 41, "one event a token, and the usage");
    assert_eq!(usage["completion_tokens"], 40);
    assert_eq!(usage["prompt_tokens"].as_u64().unwrap(), count(addr, prompt));
    assert_eq!(count(addr, &said(&events)), 40);
    assert_eq!(metric(addr, "vllm:generation_tokens_total"), 40.0);

    let whole = ask(addr, "/v1/completions", &json!({"prompt": prompt, "max_tokens": 40, "ignore_eos": true}));
    assert_eq!(whole.json()["choices"][0]["text"], said(&events), "streamed or whole, the answer is the same");

    let summary = emulator.stop().unwrap();
    assert_eq!((summary.requests, summary.tokens), (2, 80));
    let log = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["id"], "mine-7");
    for row in &rows {
        assert_eq!(
            (&row["output_tokens"], &row["finish"], &row["status"]),
            (&json!(40), &json!("length"), &json!(200))
        );
        assert_eq!(row["prompt_tokens"], usage["prompt_tokens"]);
        let times =
            |name: &str| -> Vec<u64> { row[name].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()).collect() };
        let (planned, sent) = (times("planned"), times("sent"));
        assert_eq!((planned.len(), sent.len()), (40, 40));
        // The constant law: a token every 2 ms from arrival on, to the nanosecond.
        assert!(planned.iter().zip(1..).all(|(&p, i)| p == i * 2_000_000), "{planned:?}");
        assert!(planned.iter().zip(&sent).all(|(p, s)| p <= s));
    }
    let late = |row: &Value| row["late_max"].as_u64().unwrap();
    assert_eq!(summary.late_max.max.unwrap().ns(), rows.iter().map(late).max().unwrap());
}

#[test]
fn token_ids_go_in_and_come_out() {
    let emulator = start(config());
    let addr = emulator.addr();
    let text = "Ünïcode, 日本語 and <|im_start|> too\n\t!";
    let tokens = ask(addr, "/tokenize", &json!({"prompt": text})).json()["tokens"].clone();
    assert_eq!(ask(addr, "/detokenize", &json!({"tokens": tokens})).json()["prompt"], text);
    let of_ids = ask(
        addr,
        "/v1/completions",
        &json!({"prompt": tokens, "max_tokens": 5, "ignore_eos": true, "return_token_ids": true}),
    );
    let of_list = ask(addr, "/v1/completions", &json!({"prompt": [tokens], "max_tokens": 5, "ignore_eos": true}));
    let of_text = ask(addr, "/v1/completions", &json!({"prompt": [text], "max_tokens": 5, "ignore_eos": true}));
    let answer = |r: &Reply| r.json()["choices"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(answer(&of_ids), answer(&of_text));
    assert_eq!(answer(&of_list), answer(&of_text));
    let choice = of_ids.json()["choices"][0].clone();
    assert_eq!(choice["prompt_token_ids"], tokens);
    let again = ask(addr, "/detokenize", &json!({"tokens": choice["token_ids"]}));
    assert_eq!(again.json()["prompt"], choice["text"]);
    let with_texts = ask(addr, "/tokenize", &json!({"prompt": "Hello world", "return_token_strs": true}));
    assert_eq!(with_texts.json()["token_strs"], json!(["Hello", " world"]));
}

#[test]
fn chats_are_counted_as_tokenize_counts_them() {
    let emulator = start(config());
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]},
    ]);
    let counted = ask(emulator.addr(), "/tokenize", &json!({"messages": messages})).json()["count"].clone();
    let body = json!({"messages": messages, "max_completion_tokens": 3, "ignore_eos": true});
    let usage = ask(emulator.addr(), "/v1/chat/completions", &body).json()["usage"].clone();
    assert_eq!(usage["prompt_tokens"], counted);
    assert_eq!(usage["completion_tokens"], 3);
    let closed = json!({"messages": messages, "add_generation_prompt": false});
    let without = ask(emulator.addr(), "/tokenize", &closed).json()["count"].as_u64().unwrap();
    assert!(without < counted.as_u64().unwrap());
}

#[test]
fn a_next_turn_finds_the_last_one_in_the_prefix_cache() {
    let emulator = start(config());
    let first = json!({"role": "user", "content": "word ".repeat(60)});
    let body = json!({"messages": [first], "max_tokens": 64, "ignore_eos": true});
    let reply = ask(emulator.addr(), "/v1/chat/completions", &body).json();
    let before = reply["usage"]["total_tokens"].as_u64().unwrap();
    let body = json!({
        "messages": [first, {"role": "assistant", "content": reply["choices"][0]["message"]["content"]}, {"role": "user", "content": "and?"}],
        "max_tokens": 1,
    });
    let usage = ask(emulator.addr(), "/v1/chat/completions", &body).json()["usage"].clone();
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert_eq!(cached, (before - 1) / 16 * 16, "all full blocks of prompt and answer; the last token was never put in");
}

#[test]
fn an_answer_ends_by_itself_unless_told_not_to() {
    let emulator = start(Config { answer_length: AnswerLength::Fixed(9), ..config() });
    let addr = emulator.addr();
    let body = json!({"prompt": "a", "max_tokens": 30, "stream": true, "stream_options": {"include_usage": true}});
    let events = ask(addr, "/v1/completions", &body).events();
    let last = &events[events.len() - 2]["choices"][0];
    assert_eq!((&last["finish_reason"], &last["text"]), (&json!("stop"), &json!("")));
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 9);
    assert_eq!(count(addr, &said(&events)), 8, "the end-of-text token has no text");
    for (path, body, end) in [
        (
            "/v1/messages",
            json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 30}),
            ("stop_reason", "end_turn"),
        ),
        (
            "/v1/messages",
            json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}),
            ("stop_reason", "max_tokens"),
        ),
        ("/v1/responses", json!({"input": "a", "max_output_tokens": 30}), ("status", "completed")),
        ("/v1/responses", json!({"input": "a", "max_output_tokens": 5}), ("status", "incomplete")),
    ] {
        assert_eq!(ask(addr, path, &body).json()[end.0], end.1, "{path} {body}");
    }
    assert_eq!(
        metric(addr, "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"smollm2-135m\"}"),
        3.0
    );
}

#[test]
fn stop_strings_end_the_answer_where_they_begin() {
    let emulator = start(config());
    let addr = emulator.addr();
    let whole = |extra: Value| {
        let mut body = json!({"prompt": "stop here", "max_tokens": 50, "ignore_eos": true});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let text =
        ask(addr, "/v1/completions", &whole(json!({}))).json()["choices"][0]["text"].as_str().unwrap().to_owned();
    let word = text.split(' ').nth(12).unwrap();
    let at = text.find(word).unwrap();
    let reply = ask(addr, "/v1/completions", &whole(json!({"stop": word}))).json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["text"], text[..at]);
    assert_eq!((&choice["finish_reason"], &choice["stop_reason"]), (&json!("stop"), &json!(word)));
    let kept = ask(addr, "/v1/completions", &whole(json!({"stop": [word], "include_stop_str_in_output": true}))).json();
    assert_eq!(kept["choices"][0]["text"], text[..at + word.len()]);
    let mut streamed = whole(json!({"stop": [word]}));
    streamed["stream"] = true.into();
    assert_eq!(said(&ask(addr, "/v1/completions", &streamed).events()), text[..at]);
}

#[test]
fn http_1_0_is_streamed_until_the_end_of_the_connection() {
    let emulator = start(config());
    let mut client = Client::connect(emulator.addr());
    let body = json!({"prompt": "a", "max_tokens": 3, "ignore_eos": true, "stream": true}).to_string();
    client.send(format!("POST /v1/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let reply = client.reply();
    assert_eq!(reply.header("transfer-encoding"), None);
    assert_eq!(reply.events().len(), 3);
    assert!(reply.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_tokenizer_file_counts_as_its_tokenizer_does() {
    let Some(path) = data("engines/tokenizer.json") else { return };
    let emulator = start(Config { tokenizer: Some(path), ..config() });
    let addr = emulator.addr();
    // What vLLM said of this tokenizer.
    assert_eq!(ask(addr, "/tokenize", &json!({"prompt": "Hello world"})).json()["tokens"], json!([19556, 905]));
    assert_eq!(ask(addr, "/detokenize", &json!({"tokens": [19556, 905]})).json()["prompt"], "Hello world");
    let body = json!({"prompt": "Hello world", "max_tokens": 50, "ignore_eos": true, "return_token_ids": true});
    let reply = ask(addr, "/v1/completions", &body).json();
    assert_eq!(reply["usage"]["prompt_tokens"], 2);
    let choice = &reply["choices"][0];
    let again = ask(addr, "/tokenize", &json!({"prompt": choice["text"]})).json();
    assert_eq!(again["tokens"], choice["token_ids"]);
    assert_eq!(again["count"], 50);
}
