use super::{Scenario, ScenarioError};
use serde::Deserialize;
use std::collections::BTreeMap;
use tailbound_clock::Dur;
use tailbound_engine::{Aic, Config, Law, Lora, Medium, Policy, Profile, Speculation, Tier, Transfer};

/// Replicas that are all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// What faults call them.
    #[serde(default)]
    pub name: String,
    /// How many.
    pub count: u32,
    /// One of the engine's named profiles.
    #[serde(default)]
    pub profile: Option<String>,
    /// How long steps take, in place of the profile's law.
    #[serde(default)]
    pub step: Option<StepLaw>,
    /// Tokens in a KV block; the profile's, if not given.
    pub block_size: Option<u32>,
    /// Tokens the KV cache holds; what the profile's memory has room for, if not given.
    pub kv_tokens: Option<u32>,
    /// Most sequences in a step.
    pub max_num_seqs: Option<u32>,
    /// Most tokens in a step.
    pub max_num_batched_tokens: Option<u32>,
    /// Most tokens of one prompt in a step.
    pub long_prefill_token_threshold: Option<u32>,
    /// Most tokens of a request.
    pub max_model_len: Option<u32>,
    /// Whether full blocks are shared and kept after use.
    pub prefix_caching: Option<bool>,
    /// Whose turn it is in the engine.
    pub scheduling: Option<Policy>,
    /// Speculative decoding.
    pub speculation: Option<Speculative>,
    /// Stores of KV blocks below the GPU's, the nearest first.
    #[serde(default)]
    pub tiers: Vec<Offload>,
    /// How keys and values come from a replica that computed a prompt for another.
    pub transfer: Option<TransferBy>,
    /// How adapters are served; if not given, at no cost.
    pub lora: Option<LoraSlots>,
    /// What discovery says of them.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Seconds after which they are there; 0 for those that are from the start.
    #[serde(default)]
    pub from_s: f64,
}

/// Speculative decoding.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculative {
    /// Draft tokens per sequence and step.
    pub tokens: u32,
    /// The chance that one is accepted, given that those before it were.
    pub acceptance: f64,
    /// What drafting adds to a step, in milliseconds.
    #[serde(default)]
    pub draft_ms: f64,
}

/// A store of KV blocks below the GPU's.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offload {
    /// Host memory or a disk.
    pub medium: Medium,
    /// Tokens it holds.
    pub tokens: u64,
    /// Gigabytes per second at which blocks come back.
    pub gb_per_s: f64,
    /// What each reading takes besides, in milliseconds.
    #[serde(default)]
    pub latency_ms: f64,
    /// Whether the blocks of a waiting request are read ahead.
    #[serde(default)]
    pub prefetch: bool,
}

/// How keys and values come from another replica.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferBy {
    /// Gigabytes per second.
    pub gb_per_s: f64,
    /// What each transfer takes besides, in milliseconds.
    #[serde(default)]
    pub latency_ms: f64,
}

/// How adapters are served (vLLM's `max_loras` and `max_cpu_loras`).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraSlots {
    /// Adapters on the GPU, and so most different ones in a step.
    pub max_loras: u32,
    /// Adapters kept in host memory.
    pub max_cpu_loras: u32,
    /// Bringing one from host memory to the GPU, in milliseconds.
    pub load_ms: f64,
    /// Reading one from disk, before that.
    pub fetch_ms: f64,
}

/// How long steps take, in milliseconds: [`Aic`]'s form.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepLaw {
    /// A decode step: fixed, per sequence, per sequence and token of context.
    pub decode_ms: [f64; 3],
    /// A prefill step: fixed, per token past the knee, per pair of tokens.
    pub prefill_ms: [f64; 3],
    /// Tokens up to which prefill takes no longer.
    #[serde(default)]
    pub knee: f64,
}

/// How old what the router knows is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Staleness {
    /// Milliseconds between two scrapes of a replica.
    pub scrape_ms: f64,
    /// Milliseconds a scrape's answer takes.
    pub scrape_delay_ms: f64,
    /// Milliseconds a message of KV events takes.
    pub event_delay_ms: f64,
}

impl Default for Staleness {
    fn default() -> Staleness {
        Staleness { scrape_ms: 50.0, scrape_delay_ms: 1.0, event_delay_ms: 1.0 }
    }
}

const HOUR_MS: f64 = 3.6e6;

