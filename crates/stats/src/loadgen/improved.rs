//! The improved judgement: every reason a run doesn't count, each with what it would take.
//!
//! LoadGen stops at the first failing early-stopping check, leaves an empty list of recommendations when only early
//! stopping failed, divides by −1 where a sample has no second token, never misses an answer that doesn't come, and
//! doesn't look at its own lateness although latency includes it. This judgement is stricter in those places and nowhere
//! laxer: a run it calls valid is VALID for LoadGen too, save that samples of fewer than two tokens have no TPOT here.

use serde::Serialize;

use super::early_stopping::{estimate_rank, queries_needed};
use super::round::{Outcome, Stop};
use super::samples::Sample;
use super::score::Score;
use super::settings::Scenario;
use super::spread::at;
use super::tokens;

/// Where the improved judgement draws its own lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The most the 99th percentile of issue lateness may be of the bound latency is held against.
    pub lateness_share: f64,
    /// The largest share of issued samples that may stay unanswered; those that do count as over every bound.
    pub lost_share: f64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { lateness_share: 0.1, lost_share: 0.001 }
    }
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)] // see the messages
pub enum Reason {
    Latency { what: &'static str, percentile: f64, ns: Option<i64>, bound_ns: u64 },
    MinDuration { seconds: f64, needed: f64 },
    MinQueries { queries: u64, needed: u64, samples: u64, samples_needed: u64 },
    EarlyStopping { what: &'static str, queries: u64, over: u64, more_needed: u64 },
    IssueLateness { p99_ns: i64, allowed_ns: i64 },
    LostResponses { lost: u64, issued: u64, allowed: u64 },
    RanOut,
    MaxAsync { outstanding: u64 },
    MaxQueries { queries: u64 },
    MaxDuration { seconds: f64 },
    Interrupted,
}

/// What the improved judgement found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Empty for a run that counts.
    pub reasons: Vec<Reason>,
    /// Lateness of issue against the due moment, ns (Server and Offline): median, 99th percentile, maximum.
    pub lateness_ns: Option<[i64; 3]>,
    /// Samples never answered.
    pub lost: u64,
    /// Samples of fewer than two tokens, which have no TPOT (token mode).
    pub without_tpot: u64,
    /// TPOT at the scenario's percentile over the samples that have one, ns.
    pub tpot_ns: Option<i64>,
}

impl Report {
    /// Whether the run counts.
    pub fn valid(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Judges a performance run.
pub fn judge(score: &Score, outcome: &Outcome, bounds: Bounds) -> Report {
    let samples = &outcome.samples;
    let lost = outcome.lost.len() as u64;
    let token_mode = score.tokens.is_some() && score.effective.requested.scenario != Scenario::Offline;
    let sorted = |mut list: Vec<i64>| {
        list.sort_unstable();
        list
    };
    let tpot = sorted(samples.iter().filter_map(tokens::tpot).collect());
    let lateness = lateness(score, samples);
    let mut report = Report {
        reasons: Vec::new(),
        lateness_ns: lateness,
        lost,
        without_tpot: if token_mode { (samples.len() - tpot.len()) as u64 } else { 0 },
        tpot_ns: (token_mode && !tpot.is_empty()).then(|| at(&tpot, score.effective.target_latency_percentile)),
    };
    let reasons = &mut report.reasons;
    reasons.extend(ending(outcome.stop));
    length(score, outcome, reasons);
    if token_mode {
        let (ttft, tpot) = (|s: &Sample| s.ttft_ns, |s: &Sample| tokens::tpot(s));
        let ttft = Held::of(score, outcome, ttft, true);
        list(score, "TTFT", &ttft, score.effective.requested.ttft_latency, reasons);
        let tpot = Held::of(score, outcome, tpot, false);
        list(score, "TPOT", &tpot, score.effective.requested.tpot_latency, reasons);
    } else {
        let latency = Held::of(score, outcome, |s| Some(s.latency_ns), true);
        list(score, "latency", &latency, score.effective.target_latency_ns, reasons);
    }
    own_faults(score, &report.lateness_ns, lost, samples.len() as u64, bounds, &mut report.reasons);
    report
}

/// What one bound is held against: a value per query (MultiStream: the worst of its samples; a query with one unanswered sample is
/// unanswered), sorted, and how many have no answer.
struct Held {
    sorted: Vec<i64>,
    unanswered: u64,
}

impl Held {
    /// A sample without a value has none (`needed`: it counts as unanswered).
    fn of(score: &Score, outcome: &Outcome, value: impl Fn(&Sample) -> Option<i64>, needed: bool) -> Held {
        let e = &score.effective;
        let per_query = if e.requested.scenario == Scenario::MultiStream { e.samples_per_query.max(1) } else { 1 };
        let mut held = Held { sorted: Vec::new(), unanswered: outcome.lost.len() as u64 };
        if per_query == 1 {
            held.sorted.extend(outcome.samples.iter().filter_map(&value));
            if needed {
                held.unanswered += (outcome.samples.len() - held.sorted.len()) as u64;
            }
        } else {
            let mut queries = std::collections::BTreeMap::new();
            for s in &outcome.samples {
                let (answered, worst) = queries.entry(s.query).or_insert((0, None));
                let value = value(s);
                *answered += u64::from(value.is_some() || !needed);
                *worst = value.max(*worst);
            }
            let issued = outcome.ending.map_or(queries.len() as u64, |end| end.queries_issued);
            let whole = queries.values().filter(|(answered, _)| *answered == per_query);
            held.sorted.extend(whole.clone().filter_map(|(_, worst)| *worst));
            held.unanswered = issued.saturating_sub(whole.count() as u64);
        }
        held.sorted.sort_unstable();
        held
    }
}

fn ending(stop: Stop) -> Option<Reason> {
    match stop {
        Stop::AllIssued | Stop::Naturally => None,
        Stop::RanOut => Some(Reason::RanOut),
        Stop::TooManyOutstanding { outstanding, .. } => Some(Reason::MaxAsync { outstanding }),
        Stop::MaxQueries(queries) => Some(Reason::MaxQueries { queries }),
        Stop::MaxDuration(ns) => Some(Reason::MaxDuration { seconds: ns as f64 / 1e9 }),
        Stop::Interrupted => Some(Reason::Interrupted),
    }
}

fn length(score: &Score, outcome: &Outcome, reasons: &mut Vec<Reason>) {
    let e = &score.effective;
    if !score.decision.duration {
        let seconds = match (e.requested.scenario, outcome.ending) {
            (Scenario::Server, Some(end)) => end.scheduled_s,
            (Scenario::SingleStream | Scenario::MultiStream, Some(end)) => end.issued_s,
            _ => score.latency.max as f64 / 1e9,
        };
        reasons.push(Reason::MinDuration { seconds, needed: e.min_duration_ms as f64 / 1e3 });
    }
    if !score.decision.queries {
        reasons.push(Reason::MinQueries {
            queries: score.queries,
            needed: e.min_query_count,
            samples: score.samples,
            samples_needed: e.min_sample_count,
        });
    }
}

/// Constraint and early stopping of one list, with unanswered queries over every bound.
fn list(score: &Score, what: &'static str, held: &Held, bound: u64, reasons: &mut Vec<Reason>) {
    let Held { sorted, unanswered: lost } = held;
    let lost = *lost;
    let e = &score.effective;
    let percentile = e.target_latency_percentile;
    let queries = sorted.len() as u64 + lost;
    match e.requested.scenario {
        Scenario::Offline => {}
        Scenario::Server => {
            let ns = sorted.get((queries as f64 * percentile) as usize).copied();
            if ns.is_none_or(|v| i128::from(v) > i128::from(bound)) {
                reasons.push(Reason::Latency { what, percentile, ns, bound_ns: bound });
            }
            let over = (sorted.len() - sorted.partition_point(|&v| i128::from(v) <= i128::from(bound))) as u64 + lost;
            let needed = queries_needed(over, percentile);
            if queries < needed {
                reasons.push(Reason::EarlyStopping { what, queries, over, more_needed: needed - queries });
            }
        }
        Scenario::SingleStream | Scenario::MultiStream => {
            if estimate_rank(queries, percentile).is_none() {
                let more_needed = queries_needed(1, percentile).saturating_sub(queries);
                reasons.push(Reason::EarlyStopping { what, queries, over: lost, more_needed });
            }
        }
    }
}

fn lateness(score: &Score, samples: &[Sample]) -> Option<[i64; 3]> {
    let timed = matches!(score.effective.requested.scenario, Scenario::Server | Scenario::Offline);
    if !timed || samples.is_empty() {
        return None;
    }
    let mut late: Vec<i64> = samples.iter().map(|s| s.issue_delay_ns.max(0)).collect();
    late.sort_unstable();
    Some([at(&late, 0.5), at(&late, 0.99), at(&late, 1.0)])
}

fn own_faults(
    score: &Score,
    lateness: &Option<[i64; 3]>,
    lost: u64,
    answered: u64,
    bounds: Bounds,
    reasons: &mut Vec<Reason>,
) {
    let e = &score.effective;
    let issued = answered + lost;
    let allowed = (issued as f64 * bounds.lost_share) as u64;
    if lost > allowed {
        reasons.push(Reason::LostResponses { lost, issued, allowed });
    }
    let held = if score.tokens.is_some() { e.requested.ttft_latency } else { e.target_latency_ns };
    let allowed_ns = (held as f64 * bounds.lateness_share) as i64;
    if let (Scenario::Server, Some([_, p99_ns, _])) = (e.requested.scenario, *lateness)
        && p99_ns > allowed_ns
    {
        reasons.push(Reason::IssueLateness { p99_ns, allowed_ns });
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |ns: i64| ns as f64 / 1e6;
        match self {
            Reason::Latency { what, percentile, ns, bound_ns } => {
                let p = percentile * 100.0;
                let bound = ms(*bound_ns as i64);
                match ns {
                    Some(ns) => {
                        write!(f, "P{p} {what} is {:.3} ms, over the bound of {bound} ms: lower the rate", ms(*ns))
                    }
                    None => write!(f, "P{p} {what} falls among unanswered samples; the bound is {bound} ms"),
                }
            }
            Reason::MinDuration { seconds, needed } => {
                write!(f, "the run lasted {seconds:.3} s of the {needed} s it needs: generate more queries")
            }
            Reason::MinQueries { queries, needed, samples, samples_needed } => {
                write!(f, "{queries} of {needed} queries and {samples} of {samples_needed} samples: it ended too early")
            }
            Reason::EarlyStopping { what, queries, over, more_needed } => write!(
                f,
                "early stopping on {what}: {queries} queries with {over} over the bound are too few; at least \
                 {more_needed} more are needed, all of them under it"
            ),
            Reason::IssueLateness { p99_ns, allowed_ns } => write!(
                f,
                "the load generator was late: P99 of issue lateness is {:.3} ms, allowed {:.3} ms; it needs more CPU",
                ms(*p99_ns),
                ms(*allowed_ns)
            ),
            Reason::LostResponses { lost, issued, allowed } => {
                write!(
                    f,
                    "{lost} of {issued} samples were never answered, allowed {allowed}: look at the server's errors"
                )
            }
            Reason::RanOut => f.write_str(
                "all generated queries were issued before the run was long enough: lower the expected latency",
            ),
            Reason::MaxAsync { outstanding } => {
                write!(f, "{outstanding} queries were outstanding, more than max_async_queries")
            }
            Reason::MaxQueries { queries } => write!(f, "max_query_count ended the run after {queries} queries"),
            Reason::MaxDuration { seconds } => write!(f, "max_duration ended the run after {seconds:.3} s"),
            Reason::Interrupted => f.write_str("the run was interrupted"),
        }
    }
}
