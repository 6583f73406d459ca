//! What an emulator is: dumb settings, then [`Config::validate`].

use std::net::SocketAddr;
use std::path::PathBuf;

use tailbound_clock::{Dur, Seed};

use crate::answer::AnswerLength;
use crate::error::EmulatorError;
use crate::fault::Faults;
use crate::kv_events::KvEventsConfig;

/// Settings of an emulator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The names it answers to; the first is the one it gives itself.
    pub served_model_names: Vec<String>,
    /// The replica behind it.
    pub engine: tailbound_engine::Config,
    /// How many such replicas (vLLM's data parallel ranks), each with its own scheduler and cache; a request goes to the one
    /// with the least to do. Steps of different replicas are not in time with each other, so the load on this machine is even.
    pub data_parallel_size: u32,
    /// A Hugging Face `tokenizer.json`; `None`: the built-in scheme, which needs no file.
    pub tokenizer: Option<PathBuf>,
    /// How long answers are without `ignore_eos`.
    pub answer_length: AnswerLength,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// For everything drawn: answers, their lengths, faults.
    pub seed: Seed,
    /// The bearer token clients must show.
    pub api_key: Option<String>,
    /// Echo `x-request-id`, or make one up (vLLM's `--enable-request-id-headers`).
    pub request_id_headers: bool,
    /// Put `prompt_tokens_details` in usages (vLLM's `--enable-prompt-tokens-details`).
    pub prompt_tokens_details: bool,
    /// Where changes of the prefix cache are published; `None`: nowhere.
    pub kv_events: Option<KvEventsConfig>,
    /// A file that gets one JSON line per request: planned and actual time of every token.
    pub truth_log: Option<PathBuf>,
    /// Longest request body in bytes.
    pub max_body: usize,
    /// How long a request may take to arrive from its first byte on.
    pub request_timeout: Dur,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Dur,
    /// How many bytes a client may leave unread before its connection is dropped.
    pub max_unsent: usize,
    /// Stay awake for this long before a step is due: more exact, at the cost of CPU time. Zero: sleep.
    pub spin: Dur,
    /// What `/version` says.
    pub version: String,
}

impl Config {
    /// One replica on a free loopback port, serving as `tailbound`.
    pub fn new(engine: tailbound_engine::Config) -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            served_model_names: vec!["tailbound".to_owned()],
            engine,
            data_parallel_size: 1,
            tokenizer: None,
            answer_length: AnswerLength::CHAT,
            faults: Faults::default(),
            seed: Seed(0),
            api_key: None,
            request_id_headers: true,
            prompt_tokens_details: true,
            kv_events: None,
            truth_log: None,
            max_body: 64 << 20,
            request_timeout: Dur::from_secs(30),
            idle_timeout: Dur::from_secs(120),
            max_unsent: 1 << 20,
            spin: Dur::ZERO,
            version: concat!(env!("CARGO_PKG_VERSION"), "+tailbound").to_owned(),
        }
    }

    /// Whether an emulator can be made of it.
    ///
    /// # Errors
    /// The first setting that is no good, by name.
    pub fn validate(&self) -> Result<(), EmulatorError> {
        let bad = |what: &str| Err(EmulatorError::Config(what.to_owned()));
        if self.served_model_names.iter().any(String::is_empty) || self.served_model_names.is_empty() {
            return bad("a served model name must not be empty, and at least one is needed");
        }
        if !(1..=1024).contains(&self.data_parallel_size) {
            return bad("data_parallel_size must be 1 to 1024");
        }
        if self.max_body == 0 || self.max_unsent < 1024 {
            return bad("max_body must be at least 1 byte and max_unsent at least 1024");
        }
        if self.request_timeout.is_zero() || self.idle_timeout.is_zero() {
            return bad("time-outs must not be zero");
        }
        if let Some(fault) = self.answer_length.fault() {
            return bad(fault);
        }
        if let Some(fault) = self.faults.complaint() {
            return bad(&fault);
        }
        Ok(self.engine.validate()?)
    }
}
