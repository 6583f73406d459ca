use crate::lookup::MAX_BLOCKS;
use crate::{Law, Lora, MAX_DRAFT_TOKENS, Tier};
use tailbound_clock::{Dur, Seed};

/// What an engine is. Names and meanings are vLLM's where it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long steps take.
    pub law: Law,
    /// Tokens in a block.
    pub block_size: u32,
    /// Blocks of the KV cache (vLLM's `num_gpu_blocks` less the one it keeps empty).
    pub num_blocks: u32,
    /// Most sequences in a step.
    pub max_num_seqs: u32,
    /// Most tokens in a step.
    pub max_num_batched_tokens: u32,
    /// Most tokens of a sequence, prompt and answer.
    pub max_model_len: u32,
    /// Whether a prompt may be computed over several steps.
    pub chunked_prefill: bool,
    /// Most tokens of one prompt in a step; `None`: no bound but the budget.
    pub long_prefill_token_threshold: Option<u32>,
    /// Who goes first.
    pub policy: Policy,
    /// Whether full blocks are shared and kept after use.
    pub prefix_caching: bool,
    /// Whether a prompt is taken only if blocks for all of it are free, rather than for its first chunk
    /// (vLLM's `scheduler_reserve_full_isl`).
    pub reserve_full_prompt: bool,
    /// Speculative decoding.
    pub speculation: Option<Speculation>,
    /// Most waiting requests (vLLM's `max_num_queued_reqs`); `None`: no bound.
    pub max_num_queued_reqs: Option<u32>,
    /// Whether changes of the prefix cache are told.
    pub kv_events: KvEvents,
    /// Bytes that keys and values of a token take in all GPUs of the replica; needed with `tiers` and `transfer`.
    pub kv_bytes_per_token: f64,
    /// Stores of blocks below the GPU's cache, the nearest first.
    pub tiers: Vec<Tier>,
    /// How keys and values come from another replica ([`crate::Submit::remote`]).
    pub transfer: Option<Transfer>,
    /// How adapters are served; `None`: at no cost, any number at once.
    pub lora: Option<Lora>,
    /// For what is drawn (accepted draft tokens).
    pub seed: Seed,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// First come, first served.
    #[default]
    Fcfs,
    /// Lower priority number first, then first come. Decides who leaves the queue and who loses its blocks;
    /// a waiting request never displaces a running one for its own sake.
    Priority,
}

/// The way from one replica's KV cache to another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Bytes per second.
    pub rate: f64,
    /// What every transfer takes besides.
    pub latency: Dur,
}

impl Transfer {
    /// How long so many tokens of so many bytes each take.
    pub fn time(&self, tokens: u32, token_bytes: f64) -> Dur {
        self.latency + Dur::from_secs_f64(f64::from(tokens) * token_bytes / self.rate)
    }
}

/// Speculative decoding: some tokens are guessed cheaply and checked in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// Draft tokens per decoding sequence and step; 1 to [`MAX_DRAFT_TOKENS`].
    pub tokens: u32,
    /// The chance that a draft token is accepted, given that those before it were; 0 to 1.
    pub acceptance: f64,
    /// What drafting adds to a step that drafts.
    pub draft_time: Dur,
}

/// Whether and how changes of the prefix cache are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvEvents {
    /// Not at all.
    #[default]
    Off,
    /// Hashes alone.
    Hashes,
    /// Hashes and the tokens of stored blocks.
    Tokens,
}

/// A configuration no engine can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A number that must not be zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// A sequence of full length would never fit.
    #[error(
        "the KV cache holds {tokens} tokens, fewer than max_model_len {max_model_len}: raise num_blocks or lower max_model_len"
    )]
    CacheTooSmall {
        /// What it holds.
        tokens: u64,
        /// What one sequence may need.
        max_model_len: u32,
    },
    /// More blocks than the model can number.
    #[error("num_blocks is over {MAX_BLOCKS}")]
    TooManyBlocks,
    /// Without chunks a prompt must fit a step.
    #[error("max_num_batched_tokens {budget} is under max_model_len {max_model_len}, which needs chunked prefill")]
    NeedsChunks {
        /// The step's budget.
        budget: u32,
        /// The longest prompt.
        max_model_len: u32,
    },
    /// A share outside 0 to 1, or too many draft tokens.
    #[error("speculation needs 1 to {MAX_DRAFT_TOKENS} draft tokens and an acceptance of 0 to 1")]
    Speculation,
    /// Tiers or transfers that nothing can be computed of.
    #[error("kv_bytes_per_token, and the rates of tiers and transfer, must be above 0")]
    Rates,
    /// No adapter could ever run.
    #[error("lora: max_loras must be at least 1, and max_cpu_loras no less")]
    Lora,
    /// A law that does not give a length of time for every batch.
    #[error("step law: {0}")]
    Law(&'static str),
}

impl Config {
    /// vLLM's defaults around a law: blocks of 16, 256 sequences, chunked prefill of 2,048 tokens, prefix caching, first come first served.
    pub fn new(law: Law, num_blocks: u32, max_model_len: u32) -> Config {
        Config {
            law,
            block_size: 16,
            num_blocks,
            max_num_seqs: 256,
            max_num_batched_tokens: 2048,
            max_model_len,
            chunked_prefill: true,
            long_prefill_token_threshold: None,
            policy: Policy::Fcfs,
            prefix_caching: true,
            reserve_full_prompt: true,
            speculation: None,
            max_num_queued_reqs: None,
            kv_events: KvEvents::Off,
            kv_bytes_per_token: 0.0,
            tiers: Vec::new(),
            transfer: None,
            lora: None,
            seed: Seed(0),
        }
    }

    /// Whether an engine can be made of it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (value, name) in [
            (self.block_size, "block_size"),
            (self.num_blocks, "num_blocks"),
            (self.max_num_seqs, "max_num_seqs"),
            (self.max_num_batched_tokens, "max_num_batched_tokens"),
            (self.max_model_len, "max_model_len"),
            (self.long_prefill_token_threshold.unwrap_or(1), "long_prefill_token_threshold"),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        if self.num_blocks > MAX_BLOCKS {
            return Err(ConfigError::TooManyBlocks);
        }
        let tokens = u64::from(self.num_blocks) * u64::from(self.block_size);
        if tokens < u64::from(self.max_model_len) {
            return Err(ConfigError::CacheTooSmall { tokens, max_model_len: self.max_model_len });
        }
        if !self.chunked_prefill && self.max_num_batched_tokens < self.max_model_len {
            return Err(ConfigError::NeedsChunks {
                budget: self.max_num_batched_tokens,
                max_model_len: self.max_model_len,
            });
        }
        if let Some(s) = &self.speculation
            && (s.tokens == 0 || s.tokens as usize > MAX_DRAFT_TOKENS || !(0.0..=1.0).contains(&s.acceptance))
        {
            return Err(ConfigError::Speculation);
        }
        let rates = self.tiers.iter().map(|t| t.rate).chain(self.transfer.map(|t| t.rate));
        let rates: Vec<f64> = rates.collect();
        if !rates.is_empty() && !rates.iter().chain([&self.kv_bytes_per_token]).all(|r| r.is_finite() && *r > 0.0) {
            return Err(ConfigError::Rates);
        }
        if self.lora.is_some_and(|l| l.max_loras == 0 || l.max_cpu_loras < l.max_loras) {
            return Err(ConfigError::Lora);
        }
        self.law.validate().map_err(ConfigError::Law)
    }
}
