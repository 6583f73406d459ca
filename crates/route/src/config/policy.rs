use super::part::{HandlerSpec, Part, Producers, part, producer};
use super::quantity::{duration, quantity};
use super::{BandSpec, Complaint, FlowControlSpec, PickerConfig, ProfileSpec};
use crate::disagg::{Decider, Handler};
use crate::flow::{BandConfig, Detector, FlowConfig};
use crate::pick::{Filter, Picker, Profile, Scorer, Weighted};
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

struct Parts(Vec<(String, Part)>);

impl Parts {
    fn get(&self, place: &str, name: &str) -> Result<&Part, Complaint> {
        let found = self.0.iter().find(|(n, _)| n == name).map(|(_, part)| part);
        found.ok_or_else(|| Complaint::new(place, format!("refers to plugin `{name}`, which isn't declared")))
    }

    fn profile(&self, spec: &ProfileSpec) -> Result<Profile, Complaint> {
        let place = format!("profile `{}`", spec.name);
        let (mut filters, mut scorers, mut picker) = (Vec::new(), Vec::new(), None);
        for reference in &spec.plugins {
            let name = &reference.plugin_ref;
            let weight = reference.weight.unwrap_or(1.0);
            if !weight.is_finite() {
                return Err(Complaint::new(&place, format!("the weight of `{name}` is no number")));
            }
            let mut score = |scorer: &Scorer| {
                scorers.push(Weighted { name: name.clone(), weight, scorer: scorer.clone() });
            };
            match self.get(&place, name)? {
                Part::Filter(filter) => filters.push(filter.clone()),
                Part::Scorer(scorer) => score(scorer),
                Part::Both(filter, scorer) => {
                    filters.push(filter.clone());
                    score(scorer);
                }
                Part::Detector { detector, headroom } => filters.push(as_filter(detector, *headroom)),
                Part::Picker(_) if picker.is_some() => return Err(Complaint::new(&place, "has two pickers")),
                Part::Picker(p) => picker = Some(p.clone()),
                _ => return Err(Complaint::new(&place, format!("`{name}` is no filter, scorer or picker"))),
            }
        }
        let picker = picker.unwrap_or(Picker::MaxScore { count: 1, among: 1 });
        Ok(Profile { name: spec.name.clone(), filters, scorers, picker })
    }

    fn handler(&self, profiles: &[Profile]) -> Result<(Handler, Option<u16>), Complaint> {
        let mut specs = self.0.iter().filter_map(|(n, p)| if let Part::Handler(h) = p { Some((n, h)) } else { None });
        let spec = specs.next();
        if let Some((name, _)) = specs.next() {
            return Err(Complaint::new(format!("plugin `{name}`"), "is a second profile handler"));
        }
        let find = |name: &str| profiles.iter().position(|p| p.name == name);
        match spec {
            None | Some((_, HandlerSpec::Single)) if profiles.len() > 1 => {
                Err(Complaint::new("`schedulingProfiles`", "there are several, but no handler that chooses among them"))
            }
            None | Some((_, HandlerSpec::Single)) => Ok((Handler::Single { profile: 0 }, None)),
            Some((_, HandlerSpec::DataParallel { primary_port })) => {
                Ok((Handler::Single { profile: 0 }, *primary_port))
            }
            Some((name, HandlerSpec::Disagg(q))) => {
                let place = format!("plugin `{name}`");
                let missing = |p: &str| Complaint::new(&place, format!("there is no profile `{p}`"));
                let stage = |decider: &Option<String>, profile: &str| match decider {
                    None => Ok(None),
                    Some(decider) => {
                        let place_of = find(profile).ok_or_else(|| missing(profile))?;
                        Ok(Some((place_of, self.decider(&place, decider)?)))
                    }
                };
                Ok((
                    Handler::Disagg {
                        decode: find(&q.decode_profile).ok_or_else(|| missing(&q.decode_profile))?,
                        prefill: stage(&q.deciders.prefill, &q.prefill_profile)?,
                        encode: stage(&q.deciders.encode, &q.encode_profile)?,
                    },
                    None,
                ))
            }
        }
    }

    fn decider(&self, place: &str, name: &str) -> Result<Decider, Complaint> {
        match self.get(place, name)? {
            Part::Decider(decider) => Ok(*decider),
            _ => Err(Complaint::new(place, format!("`{name}` is no decider"))),
        }
    }

    fn check_sources(&self, config: &PickerConfig) -> Result<(), Complaint> {
        let Some(layer) = &config.data_layer else { return Ok(()) };
        for source in &layer.sources {
            self.get("`dataLayer.sources`", &source.plugin_ref)?;
            for extractor in &source.extractors {
                self.get("`dataLayer.sources`", &extractor.plugin_ref)?;
            }
        }
        Ok(())
    }

    fn detector(&self, config: &PickerConfig) -> Result<Detector, Complaint> {
        let inner = config.flow_control.as_ref().and_then(|f| f.saturation_detector.as_ref());
        let Some(reference) = inner.or(config.saturation_detector.as_ref()) else {
            let only = self
                .0
                .iter()
                .find_map(|(_, p)| if let Part::Detector { detector, .. } = p { Some(*detector) } else { None });
            return Ok(only.unwrap_or(Detector::Utilization { queue: 5.0, kv: 0.8, stale: STALE }));
        };
        match self.get("`saturationDetector`", &reference.plugin_ref)? {
            Part::Detector { detector, .. } => Ok(*detector),
            _ => Err(Complaint::new("`saturationDetector`", format!("`{}` is no detector", reference.plugin_ref))),
        }
    }

