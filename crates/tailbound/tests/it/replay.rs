//! Traces and conversations as loads: what arrives, when, and what became of every row.

use crate::program::{bench, run};
use crate::servers::{config, emulator, recorder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tailbound_clock::Seed;
use tailbound_emulator::{Config, Handle};

const BLOCK: u32 = 32;

/// An emulator whose cache has room for so many blocks of [`BLOCK`] tokens.
fn caching(blocks: u32) -> Handle {
    let mut config: Config = config(1);
    config.engine.block_size = BLOCK;
    config.engine.num_blocks = blocks;
    config.engine.max_num_batched_tokens = 1 << 20;
    emulator(config)
}

/// A Mooncake trace in which prompts share their beginnings: per row a time, a length and its blocks.
fn mooncake(rows: usize) -> String {
    let mut rng = Seed(3).stream("trace");
    let mut text = String::new();
    let mut next = 1000;
    let mut known: Vec<Vec<u64>> = vec![vec![0, 1, 2]];
    for i in 0..rows {
        let mut ids = known[rng.below(known.len() as u64) as usize].clone();
        for _ in 0..rng.below(4) {
            ids.push(next);
            next += 1;
        }
        known.push(ids.clone());
        let input = (ids.len() as u64 - 1) * u64::from(BLOCK) + 1 + rng.below(u64::from(BLOCK));
        let output = 1 + rng.below(5);
        let row = json!({ "timestamp": i * 200, "input_length": input, "output_length": output, "hash_ids": ids });
        writeln!(text, "{row}").unwrap();
    }
    text
}

fn written(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The emulator's own prefix-cache counters: found, looked up.
fn prefix_counters(server: &Handle) -> (f64, f64) {
    let reply = tailbound_client::fetch(
        &tailbound_client::Target::parse(&server.url()).unwrap(),
        "/metrics",
        None,
        tailbound_clock::Dur::from_secs(10),
    );
    let text = String::from_utf8(reply.unwrap().body).unwrap();
    let sum = |name: &str| {
        let lines = text.lines().filter(|l| l.starts_with(name));
        lines.map(|l| l.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    };
    (sum("vllm:prefix_cache_hits_total"), sum("vllm:prefix_cache_queries_total"))
}

/// What an engine finds in a cache of any size: full blocks that came before, of all but a prompt's last token.
fn found_in_full_blocks(trace: &str) -> (u64, u64) {
    let (mut known, mut hits, mut total) = (std::collections::BTreeSet::<u64>::new(), 0, 0);
    for line in trace.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let tokens = row["input_length"].as_u64().unwrap();
        let ids: Vec<u64> = row["hash_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        let full = &ids[..(tokens / u64::from(BLOCK)) as usize];
        let run = full.iter().take_while(|id| known.contains(*id)).count() as u64;
        hits += run.min((tokens - 1) / u64::from(BLOCK)) * u64::from(BLOCK);
        total += tokens;
        known.extend(full);
    }
    (hits, total)
}

#[test]
fn a_mooncake_trace_hits_the_cache_as_its_blocks_say_and_every_row_is_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = mooncake(80);
    let (hits, total) = found_in_full_blocks(&text.lines().take(70).map(|l| format!("{l}\n")).collect::<String>());
    text += "{\"timestamp\": 1, \"input_length\": -3, \"output_length\": 2, \"hash_ids\": []}\n";
    let file = written(dir.path(), "trace.jsonl", &text);
    let server = caching(4000);
    let flags = format!(
        "--dataset-name mooncake --dataset-path {file} --rate-scale 10 --num-prompts 70 --format json --no-fail"
    );
    let result = bench(&server.url(), &flags).exits(0).json();
    let own = &result["tailbound"];
    assert_eq!(result["completed"], 70);
    assert_eq!(prefix_counters(&server), (hits as f64, total as f64));
    assert_eq!(own["lengths"]["prompt"]["differing"], 0);
    assert_eq!(
        (own["lengths"]["prompt"]["expected"].as_u64(), own["lengths"]["output"]["differing"].as_u64()),
        (Some(total), Some(0))
    );
    let account = &own["trace"];
    assert_eq!(account["rows_read"], 81);
    assert_eq!(account["dropped"], json!([["negative", 1, 81]]));
    assert_eq!((account["beyond_count"].as_u64(), account["rows_planned"].as_u64()), (Some(10), Some(70)));
    assert_eq!(account["speed"], 10.0);
    assert_eq!(own["open_loop"], true);
    let rate = own["throughput"]["scheduled_per_s"].as_f64().unwrap();
    assert!((rate - 50.0).abs() < 1e-6, "{rate} arrivals/s: 5 a second, ten times as fast");
}

#[test]
fn ten_asked_is_ten_sent_even_if_the_trace_is_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(dir.path(), "t.jsonl", &mooncake(4));
    let server = caching(4000);
    let flags = format!("--dataset-name trace --dataset-path {file} --rate-scale 100 --format json --no-fail");
    let result = bench(&server.url(), &format!("{flags} --num-prompts 10")).exits(0).json();
    assert_eq!((result["completed"].as_u64(), result["tailbound"]["trace"]["repeated"].as_u64()), (Some(10), Some(6)));
    let result = bench(&server.url(), &format!("{flags} --num-prompts 10 --no-oversample")).exits(0).json();
    assert_eq!(result["completed"], 4);
}

fn conversation(id: &str, turns: &[(&str, &str)]) -> Value {
    let turns: Vec<Value> = turns.iter().map(|(from, value)| json!({ "from": from, "value": value })).collect();
    json!({ "id": id, "conversations": turns })
}

/// Two conversations of three and one turns, and one that fails at its second of three.
fn conversations(dir: &Path) -> String {
    let all = json!([
        conversation(
            "a",
            &[
                ("system", "Be brief."),
                ("human", "a1"),
                ("gpt", "recorded a1"),
                ("human", "a2"),
                ("gpt", "recorded a2"),
                ("human", "a3"),
                ("gpt", "recorded a3"),
            ]
        ),
        conversation("b", &[("human", "b1"), ("gpt", "recorded b1")]),
        conversation(
            "c",
            &[
                ("human", "c1"),
                ("gpt", "recorded c1"),
                ("human", "break here"),
                ("gpt", "recorded c2"),
                ("human", "c3"),
                ("gpt", "recorded c3"),
            ]
        ),
    ]);
    written(dir, "conversations.json", &all.to_string())
}

/// What was said in each request, by its last message.
fn said(bodies: &[Value]) -> BTreeMap<String, Vec<(String, String)>> {
    let text = |m: &Value, key: &str| m[key].as_str().unwrap().to_owned();
    let one = |body: &Value| {
        let all: Vec<_> =
            body["messages"].as_array().unwrap().iter().map(|m| (text(m, "role"), text(m, "content"))).collect();
        (all.last().unwrap().1.clone(), all)
    };
    bodies.iter().map(one).collect()
}

#[test]
fn a_conversation_carries_the_servers_own_answers_and_ends_where_one_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = conversations(dir.path());
    let (url, bodies) = recorder("break here");
    let flags = format!(
        "--backend openai-chat --model m --skip-tokenizer-init --dataset-name sharegpt --dataset-path {file} --multi-turn --max-concurrency 1 --format json --no-fail"
    );
    let result = bench(&url, &flags).exits(0).json();
    let requests = &result["tailbound"]["requests"];
    assert_eq!(
        ["planned", "completed", "failed", "never_sent"].map(|key| requests[key].as_u64().unwrap()),
        [7, 5, 1, 1],
        "{requests}"
    );
    let bodies = bodies.lock().unwrap();
    let number = |last: &str| {
        1 + bodies.iter().position(|b| b["messages"].as_array().unwrap().last().unwrap()["content"] == last).unwrap()
    };
    let third = &said(&bodies)["a3"];
    let pair = |role: &str, text: String| (role.to_owned(), text);
    let expected = [
        pair("system", "Be brief.".into()),
        pair("user", "a1".into()),
        pair("assistant", format!("answer {}", number("a1"))),
        pair("user", "a2".into()),
        pair("assistant", format!("answer {}", number("a2"))),
        pair("user", "a3".into()),
    ];
    assert_eq!(third[..], expected);
    assert_eq!(result["tailbound"]["trace"]["sessions"], 3);
    let turns = result["tailbound"]["groups"]["turn"].as_array().unwrap();
    let planned: Vec<_> = turns.iter().map(|g| (g["name"].as_str().unwrap(), g["planned"].as_u64().unwrap())).collect();
    assert_eq!(planned, [("turn 1", 3), ("turn 2", 2), ("turn 3", 2)]);
}

