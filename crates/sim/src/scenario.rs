use serde::Deserialize;
use tailbound_clock::{Dur, Seed};
use tailbound_engine::{Config, Profile};
use tailbound_route::{Complaint, PickerConfig, Policy};
use tailbound_workload::{Plan, Spec};

/// A fleet and what it is to serve, as written in TOML.
///
/// ```toml
/// seed = 1
/// policy = """
/// apiVersion: llm-d.ai/v1alpha1
/// kind: EndpointPickerConfig
/// …
/// """
///
/// [engines]
/// count = 4
/// profile = "llama-3.1-70b-h100-tp4"
/// block_size = 64
/// kv_tokens = 461376
///
/// [staleness]
/// scrape_ms = 50
///
/// [shared_prefix]
/// groups = 83
/// prompts_per_group = 3
/// system = 8000
/// question = 1000
/// output = 1000
///
/// [arrivals]
/// stages = [[3.0, 210.0], [4.0, 180.0]]
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What all draws come from.
    #[serde(default)]
    pub seed: u64,
    /// An `EndpointPickerConfig`.
    pub policy: String,
    /// The replicas.
    pub engines: Engines,
    /// How old what the router knows is.
    #[serde(default)]
    pub staleness: Staleness,
    /// What is asked.
    pub shared_prefix: SharedPrefix,
    /// When.
    pub arrivals: Arrivals,
}

/// The replicas, all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// How many.
    pub count: u32,
    /// One of the engine's named profiles.
    pub profile: String,
    /// Tokens in a KV block; the profile's, if not given.
    pub block_size: Option<u32>,
    /// Tokens the KV cache holds; what the profile's memory has room for, if not given.
    pub kv_tokens: Option<u32>,
    /// Most sequences in a step.
    pub max_num_seqs: Option<u32>,
    /// Most tokens in a step.
    pub max_num_batched_tokens: Option<u32>,
    /// Most tokens of a request.
    pub max_model_len: Option<u32>,
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

/// Prompts in groups with a beginning in common, in tokens: `inference-perf`'s `shared_prefix`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPrefix {
    /// Groups.
    pub groups: u32,
    /// Different prompts of each.
    pub prompts_per_group: u32,
    /// Tokens in common.
    pub system: u32,
    /// Tokens of a prompt's own.
    pub question: u32,
    /// Tokens of the answer.
    pub output: u32,
}

/// When requests come.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// (requests per second, seconds), one after the other.
    pub stages: Vec<(f64, f64)>,
    /// Gaps drawn exponentially, rather than all alike.
    #[serde(default)]
    pub poisson: bool,
    /// A stage begins once the one before it has been answered, as in `inference-perf`, and not before its time.
    #[serde(default)]
    pub drain: bool,
}

/// What fits in memory: prompts are kept as token ids, and a row stays to the end.
const MOST_TOKENS: f64 = 1e9;
const MOST_REQUESTS: f64 = 2e7;