    fn flow(&self, spec: &FlowControlSpec) -> Result<FlowConfig, Complaint> {
        let place = "`flowControl`";
        let default_band = match &spec.default_priority_band {
            Some(band) => self.band(band, &BandConfig::default())?,
            None => BandConfig::default(),
        };
        let mut bands = Vec::new();
        for band in &spec.priority_bands {
            let priority = band.priority.ok_or_else(|| Complaint::new("`priorityBands`", "one has no `priority`"))?;
            bands.push((priority, self.band(band, &BandConfig::default())?));
        }
        let ttl = match spec.default_request_ttl.as_deref() {
            None => Some(Dur::from_secs(60)),
            Some(text) => {
                let parsed = duration(text);
                let ttl = parsed
                    .ok_or_else(|| Complaint::new(place, format!("`defaultRequestTTL` is `{text}`, no duration")))?;
                Some(ttl).filter(|t| !t.is_zero())
            }
        };
        let limit = match spec.usage_limit_policy_plugin_ref.as_deref() {
            None => FlowConfig::default().limit,
            Some(name) => match self.get(place, name)? {
                Part::Limit(limit) => limit.clone(),
                _ => return Err(Complaint::new(place, format!("`{name}` is no usage limit policy"))),
            },
        };
        Ok(FlowConfig {
            max_bytes: count(place, "maxBytes", &spec.max_bytes)?,
            max_requests: count(place, "maxRequests", &spec.max_requests)?.map(|n| n as usize),
            ttl,
            default_band,
            bands,
            limit,
            evict: self.0.iter().any(|(_, p)| matches!(p, Part::Eviction)),
        })
    }

    fn band(&self, spec: &BandSpec, default: &BandConfig) -> Result<BandConfig, Complaint> {
        let place = format!("priority band {}", spec.priority.map_or("by default".to_owned(), |p| p.to_string()));
        let fairness = match spec.fairness_policy_ref.as_deref() {
            None => default.fairness,
            Some(name) => match self.get_or_standard(&place, name)? {
                Part::Fairness(fairness) => fairness,
                _ => return Err(Complaint::new(place, format!("`{name}` is no fairness policy"))),
            },
        };
        let ordering = match spec.ordering_policy_ref.as_deref() {
            None => default.ordering,
            Some(name) => match self.get_or_standard(&place, name)? {
                Part::Ordering(ordering) => ordering,
                _ => return Err(Complaint::new(place, format!("`{name}` is no ordering policy"))),
            },
        };
        Ok(BandConfig {
            max_bytes: count(&place, "maxBytes", &spec.max_bytes)?.unwrap_or(default.max_bytes),
            max_requests: count(&place, "maxRequests", &spec.max_requests)?
                .map_or(default.max_requests, |n| n as usize),
            fairness,
            ordering,
        })
    }

    /// Flow-control policies may be named without being declared, as they have no parameters to give.
    fn get_or_standard(&self, place: &str, name: &str) -> Result<Part, Complaint> {
        let declared = self.get(place, name);
        if let Ok(part) = declared {
            return Ok(part.clone());
        }
        let spec = super::PluginSpec { kind: name.to_owned(), ..Default::default() };
        match part(&spec, &Producers(&[]), &mut Wanted::default()) {
            Ok(part @ (Part::Fairness(_) | Part::Ordering(_))) => Ok(part),
            _ => declared.cloned(),
        }
    }

    /// Predictions are made where they are declared, or somebody reads them.
    fn predictor(&self, profiles: &[Profile]) -> Option<f64> {
        let declared = self
            .0
            .iter()
            .find_map(|(_, p)| if let Part::Predictor { slo_buffer } = p { Some(*slo_buffer) } else { None });
        let latency = |p: &Profile| p.scorers.iter().any(|w| matches!(w.scorer, Scorer::Latency(_)));
        let tier = |p: &Profile| p.filters.iter().any(|f| matches!(f, Filter::SloTier(_)));
        declared.or_else(|| profiles.iter().any(|p| latency(p) || tier(p)).then_some(1.0))
    }

    fn outside(&self) -> Vec<String> {
        self.0.iter().filter(|(_, p)| matches!(p, Part::Outside)).map(|(n, _)| n.clone()).collect()
    }
}

fn as_filter(detector: &Detector, headroom: f64) -> Filter {
    let more = 1.0 + headroom;
    match *detector {
        Detector::Utilization { queue, kv, .. } => Filter::Unsaturated { queue: queue * more, kv: kv * more },
        Detector::Concurrency { limit, tokens } => Filter::BelowConcurrency { limit: limit * more, tokens },
    }
}

fn count(place: &str, field: &str, value: &Option<Value>) -> Result<Option<u64>, Complaint> {
    let Some(value) = value else { return Ok(None) };
    let wrong = || Complaint::new(place, format!("`{field}` is `{value}`, no number or quantity such as `1Gi`"));
    quantity(value).map(Some).ok_or_else(wrong)
}
