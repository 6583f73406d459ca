//! Streams and replies captured from real vLLM and llama.cpp servers.

use std::path::PathBuf;
use tailbound_wire::{Api, Decoder, End, Eof, Event, Fault, Head, Outcome, Usage};

/// Where the captures are; `None`, with a line that says so, if they aren't there.
pub fn data() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let dir = std::env::var_os("TAILBOUND_DATA").map_or_else(|| PathBuf::from(default), PathBuf::from).join("engines");
    if dir.is_dir() {
        return Some(dir);
    }
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "captured engine output is missing: set TAILBOUND_DATA");
    println!("skipped: no captured engine output at {}", dir.display());
    None
}

/// A captured exchange: curl's `-i` output, so the body is no longer chunked.
pub struct Capture {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

pub fn load(name: &str) -> Option<Capture> {
    let bytes = std::fs::read(data()?.join(name)).unwrap();
    let split = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&bytes[..split]).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let content_type = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-type").then(|| value.to_owned())
    });
    Some(Capture { status, content_type, body: bytes[split + 4..].to_vec() })
}

/// Decodes `pieces` and gives every event and the outcome.
pub fn decode<'a>(
    api: Api,
    capture: &Capture,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    eof: Eof,
) -> (Vec<Event>, Outcome) {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(api, true, true);
    decoder.head(Head {
        status: capture.status,
        content_type: capture.content_type.as_deref(),
        content_encoding: None,
    });
    for piece in pieces {
        decoder.push(piece, |event| events.push(event));
    }
    let outcome = decoder.finish(eof, |event| events.push(event));
    (events, outcome)
}

/// Every capture with its right reading. Token counts are the servers' own; output events were counted with `grep`.
struct Truth {
    file: &'static str,
    api: Api,
    eof: Eof,
    outputs: u32,
    end: Result<&'static str, (Fault, &'static str)>,
    /// Prompt, output and cached tokens.
    usage: [Option<u32>; 3],
    /// What the whole text begins and ends with.
    text: (&'static str, &'static str),
}

const fn done(
    file: &'static str,
    api: Api,
    outputs: u32,
    reason: &'static str,
    usage: [Option<u32>; 3],
    text: (&'static str, &'static str),
) -> Truth {
    Truth { file, api, eof: Eof::Clean, outputs, end: Ok(reason), usage, text }
}

const fn failed(file: &'static str, fault: Fault, message: &'static str) -> Truth {
    Truth {
        file,
        api: Api::Chat,
        eof: Eof::Clean,
        outputs: 0,
        end: Err((fault, message)),
        usage: [None; 3],
        text: ("", ""),
    }
}

