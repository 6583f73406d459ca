//! The flags of `tailbound bench serve`, parsed and dumb: names, types and help only. What they mean together is judged in `plan`.

use crate::bench::scenario::file::Phased;
use crate::units;
use clap::{Args, Command, FromArgMatches, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use tailbound_clock::Dur;

/// Measure a server under load.
#[derive(Args, Debug, Clone)]
#[command(next_line_help = false)]
pub struct ServeArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub data: super::data_args::DataArgs,
    /// Lengths and objectives of a kind of service; --dry-run prints what they stand for
    #[arg(long, value_enum, help_heading = "Data set")]
    pub preset: Option<super::preset::Preset>,
    #[command(flatten)]
    pub trace: super::trace_args::TraceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten)]
    pub refused: super::refused::RefusedArgs,
}

/// Where requests go.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// Kind of server: openai, vllm, openai-chat, openai-responses, tgi, sglang, llama.cpp, lmdeploy, tensorrt-llm … The endpoint's suffix decides the API
    #[arg(long, default_value = "openai")]
    pub backend: String,
    /// Server address, e.g. https://host:8000 or http://[::1]:8000/prefix; the endpoint is appended
    #[arg(long, value_name = "URL", env = "OPENAI_BASE_URL", hide_env_values = true)]
    pub base_url: Option<String>,
    /// Host, where there is no --base-url
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Port, where there is no --base-url
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// Path of the API; by default /v1/completions, or the one the backend implies
    #[arg(long, value_name = "PATH")]
    pub endpoint: Option<String>,
    /// Extra headers (they win over the key from the environment)
    #[arg(long, value_name = "KEY=VALUE", num_args = 0..)]
    pub header: Vec<String>,
    /// Don't verify the server's certificate
    #[arg(long)]
    pub insecure: bool,
    /// Trust the certificates in this PEM file too
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Read the API key from this file (default: the environment variable OPENAI_API_KEY)
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<PathBuf>,
    /// Read the API key from this environment variable
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Model; by default the first one the server lists
    #[arg(long)]
    pub model: Option<String>,
    /// Model name to send, if the server knows it by another
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,
    /// tokenizer.json, a folder with one, or a hub name (cached, else downloaded); else the server's own /tokenize; else none
    #[arg(long, value_name = "PATH|NAME")]
    pub tokenizer: Option<String>,
    /// auto or hf: both read tokenizer.json
    #[arg(long, default_value = "auto")]
    pub tokenizer_mode: String,
    /// Accepted for compatibility: no remote code is ever run
    #[arg(long)]
    pub trust_remote_code: bool,
    /// Use no tokenizer: token counts come from the server's usage alone
    #[arg(long)]
    pub skip_tokenizer_init: bool,
    /// Wait up to this long for the server to answer a first request; 0 skips the check
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = units::duration)]
    pub ready_check_timeout_sec: Dur,
    /// Read these pages of metrics too, beside the server's own /metrics: those of replicas behind a gateway, of GPUs (DCGM), of machines
    /// (node exporter). Headers and keys are sent to the server alone
    #[arg(long, value_name = "URL", num_args = 0..)]
    pub server_metrics: Vec<String>,
    /// Read no metrics of the server
    #[arg(long, conflicts_with = "server_metrics")]
    pub no_server_metrics: bool,
    /// Request ids (header x-request-id) are this and the request's number [default: bench-<8 hex digits>-]
    #[arg(long, value_name = "TEXT")]
    pub request_id_prefix: Option<String>,
}

