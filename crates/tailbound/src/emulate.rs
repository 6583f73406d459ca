//! `tailbound emulate`: an OpenAI-compatible server around a simulated engine.

use crate::failure::{Failure, Outcome};
use crate::units;
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use tailbound_clock::{Dur, Seed};
use tailbound_emulator as emulator;
use tailbound_engine::{self as engine, Law, PROFILES, Policy, Profile, Speculation};

/// Serve a model that isn't there.
#[derive(Args, Debug, Clone)]
pub struct EmulateArgs {
    /// Which replica to behave like; --list-profiles names them all
    #[arg(long, default_value = "llama-3.1-8b-h100", value_name = "NAME")]
    pub profile: String,
    /// Print the profiles and exit
    #[arg(long)]
    pub list_profiles: bool,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// Model names to answer to [default: the profile's model]
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub served_model_name: Vec<String>,
    /// Publish changes of the prefix cache over ZeroMQ, as vLLM takes it: {"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",…}
    #[arg(long, value_name = "JSON", help_heading = "KV events")]
    pub kv_events_config: Option<String>,
    /// How they are written: arrays (vLLM of 2025), events (0.33: an array of maps), maps
    #[arg(long, value_name = "FORM", default_value = "events", value_parser = ["arrays", "events", "maps"], help_heading = "KV events")]
    pub kv_events_encoding: String,
    /// The step law that `tailbound fit --output FILE` learnt, instead of the profile's
    #[arg(long, value_name = "FILE", conflicts_with = "step_time", help_heading = "Engine")]
    pub law: Option<PathBuf>,
    /// Constant step time instead of the profile's law, e.g. 20ms
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Engine")]
    pub step_time: Option<Dur>,
    /// With --step-time: what each prompt token adds to a step, e.g. 20us
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "0", help_heading = "Engine")]
    pub prefill_token_time: Dur,
    /// Most sequences in a step
    #[arg(long, value_name = "N", value_parser = units::count32, help_heading = "Engine")]
    pub max_num_seqs: Option<u32>,
    /// Most tokens in a step
    #[arg(long, value_name = "N", value_parser = units::count32, help_heading = "Engine")]
    pub max_num_batched_tokens: Option<u32>,
    /// Longest sequence, prompt and answer
    #[arg(long, value_name = "TOKENS", value_parser = units::count32, help_heading = "Engine")]
    pub max_model_len: Option<u32>,
    /// Blocks of the KV cache
    #[arg(long, value_name = "N", value_parser = units::count32, help_heading = "Engine")]
    pub num_gpu_blocks: Option<u32>,
    /// Tokens in a block
    #[arg(long, value_name = "TOKENS", value_parser = units::count32, help_heading = "Engine")]
    pub block_size: Option<u32>,
    /// Don't share blocks between requests
    #[arg(long, help_heading = "Engine")]
    pub no_enable_prefix_caching: bool,
    /// fcfs or priority
    #[arg(long, default_value = "fcfs", value_parser = ["fcfs", "priority"], help_heading = "Engine")]
    pub scheduling_policy: String,
    /// Draft tokens of speculative decoding
    #[arg(long, value_name = "K", value_parser = units::count32, help_heading = "Engine")]
    pub num_speculative_tokens: Option<u32>,
    /// Chance that a draft token is accepted
    #[arg(long, value_name = "SHARE", default_value_t = 0.7, help_heading = "Engine")]
    pub speculative_acceptance: f64,
    /// Replicas behind the one address
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Engine")]
    pub data_parallel_size: u32,
    /// A tokenizer.json instead of the built-in scheme
    #[arg(long, value_name = "FILE", help_heading = "Engine")]
    pub tokenizer: Option<PathBuf>,
    /// How long answers are without ignore_eos: chat, max, fixed:N, uniform:LOW:HIGH or lognormal:MEDIAN:SIGMA
    #[arg(long, value_name = "LAW", default_value = "chat", help_heading = "Engine")]
    pub answer_length: emulator::AnswerLength,
    /// Seed of answers, their lengths and faults
    #[arg(long, default_value_t = 0, help_heading = "Engine")]
    pub seed: u64,
    /// Ask for the key in this environment variable
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Write planned and actual send times of every token here, one JSON line per request
    #[arg(long, value_name = "FILE")]
    pub truth_log: Option<PathBuf>,
    /// Stay awake this long before each step is due: more exact, at the cost of CPU time
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "0")]
    pub spin: Dur,
    /// Share of requests refused with a 500 or 503
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Faults")]
    pub error_rate: f64,
    /// Share of streams cut in the middle
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Faults")]
    pub cut_rate: f64,
    /// Share of streams held in the middle
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Faults")]
    pub stall_rate: f64,
    /// How long they are held
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s", help_heading = "Faults")]
    pub stall: Dur,
    /// Share of requests kept from the engine for a while
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Faults")]
    pub slow_first_byte_rate: f64,
    /// How long
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s", help_heading = "Faults")]
    pub slow_first_byte: Dur,
}

/// Runs until a signal comes.
pub fn run(args: &EmulateArgs) -> Outcome<u8> {
    if args.list_profiles {
        crate::output::print(&profiles())?;
        return Ok(0);
    }
    let config = config(args)?;
    tailbound_os::signals::watch();
    let failed = |e: emulator::EmulatorError| Failure::new(format!("failed to {e}"));
    let server = emulator::Emulator::bind(config).map_err(failed)?;
    crate::output::print(&format!("listening on http://{}\n", server.addr()))?;
    let stop = || tailbound_os::signals::interrupts() + tailbound_os::signals::terminates() > 0;
    let summary = server.run(stop).map_err(failed)?;
    // A server is stopped by a signal: that is its good end.
    eprintln!("{}", summary.to_json());
    Ok(0)
}

