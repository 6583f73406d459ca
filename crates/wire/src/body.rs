//! Request bodies, field for field as vLLM's benchmark (0.33) sends them, for each API.

use crate::Api;
use serde_json::{Map, Value};

/// What goes into a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The model's name as the server knows it.
    pub model: &'a str,
    /// The prompt.
    pub prompt: Prompt<'a>,
    /// The most tokens to generate; left out if `None`.
    pub max_tokens: Option<u32>,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Which usage a stream should state (completions and chat).
    pub usage: AskUsage,
    /// Generate until `max_tokens`, whatever the model says.
    pub ignore_eos: bool,
    /// Log probabilities of this many tokens at each place.
    pub logprobs: Option<u32>,
    /// How a chat message holds a plain prompt.
    pub content: Content,
    /// The run's fields, merged over all of the above: sampling parameters and `--extra-body` ([`Sampling::under`]).
    pub extra: Option<&'a Map<String, Value>>,
    /// This request's own fields, merged last.
    pub overrides: Option<&'a Map<String, Value>>,
}

/// A prompt.
#[derive(Clone, Copy, Debug)]
pub enum Prompt<'a> {
    /// As text.
    Text(&'a str),
    /// As token ids: completions only.
    Tokens(&'a [u32]),
    /// As messages, a JSON array: chat, Responses and Messages only.
    Messages(&'a str),
}

/// Whether to ask for usage in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AskUsage {
    /// Don't ask: for servers that refuse `stream_options`.
    No,
    /// Once, at the end (`include_usage`).
    #[default]
    Final,
    /// With every chunk (`continuous_usage_stats`), which tells how many tokens each carried.
    Continuous,
}

/// The shape of a user message's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// `[{"type":"text","text":…}]`, as vLLM's benchmark sends it.
    #[default]
    Parts,
    /// A string.
    Plain,
}

/// Sampling parameters of a run; those that are `None` are left to the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// `top_p`.
    pub top_p: Option<f64>,
    /// `top_k`.
    pub top_k: Option<i64>,
    /// `min_p`.
    pub min_p: Option<f64>,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `frequency_penalty`.
    pub frequency_penalty: Option<f64>,
    /// `presence_penalty`.
    pub presence_penalty: Option<f64>,
    /// `repetition_penalty`.
    pub repetition_penalty: Option<f64>,
}

impl Sampling {
    /// These parameters with `extra` merged over them: what [`Request::extra`] wants.
    pub fn under(&self, extra: Map<String, Value>) -> Map<String, Value> {
        let mut map = Map::new();
        let fields = [
            ("top_p", self.top_p.map(Value::from)),
            ("top_k", self.top_k.map(Value::from)),
            ("min_p", self.min_p.map(Value::from)),
            ("temperature", self.temperature.map(Value::from)),
            ("frequency_penalty", self.frequency_penalty.map(Value::from)),
            ("presence_penalty", self.presence_penalty.map(Value::from)),
            ("repetition_penalty", self.repetition_penalty.map(Value::from)),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                map.insert(name.into(), value);
            }
        }
        map.extend(extra);
        map
    }
}

/// A request that the API can't express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Token ids outside completions.
    #[error("token-id prompts work with completions endpoints only; send text instead")]
    TokensNotTaken,
    /// Messages for an API that takes a prompt.
    #[error("a list of messages needs a chat, responses or messages endpoint")]
    MessagesNotTaken,
    /// The messages are not a JSON array.
    #[error("messages are not a JSON array")]
    MessagesNotArray,
    /// Anthropic's API insists on a limit.
    #[error("the Messages API needs an output length")]
    NoMaxTokens,
}

/// Appends the request's JSON to `out`.
///
/// # Errors
/// When the API can't express the request; `out` may then hold a part of it.
pub fn write(api: Api, request: &Request<'_>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    let mut body = Object::new(request, out);
    match api {
        Api::Completions => completions(request, &mut body)?,
        Api::Chat => chat(request, &mut body)?,
        Api::Responses => responses(request, &mut body)?,
        Api::Messages => messages(request, &mut body)?,
        Api::TgiGenerate => return tgi(request, out),
        Api::LlamaCompletion => llama(request, &mut body)?,
    }
    body.close();
    Ok(())
}

