//! A search for a capacity as programs and pages read it. `docs/capacity.md` says what each key is.

mod page;

use crate::page::{Attachment, Page};
use serde::{Deserialize, Serialize};
use tailbound_stats::capacity::{Answer, Band, End, Probe, Probed, Reason, Requirement, Spec, Unit, curve};
use tailbound_stats::wilson;

/// Loads at which the fitted curve is told.
const CURVE: usize = 41;

/// What a search came to: what its file holds, and all that its page is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The answer in words.
    pub sentence: String,
    /// The answer.
    pub answer: Answer,
    /// Accelerators under the endpoint, if anybody said.
    pub accelerators: Option<u64>,
    /// The answer for each of them.
    pub per_accelerator: PerAccelerator,
    /// What was asked of a load.
    pub requirements: Vec<Requirement>,
    /// The model, as reports name it.
    pub model: String,
    /// The engine model, if the search was in virtual time.
    pub virtual_profile: Option<String>,
    /// The search's hash.
    pub hash: String,
    /// The probes in their order.
    pub probes: Vec<ProbeFound>,
    /// The fit of the requirement that binds, from the lowest valid probe to the highest.
    pub curve: Vec<Band>,
}

/// Loads for each accelerator; `None` where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerAccelerator {
    /// The largest that is borne.
    pub capacity: Option<f64>,
    /// Its interval, from here …
    pub low: Option<f64>,
    /// … to here.
    pub high: Option<f64>,
}

/// A probe and how it fared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeFound {
    /// As it was asked for.
    pub probe: Probe,
    /// Its folder in the search's.
    pub folder: String,
    /// Requests it took.
    pub requests: u64,
    /// How it ended.
    pub end: End,
    /// Whether it counts.
    pub valid: bool,
    /// Why not.
    pub invalid: Option<String>,
    /// Requests in flight, mean.
    pub in_flight: f64,
    /// Requests a second that it completed, as a share of those that arrived.
    pub kept_up: f64,
    /// By requirement.
    pub by_requirement: Vec<Attained>,
}

/// How a probe's requests fared by one requirement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attained {
    /// Requests that were judged.
    pub judged: usize,
    /// Those that met it.
    pub met: usize,
    /// Their share; `None` of nothing.
    pub attainment: Option<f64>,
    /// Wilson's 95 % interval, from here …
    pub low: Option<f64>,
    /// … to here.
    pub high: Option<f64>,
}

/// What names a search.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The answer in words.
    pub sentence: &'a str,
    /// The model.
    pub model: &'a str,
    /// The engine model, if the search was in virtual time.
    pub virtual_profile: Option<&'a str>,
    /// The search's hash.
    pub hash: &'a str,
    /// Accelerators under the endpoint.
    pub accelerators: Option<u64>,
}

impl Found {
    /// Of a search that has ended.
    pub fn new(about: &About<'_>, spec: &Spec, probes: &[Probed], answer: &Answer) -> Found {
        let n = about.accelerators;
        let per = |load: Option<f64>| Some(load? / n? as f64);
        Found {
            sentence: about.sentence.to_owned(),
            answer: answer.clone(),
            accelerators: n,
            per_accelerator: PerAccelerator {
                capacity: per(answer.capacity),
                low: per(answer.low),
                high: per(answer.high),
            },
            requirements: spec.requirements.clone(),
            model: about.model.to_owned(),
            virtual_profile: about.virtual_profile.map(str::to_owned),
            hash: about.hash.to_owned(),
            probes: probes.iter().map(|p| ProbeFound::new(p, spec.requirements.len())).collect(),
            curve: fitted(spec, probes),
        }
    }

    /// The file: one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers can be written") + "\n"
    }

    /// The page.
    pub fn page(&self) -> Page {
        let mut page = page::page(self);
        page.attachments.push(Attachment::json("result", "result.json", self.json()));
        page
    }

    /// Whether the question was answered: yes, no, or `None` where nothing is proved.
    pub fn borne(&self) -> Option<bool> {
        match (self.answer.reason, &self.answer.expected) {
            (_, Some(expected)) => expected.borne,
            (Reason::Infeasible, None) => Some(false),
            (Reason::ClientLimited, None) => None,
            (_, None) => self.answer.capacity.map(|_| true),
        }
    }

    /// What loads are measured in.
    pub fn unit(&self) -> &'static str {
        match self.answer.unit {
            Unit::Rate => "requests/s",
            Unit::Concurrency => "requests in flight",
        }
    }
}

impl ProbeFound {
    fn new(probed: &Probed, requirements: usize) -> ProbeFound {
        let attained = |k| {
            let (judged, met) = probed.counts_of(k);
            let interval = wilson(met, judged, 0.95);
            Attained {
                judged,
                met,
                attainment: probed.attainment(k),
                low: interval.map(|i| i.0),
                high: interval.map(|i| i.1),
            }
        };
        ProbeFound {
            probe: probed.probe,
            folder: format!("probe-{:03}", probed.probe.number),
            requests: probed.requests,
            end: probed.end,
            valid: probed.invalid.is_none(),
            invalid: probed.invalid.clone(),
            in_flight: probed.in_flight,
            kept_up: probed.kept_up,
            by_requirement: (0..requirements).map(attained).collect(),
        }
    }
}

fn fitted(spec: &Spec, probes: &[Probed]) -> Vec<Band> {
    let loads: Vec<f64> = probes.iter().filter(|p| p.counts()).map(|p| p.probe.load).collect();
    if loads.is_empty() {
        return Vec::new();
    }
    let (low, high) = loads.iter().fold((f64::MAX, 0.0f64), |(l, h), &load| (l.min(load), h.max(load)));
    let grid: Vec<f64> = (0..CURVE).map(|i| low * f64::powf(high / low, i as f64 / (CURVE - 1) as f64)).collect();
    curve(spec, probes, &grid)
}

/// How a probe ended, in words.
pub fn ended(end: End) -> &'static str {
    match end {
        End::Whole => "all sent",
        End::Clear => "early: plainly met",
        End::Hopeless => "early: plainly missed",
        End::OverSaturated => "early: falls behind",
    }
}
