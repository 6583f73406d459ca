use super::params::PdProfile;
use super::part::{HandlerSpec, Part, Producers, part};
use super::policy::STALE;
use super::quantity::{duration, quantity};
use super::{BandSpec, Complaint, FlowControlSpec, PickerConfig, PluginSpec, ProfileSpec};
use crate::disagg::{Decider, Handler};
use crate::flow::{BandConfig, Detector, FlowConfig};
use crate::pick::{Filter, Picker, Profile, Scorer, Weighted};
use crate::table::Wanted;
use serde_json::Value;
use tailbound_clock::Dur;

/// The plugins of one configuration, by name.
pub(super) struct Parts(pub(super) Vec<(String, Part)>);

impl Parts {
    fn get(&self, place: &str, name: &str) -> Result<&Part, Complaint> {
        let found = self.0.iter().find(|(n, _)| n == name).map(|(_, part)| part);
        found.ok_or_else(|| Complaint::new(place, format!("refers to plugin `{name}`, which isn't declared")))
    }

    pub(super) fn profile(&self, spec: &ProfileSpec) -> Result<Profile, Complaint> {
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

    pub(super) fn handler(&self, profiles: &[Profile]) -> Result<(Handler, Option<u16>), Complaint> {
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
            Some((name, HandlerSpec::Pd(q))) => {
                let port = q.primary_port.filter(|port| *port > 0);
                Ok((self.pd_handler(name, q, profiles)?, port))
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
                let prefill = q.deciders.prefill.as_ref().or(q.decider_plugin_name.as_ref()).cloned();
                Ok((
                    Handler::Disagg {
                        decode: find(&q.decode_profile).ok_or_else(|| missing(&q.decode_profile))?,
                        prefill: stage(&prefill, &q.prefill_profile)?,
                        encode: stage(&q.deciders.encode, &q.encode_profile)?,
                    },
                    None,
                ))
            }
        }
    }

    /// `pd-profile-handler`: whether to prefill elsewhere is for its decider to say, or for the threshold of old.
    fn pd_handler(&self, name: &str, q: &PdProfile, profiles: &[Profile]) -> Result<Handler, Complaint> {
        let place = format!("plugin `{name}`");
        let find = |profile: &str| {
            let found = profiles.iter().position(|p| p.name == profile);
            found.ok_or_else(|| Complaint::new(&place, format!("there is no profile `{profile}`")))
        };
        let decider = match (&q.decider_plugin_name, q.threshold) {
            (Some(decider), _) => self.decider(&place, decider)?,
            (None, Some(characters)) if characters > 0 => Decider::Uncached { tokens: characters.div_ceil(4) },
            (None, _) => Decider::Always,
        };
        let prefill = Some((find(&q.prefill_profile)?, decider));
        Ok(Handler::Disagg { decode: find(&q.decode_profile)?, prefill, encode: None })
    }

    fn decider(&self, place: &str, name: &str) -> Result<Decider, Complaint> {
        match self.get(place, name)? {
            Part::Decider(decider) => Ok(*decider),
            _ => Err(Complaint::new(place, format!("`{name}` is no decider"))),
        }
    }

    pub(super) fn check_sources(&self, config: &PickerConfig) -> Result<(), Complaint> {
        let Some(layer) = &config.data_layer else { return Ok(()) };
        for source in &layer.sources {
            self.get("`dataLayer.sources`", &source.plugin_ref)?;
            for extractor in &source.extractors {
                self.get("`dataLayer.sources`", &extractor.plugin_ref)?;
            }
        }
        Ok(())
    }

    pub(super) fn detector(&self, config: &PickerConfig) -> Result<Detector, Complaint> {
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

    pub(super) fn flow(&self, spec: &FlowControlSpec) -> Result<FlowConfig, Complaint> {
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
        let spec = PluginSpec { kind: name.to_owned(), ..Default::default() };
        match part(&spec, &Producers(&[]), &mut Wanted::default()) {
            Ok(part @ (Part::Fairness(_) | Part::Ordering(_))) => Ok(part),
            _ => declared.cloned(),
        }
    }

    /// Predictions are made where they are declared, or somebody reads them.
    pub(super) fn predictor(&self, profiles: &[Profile]) -> Option<f64> {
        let declared = self
            .0
            .iter()
            .find_map(|(_, p)| if let Part::Predictor { slo_buffer } = p { Some(*slo_buffer) } else { None });
        let latency = |p: &Profile| p.scorers.iter().any(|w| matches!(w.scorer, Scorer::Latency(_)));
        let tier = |p: &Profile| p.filters.iter().any(|f| matches!(f, Filter::SloTier(_)));
        declared.or_else(|| profiles.iter().any(|p| latency(p) || tier(p)).then_some(1.0))
    }

    pub(super) fn outside(&self) -> Vec<String> {
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
