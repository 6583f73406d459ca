//! Answers that are failures, and replies that only look like one.

use super::script::*;
use super::{Framing, Script};
use crate::Fault;

const WORDS: [&str; 2] = ["one", " two"];

pub(super) fn scripts() -> Vec<Script> {
    let mut all = refusals();
    all.extend(streams());
    all
}

/// Replies to the request as a whole.
fn refusals() -> Vec<Script> {
    let reply = |name, about, status: u16, kind: &'static str, body: &str, message| {
        let fault = if status == 200 { Fault::Protocol } else { Fault::Status(status) };
        Script::chat(name, about)
            .status(status)
            .kind(kind)
            .framing(Framing::Length)
            .send(100, body)
            .fails(fault, message)
    };
    const PAGE: &str =
        "<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title></head><body><h1>Oops</h1></body></html>";
    vec![
        reply(
            "status_json",
            "a status of 429 with an error object",
            429,
            "application/json",
            r#"{"error":{"message":"queue is full","type":"overloaded","code":429}}"#,
            "queue is full",
        ),
        reply("status_text", "a status of 500 with text", 500, "text/plain", "Internal\r\nServer Error\n", "Internal Server Error"),
        reply("status_html", "a status of 502 with a page", 502, "text/html", PAGE, "502 Bad Gateway"),
        reply("status_empty", "a status of 503 without a body", 503, "", "", "no body"),
        reply(
            "status_detail",
            "a status of 422 with a list of details",
            422,
            "application/json",
            r#"{"detail":[{"loc":["body","n"],"msg":"not an integer"},{"msg":"too long"}]}"#,
            "not an integer; too long",
        ),
        reply(
            "status_stream",
            "a status of 400 whose error comes as a stream event",
            400,
            "text/event-stream",
            "data: {\"error\":{\"message\":\"too long\"}}\n\n",
            "too long",
        ),
        reply("html_with_200", "a page with status 200", 200, "text/html", PAGE, "502 Bad Gateway"),
        reply(
            "other_json_with_200",
            "JSON with status 200 that is no answer",
            200,
            "application/json",
            r#"{"status":"ok"}"#,
            "not a completion",
        ),
        Script::chat("error_json_with_200", "an error object with status 200, not streamed")
            .kind("application/json")
            .framing(Framing::Length)
            .send(100, r#"{"error":{"message":"no such model"}}"#)
            .fails(Fault::ErrorObject, "no such model"),
        Script::chat("compressed", "a compressed stream, though none was asked for")
            .encoding("gzip")
            .send(100, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
            .fails(Fault::Protocol, "content-encoding: gzip"),
        Script::chat("empty_body", "status 200 and no body").framing(Framing::Length).fails(Fault::EndedEarly, "0 output events"),
        Script::chat("not_streamed", "a stream was asked for, the answer comes in one piece")
            .kind("application/json")
            .framing(Framing::Length)
            .output(
                300,
                r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"one two"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
                "one two",
            )
            .tokens(2),
        Script::chat("reply_cut", "an answer in one piece is cut off")
            .kind("application/json")
            .framing(Framing::Length)
            .send(100, r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"one"#)
            .reset()
            .fails(Fault::Reset, "broke off"),
    ]
}

/// Streams that go wrong.
fn streams() -> Vec<Script> {
    let begun = |name, about| Script::chat(name, about).send(10, chat(ROLE)).words(&WORDS);
    vec![
        begun("error_string", "the error is a string")
            .send(10, data(r#"{"error":"CUDA out of memory"}"#))
            .fails(Fault::ErrorObject, "CUDA out of memory"),
        begun("error_event", "an event named error whose data is text")
            .send(10, "event: error\ndata: worker lost\n\n")
            .fails(Fault::ErrorObject, "worker lost"),
        begun("error_event_json", "an event named error whose data is an object")
            .send(10, named("error", r#"{"message":"worker lost","code":7}"#))
            .fails(Fault::ErrorObject, "worker lost"),
        begun("error_object_type", "the older error object, marked by `object`")
            .send(10, data(r#"{"object":"error","message":"aborted","code":50001}"#))
            .fails(Fault::ErrorObject, "aborted"),
        begun("error_bare_line", "an error object as a bare line, without `data:`")
            .send(10, "{\"error\":{\"message\":\"engine loop died\"}}\n")
            .fails(Fault::ErrorObject, "engine loop died"),
        begun("error_field", "an error in a field of its own, `error: {…}`")
            .send(10, "error: {\"code\":500,\"message\":\"slot lost\"}\n\n")
            .fails(Fault::ErrorObject, "slot lost"),
        begun("error_with_choices", "an error object beside choices, and the finish reason says error")
            .send(
                10,
                data(r#"{"error":{"code":502,"message":"provider gone"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#),
            )
            .fails(Fault::ErrorObject, ""),
        begun("finish_error", "the finish reason is `error`")
            .send(10, chat_finish("error"))
            .send(1, DONE)
            .fails(Fault::ErrorObject, "\"error\""),
        begun("finish_abort", "the finish reason is `abort`")
            .send(10, chat_finish("abort"))
            .send(1, DONE)
            .fails(Fault::ErrorObject, "\"abort\""),
        begun("error_then_done", "an error, then a finish reason and [DONE] as if nothing were wrong")
            .send(10, data(r#"{"error":{"message":"lost a rank"}}"#))
            .words(&[" three"])
            .ending(3)
            .fails(Fault::ErrorObject, "lost a rank"),
        begun("broken_json", "an event whose data is no JSON")
            .send(10, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}\n\n")
            .send(1, DONE)
            .fails(Fault::Protocol, "not a JSON object: {\"choices\""),
        begun("text_data", "an event whose data is plain text")
            .send(10, "data: hello\n\n")
            .ending(2)
            .fails(Fault::Protocol, "not a JSON object: hello"),
        begun("cut_event", "a clean end in the middle of an event")
            .send(10, "data: {\"choices\":[{\"index\":0,\"del")
            .fails(Fault::EndedEarly, "without a finish reason"),
        begun("one_of_two_unfinished", "one of two choices never finishes")
            .choices(2)
            .output(10, data(&chat_json_of(1, &content("x"), "null", "")), "x")
            .send(10, chat_finish("stop"))
            .fails(Fault::EndedEarly, "without a finish reason"),
        begun("one_of_two_missing", "two choices were asked for, and only one comes")
            .choices(2)
            .send(10, chat_finish("stop"))
            .fails(Fault::EndedEarly, "without a finish reason"),
        begun("reset_after_finish", "the connection is reset after the finish reason, before [DONE]")
            .send(10, chat_finish("stop"))
            .reset()
            .fails(Fault::Reset, "broke off"),
        begun("content_length_short", "the connection closes before content-length is reached")
            .framing(Framing::Length)
            .reset()
            .fails(Fault::Reset, "broke off"),
        Script::chat("only_done", "[DONE] and nothing else").send(100, DONE).fails(Fault::NoTokens, "without a token"),
        Script::chat("only_role_and_finish", "a role and a finish reason, and no token between them")
            .send(10, chat(ROLE))
            .send(100, chat_finish("stop"))
            .send(1, usage(0))
            .send(1, DONE)
            .tokens(0)
            .fails(Fault::NoTokens, "without a token"),
        Script::chat("only_pings", "comments and a clean end").send(10, ": ping\n\n").send(100, ": ping\n\n").fails(
            Fault::EndedEarly,
            "0 output events",
        ),
        Script::chat("bare_json_lines", "JSON lines that are no event stream")
            .send(10, "{\"response\":\"one\",\"done\":false}\n{\"response\":\" two\",\"done\":true}\n")
            .fails(Fault::EndedEarly, "no stream events: {\"response\":\"one\""),
    ]
}
