use super::{Case, Framing, Step, Truth};
use crate::{Api, Eof, Fault};

/// A case being written: what is sent, and beside it what it should be taken for.
pub(super) struct Script {
    case: Case,
    now_ms: u32,
    tokens: Option<u32>,
}

impl Script {
    pub fn new(api: Api, name: &'static str, about: &'static str) -> Script {
        let truth = Truth {
            end: Ok(Some("stop")),
            message: "",
            ttft_ms: None,
            visible_ms: None,
            last_ms: None,
            outputs: 0,
            tokens: 0,
            text: String::new(),
        };
        let case = Case {
            name,
            about,
            api,
            stream: true,
            choices: 1,
            status: 200,
            content_type: Some("text/event-stream; charset=utf-8"),
            content_encoding: None,
            framing: Framing::Chunked,
            steps: Vec::new(),
            eof: Eof::Clean,
            truth,
        };
        Script { case, now_ms: 0, tokens: None }
    }

    pub fn chat(name: &'static str, about: &'static str) -> Script {
        Script::new(Api::Chat, name, about)
    }

    /// Bytes that complete no output.
    pub fn send(mut self, delay_ms: u32, bytes: impl AsRef<[u8]>) -> Script {
        self.now_ms += delay_ms;
        self.case.steps.push(Step { delay_ms, bytes: bytes.as_ref().to_vec() });
        self
    }

    /// Bytes that complete `n` output events, with the text that they show.
    pub fn outputs(mut self, delay_ms: u32, bytes: impl AsRef<[u8]>, n: u32, text: &str) -> Script {
        self = self.hidden(delay_ms, bytes, n);
        self.case.truth.visible_ms.get_or_insert(self.now_ms);
        self.case.truth.text.push_str(text);
        self
    }

    /// Bytes that complete one output event.
    pub fn output(self, delay_ms: u32, bytes: impl AsRef<[u8]>, text: &str) -> Script {
        self.outputs(delay_ms, bytes, 1, text)
    }

    /// Bytes that complete `n` output events none of which a user would see.
    pub fn hidden(mut self, delay_ms: u32, bytes: impl AsRef<[u8]>, n: u32) -> Script {
        self = self.send(delay_ms, bytes);
        self.case.truth.ttft_ms.get_or_insert(self.now_ms);
        self.case.truth.last_ms = Some(self.now_ms);
        self.case.truth.outputs += n;
        self
    }

    /// The usual words, each its own chat chunk, 100 ms apart.
    pub fn words(mut self, words: &[&str]) -> Script {
        for word in words {
            self = self.output(100, chat(&content(word)), word);
        }
        self
    }

    /// The usual end of a chat stream: finish, usage, `[DONE]`.
    pub fn ending(self, tokens: u32) -> Script {
        self.send(1, chat_finish("stop")).send(1, usage(tokens)).send(1, DONE).tokens(tokens)
    }

    pub fn tokens(mut self, tokens: u32) -> Script {
        self.tokens = Some(tokens);
        self
    }

    pub fn reason(mut self, reason: Option<&'static str>) -> Script {
        self.case.truth.end = Ok(reason);
        self
    }

    pub fn fails(mut self, fault: Fault, message: &'static str) -> Script {
        self.case.truth.end = Err(fault);
        self.case.truth.message = message;
        self
    }

    pub fn text(mut self, text: &str) -> Script {
        self.case.truth.text = text.into();
        self
    }

    pub fn status(mut self, status: u16) -> Script {
        self.case.status = status;
        self
    }

    pub fn kind(mut self, content_type: &'static str) -> Script {
        self.case.content_type = (!content_type.is_empty()).then_some(content_type);
        self
    }

    pub fn encoding(mut self, encoding: &'static str) -> Script {
        self.case.content_encoding = Some(encoding);
        self
    }

    pub fn framing(mut self, framing: Framing) -> Script {
        self.case.framing = framing;
        self
    }

    pub fn choices(mut self, n: u32) -> Script {
        self.case.choices = n;
        self
    }

    pub fn unstreamed(mut self) -> Script {
        self.case.stream = false;
        self
    }

    pub fn reset(mut self) -> Script {
        self.case.eof = Eof::Reset;
        self
    }

    pub fn into_case(mut self) -> Case {
        self.case.truth.tokens = self.tokens.unwrap_or(self.case.truth.outputs);
        self.case
    }
}

pub(super) const DONE: &str = "data: [DONE]\n\n";

/// An event with one line of data.
pub(super) fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// A named event.
pub(super) fn named(name: &str, json: &str) -> String {
    format!("event: {name}\ndata: {json}\n\n")
}

/// A chat chunk's JSON around the inside of its delta.
pub(super) fn chat_json(delta: &str) -> String {
    chat_json_of(0, delta, "null", "")
}

/// With an index, a finish reason as JSON, and more top-level fields (`,"usage":…`).
pub(super) fn chat_json_of(index: u32, delta: &str, finish: &str, more: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{{"index":{index},"delta":{{{delta}}},"logprobs":null,"finish_reason":{finish}}}]{more}}}"#
    )
}

pub(super) fn chat(delta: &str) -> String {
    data(&chat_json(delta))
}

pub(super) fn chat_finish(reason: &str) -> String {
    data(&chat_json_of(0, "", &format!("\"{reason}\""), ""))
}

/// `"content":"…"`, escaped.
pub(super) fn content(text: &str) -> String {
    format!(r#""content":{}"#, serde_json::Value::from(text))
}

pub(super) const ROLE: &str = r#""role":"assistant","content":"""#;

/// A chunk with usage and no choices.
pub(super) fn usage(output: u32) -> String {
    data(&format!(r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[],{}}}"#, usage_field(output)))
}

pub(super) fn usage_field(output: u32) -> String {
    format!(r#""usage":{{"prompt_tokens":7,"completion_tokens":{output},"total_tokens":{}}}"#, output + 7)
}

/// A completions chunk.
pub(super) fn text(text: &str, finish: &str) -> String {
    data(&format!(
        r#"{{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[{{"index":0,"text":{},"logprobs":null,"finish_reason":{finish}}}]}}"#,
        serde_json::Value::from(text)
    ))
}
