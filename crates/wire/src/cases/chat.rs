//! Chat streams with unusual deltas, finishes and usage.

use super::Script;
use super::script::*;

const WORDS: [&str; 4] = ["one", " two", " three", " four"];

pub(super) fn scripts() -> Vec<Script> {
    let mut all = deltas();
    all.extend(counts());
    all
}

fn deltas() -> Vec<Script> {
    let progress = |done: u32| {
        let more = format!(r#","prompt_progress":{{"total":34,"cache":0,"processed":{done},"time_ms":9}}"#);
        data(&chat_json_of(0, r#""role":"assistant","content":null"#, "null", &more))
    };
    let sglang =
        |text: &str| chat(&format!(r#""role":null,{},"reasoning_content":null,"tool_calls":null"#, content(text)));
    let every_role = |text: &str| chat(&format!(r#""role":"assistant",{}"#, content(text)));
    let finish_as = |name, about, finish: &'static str| {
        let mut script = Script::chat(name, about).send(10, data(&chat_json_of(0, ROLE, finish, "")));
        for word in WORDS {
            script = script.output(100, data(&chat_json_of(0, &content(word), finish, "")), word);
        }
        script.ending(4)
    };
    vec![
        Script::chat("null_content_role", "the role chunk has null content (llama.cpp)")
            .send(10, chat(r#""role":"assistant","content":null"#))
            .words(&WORDS)
            .ending(4),
        Script::chat("null_content", "null content without a role is no token")
            .send(10, chat(r#""content":null"#))
            .send(100, chat(""))
            .words(&WORDS)
            .ending(4),
        Script::chat("prompt_progress", "chunks that report prefill progress come before the first token (llama.cpp)")
            .send(10, progress(10))
            .send(100, progress(20))
            .send(100, progress(34))
            .words(&WORDS)
            .ending(4),
        Script::chat("role_in_every_chunk", "the role stands in every chunk, content too")
            .output(100, every_role("one"), "one")
            .output(100, every_role(" two"), " two")
            .send(100, every_role(""))
            .ending(2),
        Script::chat("nulls_everywhere", "role, reasoning and tool calls are null in every chunk (SGLang)")
            .send(10, chat(r#""role":"assistant","content":"","reasoning_content":null,"tool_calls":null"#))
            .output(100, sglang("one"), "one")
            .hidden(100, sglang(""), 1)
            .output(100, sglang(" two"), " two")
            .ending(3),
        finish_as("empty_finish_reason", "the finish reason is an empty string until the end", "\"\""),
        finish_as("null_string_finish_reason", "the finish reason is the string \"null\" until the end", "\"null\""),
        Script::chat("finish_on_last_token", "the finish reason rides on the last token's chunk (vLLM)")
            .send(10, chat(ROLE))
            .words(&WORDS[..3])
            .output(100, data(&chat_json_of(0, &content(" four"), "\"length\"", "")), " four")
            .send(1, usage(4))
            .send(1, DONE)
            .reason(Some("length")),
        Script::chat("one_token", "the only token brings the finish reason along")
            .send(10, chat(ROLE))
            .output(100, data(&chat_json_of(0, &content("one"), "\"length\"", "")), "one")
            .send(1, usage(1))
            .send(1, DONE)
            .reason(Some("length")),
        Script::chat("both_reasoning_names", "reasoning under both names, one of them null")
            .send(10, chat(r#""role":"assistant","content":null,"reasoning":null,"reasoning_content":null"#))
            .hidden(100, chat(r#""reasoning":"Hm","reasoning_content":null"#), 1)
            .hidden(100, chat(r#""reasoning":null,"reasoning_content":" so""#), 1)
            .hidden(100, chat(r#""content":null,"reasoning_content":"""#), 1)
            .words(&WORDS)
            .ending(7),
        Script::chat("reasoning_details", "reasoning as a list of details, content empty beside it")
            .hidden(100, chat(r#""role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]"#), 1)
            .words(&WORDS)
            .ending(5),
        Script::chat("content_parts", "content is a list of parts, thinking among them")
            .send(10, chat(r#""role":"assistant","content":[]"#))
            .hidden(100, chat(r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]"#), 1)
            .output(100, chat(r#""content":[{"type":"text","text":"one"}]"#), "one")
            .words(&WORDS[1..])
            .ending(5),
        Script::chat("refusal", "a refusal instead of content")
            .send(10, chat(r#""role":"assistant","content":null,"refusal":null"#))
            .output(100, chat(r#""refusal":"I can't""#), "I can't")
            .output(100, chat(r#""refusal":" help.""#), " help.")
            .ending(2),
        Script::chat("audio", "audio with its transcript")
            .send(10, chat(r#""role":"assistant","content":null,"audio":{"id":"a1"}"#))
            .output(100, chat(r#""audio":{"transcript":"one"}"#), "")
            .output(100, chat(r#""audio":{"data":"UklGRg=="}"#), "")
            .send(100, chat(r#""audio":{"expires_at":1700000000}"#))
            .ending(2),
        Script::chat("function_call", "the older form of a tool call")
            .send(10, chat(r#""role":"assistant","content":null"#))
            .output(100, chat(r#""function_call":{"name":"f","arguments":""}"#), "")
            .output(100, chat(r#""function_call":{"arguments":"{}"}"#), "")
            .send(1, chat_finish("function_call"))
            .send(1, usage(2))
            .send(1, DONE)
            .reason(Some("function_call")),
        Script::chat("empty_tool_calls", "an empty list of tool calls is no output")
            .send(10, chat(r#""role":"assistant","content":"","tool_calls":[]"#))
            .send(100, chat(r#""content":null,"tool_calls":[],"function_call":null"#))
            .words(&WORDS)
            .ending(4),
        Script::chat("several_tools_in_one_chunk", "content and two tool calls in one chunk are one event")
            .send(10, chat(ROLE))
            .output(
                100,
                chat(r#""content":"one","tool_calls":[{"index":0,"function":{"name":"f"}},{"index":1,"function":{"name":"g"}}]"#),
                "one",
            )
            .ending(1),
        Script::chat("escapes", "the text is escaped: quotes, controls, surrogate pairs, a lone surrogate")
            .send(10, chat(ROLE))
            .output(100, chat(r#""content":"\"\\\/\n\t\u4e2d""#), "\"\\/\n\t中")
            .output(100, chat(r#""content":"\ud83d\ude00""#), "😀")
            .output(100, chat(r#""content":"\ud83d""#), "\u{FFFD}")
            .output(100, chat(r#""c\u006fntent":"x""#), "x")
            .ending(4),
        Script::chat("raw_unicode", "line separators and other unescaped characters inside the text")
            .send(10, chat(ROLE))
            .output(100, chat("\"content\":\"a\u{2028}b\u{85}c\u{7f}\""), "a\u{2028}b\u{85}c\u{7f}")
            .ending(1),
        Script::chat("invalid_utf8", "a byte that isn't UTF-8 stands for U+FFFD")
            .send(10, chat(ROLE))
            .output(100, [b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xFFb\"}}]}\n\n".as_slice()].concat(), "a\u{FFFD}b")
            .ending(1),
        Script::chat("names_in_other_places", "fields named like ours inside text, logprobs and other objects")
            .send(10, chat(r#""role":"assistant","content":"","extra":{"content":"no","tool_calls":[1]}"#))
            .output(
                100,
                data(
                    r#"{"error":null,"x":{"error":{"message":"no"},"choices":[{"delta":{"content":"no"}}],"usage":{"completion_tokens":99}},"choices":[{"logprobs":{"content":[{"token":"finish_reason","top_logprobs":[{"token":"\"}],\"error\":1"}]}],"finish_reason":"no"},"delta":{"content":"{\"error\":1}"},"finish_reason":null,"index":0}]}"#,
                ),
                "{\"error\":1}",
            )
            .ending(1),
        Script::chat("keys_reversed", "usage and finish stand before the choices' content")
            .output(
                100,
                data(r#"{"usage":{"completion_tokens":1,"prompt_tokens":7},"choices":[{"finish_reason":"stop","delta":{"content":"one"},"index":0}],"id":"x"}"#),
                "one",
            )
            .send(1, DONE),
    ]
}

fn counts() -> Vec<Script> {
    let of = |index: u32, text: &str| data(&chat_json_of(index, &content(text), "null", ""));
    let role_of = |index: u32| data(&chat_json_of(index, ROLE, "null", ""));
    let finish_of = |index: u32, more: &str| data(&chat_json_of(index, "", "\"stop\"", more));
    let grown =
        |text: &str, total: u32| data(&chat_json_of(0, &content(text), "null", &format!(",{}", usage_field(total))));
    let ids = |delta: &str, ids: &str, finish: &str| {
        data(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":{finish},"token_ids":{ids}}}]}}"#
        ))
    };
    vec![
        Script::chat("two_choices", "two choices interleaved; usage counts both")
            .choices(2)
            .send(10, role_of(0))
            .send(1, role_of(1))
            .output(100, of(0, "a"), "")
            .output(10, of(1, "x"), "")
            .output(100, of(0, "b"), "")
            .output(10, of(1, "y"), "")
            .send(1, finish_of(0, ""))
            .send(1, finish_of(1, ""))
            .send(1, usage(4))
            .send(1, DONE)
            .text("abxy"),
        Script::chat("two_choices_own_usage", "two choices, each with a usage of its own (llama.cpp)")
            .choices(2)
            .output(100, of(1, "x"), "")
            .output(10, of(0, "a"), "")
            .output(10, of(0, "b"), "")
            .send(1, finish_of(1, &format!(",{}", usage_field(1))))
            .send(1, finish_of(0, &format!(",{}", usage_field(2))))
            .send(1, DONE)
            .tokens(3)
            .text("abx"),
        Script::chat("two_choices_in_one_chunk", "two choices in each chunk")
            .choices(2)
            .output(
                100,
                data(r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"x"}}]}"#),
                "ax",
            )
            .send(
                100,
                data(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}"#),
            )
            .send(1, DONE)
            .tokens(2),
        Script::chat("bundles_counted", "usage in every chunk tells how many tokens each brought")
            .send(10, data(&chat_json_of(0, ROLE, "null", &format!(",{}", usage_field(0)))))
            .output(100, grown("one", 1), "one")
            .output(100, grown(" two three four", 4), " two three four")
            .output(100, grown(" five", 5), " five")
            .ending(5),
        Script::chat("held_back", "a parser on the server holds tokens back: usage grows, nothing is shown")
            .send(10, data(&chat_json_of(0, ROLE, "null", &format!(",{}", usage_field(0)))))
            .hidden(100, data(&chat_json_of(0, "", "null", &format!(",{}", usage_field(1)))), 1)
            .hidden(100, data(&chat_json_of(0, "", "null", &format!(",{}", usage_field(2)))), 1)
            .output(100, grown("one", 3), "one")
            .ending(3),
        Script::chat("token_ids", "token ids tell how many tokens each chunk brought")
            .send(10, chat(ROLE))
            .output(100, ids(&content("one"), "[11]", "null"), "one")
            .output(100, ids(&content(" two three"), "[12,13]", "null"), " two three")
            .hidden(100, ids("", "[14]", "null"), 1)
            .send(1, ids("", "null", "\"stop\""))
            .send(1, DONE)
            .tokens(4),
        Script::chat("null_usage", "usage is null until the end")
            .send(10, data(&chat_json_of(0, ROLE, "null", r#","usage":null"#)))
            .output(100, data(&chat_json_of(0, &content("one"), "null", r#","usage":null"#)), "one")
            .ending(1),
        Script::chat("usage_with_finish", "usage on the finish chunk")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(100, data(&chat_json_of(0, "", "\"stop\"", &format!(",{}", usage_field(4)))))
            .send(1, DONE),
        Script::chat("usage_before_end", "a chunk with usage alone, then tokens go on")
            .send(10, chat(ROLE))
            .words(&WORDS[..2])
            .send(50, usage(2))
            .words(&WORDS[2..])
            .ending(4),
        Script::chat("usage_after_done", "usage comes after [DONE]")
            .send(10, chat(ROLE))
            .words(&WORDS[..1])
            .send(1, chat_finish("stop"))
            .send(1, DONE)
            .send(100, usage(9))
            .tokens(9),
        Script::chat("usage_without_choices", "the usage chunk has no `choices` at all")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, chat_finish("stop"))
            .send(1, data(r#"{"id":"x","usage":{"prompt_tokens":7,"completion_tokens":4.0,"total_tokens":11}}"#))
            .send(1, DONE),
        Script::chat("timings_instead_of_usage", "no usage, but llama.cpp's timings on the finish chunk")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, data(&chat_json_of(0, "", "\"stop\"", r#","timings":{"cache_n":3,"prompt_n":4,"predicted_n":5}"#)))
            .send(1, DONE)
            .tokens(5),
        Script::chat("done_without_finish", "[DONE] without a finish reason")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, DONE)
            .reason(None),
        Script::chat("finish_without_done", "a finish reason without [DONE]")
            .send(10, chat(ROLE))
            .words(&WORDS)
            .send(1, chat_finish("length"))
            .reason(Some("length")),
    ]
}