fn completions(request: &Request<'_>, body: &mut Object<'_>) -> Result<(), BodyError> {
    body.field("model", |out| string(request.model, out));
    body.try_field("prompt", |out| text_or_tokens(request.prompt, out))?;
    body.field("repetition_penalty", |out| out.extend_from_slice(b"1.0"));
    body.optional("max_tokens", request.max_tokens);
    body.field("logprobs", |out| match request.logprobs {
        Some(n) => number(n, out),
        None => out.extend_from_slice(b"null"),
    });
    stream_fields(request, body);
    ignore_eos(request, body);
    Ok(())
}

fn chat(request: &Request<'_>, body: &mut Object<'_>) -> Result<(), BodyError> {
    body.field("model", |out| string(request.model, out));
    body.try_field("messages", |out| message_list(request, out))?;
    body.optional("max_completion_tokens", request.max_tokens);
    if let Some(n) = request.logprobs {
        body.field("logprobs", |out| out.extend_from_slice(b"true"));
        body.field("top_logprobs", |out| number(n, out));
    }
    stream_fields(request, body);
    ignore_eos(request, body);
    Ok(())
}

fn responses(request: &Request<'_>, body: &mut Object<'_>) -> Result<(), BodyError> {
    body.field("model", |out| string(request.model, out));
    body.try_field("input", |out| match request.prompt {
        Prompt::Text(text) => {
            string(text, out);
            Ok(())
        }
        Prompt::Tokens(_) => Err(BodyError::TokensNotTaken),
        Prompt::Messages(list) => array(list, out),
    })?;
    body.optional("max_output_tokens", request.max_tokens);
    body.field("stream", |out| boolean(request.stream, out));
    // Stored by default, which would fill the server's memory over a long run.
    body.field("store", |out| boolean(false, out));
    if let Some(n) = request.logprobs {
        body.field("top_logprobs", |out| number(n, out));
    }
    ignore_eos(request, body);
    Ok(())
}

fn messages(request: &Request<'_>, body: &mut Object<'_>) -> Result<(), BodyError> {
    if request.max_tokens.is_none() && !body.is_overlaid("max_tokens") {
        return Err(BodyError::NoMaxTokens);
    }
    body.field("model", |out| string(request.model, out));
    body.optional("max_tokens", request.max_tokens);
    body.try_field("messages", |out| message_list(request, out))?;
    body.field("stream", |out| boolean(request.stream, out));
    ignore_eos(request, body);
    Ok(())
}

fn llama(request: &Request<'_>, body: &mut Object<'_>) -> Result<(), BodyError> {
    body.try_field("prompt", |out| text_or_tokens(request.prompt, out))?;
    body.optional("n_predict", request.max_tokens);
    body.field("stream", |out| boolean(request.stream, out));
    if let Some(n) = request.logprobs {
        body.field("n_probs", |out| number(n, out));
    }
    ignore_eos(request, body);
    Ok(())
}

/// Sampling parameters go under `parameters` here, the path says whether to stream, and details are asked for because they state the counts.
fn tgi(request: &Request<'_>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    const OURS: [&str; 2] = ["inputs", "parameters"];
    let mut top = Map::new();
    let mut parameters = Map::new();
    if let Some(n) = request.max_tokens {
        parameters.insert("max_new_tokens".into(), n.into());
    }
    parameters.insert("details".into(), true.into());
    if request.ignore_eos {
        parameters.insert("ignore_eos_token".into(), true.into());
    }
    if let Some(n) = request.logprobs {
        parameters.insert("top_n_tokens".into(), n.into());
    }
    match request.prompt {
        Prompt::Text(text) => top.insert("inputs".into(), text.into()),
        Prompt::Tokens(_) => return Err(BodyError::TokensNotTaken),
        Prompt::Messages(_) => return Err(BodyError::MessagesNotTaken),
    };
    for overlay in [request.extra, request.overrides].into_iter().flatten() {
        for (key, value) in overlay {
            match (key.as_str(), value) {
                ("parameters", Value::Object(inner)) => parameters.extend(inner.clone()),
                (key, value) if OURS.contains(&key) => drop(top.insert(key.into(), value.clone())),
                (key, value) => drop(parameters.insert(key.into(), value.clone())),
            }
        }
    }
    top.entry("parameters").or_insert(Value::Object(parameters));
    json(&Value::Object(top), out);
    Ok(())
}

