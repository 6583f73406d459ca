//! A scenario as it is written in TOML: parsed, little checked.

mod engines;
mod error;
mod faults;
mod list;
mod sweep;
mod traffic;

pub use engines::{Engines, LoraSlots, Offload, Speculative, Staleness, StepLaw, TransferBy};
pub use error::ScenarioError;
pub use faults::{Fault, What};
pub use sweep::{Point, Sweep};
pub use traffic::{
    Arrivals, Leaving, Lengths, Objective, Otherwise, Prefix, ServeGen, SharedPrefix, Trace, Traffic, Turns,
};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tailbound_clock::Seed;
use tailbound_route::log::Head;
use tailbound_route::{Config, Limits, PickerConfig, Policy, Rewrite};

/// A fleet and what it is to serve.
///
/// ```toml
/// seed = 1
/// policy = "picker.yaml"            # an EndpointPickerConfig: a file beside the scenario, or the YAML itself
///
/// [engines]                         # or [[engines]], several groups
/// count = 4
/// profile = "llama-3.1-70b-h100-tp4"
///
/// [traffic]                         # or [[traffic]], several classes
/// [traffic.arrivals]
/// law = "poisson:20/s"
/// for_s = 600
/// [traffic.lengths]
/// input = "lognormal:mean=800,cv=1"
/// output = "uniform:100..300"
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What all draws come from.
    #[serde(default)]
    pub seed: u64,
    /// What is tried, for people.
    #[serde(default)]
    pub about: String,
    /// An `EndpointPickerConfig`: its YAML, the name of one in `policies`, or of a file.
    pub policy: String,
    /// Configurations by name, for `policy` to choose from.
    #[serde(default)]
    pub policies: BTreeMap<String, String>,
    /// What else the router knows.
    #[serde(default)]
    pub router: RouterSpec,
    /// The replicas, in groups of which all are alike.
    #[serde(deserialize_with = "list::one_or_more")]
    pub engines: Vec<Engines>,
    /// How old what the router knows is.
    #[serde(default)]
    pub staleness: Staleness,
    /// What is asked, and when.
    #[serde(deserialize_with = "list::one_or_more")]
    pub traffic: Vec<Traffic>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Parameters with lists of values: [`Sweep`] makes a scenario of every combination.
    #[serde(default)]
    pub sweep: Option<toml::Table>,
    /// Where its files are looked for.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// What the router knows beside its policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouterSpec {
    /// How often a request that failed before it was answered is sent elsewhere; 3 if not given.
    pub retries: Option<usize>,
    /// `InferenceModelRewrite`s.
    pub rewrites: Vec<Rewrite>,
    /// Limits by tenant.
    pub limits: BTreeMap<String, Limits>,
    /// Limits of each tenant without limits of its own.
    pub other_limits: Option<Limits>,
}

impl Scenario {
    /// Reads TOML; files are looked for where the process is.
    pub fn from_toml(text: &str) -> Result<Scenario, ScenarioError> {
        toml::from_str(text).map_err(|e| ScenarioError::form(text, &e))
    }

    /// Reads a file; other files are looked for beside it.
    pub fn open(path: &Path) -> Result<Scenario, ScenarioError> {
        let text = read(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Scenario { folder, ..Scenario::from_toml(&text)? })
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(self.seed)
    }

    /// The YAML of the policy.
    pub fn policy_text(&self) -> Result<String, ScenarioError> {
        match self.policies.get(&self.policy) {
            Some(yaml) => Ok(yaml.clone()),
            None if self.policy.contains(['\n', ':', '{']) || self.policy.is_empty() => Ok(self.policy.clone()),
            None => read(&self.folder.join(&self.policy)),
        }
    }

    /// What the router is made from.
    pub fn router(&self) -> Result<Config, ScenarioError> {
        let policy = Policy::new(&PickerConfig::from_yaml(&self.policy_text()?)?)?;
        let config = Config::new(policy, self.seed());
        let r = &self.router;
        Ok(Config {
            rewrites: r.rewrites.clone(),
            limits: r.limits.iter().map(|(name, limits)| (name.clone(), *limits)).collect(),
            other_limits: r.other_limits,
            retries: r.retries.unwrap_or(config.retries),
            ..config
        })
    }

    /// What stands at the beginning of a log of the router's calls.
    pub fn log_head(&self) -> Result<Head, ScenarioError> {
        Ok(Head::new(&self.policy_text()?, &self.router()?))
    }

    /// All replicas there are at one time or another.
    pub fn replicas(&self) -> u32 {
        self.engines.iter().map(|group| group.count).sum()
    }
}

fn read(path: &Path) -> Result<String, ScenarioError> {
    let failed = |e: std::io::Error| ScenarioError::File(format!("failed to read {}: {e}", path.display()));
    std::fs::read_to_string(path).map_err(failed)
}
