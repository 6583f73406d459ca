//! What a generation request asks for, once it is known to be in order.

use serde_json::Value;

use super::fields::{Fields, missing, wrong};
use super::problem::Problem;
use super::template;
use crate::tokenizer::Tokenizer;

/// The APIs that generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Completions,
    Chat,
    /// Anthropic's.
    Messages,
    /// OpenAI's newest.
    Responses,
}

impl Api {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::Completions => "completions",
            Api::Chat => "chat",
            Api::Messages => "messages",
            Api::Responses => "responses",
        }
    }
}

/// A request in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub api: Api,
    pub model: String,
    pub prompt: Vec<u32>,
    pub max_tokens: u32,
    /// Whether the request named `max_tokens` itself.
    pub max_tokens_given: bool,
    pub min_tokens: u32,
    pub ignore_eos: bool,
    pub stop: Vec<String>,
    pub keep_stop: bool,
    pub stream: bool,
    pub include_usage: bool,
    pub continuous_usage: bool,
    /// Logarithms of probabilities, with this many alternatives.
    pub logprobs: Option<u32>,
    pub token_ids: bool,
    pub priority: i32,
    pub salt: Option<u64>,
    pub seed: Option<i64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub request_id: Option<String>,
}

/// What the server knows that a request must fit.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub served: &'a [String],
    pub max_model_len: u32,
    pub tokenizer: &'a Tokenizer,
}

impl Ask {
    /// Reads a request body.
    pub(crate) fn read(api: Api, body: &[u8], rules: Rules<'_>) -> Result<Ask, Problem> {
        let fields = Fields::parse(body)?;
        let prompt = prompt(api, &fields, rules.tokenizer)?;
        let model = model(&fields, rules.served)?;
        check_sampling(&fields)?;
        refuse_what_is_not_offered(api, &fields)?;
        let stop = stop(api, &fields)?;
        let stream = fields.flag("stream")?.unwrap_or(false);
        let options = fields.object("stream_options")?;
        if options.is_some() && !stream {
            return Err(Problem::unsupported(
                "stream_options",
                "Stream options can only be defined when `stream=True`.",
            ));
        }
        let option = |name| options.as_ref().map_or(Ok(None), |o: &Fields| o.flag(name)).map(|f| f.unwrap_or(false));

        let room = rules.max_model_len.saturating_sub(u32::try_from(prompt.len()).unwrap_or(u32::MAX));
        if room == 0 {
            return Err(Problem::prompt_too_long(prompt.len(), rules.max_model_len));
        }
        let asked = max_tokens(api, &fields)?;
        let max_tokens = match asked {
            Some(n) if n > room => return Err(Problem::output_too_long(n, prompt.len(), rules.max_model_len)),
            Some(n) => n,
            None if api == Api::Completions => room.min(16),
            None => room,
        };
        let min_tokens = bounded(&fields, "min_tokens", 0, i64::from(u32::MAX))?.unwrap_or(0) as u32;
        if min_tokens > max_tokens {
            let message =
                format!("min_tokens must be less than or equal to max_tokens={max_tokens}, got {min_tokens}.");
            return Err(Problem::value("min_tokens", min_tokens, message));
        }
        Ok(Ask {
            api,
            model,
            max_tokens,
            max_tokens_given: asked.is_some(),
            min_tokens,
            ignore_eos: fields.flag("ignore_eos")?.unwrap_or(false),
            stop,
            keep_stop: fields.flag("include_stop_str_in_output")?.unwrap_or(false),
            stream,
            include_usage: option("include_usage")?,
            continuous_usage: option("continuous_usage_stats")?,
            logprobs: logprobs(api, &fields)?,
            token_ids: fields.flag("return_token_ids")?.unwrap_or(false),
            priority: fields.whole("priority")?.unwrap_or(0).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            salt: fields.text("cache_salt")?.map(hash),
            seed: fields.whole("seed")?,
            temperature: fields.real("temperature")?,
            top_p: fields.real("top_p")?,
            request_id: fields.text("request_id")?.map(str::to_owned),
            prompt,
        })
    }
}