#[test]
fn recorded_answers_are_carried_instead_if_asked_for_and_failures_end_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = conversations(dir.path());
    let (url, bodies) = recorder("c3");
    let flags = format!(
        "--backend openai-chat --model m --skip-tokenizer-init --dataset-name sharegpt --dataset-path {file} --multi-turn --history recorded --request-rate 50 --format json --no-fail"
    );
    let result = bench(&url, &flags).exits(0).json();
    assert_eq!((result["completed"].as_u64(), result["failed"].as_u64()), (Some(6), Some(1)));
    let said = said(&bodies.lock().unwrap());
    let assistants = |last: &str| {
        said[last].iter().filter(|(role, _)| role == "assistant").map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(assistants("a3"), ["recorded a1", "recorded a2"]);
    assert_eq!(assistants("break here"), ["recorded c1"]);
}

#[test]
fn turns_wait_for_the_answer_and_the_thought_and_classes_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                0,s,1,GPT-4,20,3,23,Conversation log\n\
                1,,,GPT-4,10,2,12,API log\n\
                3,s,0,GPT-4,30,3,33,Conversation log\n\
                4,,,GPT-4,0,0,0,API log\n";
    let file = written(dir.path(), "burst.csv", text);
    let server = emulator(config(1));
    let flags = format!(
        "--dataset-name burstgpt --dataset-path {file} --rate-scale 10 --goodput e2el:100000 --class-goodput Conversation=ttft:1 --format json --no-fail"
    );
    bench(&server.url(), &flags)
        .refuses(2, &["--class-goodput", "no class `Conversation`"])
        .hints("Conversation log, API log");
    let mut args: Vec<String> =
        crate::program::bench_args(&server.url(), &flags.replace("--class-goodput Conversation=ttft:1", ""));
    args.extend(["--class-goodput".into(), "Conversation log=ttft:0.001".into(), "--save-detailed".into()]);
    let folder = dir.path().join("run").display().to_string();
    args.extend(["--run-dir".into(), folder.clone()]);
    let result = run(&args).exits(0).json();
    let own = &result["tailbound"];
    assert_eq!((result["completed"].as_u64(), own["trace"]["dropped"][0][1].as_u64()), (Some(3), Some(1)));
    // The second turn: two seconds of thought (3 − 0 − 1), not shortened by the speed, after the first one's end.
    let last = own["duration_s"].as_f64().unwrap();
    assert!((2.0..4.0).contains(&last), "{last} s");
    let groups = own["groups"]["class"].as_array().unwrap();
    let of = |name: &str| groups.iter().find(|g| g["name"] == name).unwrap();
    assert_eq!((of("API log")["judged"].as_u64(), of("API log")["good"].as_u64()), (Some(1), Some(1)));
    assert_eq!(
        (of("Conversation log")["judged"].as_u64(), of("Conversation log")["good"].as_u64()),
        (Some(2), Some(0))
    );

    // Our own record is a workload like any other: the same lengths and classes, at the times they were due.
    let again = bench(
        &server.url(),
        &format!("--dataset-name record --dataset-path {folder} --rate-scale 5 --format json --no-fail"),
    );
    let again = again.exits(0).json();
    let replayed = &again["tailbound"];
    assert_eq!(replayed["trace"]["format"], "record");
    assert_eq!(again["total_input_tokens"], result["total_input_tokens"]);
    assert_eq!(again["total_output_tokens"], result["total_output_tokens"]);
    assert_eq!(replayed["groups"]["class"].as_array().unwrap().len(), 2);
    let report = run(&["report", &folder, "--no-fail"]).exits(0);
    assert!(report.stdout.contains("By class") && report.stdout.contains("Rows read:"), "{}", report.stdout);
}