impl Staleness {
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let hour = 3.6e6;
        if !(0.1..=hour).contains(&self.scrape_ms) {
            return Err(ScenarioError::Value("staleness.scrape_ms must be 0.1 to 3600000"));
        }
        if ![self.scrape_delay_ms, self.event_delay_ms].iter().all(|ms| (0.0..=hour).contains(ms)) {
            return Err(ScenarioError::Value("staleness: delays must be 0 to 3600000 ms"));
        }
        Ok(())
    }
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It isn't TOML of that form.
    #[error("line {line}: {problem}")]
    Form {
        /// Where, from 1.
        line: usize,
        /// What is wrong, and in which key.
        problem: String,
    },
    /// Its policy isn't one.
    #[error("policy: {0}")]
    Policy(#[from] Complaint),
    /// No such profile.
    #[error("engines.profile: no profile `{0}` is known; `tailbound emulate --list-profiles` names them")]
    Profile(String),
    /// Engines that can't be.
    #[error("engines: {0}")]
    Engines(#[from] tailbound_engine::ConfigError),
    /// A value nothing can be done with; the key, and what it must be.
    #[error("{0}")]
    Value(&'static str),
    /// So many requests would wait for ever.
    #[error("policy: {0} requests wait and are never sent")]
    Stuck(usize),
    /// Arrivals that are no plan.
    #[error("arrivals: {0}")]
    Plan(#[from] tailbound_workload::SpecError),
}

impl Scenario {
    /// Reads TOML.
    pub fn from_toml(text: &str) -> Result<Scenario, ScenarioError> {
        toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            let key = text.lines().nth(line - 1).and_then(|l| l.split_once('=')).map(|(key, _)| key.trim());
            let message = e.message().lines().collect::<Vec<_>>().join(", ");
            let problem = match key.filter(|_| message.starts_with("invalid")) {
                Some(key) => format!("{key}: {message}"),
                None => message,
            };
            ScenarioError::Form { line, problem }
        })
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(self.seed)
    }

    pub(crate) fn policy(&self) -> Result<Policy, ScenarioError> {
        Ok(Policy::new(&PickerConfig::from_yaml(&self.policy)?)?)
    }

    pub(crate) fn engine(&self) -> Result<Config, ScenarioError> {
        let e = &self.engines;
        if e.count == 0 || e.count > u32::from(u16::MAX) {
            return Err(ScenarioError::Value("engines.count must be 1 to 65535"));
        }
        let profile = Profile::named(&e.profile).ok_or_else(|| ScenarioError::Profile(e.profile.clone()))?;
        let base = profile.config();
        let block_size = e.block_size.unwrap_or(base.block_size);
        if block_size == 0 {
            return Err(ScenarioError::Value("engines.block_size must not be 0"));
        }
        let tokens = e.kv_tokens.unwrap_or(base.num_blocks * base.block_size);
        Ok(Config {
            block_size,
            num_blocks: tokens / block_size,
            max_num_seqs: e.max_num_seqs.unwrap_or(base.max_num_seqs),
            max_num_batched_tokens: e.max_num_batched_tokens.unwrap_or(base.max_num_batched_tokens),
            max_model_len: e.max_model_len.unwrap_or(base.max_model_len.min(tokens / block_size * block_size)),
            seed: self.seed(),
            ..base
        })
    }

    /// All arrivals as one plan, as if no stage waited for another.
    pub fn plan(&self) -> Result<Plan, ScenarioError> {
        Ok(self.staged()?.0)
    }

    /// The plan, and of every stage its first request and its beginning.
    pub(crate) fn staged(&self) -> Result<(Plan, Vec<(u32, Dur)>), ScenarioError> {
        let s = &self.shared_prefix;
        let length = s.system.saturating_add(s.question);
        if s.groups == 0 || s.prompts_per_group == 0 || length == 0 || s.output == 0 {
            return Err(ScenarioError::Value(
                "shared_prefix: groups, prompts_per_group, tokens and output must not be 0",
            ));
        }
        if f64::from(s.groups) * f64::from(s.prompts_per_group) * f64::from(length) > MOST_TOKENS {
            return Err(ScenarioError::Value("shared_prefix: all prompts together must have 1e9 tokens at most"));
        }
        if self.arrivals.stages.iter().map(|(rate, seconds)| rate * seconds).sum::<f64>() > MOST_REQUESTS {
            return Err(ScenarioError::Value("arrivals.stages: more than 2e7 requests"));
        }
        let mut rng = self.seed().stream("sim/arrivals");
        let mut schedule = Vec::new();
        let mut stages = Vec::new();
        let mut begin = 0.0;
        for &(rate, seconds) in &self.arrivals.stages {
            if !(rate > 0.0 && seconds > 0.0 && rate.is_finite() && seconds.is_finite()) {
                return Err(ScenarioError::Value("arrivals.stages: rates and lengths must be above 0"));
            }
            stages.push((schedule.len() as u32, Dur::from_secs_f64(begin)));
            let mut at = 0.0;
            loop {
                at += if self.arrivals.poisson { rng.exponential() / rate } else { 1.0 / rate };
                if at > seconds * (1.0 + 1e-9) {
                    break;
                }
                schedule.push(Dur::from_secs_f64(begin + at));
            }
            begin += seconds;
        }
        if schedule.is_empty() {
            return Err(ScenarioError::Value("arrivals.stages: nobody comes"));
        }
        let plan = Spec { schedule: Some(schedule), seed: self.seed(), ..Spec::default() }.plan()?;
        Ok((plan, stages))
    }
}
