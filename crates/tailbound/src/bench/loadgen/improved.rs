//! The improved judgement of a folder: every reason a run doesn't count.

use super::folder::Samples;
use std::collections::BTreeSet;
use std::fmt::Write;
use tailbound_clock::Time;
use tailbound_stats::loadgen::early_stopping::queries_needed;
use tailbound_stats::loadgen::improved::{Bounds, Reason, judge};
use tailbound_stats::loadgen::log::Log;
use tailbound_stats::loadgen::round::{Outcome, Stop};
use tailbound_stats::loadgen::samples::Ending;
use tailbound_stats::loadgen::score::Score;
use tailbound_stats::loadgen::{Scenario, spread::Spread};

/// What came of it.
pub struct Judged {
    /// Whether the run counts.
    pub valid: bool,
    /// To print below the summary.
    pub text: String,
}

/// By the samples of the run.
pub fn by_samples(log: &Log, score: &Score, samples: &Samples) -> Judged {
    let outcome = Outcome {
        samples: samples.list.clone(),
        ending: Ending::of(&samples.list),
        stop: stop(log),
        lost: missing(samples),
        skips: Vec::new(),
        errors: Vec::new(),
        start: Time::ZERO,
        last_done: Time::ZERO,
    };
    told(score, &outcome, &format!("by {} samples in {}", samples.list.len(), samples.file))
}

/// Of a run that has just ended.
pub fn of_run(score: &Score, outcome: &Outcome) -> Judged {
    told(score, outcome, &format!("by {} samples", outcome.samples.len()))
}

fn told(score: &Score, outcome: &Outcome, by: &str) -> Judged {
    let report = judge(score, outcome, Bounds::default());
    let mut facts = Vec::new();
    if let Some([p50, p99, max]) = report.lateness_ns.map(|l| l.map(|ns| ns as f64 / 1e6)) {
        facts.push(format!("issue lateness: median {p50:.3} ms, P99 {p99:.3} ms, longest {max:.3} ms"));
    }
    if report.without_tpot > 0 {
        facts.push(format!("{} samples of fewer than two tokens have no TPOT", report.without_tpot));
    }
    let mut reasons: Vec<String> = report.reasons.iter().map(Reason::to_string).collect();
    if reasons.is_empty() {
        // Never laxer than LoadGen, whose own reasons stand if the samples give none.
        reasons = official(score);
    }
    judged(by, reasons, facts)
}

/// By the detail log alone, which tells neither lateness nor lost answers.
pub fn by_log(score: &Score) -> Judged {
    let facts = vec!["issue lateness and lost answers are not in the detail log: they were not judged".to_owned()];
    judged("by the detail log alone", official(score), facts)
}

/// What LoadGen holds against a run.
fn official(score: &Score) -> Vec<String> {
    let e = &score.effective;
    let d = &score.decision;
    let mut reasons = Vec::new();
    if d.constraints == Some(false) {
        let (r, t) = (&e.requested, score.tokens.as_ref());
        match t {
            None => reasons.extend(over("latency", Some(&score.latency), e.target_latency_ns, score)),
            Some(t) => {
                reasons.extend(over("TTFT", t.ttft.as_ref(), r.ttft_latency, score));
                reasons.extend(over("TPOT", t.tpot.as_ref(), r.tpot_latency, score));
            }
        }
    }
    if !d.duration {
        let needed = e.min_duration_ms as f64 / 1e3;
        reasons.push(format!("the run was shorter than the {needed} s it needs: generate more queries"));
    }
    if !d.queries {
        let (queries, samples) = (score.queries, score.samples);
        let (needed, samples_needed) = (e.min_query_count, e.min_sample_count);
        reasons.push(Reason::MinQueries { queries, needed, samples, samples_needed }.to_string());
    }
    if !d.stopping {
        reasons.push(stopping(score));
    }
    reasons
}

fn over(what: &'static str, spread: Option<&Spread>, bound_ns: u64, score: &Score) -> Option<String> {
    let percentile = score.effective.target_latency_percentile;
    let ns = spread?.target?;
    (i128::from(ns) > i128::from(bound_ns))
        .then(|| Reason::Latency { what, percentile, ns: Some(ns), bound_ns }.to_string())
}

/// The log has the number of queries over the bound in Server without tokens; in token mode only LoadGen's own words.
fn stopping(score: &Score) -> String {
    let percentile = score.effective.target_latency_percentile;
    let scenario = score.effective.requested.scenario;
    if score.tokens.is_some() {
        let words = [&score.decision.stopping_ttft_text, &score.decision.stopping_text];
        let words: Vec<&str> =
            words.into_iter().flat_map(|t| t.lines()).map(|l| l.trim_start_matches(" * ").trim()).collect();
        return format!("early stopping: {}", words.join(" "));
    }
    let over = if scenario == Scenario::Server { score.over_latency } else { 0 };
    let floor = if scenario == Scenario::Server { over } else { 1 };
    let more_needed = queries_needed(floor, percentile).saturating_sub(score.queries);
    Reason::EarlyStopping { what: "latency", queries: score.queries, over, more_needed }.to_string()
}

fn judged(by: &str, reasons: Vec<String>, facts: Vec<String>) -> Judged {
    let word = if reasons.is_empty() { "VALID" } else { "INVALID" };
    let mut text = format!("\nImproved judgement ({by}): {word}\n");
    for line in reasons.iter().map(|r| format!(" * {r}")).chain(facts.into_iter().map(|f| format!("   {f}"))) {
        let _ = writeln!(text, "{line}");
    }
    Judged { valid: reasons.is_empty(), text }
}

/// Numbers between the first and the last that no sample has.
fn missing(samples: &Samples) -> Vec<u64> {
    let there: BTreeSet<u64> = samples.list.iter().map(|s| s.seq).collect();
    let (Some(&first), Some(&last)) = (there.first(), there.last()) else { return Vec::new() };
    (first..last).filter(|seq| !there.contains(seq)).collect()
}

/// Why issuing ended, from what LoadGen wrote about it.
fn stop(log: &Log) -> Stop {
    let early = log.entries().iter().find_map(|e| e.value.split_once("Ending early: ")).map(|(_, what)| what);
    let Some(what) = early else { return Stop::AllIssued };
    let number = |before: &str| {
        let digits = what.rsplit_once(before)?.1.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let numbers = |a: &str, b: &str| number(a).zip(number(b));
    if let Some((issued, outstanding)) = numbers("issued ", "outstanding ") {
        return Stop::TooManyOutstanding { issued, outstanding };
    }
    number("query_count ")
        .map(Stop::MaxQueries)
        .or_else(|| number("duration_ns ").map(Stop::MaxDuration))
        .unwrap_or(if what.starts_with("Ran out") { Stop::RanOut } else { Stop::Interrupted })
}
