use super::{Scenario, ScenarioError};
use serde::Deserialize;
use std::ops::Range;

/// Something that goes wrong, and perhaps comes right again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub what: What,
    /// When, in seconds from the start of the traffic.
    pub at_s: f64,
    /// For how long; to the end, if not given.
    pub for_s: Option<f64>,
    /// Which replicas, by number.
    pub replicas: Option<Vec<u32>>,
    /// Which group of replicas, by name. Neither: all.
    pub group: Option<String>,
    /// How many times slower ([`What::Slow`]).
    #[serde(default = "two")]
    pub factor: f64,
    /// Seconds until discovery notices a death, and a return; never (0 seconds down) for a restart in place.
    #[serde(default)]
    pub noticed_after_s: f64,
}

fn two() -> f64 {
    2.0
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The process dies with all it was serving; afterwards a new one is there, its cache empty.
    Death,
    /// The process is replaced at once, and discovery sees nothing: same name, empty cache, numbers of KV events from 0.
    Restart,
    /// Nothing moves in the engine, and its metrics don't answer.
    Stall,
    /// Every step takes longer.
    Slow,
    /// Scrapes get no answer.
    NoMetrics,
    /// KV events are lost.
    NoEvents,
}

impl Fault {
    /// The numbers of the replicas it strikes.
    pub(crate) fn strikes(&self, scenario: &Scenario) -> Result<Vec<u32>, ScenarioError> {
        let wrong = |what: &str| ScenarioError::value(format!("faults: {what}"));
        let times = [Some(self.at_s), self.for_s, Some(self.noticed_after_s)];
        if !times.iter().flatten().all(|s| (0.0..1e9).contains(s)) {
            return Err(wrong("at_s, for_s and noticed_after_s must be 0 to 1e9"));
        }
        if !(self.factor >= 1.0 && self.factor <= 1e6) {
            return Err(wrong("factor must be 1 to 1e6"));
        }
        let all = scenario.replicas();
        match (&self.replicas, &self.group) {
            (Some(_), Some(_)) => Err(wrong("give replicas or a group, not both")),
            (Some(list), None) if list.iter().any(|r| *r >= all) => {
                Err(wrong(&format!("there are replicas 0 to {}", all.saturating_sub(1))))
            }
            (Some(list), None) => Ok(list.clone()),
            (None, Some(name)) => {
                let found = groups(scenario).into_iter().filter(|(group, _)| group == name);
                let list: Vec<u32> = found.flat_map(|(_, numbers)| numbers).collect();
                if list.is_empty() { Err(wrong(&format!("no group of engines is called `{name}`"))) } else { Ok(list) }
            }
            (None, None) => Ok((0..all).collect()),
        }
    }
}

/// Each group's name and numbers.
fn groups(scenario: &Scenario) -> Vec<(String, Range<u32>)> {
    let mut first = 0;
    let one = |group: &super::Engines| {
        let numbers = first..first + group.count;
        first += group.count;
        (group.name.clone(), numbers)
    };
    scenario.engines.iter().map(one).collect()
}
