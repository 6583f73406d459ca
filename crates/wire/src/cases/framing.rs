//! Chat streams whose meaning is plain and whose bytes are not: line ends, comments, cuts, timing.

use super::script::*;
use super::{Framing, Script};
use crate::Fault;

const WORDS: [&str; 4] = ["one", " two", " three", " four"];

/// A whole answer of four words in one string.
fn answer() -> String {
    let words: String = WORDS.iter().map(|word| chat(&content(word))).collect();
    format!("{}{words}{}{}{DONE}", chat(ROLE), chat_finish("stop"), usage(4))
}

/// Four words as single pieces, every piece changed in the same way.
fn changed(script: Script, change: impl Fn(String) -> String) -> Script {
    let mut script = script.send(1, change(chat(ROLE)));
    for word in WORDS {
        script = script.output(100, change(chat(&content(word))), word);
    }
    script.send(1, change(chat_finish("stop"))).send(1, change(usage(4))).send(1, change(DONE.into())).tokens(4)
}

/// The cases of the published comparison of clients.
pub(super) fn published() -> Vec<Script> {
    let reasoning = |name, about, field: &str| {
        let mut script = Script::chat(name, about).send(10, chat(ROLE));
        for thought in ["Let", " me", " think", "."] {
            script = script.hidden(100, chat(&format!(r#""{field}":"{thought}""#)), 1);
        }
        script.words(&WORDS).ending(8)
    };
    let tool = |delta: &str| chat(&format!(r#""content":null,"tool_calls":[{{"index":0,{delta}}}]"#));
    let mut bundles =
        Script::chat("bundles", "four tokens an event, as with speculative decoding; usage says so at the end");
    bundles = bundles.send(1, chat(ROLE));
    for _ in 0..5 {
        bundles = bundles.output(400, chat(&content("a b c d ")), "a b c d ");
    }
    let coalesced: String = WORDS.iter().map(|word| chat(&content(word))).collect();
    let mut groups = Script::chat("coalesced", "four events in one read, four times").send(1, chat(ROLE));
    for _ in 0..4 {
        groups = groups.outputs(200, &coalesced, 4, &WORDS.concat());
    }
    let han = chat(&content("中文")).into_bytes();
    let cut = memchr::memmem::find(&han, "中".as_bytes()).unwrap_or(0) + 1;
    let spaced = chat(&content("hello world")).into_bytes();
    let blank = memchr::memmem::find(&spaced, b"hello ").unwrap_or(0) + 6;
    let with_usage =
        |i: u32, word: &str| data(&chat_json_of(0, &content(word), "null", &format!(",{}", usage_field(i))));

    vec![
        Script::chat("plain", "nothing special").send(10, chat(ROLE)).words(&WORDS).ending(4),
        Script::chat("role_first", "the role chunk comes 300 ms before the first token")
            .send(10, chat(ROLE))
            .send(200, "")
            .words(&WORDS)
            .ending(4),
        reasoning("reasoning_content", "reasoning under its older name, then content", "reasoning_content"),
        reasoning("reasoning", "reasoning, then content", "reasoning"),
        Script::chat("tool_calls_only", "a tool call and no content at all")
            .send(10, chat(ROLE))
            .output(100, tool(r#""id":"c1","type":"function","function":{"name":"get_weather","arguments":""}"#), "")
            .output(100, tool(r#""function":{"arguments":"{\"city\""}"#), "")
            .output(100, tool(r#""function":{"arguments":":\"Paris\""}"#), "")
            .output(100, tool(r#""function":{"arguments":"}"}"#), "")
            .send(1, chat_finish("tool_calls"))
            .send(1, usage(4))
            .send(1, DONE)
            .reason(Some("tool_calls")),
        Script::chat("ping_before_tokens", "comments keep the connection alive before the first token")
            .send(10, ": ping\n\n")
            .send(50, ": ping\n\n")
            .send(50, chat(ROLE))
            .words(&WORDS)
            .ending(4),
        Script::chat("ping_between_tokens", "a comment between the second and the third token")
            .send(10, chat(ROLE))
            .words(&WORDS[..2])
            .send(50, ": keep-alive\n\n")
            .words(&WORDS[2..])
            .ending(4),
        changed(Script::chat("crlf", "lines end with CR LF"), |event| event.replace('\n', "\r\n")),
        Script::chat("crlf_coalesced", "lines end with CR LF, and the whole answer comes at once").outputs(
            200,
            answer().replace('\n', "\r\n"),
            4,
            &WORDS.concat(),
        ),
        changed(Script::chat("no_space", "no blank after `data:`"), |event| event.replace("data: ", "data:")),
        changed(Script::chat("event_line", "every event has an `event:` line first"), |event| {
            format!("event: message\n{event}")
        }),
        Script::chat("bom", "the stream begins with a byte order mark")
            .output(100, format!("\u{FEFF}{}", chat(&content("one"))), "one")
            .words(&WORDS[1..])
            .ending(4),
        Script::chat("utf8_split", "a read ends in the middle of a character")
            .send(10, chat(ROLE))
            .send(100, &han[..cut])
            .output(20, &han[cut..], "中文")
            .ending(1),
        Script::chat("split_after_blank", "a read ends after a blank inside the text")
            .send(10, chat(ROLE))
            .send(100, &spaced[..blank])
            .output(20, &spaced[blank..], "hello world")
            .ending(2),
        Script::chat("error_midway", "an error object after two tokens")
            .send(10, chat(ROLE))
            .words(&WORDS[..2])
            .send(100, data(r#"{"error":{"message":"engine died","type":"internal_error","code":500}}"#))
            .send(1, DONE)
            .fails(Fault::ErrorObject, "engine died"),
        Script::chat("error_first", "an error object is all there is")
            .send(100, data(r#"{"error":{"message":"engine died","type":"internal_error","code":500}}"#))
            .send(1, DONE)
            .fails(Fault::ErrorObject, "engine died"),
        Script::chat("ended_early", "a clean end after two tokens, without finish, usage or [DONE]")
            .send(10, chat(ROLE))
            .words(&WORDS[..2])
            .fails(Fault::EndedEarly, "without a finish reason"),
        Script::chat("reset_midway", "the connection is reset after two tokens")
            .send(10, chat(ROLE))
            .words(&WORDS[..2])
            .send(100, "")
            .reset()
            .fails(Fault::Reset, "broke off"),
        bundles.ending(20),
        groups.ending(16),
        Script::chat("usage_late", "usage comes a second after the last token")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, chat_finish("stop"))
            .send(1000, usage(4))
            .send(1, DONE),
        Script::chat("finish_late", "the finish chunk comes half a second after the last token")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(500, chat_finish("stop"))
            .send(1, usage(4))
            .send(1, DONE),
        Script::chat("empty_content", "tokens without text (special tokens, half characters)")
            .send(10, chat(ROLE))
            .hidden(100, chat(r#""content":"""#), 1)
            .hidden(100, chat(r#""content":"""#), 1)
            .hidden(100, chat(r#""content":"""#), 1)
            .output(100, chat(&content("x")), "x")
            .ending(4),
        Script::chat("usage_in_chunks", "usage stands in the token chunks and nowhere else")
            .send(10, chat(ROLE))
            .output(100, with_usage(1, "one"), "one")
            .output(100, with_usage(2, " two"), " two")
            .output(100, with_usage(3, " three"), " three")
            .output(100, with_usage(4, " four"), " four")
            .send(1, chat_finish("stop"))
            .send(1, DONE),
        Script::chat("no_usage", "no usage at all")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, chat_finish("stop"))
            .send(1, DONE),
    ]
}

/// More ways to cut and to wrap.
pub(super) fn scripts() -> Vec<Script> {
    let whole = answer();
    let pretty = "data: {\"choices\": [\ndata:   {\"index\": 0,\ndata:\ndata:    \"delta\": {\"content\": \"one\"},\ndata:    \"finish_reason\": null}\ndata: ]}\n\n";
    let long = "long ".repeat(20_000);
    let long_event = chat(&content(&long)).into_bytes();
    let mut trickle = Script::chat("one_byte_reads", "the first token comes a byte at a time").send(10, chat(ROLE));
    let first = chat(&content("one")).into_bytes();
    for byte in &first[..first.len() - 1] {
        trickle = trickle.send(0, [*byte]);
    }
    trickle = trickle.output(100, [first[first.len() - 1]], "one");
    let half = |event: &str| {
        let (a, b) = event.split_at(event.len() / 2);
        (a.to_owned(), b.to_owned())
    };
    let (one_a, one_b) = half(&chat(&content("one")));
    let (two_a, two_b) = half(&chat(&content(" two")));

    vec![
        changed(Script::chat("lone_cr", "lines end with CR alone"), |event| event.replace('\n', "\r")),
        changed(Script::chat("mixed_line_ends", "each event ends with CR LF and then LF"), |event| {
            event.replacen('\n', "\r\n", 1)
        }),
        Script::chat("crlf_cut", "a read ends between CR and LF, and the event is complete with the CR")
            .send(10, chat(ROLE).replace('\n', "\r\n"))
            .output(100, format!("data: {}\r\n\r", chat_json(&content("one"))), "one")
            .output(100, format!("\ndata: {}\r\n\r", chat_json(&content(" two"))), " two")
            .send(1, format!("\n{}", (chat_finish("stop") + &usage(2) + DONE).replace('\n', "\r\n"))),
        Script::chat("multi_line_data", "one JSON object over several data lines, one of them empty")
            .output(100, pretty, "one")
            .words(&WORDS[1..])
            .ending(4),
        Script::chat("comment_inside_event", "a comment between the lines of an event")
            .output(100, format!(": a\nevent: message\n:\n: b\ndata: {}\n: c\n\n", chat_json(&content("one"))), "one")
            .words(&WORDS[1..])
            .ending(4),
        changed(Script::chat("id_and_retry", "every event has `id:` and `retry:` lines"), |event| {
            format!("id: 7\nretry: 3000\n{event}")
        }),
        changed(Script::chat("many_blank_lines", "several blank lines between events"), |event| event + "\n\n\n"),
        changed(Script::chat("blanks_around_data", "blanks around the JSON and around [DONE]"), |event| {
            event.replace("data: ", "data:    ").replacen("\n\n", "  \n\n", 1)
        }),
        Script::chat("empty_data", "events with empty data keep the connection alive")
            .send(10, "data:\n\n")
            .send(10, "data: \n\ndata\n\n")
            .words(&WORDS)
            .ending(4),
        Script::chat("named_pings", "events of their own keep the connection alive")
            .send(10, "event: ping\ndata: 2026-11-30 14:00:00\n\n")
            .send(10, "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: heartbeat\n\n")
            .words(&WORDS)
            .ending(4),
        Script::chat("all_at_once", "the whole answer in one read").outputs(200, &whole, 4, &WORDS.concat()),
        Script::chat("reads_across_events", "every read ends in the middle of an event")
            .send(10, format!("{}{one_a}", chat(ROLE)))
            .output(100, format!("{one_b}{two_a}"), "one")
            .output(100, two_b, " two")
            .ending(2),
        trickle.ending(1),
        Script::chat("long_event", "one event of 100 kB over several reads")
            .send(10, chat(ROLE))
            .send(50, &long_event[..30_000])
            .send(10, &long_event[30_000..65_536])
            .output(10, &long_event[65_536..], &long)
            .ending(20_000),
        Script::chat("no_last_blank_line", "the body ends right after the last line, without its blank line")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, format!("{}{}", usage(4), chat_finish("stop").trim_end())),
        Script::chat("close_delimited", "neither chunked nor content-length: the body ends with the connection")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .framing(Framing::Close),
        Script::chat("content_length", "a stream with a content-length")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .framing(Framing::Length),
        Script::chat("no_content_type", "no content type: the bytes tell")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .kind(""),
        Script::chat("wrong_content_type", "an event stream that calls itself JSON")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .kind("application/json"),
        Script::chat("reset_after_done", "the connection is reset after [DONE]")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .reset(),
        Script::chat("identity_encoding", "content-encoding: identity is no encoding")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .ending(4)
            .encoding("identity"),
    ]
}