/// When requests leave.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Phases instead of one law (`bench run`)
    #[arg(skip)]
    pub phased: Option<Arc<Phased>>,
    /// How many requests [default: 1000, or as many as fit into --duration]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub num_prompts: Option<u64>,
    /// Arrivals per second (`92`, `92/s`, `120/min`); inf sends all at once [default: inf]
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true)]
    pub request_rate: Option<f64>,
    /// Shape of the gamma-distributed gaps: 1 is Poisson, under 1 burstier, over 1 smoother, inf constant [default: 1]
    #[arg(long, value_parser = units::rate, allow_negative_numbers = true)]
    pub burstiness: Option<f64>,
    /// Whether arrivals are stretched so that the last one falls exactly at n/rate, as vLLM does; it removes the variance of counts
    #[arg(long, value_enum, default_value_t = Normalize::None)]
    pub arrival_normalize: Normalize,
    /// At most so many requests in flight; arrivals beyond wait, and the wait is reported
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_concurrency: Option<i64>,
    /// Stop sending after this long
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Dur>,
    /// Change the rate over the run
    #[arg(long, value_enum)]
    pub ramp_up_strategy: Option<Ramp>,
    /// Rate at the start of the ramp
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true)]
    pub ramp_up_start_rps: Option<f64>,
    /// Rate at the end of the ramp
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_negative_numbers = true)]
    pub ramp_up_end_rps: Option<f64>,
    /// Requests sent, and left out of every figure, before the run
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    pub num_warmups: i64,
    /// Send single-token probe requests at this rate beside the load, outside the cap, reported apart
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = units::rate, allow_negative_numbers = true)]
    pub probe_request_rate: f64,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Model names of LoRA modules to spread requests over
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub lora_modules: Vec<String>,
    /// How they are spread
    #[arg(long, value_enum, default_value_t = Spread::Random)]
    pub lora_assignment: Spread,
    /// Start and stop the server's profiler around the run (POST /start_profile, /stop_profile)
    #[arg(long)]
    pub profile: bool,
}

/// What requests ask for.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Payload")]
pub struct PayloadArgs {
    /// Ask the server to generate the full length (always on for the random data set)
    #[arg(long)]
    pub ignore_eos: bool,
    /// Ask for the whole answer at once instead of a stream (TTFT is then the whole answer's time)
    #[arg(long)]
    pub no_stream: bool,
    /// Log probabilities per token
    #[arg(long, value_name = "N")]
    pub logprobs: Option<u32>,
    /// Nucleus sampling; of the sampling parameters, what isn't given isn't sent
    #[arg(long, value_name = "P")]
    pub top_p: Option<f64>,
    /// Sample from the K likeliest tokens
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub top_k: Option<i64>,
    /// Leave out tokens less likely than this share of the likeliest
    #[arg(long, value_name = "P")]
    pub min_p: Option<f64>,
    /// Sampling temperature (vLLM no longer sends 0 by itself, and neither does this)
    #[arg(long, value_name = "T")]
    pub temperature: Option<f64>,
    /// Penalty by how often a token came
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub frequency_penalty: Option<f64>,
    /// Penalty for a token that came at all
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub presence_penalty: Option<f64>,
    /// Factor against repetition
    #[arg(long, value_name = "X")]
    pub repetition_penalty: Option<f64>,
    /// JSON object merged into every request body last, so that it wins
    #[arg(long, value_name = "JSON")]
    pub extra_body: Option<String>,
}

