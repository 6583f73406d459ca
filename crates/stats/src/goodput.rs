use crate::request::output_tokens;
use crate::request::tpot_ns;
use crate::{Dist, Objective, ObjectiveMetric, Objectives, RunFacts, wilson};
use tailbound_record::{End, Moment, Row, Why};

/// What part of the load was worth anything.
///
/// Everything scheduled counts: failed requests, and those never sent though they were due, are misses. Left out are requests that we
/// cancelled ourselves, that were not sent because somebody stopped the run, or that were never due.
/// In an open loop TTFT and end-to-end latency count from the scheduled arrival, else from the write.
#[derive(Clone, Debug, PartialEq)]
pub struct Goodput {
    /// Requests judged.
    pub judged: usize,
    /// Those that met all their objectives.
    pub good: usize,
    /// Cancelled by us, stopped with the run, or never due: not judged.
    pub excused: usize,
    /// Good requests per second of the run.
    pub requests_per_s: f64,
    /// Output tokens of good requests per second of the run.
    pub tokens_per_s: f64,
    /// good / judged; `None` if nothing was judged.
    pub attainment: Option<f64>,
    /// Wilson's 95 % interval of that.
    pub interval: Option<(f64, f64)>,
    /// The share asked for.
    pub required_share: f64,
    /// Each metric that has an objective.
    pub by_metric: Vec<MetricAttainment>,
    /// Class, judged, good: for each class that came up, ascending.
    pub by_class: Vec<(u16, usize, usize)>,
}

impl Goodput {
    /// Whether the share asked for was reached. A run that judged nothing has not.
    pub fn met(&self) -> bool {
        self.attainment.is_some_and(|share| share >= self.required_share)
    }
}

/// How one metric fared.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricAttainment {
    /// Which.
    pub metric: ObjectiveMetric,
    /// The limit, if it is the same for every class.
    pub limit_ms: Option<f64>,
    /// Requests judged by it.
    pub judged: usize,
    /// Those within their limit.
    pub within: usize,
    /// Of those, met for want of anything to measure: a TPOT of an answer with nothing after its first event.
    pub vacuous: usize,
    /// The value at the share asked for, by nearest rank with misses as infinite, in ns: what must be under the limit for this
    /// objective alone to be met.
    pub at_required_ns: Option<f64>,
}

impl MetricAttainment {
    /// within / judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.within as f64 / self.judged as f64)
    }

    /// By how much the value at the share asked for is above the limit, in ms; `None` if it is not, or if the limit differs by class.
    pub fn missed_by_ms(&self) -> Option<f64> {
        let over = self.at_required_ns? * 1e-6 - self.limit_ms?;
        (over > 0.0).then_some(over)
    }
}

enum Value {
    Ns(f64),
    Vacuous,
    Missing,
}

/// The judging while it goes on.
pub(crate) struct Judge<'a> {
    facts: &'a RunFacts,
    tallies: Vec<Tally>,
    judged: usize,
    good: usize,
    excused: usize,
    good_tokens: u64,
    by_class: Vec<(u16, usize, usize)>,
}