pub(crate) fn model(fields: &Fields, served: &[String]) -> Result<String, Problem> {
    let Some(model) = fields.text("model")? else {
        return served.first().cloned().ok_or_else(|| missing("model"));
    };
    // vLLM takes an empty name for the default one.
    if model.is_empty() {
        return served.first().cloned().ok_or_else(|| missing("model"));
    }
    served.iter().find(|s| *s == model).cloned().ok_or_else(|| Problem::unknown_model(model, served))
}

fn prompt(api: Api, fields: &Fields, tokenizer: &Tokenizer) -> Result<Vec<u32>, Problem> {
    let text = match api {
        Api::Completions => {
            let prompt = completion_prompt(fields.get("prompt").ok_or_else(|| missing("prompt"))?, tokenizer)?;
            if prompt.is_empty() {
                return Err(Problem::unsupported("prompt", "The decoder prompt cannot be empty"));
            }
            return Ok(prompt);
        }
        Api::Chat => template::chat(None, fields.list("messages")?.ok_or_else(|| missing("messages"))?, "messages")?,
        Api::Messages => {
            let messages = fields.list("messages")?.ok_or_else(|| missing("messages"))?;
            fields.get("max_tokens").ok_or_else(|| missing("max_tokens"))?;
            template::chat(fields.get("system"), messages, "messages")?
        }
        Api::Responses => match fields.get("input").ok_or_else(|| missing("input"))? {
            Value::String(text) => template::single(fields.get("instructions"), text)?,
            Value::Array(items) => template::chat(fields.get("instructions"), items, "input")?,
            _ => return Err(wrong("union_type", "input", "Input should be a string or a list")),
        },
    };
    Ok(tokenizer.encode(&text, false)?)
}

fn completion_prompt(value: &Value, tokenizer: &Tokenizer) -> Result<Vec<u32>, Problem> {
    const FORM: &str = "Input should be a string, a list of token ids, or a list of one prompt";
    match value {
        Value::String(text) => Ok(tokenizer.encode(text, true)?),
        Value::Array(items) => match &items[..] {
            [] => Ok(Vec::new()),
            [one @ (Value::String(_) | Value::Array(_))] => completion_prompt(one, tokenizer),
            [Value::String(_) | Value::Array(_), ..] => Err(Problem::unsupported(
                "prompt",
                format!("The emulator takes one prompt per request, got {}.", items.len()),
            )),
            _ => items.iter().map(|id| token_id(id, "prompt", tokenizer)).collect(),
        },
        _ => Err(wrong("union_type", "prompt", FORM)),
    }
}

/// A token id of the vocabulary.
pub(crate) fn token_id(value: &Value, field: &str, tokenizer: &Tokenizer) -> Result<u32, Problem> {
    let id = value.as_u64().ok_or_else(|| wrong("int_type", field, "Input should be a valid token id"))?;
    match u32::try_from(id) {
        Ok(id) if id < tokenizer.vocabulary() => Ok(id),
        _ => Err(Problem::unsupported(field, format!("Token id {id} is out of vocabulary"))),
    }
}

fn max_tokens(api: Api, fields: &Fields) -> Result<Option<u32>, Problem> {
    let names: &[&str] = match api {
        Api::Completions | Api::Messages => &["max_tokens"],
        Api::Chat => &["max_completion_tokens", "max_tokens"],
        Api::Responses => &["max_output_tokens"],
    };
    for name in names {
        let Some(n) = fields.whole(name)? else { continue };
        if n < 1 {
            return Err(Problem::value("max_tokens", n, format!("max_tokens must be at least 1, got {n}.")));
        }
        return Ok(Some(u32::try_from(n).unwrap_or(u32::MAX)));
    }
    Ok(None)
}

fn stop(api: Api, fields: &Fields) -> Result<Vec<String>, Problem> {
    let name = if api == Api::Messages { "stop_sequences" } else { "stop" };
    let stop = match fields.get(name) {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) if many.len() > 4 => {
            return Err(wrong("too_long", name, "List should have at most 4 items"));
        }
        Some(Value::Array(many)) => many
            .iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| wrong("string_type", name, "Input should be a valid string"))?,
        Some(_) => return Err(wrong("string_type", name, "Input should be a valid string")),
    };
    if stop.iter().any(String::is_empty) {
        return Err(Problem::unsupported(name, "stop cannot contain an empty string."));
    }
    Ok(stop)
}