/// What is reported, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Reporting")]
pub struct ReportArgs {
    /// The command that makes these flags again, where it isn't this process's
    #[arg(skip)]
    pub argv: Option<Vec<String>>,
    /// First part of the result file's name [default: the backend]
    #[arg(long)]
    pub label: Option<String>,
    /// Save the result as JSON (vLLM's keys, then ours)
    #[arg(long)]
    pub save_result: bool,
    /// Add per-request figures to the JSON
    #[arg(long)]
    pub save_detailed: bool,
    /// Append to the result file instead of replacing it
    #[arg(long)]
    pub append_result: bool,
    /// Folder for the result file
    #[arg(long, value_name = "DIR")]
    pub result_dir: Option<PathBuf>,
    /// Name of the result file
    #[arg(long, value_name = "NAME")]
    pub result_filename: Option<String>,
    /// Facts to keep in the JSON
    #[arg(long, value_name = "KEY=VALUE", num_args = 0..)]
    pub metadata: Vec<String>,
    /// Metrics with percentiles: ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue
    #[arg(long, value_name = "LIST", default_value = "ttft,tpot,itl", value_delimiter = ',')]
    pub percentile_metrics: Vec<String>,
    /// Which percentiles
    #[arg(long, value_name = "LIST", default_value = "99", value_delimiter = ',')]
    pub metric_percentiles: Vec<f64>,
    /// Objectives per request, in ms or with a unit: ttft:500 tpot:50 e2el:10s
    #[arg(long, value_name = "METRIC:MS", num_args = 1..)]
    pub goodput: Vec<String>,
    /// Objectives of one class of requests instead of --goodput: `API log=ttft:500,tpot:50`; may be given several times
    #[arg(long, value_name = "CLASS=METRIC:MS,…")]
    pub class_goodput: Vec<String>,
    /// Share of requests that must meet the objectives for the run to count as passed [default: 0.9, or the preset's]
    #[arg(long, value_name = "SHARE")]
    pub attainment: Option<f64>,
    /// When each token is due after the one before it: adds etalon's fluidity-index, by its code and by its documents, and the fluid token rate
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub tbt_deadline: Option<Dur>,
    /// With --tbt-deadline: when the first token is due; without it the first token is not judged
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "tbt_deadline")]
    pub ttft_deadline: Option<Dur>,
    /// Print the formula of every figure after the report
    #[arg(long)]
    pub explain: bool,
    /// No progress line
    #[arg(long, visible_alias = "quiet")]
    pub disable_tqdm: bool,
    /// Print the plan, its hash and its length, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Exit with 0 even if the run is INVALID or an objective was missed
    #[arg(long, visible_alias = "exit-zero")]
    pub no_fail: bool,
    /// Write every ended request to this folder at once; `tailbound report DIR` rebuilds the result from it after any death
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Judge the sends by what `tailbound calibrate --output FILE` found on this machine
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Share of failed requests above which the run is INVALID
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub max_error_share: f64,
}

/// How the client itself works.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Client")]
pub struct ClientArgs {
    /// Threads that carry connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::some32)]
    pub threads: u32,
    /// Read each socket as soon as it is ready instead of gathering ready sockets for 0.2 ms (stamps are the kernel's either way)
    #[arg(long)]
    pub no_gather: bool,
    /// Acknowledge every read at once, even if the ready check has seen the server send without waiting for that (delayed
    /// acknowledgements save about an eighth of the client's CPU time)
    #[arg(long)]
    pub no_delay_acks: bool,
    /// Real-time priority (SCHED_FIFO), where permitted
    #[arg(long)]
    pub realtime: bool,
    /// Pin threads to these cores
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub pin: Vec<u32>,
    /// Open this many connections before the run
    #[arg(long, value_name = "N", default_value = "0", value_parser = units::count32)]
    pub preconnect: u32,
    /// Speak HTTP/2, also where the server is asked small things: over http:// without asking first (prior knowledge), over https://
    /// by agreement in the handshake (ALPN); still one request in flight on each connection
    #[arg(long)]
    pub http2: bool,
    /// Limit for a whole request
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = units::duration)]
    pub timeout: Dur,
    /// Limit for connecting
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    pub connect_timeout: Dur,
    /// Limit for the first token
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub first_token_timeout: Option<Dur>,
    /// Limit between two reads of a stream
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub gap_timeout: Option<Dur>,
    /// How long requests in flight may go on after the run was stopped
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    pub grace: Dur,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    Vllm,
    None,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    Linear,
    Exponential,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    Random,
    RoundRobin,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// A group of flags of which none was given.
pub fn unset<T: Args + FromArgMatches>() -> T {
    let matches = T::augment_args(Command::new("unset")).get_matches_from(["unset"]);
    T::from_arg_matches(&matches).expect("no flag of these groups is required")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::serve::refused::RefusedArgs;

    #[test]
    fn groups_without_flags_have_their_defaults() {
        let (load, report, _): (LoadArgs, ReportArgs, RefusedArgs) = (unset(), unset(), unset());
        assert_eq!((load.num_prompts, load.num_warmups, load.probe_request_rate), (None, 0, 0.0));
        assert_eq!((report.attainment, report.run_dir), (None, None));
    }
}
