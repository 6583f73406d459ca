//! What goes wrong on purpose.

use serde_json::{Value, json};
use tailbound_clock::Dur;
use tailbound_emulator::{Config, Faults};

use crate::client::*;

fn with(faults: Faults) -> Config {
    Config { faults, ..config() }
}

fn body(n: u32) -> Value {
    json!({"prompt": "a", "max_tokens": n, "ignore_eos": true, "stream": true})
}

/// Runs one request and gives the reply and its row of the truth log.
fn one(faults: Faults, n: u32) -> (Reply, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let emulator = start(Config { truth_log: Some(path.clone()), ..with(faults) });
    let reply = ask(emulator.addr(), "/v1/completions", &body(n));
    emulator.stop().unwrap();
    (reply, serde_json::from_str(std::fs::read_to_string(path).unwrap().trim()).unwrap())
}

fn times(row: &Value, name: &str) -> Vec<u64> {
    row[name].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()).collect()
}

#[test]
fn errors_have_both_statuses_and_an_error_object() {
    let emulator = start(with(Faults { error_rate: 1.0, ..Faults::default() }));
    let mut client = Client::connect(emulator.addr());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        client.post("/v1/completions", &body(3).to_string());
        let reply = client.reply();
        assert_eq!(reply.json()["error"]["code"], reply.status);
        seen.insert(reply.status);
    }
    assert_eq!(seen, [500, 503].into());
    assert_eq!(metric(emulator.addr(), "vllm:request_success_total"), 20.0);
    let (_, row) = one(Faults { error_rate: 1.0, ..Faults::default() }, 3);
    assert_eq!((&row["finish"], &row["fault"]), (&json!("error"), &json!("error")));
}

#[test]
fn a_cut_stream_ends_in_the_middle_of_its_body() {
    let (reply, row) = one(Faults { cut_rate: 1.0, ..Faults::default() }, 20);
    assert_eq!(reply.status, 200);
    assert!(!reply.whole && !reply.text().contains("[DONE]"));
    let sent = times(&row, "sent").len();
    assert!((1..20).contains(&sent), "{sent}");
    assert_eq!(reply.events().len(), sent);
    assert_eq!((&row["finish"], &row["fault"]), (&json!("cut"), &json!("cut")));
}

#[test]
fn a_stall_holds_back_the_middle_of_a_stream_for_its_time() {
    let stall = Dur::from_ms(60);
    let (reply, row) = one(Faults { stall_rate: 1.0, stall, ..Faults::default() }, 20);
    assert_eq!(reply.events().len(), 20);
    let planned = times(&row, "planned");
    let longest = planned.windows(2).map(|w| w[1] - w[0]).max().unwrap();
    // Instead of the step's 2 ms.
    assert_eq!(longest, stall.ns() + 2_000_000);
    assert_eq!(row["fault"], "stall");
}

#[test]
fn a_slow_first_byte_keeps_the_head_back_too() {
    let faults = Faults { slow_first_byte_rate: 1.0, slow_first_byte: Dur::from_ms(40), ..Faults::default() };
    let (reply, row) = one(faults, 3);
    assert_eq!(reply.events().len(), 3);
    assert_eq!(times(&row, "planned"), [42_000_000, 44_000_000, 46_000_000]);
}

#[test]
fn a_client_that_leaves_before_its_slow_first_byte_is_forgotten() {
    let faults = Faults { slow_first_byte_rate: 1.0, slow_first_byte: Dur::from_ms(30), ..Faults::default() };
    let emulator = start(with(faults));
    let mut client = Client::connect(emulator.addr());
    client.post("/v1/completions", &body(3).to_string());
    eventually("it was taken", || get(emulator.addr(), "/load").json()["server_load"] == 1);
    drop(client);
    eventually("it was forgotten", || get(emulator.addr(), "/load").json()["server_load"] == 0);
    assert_eq!(metric(emulator.addr(), "vllm:generation_tokens_total"), 0.0);
}