fn logprobs(api: Api, fields: &Fields) -> Result<Option<u32>, Problem> {
    match api {
        Api::Completions => Ok(bounded(fields, "logprobs", 0, 20)?.map(|n| n as u32)),
        Api::Chat => {
            let top = bounded(fields, "top_logprobs", 0, 20)?.unwrap_or(0) as u32;
            let wanted = fields.flag("logprobs")?.unwrap_or(false);
            if top > 0 && !wanted {
                return Err(Problem::unsupported(
                    "top_logprobs",
                    "when using `top_logprobs`, `logprobs` must be set to true.",
                ));
            }
            Ok(wanted.then_some(top))
        }
        Api::Messages | Api::Responses => Ok(None),
    }
}

/// The ranges vLLM holds sampling parameters to. Nothing is sampled here, but a client's mistake should show.
fn check_sampling(fields: &Fields) -> Result<(), Problem> {
    if let Some(t) = fields.real("temperature")?
        && (t < 0.0 || t.is_nan())
    {
        return Err(Problem::value(
            "temperature",
            format!("{t:?}"),
            format!("temperature must be non-negative, got {t:?}."),
        ));
    }
    for (name, low, low_included, high) in [
        ("top_p", 0.0, false, 1.0),
        ("min_p", 0.0, true, 1.0),
        ("presence_penalty", -2.0, true, 2.0),
        ("frequency_penalty", -2.0, true, 2.0),
        ("repetition_penalty", 0.0, false, f64::MAX),
    ] {
        let Some(x) = fields.real(name)? else { continue };
        let inside = x <= high && (x > low || (low_included && x == low));
        if !inside {
            let open = if low_included { '[' } else { '(' };
            let range =
                if high == f64::MAX { "greater than zero".to_owned() } else { format!("in {open}{low:?}, {high:?}]") };
            return Err(Problem::value(name, format!("{x:?}"), format!("{name} must be {range}, got {x:?}.")));
        }
    }
    bounded(fields, "top_k", -1, i64::MAX)?;
    Ok(())
}

fn bounded(fields: &Fields, name: &str, low: i64, high: i64) -> Result<Option<i64>, Problem> {
    match fields.whole(name)? {
        Some(n) if n < low => Err(Problem::value(name, n, format!("{name} must be at least {low}, got {n}."))),
        Some(n) if n > high => Err(Problem::value(name, n, format!("{name} must be at most {high}, got {n}."))),
        n => Ok(n),
    }
}

fn refuse_what_is_not_offered(api: Api, fields: &Fields) -> Result<(), Problem> {
    match fields.whole("n")? {
        Some(n) if n < 1 => return Err(Problem::value("n", n, format!("n must be at least 1, got {n}."))),
        Some(n) if n > 1 => {
            return Err(Problem::value("n", n, "The emulator gives one answer per request: n must be 1."));
        }
        _ => {}
    }
    for name in ["echo", "use_beam_search", "background"] {
        if fields.flag(name)?.unwrap_or(false) {
            return Err(Problem::unsupported(name, format!("{name} is not supported by the emulator")));
        }
    }
    for name in ["suffix", "prompt_logprobs", "prompt_embeds", "structured_outputs", "previous_response_id"] {
        if fields.get(name).is_some() {
            return Err(Problem::unsupported(name, format!("{name} is not supported by the emulator")));
        }
    }
    if let Some(format) = fields.object("response_format")?
        && format.text("type")? != Some("text")
    {
        return Err(Problem::unsupported(
            "response_format",
            "The only response_format supported by the emulator is text",
        ));
    }
    let tools = fields.list("tools")?.is_some_and(|t| !t.is_empty());
    let declined = fields.get("tool_choice").and_then(Value::as_str) == Some("none");
    if tools && !declined && api != Api::Responses {
        return Err(Problem {
            param: None,
            ..Problem::unsupported(
                "tools",
                "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set, \
                 which the emulator does not have",
            )
        });
    }
    Ok(())
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}
