//! Every request's bytes, written before the clock starts.

use super::args::{PayloadArgs, ServeArgs, Spread};
use super::target::Endpoint;
use crate::failure::{Failure, Outcome};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use tailbound_client as client;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Prompt};
use tailbound_wire::{Api, body};
use tailbound_workload::{IntentId, Plan, Stage};

/// The requests of a run.
pub struct Prepared {
    endpoint: Endpoint,
    plan: Arc<Plan>,
    bodies: Vec<Box<[u8]>>,
    lengths: Vec<(Option<u32>, u32)>,
    probe: Box<[u8]>,
    id_prefix: String,
    stream: bool,
    choices: u32,
}

impl Prepared {
    /// Writes the body of every prompt. `model` is the name to send.
    pub fn new(
        args: &ServeArgs,
        endpoint: &Endpoint,
        plan: &Arc<Plan>,
        model: &str,
        prompts: &[Prompt],
    ) -> Outcome<Prepared> {
        let extra = extra(&args.payload)?;
        let stream = !args.payload.no_stream;
        let writer = Writer { args, endpoint, extra: &extra, stream };
        let models = Models::new(args, model);
        let mut bodies = Vec::with_capacity(prompts.len());
        for (i, prompt) in prompts.iter().enumerate() {
            bodies.push(writer.body(models.of(i), prompt)?);
        }
        let probe =
            Prompt { body: Body::Text("Hi".into()), prompt_tokens: None, output_tokens: 1, at: None, row: None };
        let probe = writer.body(model, &probe)?;
        let lengths = prompts.iter().map(|p| (p.prompt_tokens, p.output_tokens)).collect();
        let id_prefix = args.target.request_id_prefix.clone().unwrap_or_else(random_prefix);
        let choices = extra.get("n").and_then(Value::as_u64).map_or(1, |n| n.clamp(1, 128) as u32);
        Ok(Prepared {
            endpoint: endpoint.clone(),
            plan: plan.clone(),
            bodies,
            lengths,
            probe,
            id_prefix,
            stream,
            choices,
        })
    }

    /// Bytes of all bodies.
    pub fn bytes(&self) -> usize {
        self.bodies.iter().map(|b| b.len()).sum()
    }

    /// The API they speak.
    pub fn api(&self) -> Api {
        self.endpoint.api
    }

    /// The first measured request, for a ready check.
    pub fn first(&self) -> client::Request<'_> {
        self.numbered(0, "ready".into())
    }

    fn numbered(&self, item: usize, id: Cow<'_, str>) -> client::Request<'_> {
        let item = item % self.bodies.len();
        let (prompt_tokens, output_tokens) = self.lengths[item];
        client::Request {
            headers: vec![("x-request-id", Cow::Owned(format!("{}{id}", self.id_prefix)))],
            stream: self.stream,
            choices: self.choices,
            prompt_tokens,
            output_tokens: Some(output_tokens),
            ..client::Request::new(self.endpoint.api, &self.endpoint.path, &*self.bodies[item])
        }
    }
}

impl client::Requests for Prepared {
    fn request(&self, id: IntentId) -> client::Request<'_> {
        let intent = self.plan.intent(id);
        match intent.stage {
            Stage::Measured => self.numbered(intent.item as usize, id.0.to_string().into()),
            Stage::Warmup => self.numbered(intent.item as usize, format!("warmup-{}", id.0).into()),
            Stage::Probe => client::Request {
                headers: vec![("x-request-id", Cow::Owned(format!("{}probe-{}", self.id_prefix, id.0)))],
                stream: self.stream,
                output_tokens: Some(1),
                ..client::Request::new(self.endpoint.api, &self.endpoint.path, &*self.probe)
            },
        }
    }
}

/// Which model name each request carries.
struct Models<'a> {
    base: &'a str,
    modules: Vec<&'a str>,
}

impl<'a> Models<'a> {
    fn new(args: &'a ServeArgs, base: &'a str) -> Models<'a> {
        let names = &args.load.lora_modules;
        let n = args.load.num_prompts.unwrap_or(1000) as usize;
        let mut rng = Seed(args.load.seed).stream("lora");
        let modules = match (names.is_empty(), args.load.lora_assignment) {
            (true, _) => Vec::new(),
            (false, Spread::RoundRobin) => names.iter().map(String::as_str).collect(),
            (false, Spread::Random) => (0..n).map(|_| names[rng.below(names.len() as u64) as usize].as_str()).collect(),
        };
        Models { base, modules }
    }

    fn of(&self, i: usize) -> &'a str {
        if self.modules.is_empty() { self.base } else { self.modules[i % self.modules.len()] }
    }
}

struct Writer<'a> {
    args: &'a ServeArgs,
    endpoint: &'a Endpoint,
    extra: &'a Map<String, Value>,
    stream: bool,
}

impl Writer<'_> {
    fn body(&self, model: &str, prompt: &Prompt) -> Outcome<Box<[u8]>> {
        let messages;
        let content = match &prompt.body {
            Body::Text(text) => body::Prompt::Text(text),
            Body::Ids(ids) => body::Prompt::Tokens(ids),
            Body::Messages(json) => {
                messages = json.to_string();
                body::Prompt::Messages(&messages)
            }
        };
        // vLLM forces the full length where lengths are synthetic: otherwise the asked length would mean nothing.
        let forced = matches!(self.args.data.dataset_name.as_str(), "random");
        let request = body::Request {
            model,
            prompt: content,
            max_tokens: Some(prompt.output_tokens),
            stream: self.stream,
            usage: body::AskUsage::Final,
            ignore_eos: self.args.payload.ignore_eos || forced,
            logprobs: self.args.payload.logprobs,
            content: body::Content::Parts,
            extra: Some(self.extra),
            overrides: None,
        };
        let mut out = Vec::with_capacity(512);
        body::write(self.endpoint.api, &request, &mut out)
            .map_err(|e| Failure::usage(format!("--endpoint {}: {e}", self.endpoint.path)))?;
        Ok(out.into_boxed_slice())
    }
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

/// `bench-<8 hex digits>-`: differs between runs, so that a server's logs can tell them apart.
fn random_prefix() -> String {
    let mixed = Seed(tailbound_os::clock::now().ns() ^ u64::from(std::process::id()) << 40).stream("request-ids").u64();
    format!("bench-{:08x}-", mixed as u32)
}
