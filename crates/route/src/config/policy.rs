use super::part::{Part, Producers, part};
use super::parts::Parts;
use super::producer::producer;
use super::{Complaint, PickerConfig};
use crate::disagg::Handler;
use crate::flow::{Detector, FlowConfig};
use crate::pick::Profile;
use crate::prefix::{ApproxConfig, BurstConfig, HashInput, PreciseConfig};
use crate::table::Wanted;
use serde_json::Value;
use tailbound_clock::Dur;

/// What an `EndpointPickerConfig` means: checked, and ready to route by.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) handler: Handler,
    /// The best-informed first.
    pub(crate) producers: Vec<ProducerConfig>,
    pub(crate) media: bool,
    pub(crate) detector: Detector,
    pub(crate) flow: Option<FlowConfig>,
    pub(crate) admitters: Vec<Admitter>,
    pub(crate) predictor: Option<f64>,
    pub(crate) wanted: Wanted,
    pub(crate) ring_nodes: u32,
    pub(crate) cold_limit: usize,
    primary_port: Option<u16>,
    outside: Vec<String>,
}

/// What is known of prefixes, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProducerConfig {
    Precise(PreciseConfig),
    Approx(ApproxConfig),
    Burst(BurstConfig),
}

/// Who may not even wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Admitter {
    /// Sheddable requests are refused with probability saturation^power × factor.
    Probabilistic { power: f64, factor: f64 },
    /// Sheddable requests go only where the SLO is kept, or where nothing runs.
    LatencySlo,
}

/// Entries of one prefix index, over all replicas. About 100 bytes each.
pub(super) const MAX_ENTRIES: usize = 8_000_000;

/// Signals older than this say nothing. The published default, 200 ms, makes a pool of one look full after every slow
/// scrape.
pub(super) const STALE: Dur = Dur::from_secs(5);

const VERSIONS: &[&str] = &[
    "llm-d.ai/v1alpha1",
    "llm-d.ai/v1",
    "inference.networking.x-k8s.io/v1alpha1",
    "inference.networking.k8s.io/v1alpha1",
];

const GATES: &[&str] = &["flowControl", "dataLayer", "prepareDataPlugins", "predictedLatency"];

/// The published default: what an endpoint picker does that isn't told anything.
const DEFAULT: &str = "
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
";

impl Default for Policy {
    fn default() -> Policy {
        Policy::from_yaml(DEFAULT).expect("the default is well-formed")
    }
}

impl Policy {
    /// Reads and checks YAML.
    pub fn from_yaml(text: &str) -> Result<Policy, Complaint> {
        Policy::new(&PickerConfig::from_yaml(text)?)
    }

    /// Checks a configuration.
    pub fn new(config: &PickerConfig) -> Result<Policy, Complaint> {
        check_head(config)?;
        let producers = producers(config)?;
        let mut wanted = Wanted::default();
        let mut parts = Vec::new();
        for spec in &config.plugins {
            let known = Producers(&producers);
            parts.push((spec.name().to_owned(), part(spec, &known, &mut wanted)?));
        }
        let parts = Parts(parts);
        let mut profiles = Vec::new();
        for profile in &config.scheduling_profiles {
            profiles.push(parts.profile(profile)?);
        }
        if profiles.is_empty() {
            return Err(Complaint::new("`schedulingProfiles`", "there must be at least one"));
        }
        let (handler, primary_port) = parts.handler(&profiles)?;
        parts.check_sources(config)?;
        let detector = parts.detector(config)?;
        let gate = config.feature_gates.iter().any(|g| g == "flowControl");
        let flow = config.flow_control.clone().unwrap_or_default();
        let flow = if gate { Some(parts.flow(&flow)?) } else { None };
        let of = |kind: &str| config.plugins.iter().find(|p| p.kind == kind).and_then(|p| p.parameters.as_ref());
        let number = |v: Option<&Value>, field: &str| v.and_then(|v| v.get(field)).and_then(Value::as_u64);
        let hashes = config.plugins.iter().any(|p| p.kind == "consistent-hash-picker");
        let nodes = number(of("consistent-hash-picker"), "virtualNodes").unwrap_or(150) as u32;
        Ok(Policy {
            handler,
            media: parts.0.iter().any(|(_, p)| matches!(p, Part::Media)),
            detector,
            flow,
            admitters: parts
                .0
                .iter()
                .filter_map(|(_, p)| if let Part::Admitter(a) = p { Some(*a) } else { None })
                .collect(),
            predictor: parts.predictor(&profiles),
            wanted,
            ring_nodes: if hashes { nodes } else { 0 },
            cold_limit: number(of("no-hit-lru-scorer"), "lruSize").unwrap_or(1024) as usize,
            primary_port,
            outside: parts.outside(),
            producers: producers.into_iter().map(|(_, config)| config).collect(),
            profiles,
        })
    }