impl<'a> Judge<'a> {
    /// `None` where there is nothing to judge by.
    pub(crate) fn new(facts: &'a RunFacts) -> Option<Judge<'a>> {
        if facts.objectives.is_empty() {
            return None;
        }
        let tallies = metrics_of(&facts.objectives).into_iter().map(Tally::new).collect();
        Some(Judge { facts, tallies, judged: 0, good: 0, excused: 0, good_tokens: 0, by_class: Vec::new() })
    }

    pub(crate) fn add(&mut self, row: &Row) {
        if excused(row) {
            self.excused += 1;
            return;
        }
        let mut good = row.ok();
        for objective in self.facts.objectives.of(row.class) {
            let value = value(row, objective.metric, self.facts.open_loop());
            let met = match value {
                Value::Ns(ns) => ns <= objective.limit_ns(),
                Value::Vacuous => true,
                Value::Missing => false,
            };
            if let Some(tally) = self.tallies.iter_mut().find(|t| t.metric == objective.metric) {
                tally.add(value, met);
            }
            good &= met;
        }
        self.judged += 1;
        self.good += usize::from(good);
        self.good_tokens += if good { u64::from(output_tokens(row).0) } else { 0 };
        let class = self.by_class.iter().position(|c| c.0 == row.class).unwrap_or_else(|| {
            self.by_class.push((row.class, 0, 0));
            self.by_class.len() - 1
        });
        self.by_class[class].1 += 1;
        self.by_class[class].2 += usize::from(good);
    }

    pub(crate) fn finish(mut self) -> Goodput {
        self.by_class.sort_unstable();
        let objectives = &self.facts.objectives;
        let seconds = self.facts.duration().ns() as f64 / 1e9;
        let per_second = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
        let (good, judged) = (self.good, self.judged);
        Goodput {
            judged,
            good,
            excused: self.excused,
            requests_per_s: per_second(good as f64),
            tokens_per_s: per_second(self.good_tokens as f64),
            attainment: (judged > 0).then(|| good as f64 / judged as f64),
            interval: wilson(good, judged, 0.95),
            required_share: objectives.required_share,
            by_metric: self.tallies.into_iter().map(|t| t.finish(objectives)).collect(),
            by_class: self.by_class,
        }
    }
}

/// Whether a request is nobody's miss: we cancelled it, somebody stopped the run before it was sent, or it was never due.
pub(crate) fn excused(row: &Row) -> bool {
    match row.end {
        End::Cancelled(_) | End::NeverSent(Why::Interrupted) => true,
        End::NeverSent(Why::Duration) => row.at.get(Moment::Scheduled).is_none(),
        _ => false,
    }
}

/// Whether a request met all its objectives; `None` if it is not judged.
pub fn verdict(row: &Row, facts: &RunFacts) -> Option<bool> {
    let met = |objective: &Objective| match value(row, objective.metric, facts.open_loop()) {
        Value::Ns(ns) => ns <= objective.limit_ns(),
        Value::Vacuous => true,
        Value::Missing => false,
    };
    (!excused(row)).then(|| row.ok() && facts.objectives.of(row.class).iter().all(met))
}

fn metrics_of(objectives: &Objectives) -> Vec<ObjectiveMetric> {
    let classes = objectives.by_class.iter().flat_map(|(_, own)| own);
    let mut metrics: Vec<_> = objectives.all.iter().chain(classes).map(|o| o.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    metrics
}

fn value(row: &Row, metric: ObjectiveMetric, open_loop: bool) -> Value {
    if !row.ok() {
        return Value::Missing;
    }
    let length = match metric {
        ObjectiveMetric::Ttft if open_loop => row.ttft_scheduled(),
        ObjectiveMetric::Ttft => row.ttft(),
        ObjectiveMetric::E2el if open_loop => row.e2e_scheduled(),
        ObjectiveMetric::E2el => row.e2e(),
        ObjectiveMetric::Tpot => return tpot_ns(row).map_or(Value::Vacuous, Value::Ns),
    };
    length.map_or(Value::Missing, |d| Value::Ns(d.ns() as f64))
}

struct Tally {
    metric: ObjectiveMetric,
    values: Vec<f64>,
    missing: usize,
    within: usize,
    vacuous: usize,
}

impl Tally {
    fn new(metric: ObjectiveMetric) -> Tally {
        Tally { metric, values: Vec::new(), missing: 0, within: 0, vacuous: 0 }
    }

    fn add(&mut self, value: Value, met: bool) {
        self.within += usize::from(met);
        match value {
            Value::Ns(ns) => self.values.push(ns),
            Value::Vacuous => self.vacuous += 1,
            Value::Missing => self.missing += 1,
        }
    }

    fn finish(mut self, objectives: &Objectives) -> MetricAttainment {
        let judged = self.values.len() + self.vacuous + self.missing;
        // What is met for want of a value ranks as the fastest.
        self.values.extend(std::iter::repeat_n(0.0, self.vacuous));
        let dist = Dist::new(self.values);
        let own_limits = objectives.by_class.iter().any(|(_, own)| own.iter().any(|o| o.metric == self.metric));
        let limit = objectives.all.iter().find(|o| o.metric == self.metric).map(|o| o.limit_ms);
        MetricAttainment {
            metric: self.metric,
            limit_ms: limit.filter(|_| !own_limits),
            judged,
            within: self.within,
            vacuous: self.vacuous,
            at_required_ns: dist.nearest_rank_with_failures(objectives.required_share * 100.0, self.missing),
        }
    }
}