fn stream_fields(request: &Request<'_>, body: &mut Object<'_>) {
    body.field("stream", |out| boolean(request.stream, out));
    let options: &[u8] = match request.usage {
        _ if !request.stream => return,
        AskUsage::No => return,
        AskUsage::Final => br#"{"include_usage":true}"#,
        AskUsage::Continuous => br#"{"include_usage":true,"continuous_usage_stats":true}"#,
    };
    body.field("stream_options", |out| out.extend_from_slice(options));
}

fn ignore_eos(request: &Request<'_>, body: &mut Object<'_>) {
    if request.ignore_eos {
        body.field("ignore_eos", |out| boolean(true, out));
    }
}

fn text_or_tokens(prompt: Prompt<'_>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    match prompt {
        Prompt::Text(text) => string(text, out),
        Prompt::Tokens(ids) => {
            out.push(b'[');
            for (i, id) in ids.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                number(*id, out);
            }
            out.push(b']');
        }
        Prompt::Messages(_) => return Err(BodyError::MessagesNotTaken),
    }
    Ok(())
}

fn message_list(request: &Request<'_>, out: &mut Vec<u8>) -> Result<(), BodyError> {
    let text = match request.prompt {
        Prompt::Text(text) => text,
        Prompt::Tokens(_) => return Err(BodyError::TokensNotTaken),
        Prompt::Messages(list) => return array(list, out),
    };
    out.extend_from_slice(br#"[{"role":"user","content":"#);
    match request.content {
        Content::Plain => string(text, out),
        Content::Parts => {
            out.extend_from_slice(br#"[{"type":"text","text":"#);
            string(text, out);
            out.extend_from_slice(b"}]");
        }
    }
    out.extend_from_slice(b"}]");
    Ok(())
}

fn array(list: &str, out: &mut Vec<u8>) -> Result<(), BodyError> {
    let list = list.trim();
    let mut scan = crate::json::Scan::new(list.as_bytes());
    let is_array = list.starts_with('[') && scan.skip().is_ok() && scan.end().is_ok();
    if !is_array {
        return Err(BodyError::MessagesNotArray);
    }
    out.extend_from_slice(list.as_bytes());
    Ok(())
}

fn boolean(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn number(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string can always be written to memory");
}

fn json(value: &Value, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a JSON value can always be written to memory");
}

/// A JSON object being written, with the run's and the request's own fields laid over it as Python's `dict.update` would.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    overlays: [Option<&'a Map<String, Value>>; 2],
    written: Vec<&'static str>,
    open: bool,
}

impl<'a> Object<'a> {
    fn new(request: &Request<'a>, out: &'a mut Vec<u8>) -> Object<'a> {
        Object { out, overlays: [request.overrides, request.extra], written: Vec::new(), open: false }
    }

    fn overlay(&self, key: &str) -> Option<&'a Value> {
        self.overlays.into_iter().flatten().find_map(|map| map.get(key))
    }

    fn is_overlaid(&self, key: &str) -> bool {
        self.overlay(key).is_some()
    }

    fn key(&mut self, key: &str) {
        self.out.push(if self.open { b',' } else { b'{' });
        self.open = true;
        string(key, self.out);
        self.out.push(b':');
    }

    fn field(&mut self, key: &'static str, value: impl FnOnce(&mut Vec<u8>)) {
        // Writing a plain value can't fail.
        let _ = self.try_field(key, |out| {
            value(out);
            Ok(())
        });
    }

    fn try_field(
        &mut self,
        key: &'static str,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>,
    ) -> Result<(), BodyError> {
        let overlay = self.overlay(key);
        self.key(key);
        self.written.push(key);
        match overlay {
            Some(overlay) => json(overlay, self.out),
            None => value(self.out)?,
        }
        Ok(())
    }

    fn optional(&mut self, key: &'static str, value: Option<u32>) {
        if value.is_some() || self.is_overlaid(key) {
            self.field(key, |out| number(value.unwrap_or_default(), out));
        }
    }

    fn close(mut self) {
        let [overrides, extra] = self.overlays;
        for (key, value) in extra.into_iter().flatten() {
            if !self.written.contains(&key.as_str()) {
                self.key(key);
                json(overrides.and_then(|map| map.get(key)).unwrap_or(value), self.out);
            }
        }
        for (key, value) in overrides.into_iter().flatten() {
            if !self.written.contains(&key.as_str()) && extra.is_none_or(|map| !map.contains_key(key)) {
                self.key(key);
                json(value, self.out);
            }
        }
        self.out.push(b'}');
    }
}
