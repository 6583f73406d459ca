//! What decoding costs: CPU time per stream event, by engine and by how the bytes are cut.
//!
//! `cargo run --release -p tailbound-wire --example decode_speed` prints a table. With arguments (`-- vllm_chat 100000`) it only decodes
//! that many events of one sample, for `valgrind` (instructions, allocations) or `perf stat`.

use std::hint::black_box;
use tailbound_wire::{Api, Decoder, End, Eof, Head, sse};

const SAMPLES: [(&str, Api, &str); 8] = [
    (
        "vllm_completions",
        Api::Completions,
        r#"data: {"id":"cmpl-9a48b1bdbea6b4a6","object":"text_completion","created":1796048100,"model":"smollm2-135m","choices":[{"index":0,"text":" quick","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}"#,
    ),
    (
        "vllm_chat",
        Api::Chat,
        r#"data: {"id":"chatcmpl-b8fe7c15b146a927","object":"chat.completion.chunk","created":1796048089,"model":"smollm2-135m","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    ),
    (
        "vllm_chat_usage",
        Api::Chat,
        r#"data: {"id":"chatcmpl-998aeebbebb0a416","object":"chat.completion.chunk","created":1796048073,"model":"smollm2-135m","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":34,"total_tokens":45,"completion_tokens":11,"completion_tokens_details":null}}"#,
    ),
    (
        "llamacpp_chat",
        Api::Chat,
        r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" there"}}],"created":1796047661,"id":"chatcmpl-QwvJMZ9uIMMLsOzVryJI5LBwCl3GkOnX","model":"smollm2-135m","system_fingerprint":"b1-7e4c0a9","object":"chat.completion.chunk"}"#,
    ),
    (
        "vllm_tool_call",
        Api::Chat,
        r#"data: {"id":"chatcmpl-adca2ee764a0a53c","object":"chat.completion.chunk","created":1796049316,"model":"smollm2-135m","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"en"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    ),
    (
        "responses",
        Api::Responses,
        "event: response.output_text.delta\ndata: {\"content_index\":0,\"delta\":\"gu\",\"item_id\":\"msg_b5c79e3c893f0f7d\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":4,\"type\":\"response.output_text.delta\"}",
    ),
    (
        "messages",
        Api::Messages,
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\" how\"},\"index\":0}",
    ),
    (
        "tgi",
        Api::TgiGenerate,
        r#"data:{"index":3,"token":{"id":260,"text":" the","logprob":-0.5361328,"special":false},"generated_text":null,"details":null}"#,
    ),
];

/// How the bytes of events are handed to the decoder.
#[derive(Clone, Copy)]
enum Cut {
    /// One event a push.
    Single,
    /// 32 events a push.
    Together,
    /// Each event in two pushes.
    Halves,
}

#[expect(clippy::print_stdout, reason = "a program of its own")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, events] = arguments.as_slice() {
        let sample = SAMPLES.iter().find(|sample| sample.0 == name).expect("a sample's name");
        decode(sample.1, sample.2, events.parse().expect("a count of events"), Cut::Single, false);
        return;
    }
    println!(
        "| sample | bytes | one event a push | 32 a push | cut in halves | text kept | SSE alone | serde_json::Value |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, api, event) in SAMPLES {
        let single = measure(|n| decode(api, event, n, Cut::Single, false));
        let together = measure(|n| decode(api, event, n, Cut::Together, false));
        let halves = measure(|n| decode(api, event, n, Cut::Halves, false));
        let text = measure(|n| decode(api, event, n, Cut::Single, true));
        let framing = measure(|n| frame(event, n));
        let tree = measure(|n| parse(event, n));
        println!(
            "| {name} | {} | {single:.0} ns | {together:.0} ns | {halves:.0} ns | {text:.0} ns | {framing:.0} ns | {tree:.0} ns |",
            event.len() + 2
        );
    }
}

/// The median of five: CPU nanoseconds per event.
fn measure(run: impl Fn(u32)) -> f64 {
    // The account is as fine as the scheduler's tick: enough events to make a tick small.
    const EVENTS: u32 = 400_000;
    run(EVENTS / 4);
    let mut costs: Vec<f64> = (0..5)
        .map(|_| {
            let before = cpu_ns();
            run(EVENTS);
            (cpu_ns() - before) as f64 / f64::from(EVENTS)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[2]
}

/// The main thread's time on a CPU, from the scheduler's own account (Linux).
fn cpu_ns() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's /proc");
    line.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

fn decode(api: Api, event: &str, events: u32, cut: Cut, keep_text: bool) {
    // No two neighbours carry the same text or usage.
    let varied: Vec<String> = (0..32).map(|i| vary(event, i)).collect();
    let together = varied.concat();
    let mut decoder = Decoder::new(api, true, keep_text);
    decoder.head(Head { status: 200, content_type: Some("text/event-stream"), content_encoding: None });
    let mut seen = 0;
    let on = |event: tailbound_wire::Event| black_box(event).output.is_some();
    for i in 0..if matches!(cut, Cut::Together) { events / 32 } else { events } {
        let bytes = varied[i as usize % 32].as_bytes();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        match cut {
            Cut::Single => decoder.push(black_box(bytes), |event| seen += u32::from(on(event))),
            Cut::Together => decoder.push(black_box(together.as_bytes()), |event| seen += u32::from(on(event))),
            Cut::Halves => {
                decoder.push(black_box(first), |event| seen += u32::from(on(event)));
                decoder.push(black_box(second), |event| seen += u32::from(on(event)));
            }
        }
    }
    let outcome = decoder.finish(Eof::Clean, |_| {});
    assert_eq!(outcome.outputs, seen);
    assert!(
        seen >= events / 32 * 32 && matches!(outcome.end, End::Failed(..)),
        "every event is output, none is a finish"
    );
}

/// The same event with another text and other counts.
fn vary(event: &str, i: usize) -> String {
    const TEXTS: [&str; 8] = [" a", " quick", " brown", "中文", " and", ",", " internationally", " \\n"];
    let text = TEXTS[i % 8];
    let mut event = format!("{event}\n\n");
    for old in [" quick", " there", " how", "gu", " the", "en"] {
        let old = format!(":\"{old}\"");
        if event.contains(&old) {
            event = event.replacen(&old, &format!(":\"{text}\""), 1);
            break;
        }
    }
    let counted = event.replace("\"total_tokens\":45", &format!("\"total_tokens\":{}", 45 + i));
    let counted = counted.replace("\"completion_tokens\":11", &format!("\"completion_tokens\":{}", 11 + i));
    counted.replace("\"sequence_number\":4", &format!("\"sequence_number\":{}", 4 + i))
}

fn frame(event: &str, events: u32) {
    let event = format!("{event}\n\n");
    let mut parser = sse::Parser::new();
    for _ in 0..events {
        parser
            .push(black_box(event.as_bytes()), |item| {
                black_box(item);
            })
            .expect("a short event");
    }
}

fn parse(event: &str, events: u32) {
    let json = event.split_once("data:").map_or(event, |(_, json)| json).trim();
    for _ in 0..events {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(json)).expect("a sample is JSON"));
    }
}
