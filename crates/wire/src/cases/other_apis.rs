//! Completions, Responses, Messages, TGI and llama.cpp's own API; replies in one piece.

use super::script::*;
use super::{Framing, Script};
use crate::{Api, Fault};

pub(super) fn scripts() -> Vec<Script> {
    [completions(), responses(), messages(), tgi_and_llama(), whole()].into_iter().flatten().collect()
}

fn completions() -> Vec<Script> {
    let new = |name, about| Script::new(Api::Completions, name, about);
    vec![
        new("completions", "finish on the last token, then usage (vLLM)")
            .output(100, text("one", "null"), "one")
            .output(100, text(" two", "null"), " two")
            .output(100, text(" three", "\"length\""), " three")
            .send(1, usage(3))
            .send(1, DONE)
            .reason(Some("length")),
        new("completions_empty_finish", "the end-of-sequence token has no text and brings the finish reason")
            .output(100, text("one", "null"), "one")
            .send(100, text("", "\"stop\""))
            .send(1, usage(2))
            .send(1, DONE)
            .tokens(2),
        new("completions_empty_text", "a token without text in the middle")
            .output(100, text("one", "null"), "one")
            .hidden(100, text("", "null"), 1)
            .output(100, text(" two", "\"stop\""), " two")
            .send(1, DONE),
        new("completions_ended_early", "a clean end without finish")
            .output(100, text("one", "null"), "one")
            .fails(Fault::EndedEarly, "1 output event "),
        new("completions_error_midway", "an error object after a token")
            .output(100, text("one", "null"), "one")
            .send(100, data(r#"{"error":{"message":"engine died"}}"#))
            .send(1, DONE)
            .fails(Fault::ErrorObject, "engine died"),
    ]
}

fn responses() -> Vec<Script> {
    let new = |name, about| Script::new(Api::Responses, name, about);
    let delta = |kind: &str, text: &str| {
        named(kind, &format!(r#"{{"delta":{},"sequence_number":4,"type":"{kind}"}}"#, serde_json::Value::from(text)))
    };
    let end =
        |kind: &str, inside: &str| named(kind, &format!(r#"{{"type":"{kind}","response":{{"id":"r",{inside}}}}}"#));
    let created = end("response.created", r#""status":"in_progress","error":null,"usage":null,"output":[]"#);
    let count = r#""usage":{"input_tokens":7,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}"#;
    let completed =
        |count: &str| end("response.completed", &format!(r#""status":"completed","error":null,"output":[],{count}"#));
    vec![
        new("responses", "text deltas, the full text again, completed")
            .send(10, &created)
            .send(1, named("response.output_item.added", r#"{"item":{"type":"message","content":[]},"type":"response.output_item.added"}"#))
            .send(1, named("response.content_part.added", r#"{"part":{"type":"output_text","text":""},"type":"response.content_part.added"}"#))
            .output(100, delta("response.output_text.delta", "one"), "one")
            .output(100, delta("response.output_text.delta", " two"), " two")
            .send(1, named("response.output_text.done", r#"{"text":"one two","type":"response.output_text.done"}"#))
            .send(1, completed(count))
            .reason(Some("completed")),
        new("responses_reasoning", "reasoning deltas first")
            .send(10, &created)
            .hidden(100, delta("response.reasoning_text.delta", "Hm"), 1)
            .hidden(100, delta("response.reasoning_summary_text.delta", "Hm"), 1)
            .output(100, delta("response.output_text.delta", "one"), "one")
            .send(1, completed(r#""usage":{"input_tokens":7,"output_tokens":3}"#))
            .reason(Some("completed")),
        new("responses_function_call", "a function call: its name, then its arguments")
            .send(10, &created)
            .output(100, named("response.output_item.added", r#"{"item":{"type":"function_call","name":"f","arguments":""},"type":"response.output_item.added"}"#), "")
            .output(100, delta("response.function_call_arguments.delta", "{}"), "")
            .send(1, completed(count))
            .reason(Some("completed")),
        new("responses_refusal", "refusal deltas")
            .send(10, &created)
            .output(100, delta("response.refusal.delta", "no"), "no")
            .send(1, completed(r#""usage":{"output_tokens":1}"#))
            .reason(Some("completed")),
        new("responses_incomplete", "the length limit ends it")
            .send(10, &created)
            .output(100, delta("response.output_text.delta", "one"), "one")
            .send(1, end("response.incomplete", r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"output_tokens":1}"#))
            .reason(Some("max_output_tokens")),
        new("responses_failed", "it fails after a token")
            .send(10, &created)
            .output(100, delta("response.output_text.delta", "one"), "one")
            .send(1, end("response.failed", r#""status":"failed","error":{"code":"server_error","message":"out of luck"}"#))
            .fails(Fault::ErrorObject, "out of luck"),
        new("responses_error", "an error event at once")
            .send(100, named("error", r#"{"type":"error","code":"rate_limit","message":"slow down","param":null}"#))
            .fails(Fault::ErrorObject, "slow down"),
        new("responses_ended_early", "no terminal event")
            .send(10, &created)
            .output(100, delta("response.output_text.delta", "one"), "one")
            .fails(Fault::EndedEarly, "1 output event "),
        new("responses_unnamed", "events without an `event:` line")
            .output(100, data(r#"{"type":"response.output_text.delta","delta":"one"}"#), "one")
            .send(1, data(r#"{"response":{"usage":{"output_tokens":1},"status":"completed"},"type":"response.completed"}"#))
            .send(1, DONE)
            .reason(Some("completed")),
        new("responses_only_completed", "nothing but the completed response")
            .send(10, &created)
            .output(300, end("response.completed", r#""status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"one two"}]}],"usage":{"output_tokens":2}"#), "one two")
            .tokens(2)
            .reason(Some("completed")),
    ]
}

fn messages() -> Vec<Script> {
    let new = |name, about| {
        Script::new(Api::Messages, name, about).send(
            10,
            named(
                "message_start",
                r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":20,"output_tokens":1}}}"#,
            ),
        )
    };
    let start = |block: &str| {
        named("content_block_start", &format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#))
    };
    let delta = |inside: &str| {
        named("content_block_delta", &format!(r#"{{"type":"content_block_delta","index":0,"delta":{{{inside}}}}}"#))
    };
    let stop = |reason: &str, n: u32| {
        named("content_block_stop", r#"{"type":"content_block_stop","index":0}"#)
            + &named(
                "message_delta",
                &format!(
                    r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":{n}}}}}"#
                ),
            )
            + &named("message_stop", r#"{"type":"message_stop"}"#)
    };
    let text_block = start(r#"{"type":"text","text":""}"#);
    vec![
        new("messages", "text deltas with a ping among them")
            .send(1, &text_block)
            .output(100, delta(r#""type":"text_delta","text":"one""#), "one")
            .send(50, named("ping", r#"{"type":"ping"}"#))
            .output(100, delta(r#""type":"text_delta","text":" two""#), " two")
            .send(1, stop("end_turn", 2))
            .reason(Some("end_turn")),
        new("messages_thinking", "thinking, its signature, then text")
            .send(1, start(r#"{"type":"thinking","thinking":"","signature":""}"#))
            .hidden(100, delta(r#""type":"thinking_delta","thinking":"Hm""#), 1)
            .send(10, delta(r#""type":"signature_delta","signature":"abc""#))
            .send(1, &text_block)
            .output(100, delta(r#""type":"text_delta","text":"one""#), "one")
            .send(1, stop("max_tokens", 2))
            .reason(Some("max_tokens")),
        new("messages_tool_use", "a tool call: its name, an empty piece, its arguments")
            .output(100, start(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#), "")
            .send(10, delta(r#""type":"input_json_delta","partial_json":"""#))
            .output(100, delta(r#""type":"input_json_delta","partial_json":"{}""#), "")
            .send(1, stop("tool_use", 12))
            .tokens(12)
            .reason(Some("tool_use")),
        new("messages_error", "an error event after a token")
            .send(1, &text_block)
            .output(100, delta(r#""type":"text_delta","text":"one""#), "one")
            .send(100, named("error", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#))
            .fails(Fault::ErrorObject, "Overloaded"),
        new("messages_ended_early", "no stop reason and no message_stop")
            .send(1, &text_block)
            .output(100, delta(r#""type":"text_delta","text":"one""#), "one")
            .fails(Fault::EndedEarly, "1 output event "),
    ]
}

fn tgi_and_llama() -> Vec<Script> {
    let tgi = |name, about| Script::new(Api::TgiGenerate, name, about);
    let token = |text: &str, special: bool, rest: &str| {
        let text = serde_json::Value::from(text);
        format!(
            "data:{{\"index\":1,\"token\":{{\"id\":5,\"text\":{text},\"logprob\":-0.5,\"special\":{special}}},{rest}}}\n\n"
        )
    };
    const GOING_ON: &str = r#""generated_text":null,"details":null"#;
    let llama = |text: &str, ids: &str, n: u32, rest: &str| {
        data(&format!(
            r#"{{"index":0,"content":{},"tokens":{ids},"tokens_predicted":{n},"tokens_evaluated":4,{rest}}}"#,
            serde_json::Value::from(text)
        ))
    };
    vec![
        tgi("tgi", "one token an event; the last brings the whole text")
            .output(100, token("one", false, GOING_ON), "one")
            .output(
                100,
                token(" two", false, r#""generated_text":"one two","details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":7}"#),
                " two",
            )
            .reason(Some("length")),
        tgi("tgi_end_of_sequence", "the last event brings a special token")
            .output(100, token("one", false, GOING_ON), "one")
            .send(100, token("</s>", true, r#""generated_text":"one","details":{"finish_reason":"eos_token","generated_tokens":2}"#))
            .tokens(2)
            .reason(Some("eos_token")),
        tgi("tgi_error", "an error after a token")
            .output(100, token("one", false, GOING_ON), "one")
            .send(100, "data:{\"error\":\"Request failed during generation: oom\",\"error_type\":\"generation\"}\n\n")
            .fails(Fault::ErrorObject, "oom"),
        tgi("tgi_ended_early", "no event with the whole text")
            .output(100, token("one", false, GOING_ON), "one")
            .fails(Fault::EndedEarly, "1 output event "),
        Script::new(Api::LlamaCompletion, "llama_completion", "llama.cpp's own stream, without [DONE]")
            .output(100, llama("one", "[1]", 1, r#""stop":false"#), "one")
            .hidden(100, llama("", "[2]", 2, r#""stop":false"#), 1)
            .output(100, llama(" two", "[3]", 3, r#""stop":false"#), " two")
            .send(1, llama("", "[]", 3, r#""stop":true,"stop_type":"limit""#))
            .reason(Some("length")),
    ]
}

fn whole() -> Vec<Script> {
    let reply = |api, name, body: &str, tokens, text: &str| {
        Script::new(api, name, "a reply in one piece, as asked for")
            .unstreamed()
            .kind("application/json")
            .framing(Framing::Length)
            .output(300, body, text)
            .tokens(tokens)
    };
    vec![
        reply(
            Api::Chat,
            "chat_whole",
            r#"{"choices":[{"message":{"role":"assistant","content":"one two","reasoning":null},"finish_reason":"stop","index":0}],"usage":{"completion_tokens":2}}"#,
            2,
            "one two",
        ),
        reply(
            Api::Completions,
            "completions_whole",
            r#"{"choices":[{"text":"one","finish_reason":"length","index":0},{"text":"uno","finish_reason":"length","index":1}],"usage":{"completion_tokens":2}}"#,
            2,
            "oneuno",
        )
        .choices(2)
        .reason(Some("length")),
        reply(
            Api::Responses,
            "responses_whole",
            r#"{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"one"}]}],"usage":{"input_tokens":7,"output_tokens":2}}"#,
            2,
            "one",
        )
        .reason(Some("completed")),
        reply(
            Api::Messages,
            "messages_whole",
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"one"},{"type":"tool_use","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":9}}"#,
            9,
            "one",
        )
        .reason(Some("tool_use")),
        reply(
            Api::TgiGenerate,
            "tgi_whole",
            r#"[{"generated_text":"one two","details":{"finish_reason":"length","generated_tokens":2,"prefill":[{"id":1}]}}]"#,
            2,
            "one two",
        )
        .reason(Some("length")),
    ]
}