fn profiles() -> String {
    let line = |p: &Profile| {
        let config = p.config();
        format!(
            "{:<24} {:<30} {:>8} KV blocks, {:>5} sequences\n",
            p.name, p.model, config.num_blocks, config.max_num_seqs
        )
    };
    PROFILES.iter().map(line).collect()
}

/// `--profile`.
pub fn profile(name: &str) -> Outcome<&'static Profile> {
    Profile::named(name).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|p| p.name).collect();
        Failure::usage(format!("--profile {name}: unknown profile"))
            .hint(format!("one of {} (tailbound emulate --list-profiles)", names.join(", ")))
    })
}

/// The emulator that the flags describe.
pub fn config(args: &EmulateArgs) -> Outcome<emulator::Config> {
    let profile = profile(&args.profile)?;
    let api_key = match &args.api_key_env {
        None => None,
        Some(name) => Some(
            std::env::var(name)
                .map_err(|_| Failure::usage(format!("--api-key-env {name}: the variable is not set")))?,
        ),
    };
    let names = match args.served_model_name.is_empty() {
        true => vec![profile.model.to_owned()],
        false => args.served_model_name.clone(),
    };
    let config = emulator::Config {
        listen: SocketAddr::new(args.host, args.port),
        served_model_names: names,
        data_parallel_size: args.data_parallel_size,
        tokenizer: args.tokenizer.clone(),
        api_key,
        kv_events: kv_events(args)?,
        truth_log: args.truth_log.clone(),
        spin: args.spin,
        answer_length: args.answer_length,
        seed: Seed(args.seed),
        faults: emulator::Faults {
            error_rate: args.error_rate,
            cut_rate: args.cut_rate,
            stall_rate: args.stall_rate,
            stall: args.stall,
            slow_first_byte_rate: args.slow_first_byte_rate,
            slow_first_byte: args.slow_first_byte,
        },
        ..emulator::Config::new(engine_config(args, profile)?)
    };
    config.validate().map_err(|e| Failure::usage(e.to_string()))?;
    Ok(config)
}

/// `--kv-events-config`, dumb; names and defaults are vLLM's.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KvEventsArgs {
    enable_kv_cache_events: bool,
    publisher: String,
    endpoint: String,
    replay_endpoint: Option<String>,
    buffer_steps: usize,
    hwm: usize,
    max_queue_size: usize,
    topic: String,
}

impl Default for KvEventsArgs {
    fn default() -> KvEventsArgs {
        let emulator::KvEventsConfig { endpoint, replay_endpoint, buffer_steps, hwm, topic, .. } = Default::default();
        let publisher = "zmq".to_owned();
        let max_queue_size = 100_000;
        KvEventsArgs {
            enable_kv_cache_events: false,
            publisher,
            endpoint,
            replay_endpoint,
            buffer_steps,
            hwm,
            max_queue_size,
            topic,
        }
    }
}

fn kv_events(args: &EmulateArgs) -> Outcome<Option<emulator::KvEventsConfig>> {
    let Some(json) = &args.kv_events_config else { return Ok(None) };
    let wrong = |e: String| Failure::usage(format!("--kv-events-config: {e}"));
    let kv: KvEventsArgs = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    if !kv.enable_kv_cache_events || kv.publisher == "null" {
        return Ok(None);
    }
    if kv.publisher != "zmq" {
        return Err(wrong(format!("publisher `{}` is neither zmq nor null", kv.publisher)));
    }
    let encoding = match args.kv_events_encoding.as_str() {
        "arrays" => emulator::Encoding::Arrays,
        "maps" => emulator::Encoding::Maps,
        _ => emulator::Encoding::Events,
    };
    Ok(Some(emulator::KvEventsConfig {
        endpoint: kv.endpoint,
        replay_endpoint: kv.replay_endpoint,
        buffer_steps: kv.buffer_steps,
        hwm: kv.hwm.min(kv.max_queue_size),
        topic: kv.topic,
        encoding,
    }))
}

fn engine_config(args: &EmulateArgs, profile: &Profile) -> Outcome<engine::Config> {
    let base = profile.config();
    let law = match (args.step_time, &args.law) {
        (Some(step), _) => Law::Constant { step, per_prefill_token: args.prefill_token_time },
        (None, Some(file)) => crate::fit::law(file)?,
        (None, None) => base.law.clone(),
    };
    Ok(engine::Config {
        law,
        max_num_seqs: args.max_num_seqs.unwrap_or(base.max_num_seqs),
        max_num_batched_tokens: args.max_num_batched_tokens.unwrap_or(base.max_num_batched_tokens),
        max_model_len: args.max_model_len.unwrap_or(base.max_model_len),
        num_blocks: args.num_gpu_blocks.unwrap_or(base.num_blocks),
        block_size: args.block_size.unwrap_or(base.block_size),
        prefix_caching: !args.no_enable_prefix_caching,
        policy: if args.scheduling_policy == "priority" { Policy::Priority } else { Policy::Fcfs },
        speculation: args.num_speculative_tokens.map(|tokens| Speculation {
            tokens,
            acceptance: args.speculative_acceptance,
            draft_time: Dur::ZERO,
        }),
        seed: Seed(args.seed),
        ..base
    })
}