    /// Plugins that are left to the driver: sources, parsers, tokenizers.
    pub fn outside(&self) -> &[String] {
        &self.outside
    }

    /// With `data-parallel-profile-handler`: the port to send to, the rank's own going into `x-data-parallel-host-port`.
    pub fn primary_port(&self) -> Option<u16> {
        self.primary_port
    }

    /// Whether prompts must come as tokens for a prefix index to know them.
    pub fn wants_tokens(&self) -> bool {
        self.producers.iter().any(|p| matches!(p, ProducerConfig::Precise(_)))
    }

    /// Other figures of replicas that its plugins read, by name.
    pub fn wants_attributes(&self) -> &[String] {
        &self.wanted.attributes
    }

    /// Bounds each prefix index to so many entries (a block at a replica), over all replicas.
    pub fn with_max_entries(mut self, entries: usize) -> Policy {
        for producer in &mut self.producers {
            match producer {
                ProducerConfig::Precise(p) => p.max_entries = entries,
                ProducerConfig::Approx(a) => a.max_entries = entries,
                ProducerConfig::Burst(_) => {}
            }
        }
        self
    }
}

fn check_head(config: &PickerConfig) -> Result<(), Complaint> {
    if config.kind != "EndpointPickerConfig" {
        return Err(Complaint::new("`kind`", format!("is `{}`, not `EndpointPickerConfig`", config.kind)));
    }
    if !VERSIONS.contains(&config.api_version.as_str()) {
        let known = VERSIONS.join(", ");
        return Err(Complaint::new("`apiVersion`", format!("is `{}`, not one of {known}", config.api_version)));
    }
    if let Some(gate) = config.feature_gates.iter().find(|g| !GATES.contains(&g.as_str())) {
        return Err(Complaint::new("`featureGates`", format!("no feature `{gate}` is known")));
    }
    let names: Vec<&str> = config.plugins.iter().map(|p| p.name()).collect();
    match names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)) {
        Some((_, name)) => Err(Complaint::new("`plugins`", format!("two are named `{name}`"))),
        None => Ok(()),
    }
}

/// The prefix indexes, the best-informed first. A scorer that names none has one of its own, unless one is declared.
fn producers(config: &PickerConfig) -> Result<Vec<(String, ProducerConfig)>, Complaint> {
    let mut declared = Vec::new();
    let mut implied = Vec::new();
    for spec in &config.plugins {
        if let Some(producer) = producer(spec)? {
            let list = if spec.kind == "prefix-cache-scorer" { &mut implied } else { &mut declared };
            list.push((spec.name().to_owned(), producer));
        }
    }
    let has_approx = declared.iter().any(|(_, p)| matches!(p, ProducerConfig::Approx(_)));
    if let (false, Some((scorer, _)), Some((producer, _))) = (has_approx, implied.first(), declared.first()) {
        // The published picker quietly makes an approximate index here, and what was declared is never asked.
        return Err(Complaint::new(
            format!("plugin `{scorer}`"),
            format!("doesn't say whether it reads `{producer}`: set `prefixMatchInfoProducerName`"),
        ));
    }
    if !has_approx {
        declared.append(&mut implied);
    }
    let needs = |p: &super::PluginSpec| p.kind == "prefix-cache-affinity-filter";
    if declared.is_empty() && config.plugins.iter().any(needs) {
        let capacity = 31_250;
        let approx = ApproxConfig {
            input: HashInput::Tokens,
            block_tokens: 16,
            auto_tune: true,
            most_blocks: 2048,
            capacity,
            max_entries: MAX_ENTRIES,
        };
        declared.push(("approx-prefix-cache-producer".to_owned(), ProducerConfig::Approx(approx)));
    }
    declared.sort_by_key(|(_, p)| match p {
        ProducerConfig::Precise(_) => 0,
        ProducerConfig::Approx(_) => 1,
        ProducerConfig::Burst(_) => 2,
    });
    Ok(declared)
}