#[rustfmt::skip]
const TRUTHS: &[Truth] = {
    use Api::*;
    use Fault::*;
    const fn n(prompt: u32, output: u32) -> [Option<u32>; 3] { [Some(prompt), Some(output), None] }
    const fn c(prompt: u32, output: u32, cached: u32) -> [Option<u32>; 3] { [Some(prompt), Some(output), Some(cached)] }
    &[
        done("vllm/anthropic_messages_stream.sse", Messages, 8, "max_tokens", n(31, 8), ("Sure, how", "hugging baby can")),
        done("vllm/chat_nonstream.http", Chat, 1, "length", n(34, 12), ("1. Red", "but there are")),
        done("vllm/chat_stream.sse", Chat, 12, "length", n(34, 12), ("1. Red", "but there are")),
        done("vllm/chat_stream_continuous_usage.sse", Chat, 12, "length", n(34, 12), ("1. Red", "but there are")),
        done("vllm/chat_tools_named_stream.sse", Chat, 7, "length", [None; 3], ("get_weather", "\"gabenwel")),
        failed("vllm/chat_tools_required_stream.sse", Status(400), "tool_choice=\"required\" requires --tool-call-parser to be set"),
        done("vllm/completions_stream.sse", Completions, 16, "length", n(161, 16), ("\nThe quick", "brown fox jumps")),
        done("vllm/completions_stream_bs32_a.sse", Completions, 2, "length", c(101, 2, 0), ("\nThe", "The")),
        // The second token is the end of sequence: it has no text and rides on the finish.
        done("vllm/completions_stream_bs32_b_cached_priority.sse", Completions, 1, "stop", c(103, 2, 96), (".", ".")),
        done("vllm/completions_stream_n2_logprobs.sse", Completions, 8, "length", [None; 3], (", there was a", ", there were indeed")),
        done("vllm/completions_stream_prefix_hit_priority.sse", Completions, 4, "length", n(162, 4), (" the quick", "fox")),
        failed("vllm/detokenize.http", Protocol, "not a completion: {\"prompt\":\"Hello world\"}"),
        failed("vllm/error_bad_json.http", Status(400), "1 validation error: {'type': 'json_invalid'"),
        failed("vllm/error_bad_param.http", Status(400), "temperature must be non-negative"),
        failed("vllm/error_too_long_stream.http", Status(400), "maximum context length is 2048 tokens"),
        failed("vllm/error_tool_auto_not_enabled.http", Status(400), "\"auto\" tool choice requires"),
        failed("vllm/error_wrong_model.http", Status(404), "The model `nope` does not exist."),
        failed("vllm/is_sleeping.http", Protocol, "not a completion"),
        failed("vllm/load.http", Protocol, "not a completion"),
        failed("vllm/ping.http", EndedEarly, "0 output events"),
        failed("vllm/render.http", Status(403), "Scale-out endpoints are disabled."),
        failed("vllm/reset_prefix_cache.http", Protocol, "not a completion"),
        done("vllm/responses_stream.sse", Responses, 8, "max_output_tokens", c(31, 8, 0), ("guérir", "Noích")),
        failed("vllm/tokenize_messages.http", Protocol, "not a completion"),
        failed("vllm/tokenize_prompt.http", Protocol, "not a completion"),
        failed("vllm/version.http", Protocol, "not a completion"),
        done("llamacpp/anthropic_messages_stream.sse", Messages, 8, "max_tokens", c(31, 8, 30), ("Welcome to", "team. I'm")),
        failed("llamacpp/apply_template.http", Protocol, "not a completion"),
        // Twenty tokens in fourteen events: the server bundles.
        done("llamacpp/chat_json_schema_stream.sse", Chat, 14, "stop", c(32, 20, 24), ("{\n", "\n}")),
        done("llamacpp/chat_nonstream.http", Chat, 1, "length", c(34, 8, 33), ("1. Red", "obvious colour")),
        done("llamacpp/chat_stream.sse", Chat, 32, "length", c(34, 32, 24), ("1. Red", "many more.\n")),
        done("llamacpp/chat_stream_logprobs_progress.sse", Chat, 8, "length", c(34, 8, 33), ("1. Red", "obvious colour")),
        done("llamacpp/chat_tools_required_stream.sse", Chat, 48, "length", c(37, 48, 24), ("Paris, the", "to 28°")),
        done("llamacpp/completions_stream.sse", Completions, 16, "length", c(4, 16, 0), (", the city", "and bustling")),
        // Sixteen tokens for each of two choices.
        done("llamacpp/completions_stream_n2.sse", Completions, 32, "length", c(4, 32, 3), (", the city", "and bustling")),
        failed("llamacpp/error_bad_json.http", Status(500), "[json.exception.parse_error.101] parse error"),
        done("llamacpp/error_empty_messages.http", Chat, 1, "stop", c(4, 199, 1), ("The AI assistant", "")),
        failed("llamacpp/error_too_long_stream.http", Status(400), "request (4031 tokens) exceeds the available context size"),
        done("llamacpp/native_completion_stream.sse", LlamaCompletion, 8, "length", c(4, 8, 3), (", the city", "was a")),
        done("llamacpp/responses_stream.sse", Responses, 8, "completed", c(31, 8, 30), ("hi there", "hello")),
        Truth { outputs: 19, text: ("The story", "a tale"), eof: Eof::Reset, ..failed("llamacpp/stream_cut_by_server_kill.sse", Reset, "broke off after 19") },
        failed("llamacpp/tokenize.http", Protocol, "not a completion"),
        done("llamacpp/wrong_model.http", Chat, 1, "length", c(31, 2, 24), ("Hello there", "there")),
    ]
};

