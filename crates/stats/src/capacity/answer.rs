use super::{Interval, Unit};
use serde::{Deserialize, Serialize};

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval is as narrow as was asked for.
    Converged,
    /// Even where requests hardly ever meet, the objectives are missed.
    Infeasible,
    /// At loads this client could still deliver the objectives held; above them its own limits speak.
    ClientLimited,
    /// The requests that the search may take are spent.
    BudgetSpent,
    /// The load asked about was decided.
    Decided,
}

/// Yes or no to an expected load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The load that was asked about.
    pub load: f64,
    /// Whether it is borne; `None` if the data don't say at the confidence asked for.
    pub borne: Option<bool>,
    /// How sure it is that the objectives hold there, 0–1.
    pub confidence: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Why the search ended.
    pub reason: Reason,
    /// What loads are measured in.
    pub unit: Unit,
    /// The largest load at which every requirement holds; `None` if none was found.
    pub capacity: Option<f64>,
    /// Where it lies with the confidence asked for: from here …
    pub low: Option<f64>,
    /// … to here; `None` above what this client can deliver or what was tried.
    pub high: Option<f64>,
    /// The confidence.
    pub confidence: f64,
    /// The requirement that binds, by its index.
    pub binding: Option<usize>,
    /// Requests that all probes took.
    pub requests: u64,
    /// Probes.
    pub probes: u32,
    /// The load at which a run passed every check of an official one, if that was asked for and one did.
    pub certified: Option<f64>,
    /// What is said of the load asked about, if one was.
    pub expected: Option<Expected>,
}

impl Answer {
    pub(super) fn within(reason: Reason, unit: Unit, found: &Interval) -> Answer {
        Answer {
            reason,
            unit,
            capacity: Some(found.root),
            low: Some(found.low),
            high: Some(found.high),
            confidence: found.confidence,
            binding: Some(found.binding),
            requests: 0,
            probes: 0,
            certified: None,
            expected: None,
        }
    }
}