#[test]
fn a_preset_says_what_it_stands_for_and_sends_that() {
    let server = emulator(config(1));
    let flags = "--preset code --num-prompts 5 --seed 1";
    let plan = bench(&server.url(), &format!("{flags} --dry-run")).exits(0);
    for part in ["preset             code", "Azure's 2023 code trace", "DistServe", "ttft:125 tpot:200, 0.9"] {
        assert!(plan.stdout.contains(part), "{part} is not in {}", plan.stdout);
    }
    bench(&server.url(), &format!("{flags} --dataset-name sample")).refuses(2, &["--preset code"]);
    let result =
        bench(&server.url(), &format!("{flags} --max-model-len 100000 --format json --no-fail")).exits(0).json();
    let goodput = &result["tailbound"]["goodput"];
    assert_eq!(goodput["by_metric"]["ttft"]["limit_s"], 0.125);
    assert_eq!(goodput["required_share"], 0.9);
}

#[test]
fn flags_about_traces_are_refused_where_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(dir.path(), "t.jsonl", &mooncake(4));
    let server = emulator(config(1));
    let url = server.url();
    bench(&url, "--dataset-name random --rate-scale 2").refuses(2, &["--rate-scale", "no trace"]);
    bench(&url, "--dataset-name random --multi-turn").refuses(2, &["--multi-turn"]).hints("sharegpt");
    bench(&url, &format!("--dataset-name trace --dataset-path {file} --request-rate 5 --rate-scale 2"))
        .refuses(2, &["--rate-scale"]);
    bench(&url, &format!("--dataset-name trace --dataset-path {file} --window 1h..2h")).refuses(2, &["no row"]);
    let talk = conversations(dir.path());
    bench(&url, &format!("--dataset-name sharegpt --multi-turn --dataset-path {talk}"))
        .refuses(2, &["--endpoint /v1/completions", "chat"])
        .hints("--backend openai-chat");
    bench(&url, "--dataset-name mooncake").refuses(2, &["--dataset-path"]);
    bench(&url, "--dataset-name record --dataset-path /nonexistent").refuses(1, &["/nonexistent"]);
}
