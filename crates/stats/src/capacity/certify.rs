//! A load to stand by: one at which a run passes what an official run of MLPerf's server scenario must pass.

use super::{Answer, End, Interval, Probe, Probed, Requirement, Spec, Step};
use crate::loadgen::early_stopping::queries_needed;
use crate::loadgen::peak::KEEPS_UP;

/// Loads that are tried, each a hundredth under the one before.
const TRIES: i32 = 6;
/// Requests of a certifying run at most.
const LONGEST: u64 = 400_000;

/// Once the search is over: a run at the interval's lower end, and a little lower until one passes. Its probes are no part of the search
/// or of its budget.
pub(super) fn step(spec: &Spec, probes: &[Probed], found: &Interval, answer: Answer) -> Step {
    let runs: Vec<&Probed> = probes.iter().filter(|p| p.probe.certifies).collect();
    if let Some(passed) = runs.iter().find(|p| passes(&spec.requirements, p)) {
        let certified = Some(passed.probe.load * passed.kept_up.min(1.0));
        return Step::Answer(Answer { certified, ..answer });
    }
    let tried = runs.len() as i32;
    if tried == TRIES {
        return Step::Answer(answer);
    }
    let load = found.low * libm::pow(0.99, f64::from(tried));
    let share = spec.requirements[found.binding].share;
    let expected = found.fit.at(libm::log(load)).max(share + 0.1 * (1.0 - share));
    Step::Probe(Probe { number: 0, load, requests: enough(share, expected), settle: 0, certifies: true })
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