fn check(truth: &Truth, events: &[Event], outcome: &Outcome) {
    let file = truth.file;
    assert_eq!(outcome.outputs, truth.outputs, "{file}");
    assert_eq!(events.iter().filter(|event| event.output.is_some()).count() as u32, truth.outputs, "{file}");
    let Usage { prompt, output, cached, .. } = outcome.usage;
    assert_eq!([prompt, output, cached], truth.usage, "{file}");
    match (&outcome.end, truth.end) {
        (End::Done(reason), Ok(right)) => assert_eq!(reason.as_deref(), Some(right), "{file}"),
        (End::Failed(fault, message), Err((right, part))) => {
            assert_eq!(*fault, right, "{file}");
            assert!(message.contains(part), "{file}: {message}");
        }
        (end, _) => panic!("{file}: {end:?}"),
    }
    let text = outcome.text.as_ref().unwrap().all();
    assert!(text.starts_with(truth.text.0) && text.ends_with(truth.text.1), "{file}: {text:?}");
}

#[test]
fn every_capture_is_read_right_however_it_is_cut() {
    for truth in TRUTHS {
        let Some(capture) = load(truth.file) else { return };
        let body = capture.body.as_slice();
        let whole = decode(truth.api, &capture, [body], truth.eof);
        check(truth, &whole.0, &whole.1);
        assert_eq!(decode(truth.api, &capture, body.chunks(1), truth.eof), whole, "{} byte by byte", truth.file);
        for cut in (0..=body.len()).step_by(1 + body.len() / 400) {
            let (a, b) = body.split_at(cut);
            assert_eq!(decode(truth.api, &capture, [a, b], truth.eof), whole, "{} cut at {cut}", truth.file);
        }
    }
}

#[test]
fn no_capture_is_left_out() {
    let Some(dir) = data() else { return };
    for engine in ["vllm", "llamacpp"] {
        for entry in std::fs::read_dir(dir.join(engine)).unwrap() {
            let name = format!("{engine}/{}", entry.unwrap().file_name().into_string().unwrap());
            if name.ends_with(".sse") || name.ends_with(".http") {
                assert!(TRUTHS.iter().any(|truth| truth.file == name), "{name} has no truth");
            }
        }
    }
}

#[test]
fn the_server_s_own_counts_add_up_event_by_event() {
    for file in ["vllm/chat_stream_continuous_usage.sse", "llamacpp/chat_stream_logprobs_progress.sse"] {
        let Some(capture) = load(file) else { return };
        let (events, outcome) = decode(Api::Chat, &capture, [capture.body.as_slice()], Eof::Clean);
        let stated: Vec<u32> = events.iter().filter_map(|event| event.output?.tokens).collect();
        assert_eq!(stated, vec![1; outcome.outputs as usize], "{file}");
    }
    let Some(capture) = load("vllm/completions_stream_n2_logprobs.sse") else { return };
    let (events, _) = decode(Api::Completions, &capture, [capture.body.as_slice()], Eof::Clean);
    let of_choice = |index| events.iter().filter_map(|event| event.output).filter(move |output| output.choice == index);
    assert_eq!((of_choice(0).count(), of_choice(1).count()), (4, 4));
    assert!(of_choice(0).chain(of_choice(1)).all(|output| output.tokens == Some(1)), "by token ids");
}

/// Role chunks, usage, finish and prefill progress are no tokens: the first output stands where the first content stands.
#[test]
fn the_first_token_is_the_first_content() {
    for (file, before) in [
        ("vllm/chat_stream.sse", 1),
        ("llamacpp/chat_stream.sse", 1),
        ("llamacpp/chat_stream_logprobs_progress.sse", 3),
        ("vllm/chat_tools_named_stream.sse", 1),
    ] {
        let Some(capture) = load(file) else { return };
        let (events, _) = decode(Api::Chat, &capture, [capture.body.as_slice()], Eof::Clean);
        assert_eq!(events.iter().position(|event| event.output.is_some()), Some(before), "{file}");
    }
}
