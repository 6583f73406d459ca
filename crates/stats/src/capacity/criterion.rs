//! What is asked of a load, and how a request fares by it.

use super::{Mark, Requirement};
use crate::fluidity::{Deadlines, Fluidity, PrefillProfile, gaps};
use crate::{Metric, RunFacts, goodput};
use tailbound_record::{End, Moment, Row};

/// A percentile's limit, e.g. p99 of the TTFT at most 500 ms: at least that share of the requests are within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Of what; a figure that each request has one of.
    pub metric: Metric,
    /// The percentile, in (0, 100).
    pub percentile: f64,
    /// The limit, ms.
    pub limit_ms: f64,
}

/// When etalon has a request's first token due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstToken {
    /// So long after its start, s.
    Within(f64),
    /// So long after the prefill that a prompt of its length takes alone, s.
    AfterPrefill(PrefillProfile, f64),
    /// Never: it is not judged.
    Any,
}

/// What is asked of a load.
#[derive(Clone, Debug, PartialEq)]
pub enum Criterion {
    /// DistServe's goodput: a request meets all of its class's objectives (those of the run's facts), in the share they ask for.
    /// With classes, each must reach the share by itself; its number and its name.
    Goodput(Vec<(u16, String)>),
    /// etalon's capacity: a request misses no more than `miss_rate` of its deadlines, in `share` of the requests.
    Fluidity {
        /// The first token's deadline.
        first: FirstToken,
        /// That of every other token, after the one before it, s.
        tbt: f64,
        /// Deadlines that a request may miss, as a share.
        miss_rate: f64,
        /// Requests that must keep to that, as a share.
        share: f64,
    },
    /// Limits on percentiles, each by itself: MLPerf's server scenario, and any other.
    Thresholds(Vec<Threshold>),
}

impl Criterion {
    /// As a search takes them. `facts`: of the runs to be judged.
    pub fn requirements(&self, facts: &RunFacts) -> Vec<Requirement> {
        let objectives = &facts.objectives;
        let all = |of: &[crate::Objective]| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        match self {
            Criterion::Goodput(classes) if classes.is_empty() => {
                vec![Requirement { name: all(&objectives.all), share: objectives.required_share }]
            }
            Criterion::Goodput(classes) => classes
                .iter()
                .map(|(class, name)| Requirement {
                    name: format!("{name}: {}", all(objectives.of(*class))),
                    share: objectives.required_share,
                })
                .collect(),
            Criterion::Fluidity { tbt, miss_rate, share, .. } => {
                let name = format!(
                    "at most {} % of deadlines missed at {} ms a token",
                    100.0 * miss_rate,
                    (1e6 * tbt).round() / 1e3
                );
                vec![Requirement { name, share: *share }]
            }
            Criterion::Thresholds(all) => all
                .iter()
                .map(|t| Requirement {
                    name: format!("p{} {} {} ms", t.percentile, t.metric.name(), t.limit_ms),
                    share: t.percentile / 100.0,
                })
                .collect(),
        }
    }

    /// How a request fared; `None` if it is nobody's: cancelled by us, or never sent.
    pub fn mark(&self, row: &Row, facts: &RunFacts) -> Option<Mark> {
        if matches!(row.end, End::NeverSent(_)) || goodput::excused(row) {
            return None;
        }
        let at = row.at.get(Moment::Scheduled).or_else(|| row.at.get(Moment::WriteStart))?;
        let nobody = Mark {
            at,
            prompt: row.tokens.prompt_asked.or(row.tokens.prompt_server),
            output: row.tokens.output_asked,
            ..Mark::default()
        };
        let bit = |k: usize, met: bool| Mark { judged: 1 << k, met: u32::from(met) << k, ..nobody };
        Some(match self {
            Criterion::Goodput(classes) => {
                let met = goodput::verdict(row, facts)?;
                let of_class = classes.iter().position(|(class, _)| *class == row.class);
                match (classes.is_empty(), of_class) {
                    (true, _) => bit(0, met),
                    (false, Some(k)) => bit(k, met),
                    (false, None) => nobody,
                }
            }
            Criterion::Fluidity { first, tbt, miss_rate, .. } => {
                let due = Deadlines { ttft: first.due(row), tbt: *tbt };
                let fluid = |gaps: Vec<f64>| Fluidity::of(&gaps, due).miss_rate() <= *miss_rate;
                bit(0, gaps(row, facts.open_loop()).is_some_and(fluid))
            }
            Criterion::Thresholds(all) => {
                let within = |t: &Threshold| row.ok() && t.metric.of(row).is_none_or(|ns| ns <= t.limit_ms * 1e6);
                let marks = all.iter().enumerate().map(|(k, t)| bit(k, within(t)));
                marks.fold(nobody, |a, b| Mark { judged: a.judged | b.judged, met: a.met | b.met, ..nobody })
            }
        })
    }
}

impl FirstToken {
    fn due(self, row: &Row) -> Option<f64> {
        match self {
            FirstToken::Within(s) => Some(s),
            FirstToken::AfterPrefill(profile, slack) => {
                Some(profile.seconds(f64::from(row.prompt_tokens().unwrap_or(0))) + slack)
            }
            FirstToken::Any => None,
        }
    }
}
