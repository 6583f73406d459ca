//! A load to stand by: one at which a run passes what an official run of MLPerf's server scenario must pass.

use super::{Answer, End, Interval, Probe, Probed, Requirement, Spec, Step};
use crate::loadgen::early_stopping::queries_needed;
use crate::loadgen::peak::KEEPS_UP;

/// Loads that are tried,
const TRIES: usize = 8;
/// each so much lower than the one before until one passes; then higher, until so near what is believed or has failed.
const LOWER: f64 = 0.99;
const NEAR: f64 = 0.99;
/// An interval that reaches further, as a share of the answer, leaves the answer unsure.
const UNSURE: f64 = 0.1;
/// Requests of a certifying run at most.
const LONGEST: u64 = 400_000;
/// At least so many long probes, and so many times as many as a miss is remembered: a backlog needs its time to show.
const PROBES: u64 = 2;
const MEMORIES: f64 = 30.0;

/// Once the search is over: a run at the interval's lower end, and a little lower until one passes, then higher up to the capacity that is
/// believed. Its probes are no part of the search or of its budget.
pub(super) fn step(spec: &Spec, probes: &[Probed], found: &Interval, answer: Answer) -> Step {
    let runs: Vec<&Probed> = probes.iter().filter(|p| p.probe.certifies).collect();
    let (passed, failed): (Vec<&Probed>, Vec<&Probed>) = runs.iter().partition(|p| passes(&spec.requirements, p));
    let best = passed.into_iter().max_by(|a, b| a.probe.load.total_cmp(&b.probe.load));
    let lowest = failed.iter().map(|p| p.probe.load).fold(f64::MAX, f64::min);
    // Where the search itself was left unsure, the runs say how high one may go.
    let believed = if found.reach() <= UNSURE { found.root } else { found.high };
    let limit = believed.min(lowest);
    let certified = best.map(|run| run.probe.load * run.kept_up.min(1.0));
    let load = match best.map(|run| run.probe.load) {
        None => found.low * libm::pow(LOWER, runs.len() as f64),
        Some(best) if best >= NEAR * limit => return Step::Answer(Answer { certified, ..answer }),
        Some(best) => libm::sqrt(best * limit),
    };
    if runs.len() == TRIES {
        return Step::Answer(Answer { certified, ..answer });
    }
    let share = spec.requirements[found.binding].share;
    let expected = found.fit.at(libm::log(load)).max(share + 0.1 * (1.0 - share));
    let long = (PROBES * spec.probe_requests).max((MEMORIES * found.memory) as u64);
    let requests = enough(share, expected).max(long).min(LONGEST);
    Step::Probe(Probe { number: 0, load, requests, settle: 0, whole: false, certifies: true })
}

/// Requests with which early stopping passes although a few more miss than are expected to.
fn enough(share: f64, expected: f64) -> u64 {
    let mut requests = 2 * queries_needed(0, share);
    while requests < LONGEST {
        let misses = requests as f64 * (1.0 - expected);
        let unlucky = misses + 3.0 * libm::sqrt(misses + 1.0);
        if queries_needed(libm::ceil(unlucky) as u64, share) <= requests {
            break;
        }
        requests += requests / 4;
    }
    requests.min(LONGEST)
}

/// Early stopping at 99 % in every requirement, and completions that kept up with arrivals.
fn passes(requirements: &[Requirement], run: &Probed) -> bool {
    let stops = |(k, r): (usize, &Requirement)| {
        let bit = 1u32 << k;
        let judged = run.marks.iter().filter(|m| m.judged & bit != 0).count() as u64;
        let over = run.marks.iter().filter(|m| m.judged & bit != 0 && m.met & bit == 0).count() as u64;
        judged >= queries_needed(over, r.share)
    };
    let whole = matches!(run.end, End::Whole | End::Clear) && run.invalid.is_none();
    whole && run.kept_up >= KEEPS_UP && requirements.iter().enumerate().all(stops)
}
