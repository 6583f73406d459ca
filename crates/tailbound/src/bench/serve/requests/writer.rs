//! One request's body.

use crate::bench::serve::args::{PayloadArgs, ServeArgs, Spread};
use crate::bench::serve::replay::Outline;
use crate::bench::serve::target::Endpoint;
use crate::failure::{Failure, Outcome};
use serde_json::{Map, Value};
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Prompt};
use tailbound_wire::body;

/// Which model name each request carries.
pub struct Models {
    base: String,
    modules: Vec<String>,
}

impl Models {
    /// The LoRA modules of the flags, or `base` alone.
    pub fn new(args: &ServeArgs, base: &str) -> Models {
        let names = &args.load.lora_modules;
        let n = args.load.num_prompts.unwrap_or(1000) as usize;
        let mut rng = Seed(args.load.seed).stream("lora");
        let modules = match (names.is_empty(), args.load.lora_assignment) {
            (true, _) => Vec::new(),
            (false, Spread::RoundRobin) => names.clone(),
            (false, Spread::Random) => (0..n).map(|_| names[rng.below(names.len() as u64) as usize].clone()).collect(),
        };
        Models { base: base.to_owned(), modules }
    }

    /// The name that request `i` carries.
    pub fn of(&self, i: usize) -> &str {
        if self.modules.is_empty() { &self.base } else { &self.modules[i % self.modules.len()] }
    }
}

/// Writes bodies as the flags ask for.
pub struct Writer {
    endpoint: Endpoint,
    extra: Map<String, Value>,
    logprobs: Option<u32>,
    ignore_eos: bool,
    pub stream: bool,
}

impl Writer {
    pub fn new(args: &ServeArgs, endpoint: &Endpoint, replay: Option<&Outline>) -> Outcome<Writer> {
        Ok(Writer {
            endpoint: endpoint.clone(),
            extra: extra(&args.payload)?,
            logprobs: args.payload.logprobs,
            ignore_eos: forced(args, replay),
            stream: !args.payload.no_stream,
        })
    }

    /// How many answers each request asks for.
    pub fn choices(&self) -> u32 {
        self.extra.get("n").and_then(Value::as_u64).map_or(1, |n| n.clamp(1, 128) as u32)
    }

    /// The body of a prompt.
    pub fn prompt(&self, model: &str, prompt: &Prompt) -> Outcome<Box<[u8]>> {
        match &prompt.body {
            Body::Text(text) => self.body(model, body::Prompt::Text(text), prompt.output_tokens),
            Body::Ids(ids) => self.body(model, body::Prompt::Tokens(ids), prompt.output_tokens),
            Body::Messages(json) => self.messages(model, &json.to_string(), prompt.output_tokens),
        }
    }

    /// The body of a chat: `list` is a JSON array of messages.
    pub fn messages(&self, model: &str, list: &str, output_tokens: u32) -> Outcome<Box<[u8]>> {
        self.body(model, body::Prompt::Messages(list), output_tokens)
    }

    fn body(&self, model: &str, prompt: body::Prompt<'_>, output_tokens: u32) -> Outcome<Box<[u8]>> {
        let request = body::Request {
            model,
            prompt,
            max_tokens: Some(output_tokens),
            stream: self.stream,
            usage: body::AskUsage::Final,
            ignore_eos: self.ignore_eos,
            logprobs: self.logprobs,
            content: body::Content::Parts,
            extra: Some(&self.extra),
            overrides: None,
        };
        let mut out = Vec::with_capacity(512);
        body::write(self.endpoint.api, &request, &mut out).map_err(|e| {
            let failure = Failure::usage(format!("--endpoint {}: {e}", self.endpoint.path));
            match e {
                body::BodyError::MessagesNotTaken => failure.hint("--backend openai-chat has one"),
                _ => failure,
            }
        })?;
        Ok(out.into_boxed_slice())
    }
}

/// Whether the server is told to generate the full length: where lengths are all that is known of the answers, the asked length would
/// otherwise mean nothing (vLLM does the same).
pub fn forced(args: &ServeArgs, replay: Option<&Outline>) -> bool {
    args.payload.ignore_eos || args.data.dataset_name == "random" || replay.is_some_and(|replay| replay.forced)
}

/// `--extra-body` over the sampling flags.
pub fn extra(args: &PayloadArgs) -> Outcome<Map<String, Value>> {
    let given = match &args.extra_body {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            Ok(_) => {
                return Err(Failure::usage("--extra-body: not a JSON object").hint("e.g. --extra-body '{\"seed\":1}'"));
            }
            Err(e) => return Err(Failure::usage(format!("--extra-body: not JSON: {e}"))),
        },
    };
    let sampling = body::Sampling {
        top_p: args.top_p,
        top_k: args.top_k,
        min_p: args.min_p,
        temperature: args.temperature,
        frequency_penalty: args.frequency_penalty,
        presence_penalty: args.presence_penalty,
        repetition_penalty: args.repetition_penalty,
    };
    Ok(sampling.under(given))
}