impl Staleness {
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        if !(0.1..=HOUR_MS).contains(&self.scrape_ms) {
            return Err(ScenarioError::value("staleness.scrape_ms must be 0.1 to 3600000"));
        }
        if ![self.scrape_delay_ms, self.event_delay_ms].iter().all(|ms| (0.0..=HOUR_MS).contains(ms)) {
            return Err(ScenarioError::value("staleness: delays must be 0 to 3600000 ms"));
        }
        Ok(())
    }
}

impl Scenario {
    /// What each group's engines are.
    pub(crate) fn engine_configs(&self) -> Result<Vec<Config>, ScenarioError> {
        if !(1..=u32::from(u16::MAX)).contains(&self.engines.iter().fold(0u32, |n, e| n.saturating_add(e.count))) {
            return Err(ScenarioError::value("engines.count must be 1 to 65535"));
        }
        self.engines.iter().map(|group| Ok(Config { seed: self.seed(), ..group.config()? })).collect()
    }
}

/// A time in milliseconds, within reason.
fn ms(value: f64) -> Dur {
    Dur::from_ms_f64(value.clamp(0.0, HOUR_MS))
}

impl Offload {
    fn tier(self, block_size: u32) -> Tier {
        Tier {
            medium: self.medium,
            blocks: u32::try_from(self.tokens / u64::from(block_size)).unwrap_or(u32::MAX),
            rate: self.gb_per_s * 1e9,
            latency: ms(self.latency_ms),
            prefetch: self.prefetch,
        }
    }
}

impl LoraSlots {
    fn config(self) -> Lora {
        let LoraSlots { max_loras, max_cpu_loras, load_ms, fetch_ms } = self;
        Lora { max_loras, max_cpu_loras, load: ms(load_ms), fetch: ms(fetch_ms) }
    }
}

impl Speculative {
    fn config(self) -> Speculation {
        Speculation { tokens: self.tokens, acceptance: self.acceptance, draft_time: ms(self.draft_ms) }
    }
}

impl Engines {
    /// The law, and sizes that suit it.
    fn base(&self) -> Result<Config, ScenarioError> {
        let law =
            self.step.map(|s| Law::Aic(Aic { decode: s.decode_ms, prefill: s.prefill_ms, knee: s.knee, shared: None }));
        let Some(name) = &self.profile else {
            let law = law.ok_or_else(|| ScenarioError::value("engines: give a profile, or the law of a step"))?;
            let kv = self.kv_tokens.ok_or_else(|| ScenarioError::value("engines.kv_tokens: without a profile, say"))?;
            let block_size = self.block_size.unwrap_or(16).max(1);
            return Ok(Config { block_size, ..Config::new(law, kv / block_size, kv) });
        };
        let profile = Profile::named(name).ok_or_else(|| ScenarioError::Profile(name.clone()))?;
        let config = profile.config();
        Ok(Config { law: law.unwrap_or(config.law.clone()), ..config })
    }

    fn config(&self) -> Result<Config, ScenarioError> {
        let base = self.base()?;
        let block_size = self.block_size.unwrap_or(base.block_size);
        if block_size == 0 {
            return Err(ScenarioError::value("engines.block_size must not be 0"));
        }
        if !(0.0..=1e9).contains(&self.from_s) {
            return Err(ScenarioError::value("engines.from_s must be 0 to 1e9"));
        }
        let tokens = self.kv_tokens.unwrap_or(base.num_blocks * base.block_size);
        Ok(Config {
            block_size,
            num_blocks: tokens / block_size,
            max_num_seqs: self.max_num_seqs.unwrap_or(base.max_num_seqs),
            max_num_batched_tokens: self.max_num_batched_tokens.unwrap_or(base.max_num_batched_tokens),
            max_model_len: self.max_model_len.unwrap_or(base.max_model_len.min(tokens / block_size * block_size)),
            long_prefill_token_threshold: self.long_prefill_token_threshold.or(base.long_prefill_token_threshold),
            prefix_caching: self.prefix_caching.unwrap_or(base.prefix_caching),
            policy: self.scheduling.unwrap_or(base.policy),
            tiers: self.tiers.iter().map(|t| t.tier(block_size)).collect(),
            transfer: self.transfer.map(|t| Transfer { rate: t.gb_per_s * 1e9, latency: ms(t.latency_ms) }),
            lora: self.lora.map(LoraSlots::config),
            speculation: self.speculation.map(Speculative::config).or(base.speculation),
            ..base
        })
    }
}
