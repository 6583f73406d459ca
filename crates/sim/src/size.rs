//! How many replicas a scenario needs.

use crate::{Scenario, ScenarioError, run_into};
use std::fmt;
use std::str::FromStr;
use tailbound_record::Row;

/// A percentile that must not be above a limit, over several seeds in the median. Written `ttft_p99=2s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Of what.
    pub metric: Metric,
    /// Which, 0 to 100.
    pub percentile: f64,
    /// In milliseconds.
    pub limit_ms: f64,
}

/// What is measured of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// From the scheduled arrival to the first token.
    Ttft,
    /// Per output token after the first.
    Tpot,
    /// From the scheduled arrival to the last token.
    E2e,
}

impl Metric {
    /// In milliseconds; `None` if the request has no such thing, as failed ones.
    fn of(self, row: &Row) -> Option<f64> {
        if !row.ok() {
            return None;
        }
        match self {
            Metric::Ttft => row.ttft_scheduled().map(|d| d.ms()),
            Metric::E2e => row.e2e_scheduled().map(|d| d.ms()),
            Metric::Tpot => {
                let gaps = row.output_tokens().saturating_sub(1);
                let spent = row.e2e()?.ms() - row.ttft()?.ms();
                Some(if gaps == 0 { 0.0 } else { spent / f64::from(gaps) })
            }
        }
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Goal, String> {
        let wrong = || format!("`{text}` should read ttft_p99=2s, with ttft, tpot or e2e and a time in ms or s");
        let (what, limit) = text.split_once('=').ok_or_else(wrong)?;
        let (metric, percentile) = what.split_once("_p").ok_or_else(wrong)?;
        let metric = match metric.trim() {
            "ttft" => Metric::Ttft,
            "tpot" => Metric::Tpot,
            "e2e" => Metric::E2e,
            _ => return Err(wrong()),
        };
        let percentile: f64 = percentile.parse().map_err(|_| wrong())?;
        let limit = limit.trim();
        let (number, unit) = match (limit.strip_suffix("ms"), limit.strip_suffix('s')) {
            (Some(number), _) => (number, 1.0),
            (None, Some(number)) => (number, 1000.0),
            (None, None) => (limit, 1.0),
        };
        let limit_ms = number.trim().parse::<f64>().map_err(|_| wrong())? * unit;
        if !((0.0..100.0).contains(&percentile) && limit_ms > 0.0 && limit_ms.is_finite()) {
            return Err(wrong());
        }
        Ok(Goal { metric, percentile, limit_ms })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.metric {
            Metric::Ttft => "TTFT",
            Metric::Tpot => "TPOT",
            Metric::E2e => "E2E latency",
        };
        write!(f, "P{} {name} ≤ {} s", self.percentile, self.limit_ms / 1000.0)
    }
}

/// One size that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Replicas of the first group.
    pub count: u32,
    /// The percentile in milliseconds, in the median over the seeds; infinite where it is of a request that failed.
    pub value_ms: f64,
    /// The share of requests over the limit, over all seeds.
    pub late: f64,
    /// Mean offered requests.
    pub requests: f64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The fewest replicas with which the goal was met; `None`: not with the most that were to be tried.
    pub needed: Option<u32>,
    /// Everything tried, by count.
    pub tried: Vec<Tried>,
}

/// Searches how many replicas of the scenario's first group meet the goal: from the scenario's own number by doubling or halving, then halving the interval. Seeds follow the
/// scenario's own.
pub fn size(scenario: &Scenario, goal: &Goal, seeds: u64, most: u32) -> Result<Sizing, ScenarioError> {
    let mut tried: Vec<Tried> = Vec::new();
    let met = |count: u32, tried: &mut Vec<Tried>| -> Result<bool, ScenarioError> {
        let one = at_size(scenario, goal, seeds, count)?;
        tried.push(one);
        Ok(one.value_ms <= goal.limit_ms)
    };
    let mut count = scenario.engines.first().map_or(1, |group| group.count).clamp(1, most);
    let mut missed = 0;
    if met(count, &mut tried)? {
        // Down by halves, to one that doesn't.
        while count > 1 && missed == 0 {
            let half = count / 2;
            if met(half, &mut tried)? { count = half } else { missed = half }
        }
    } else {
        loop {
            missed = count;
            if count >= most {
                tried.sort_by_key(|t| t.count);
                return Ok(Sizing { needed: None, tried });
            }
            count = (2 * count).min(most);
            if met(count, &mut tried)? {
                break;
            }
        }
    }
    while count - missed > 1 {
        let middle = missed + (count - missed) / 2;
        if met(middle, &mut tried)? { count = middle } else { missed = middle }
    }
    tried.sort_by_key(|t| t.count);
    Ok(Sizing { needed: Some(count), tried })
}

/// The scenario with so many replicas in its first group.
pub fn at_size(scenario: &Scenario, goal: &Goal, seeds: u64, count: u32) -> Result<Tried, ScenarioError> {
    let mut scenario = scenario.clone();
    if let Some(group) = scenario.engines.first_mut() {
        group.count = count;
    }
    let first = scenario.seed;
    let (mut values, mut late, mut all) = (Vec::new(), 0usize, 0usize);
    for seed in first..first + seeds.max(1) {
        scenario.seed = seed;
        let mut ms = Vec::new();
        run_into(&scenario, |one| ms.push(goal.metric.of(&one.row).unwrap_or(f64::INFINITY)))?;
        late += ms.iter().filter(|ms| **ms > goal.limit_ms).count();
        all += ms.len();
        values.push(percentile(&mut ms, goal.percentile));
    }
    values.sort_by(f64::total_cmp);
    let requests = all as f64 / values.len() as f64;
    Ok(Tried { count, value_ms: values[values.len() / 2], late: late as f64 / all.max(1) as f64, requests })
}

/// The nearest rank.
fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = libm::ceil(p / 100.0 * values.len() as f64) as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_read() {
        let goal: Goal = "ttft_p99=2s".parse().unwrap();
        assert_eq!(goal, Goal { metric: Metric::Ttft, percentile: 99.0, limit_ms: 2000.0 });
        assert_eq!(goal.to_string(), "P99 TTFT ≤ 2 s");
        assert_eq!("e2e_p99.9=1500".parse::<Goal>().unwrap().limit_ms, 1500.0);
        for wrong in ["", "ttft", "ttft_p99", "ttft_p100=2s", "ttfb_p50=2s", "ttft_p50=-1s"] {
            assert!(wrong.parse::<Goal>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut all: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!([50.0, 99.0, 99.9].map(|p| percentile(&mut all, p)), [100.0, 198.0, 200.0]);
    }
}
