//! Yes or no to one load: probes at that load alone, until it is decided or the requests are spent.

use super::answer::{Answer, Expected, Reason};
use super::blocks::{Blocks, Surprises};
use super::fit::Logistic;
use super::search::{Step, probe};
use super::{End, Probed, Spec};

/// What to do next about the load asked about.
pub(super) fn step(spec: &Spec, usable: &[&Probed], load: f64, spent: u64) -> Step {
    let here: Vec<&Probed> = usable.iter().filter(|p| p.probe.load == load).copied().collect();
    let looks = (spec.budget / spec.probe_requests.max(1)).max(1) as f64;
    // Looked at so often, each look may err by so much less (Bonferroni).
    let sure = 1.0 - (1.0 - spec.confidence) / looks;
    let confidence = confidence(spec, &here);
    let borne = match () {
        () if confidence >= sure => Some(true),
        () if confidence <= 1.0 - sure => Some(false),
        () => None,
    };
    let left = spec.budget.saturating_sub(spent);
    let next = spec.probe_requests.min(left);
    let tried = usable.len() < 64;
    if borne.is_none() && tried && next >= spec.probe_requests.div_ceil(2) {
        return probe(load, next);
    }
    let reason = if borne.is_some() { Reason::Decided } else { Reason::BudgetSpent };
    Step::Answer(Answer {
        reason,
        unit: spec.unit,
        capacity: None,
        low: borne.filter(|yes| *yes).map(|_| load),
        high: borne.filter(|yes| !*yes).map(|_| load),
        confidence: spec.confidence,
        binding: None,
        requests: 0,
        probes: 0,
        certified: None,
        expected: Some(Expected { load, borne, confidence }),
    })
}

/// How sure it is that every requirement holds: that of the least sure one.
fn confidence(spec: &Spec, here: &[&Probed]) -> f64 {
    if here.is_empty() {
        return 0.5;
    }
    // A probe that was ended because it was plain has said so.
    if here.iter().any(|p| matches!(p.end, End::Hopeless | End::OverSaturated)) {
        return 0.0;
    }
    if here.iter().all(|p| p.end == End::Clear) {
        return 1.0;
    }
    let of = |k: usize| {
        let share = spec.requirements[k].share;
        let (judged, met) = here.iter().map(|p| p.counts_of(k)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if judged == 0 {
            return 0.5;
        }
        // Where all or none met it, nothing shows how misses cluster: in threes, say.
        let memory = match met == 0 || met == judged {
            true => 3.0,
            false => {
                let seen = met as f64 / judged as f64;
                let flat = Logistic { level: libm::log(seen / (1.0 - seen)), steepness: 0.0, centre: 0.0 };
                let surprises: Vec<Surprises> = here.iter().map(|p| Surprises::of_probe(p, &[flat], k)).collect();
                let none = Surprises::default();
                Blocks::of(here, &surprises, &vec![&none; here.len()], &[0.0]).memory
            }
        };
        let variance = memory * share * (1.0 - share) / judged as f64;
        let z = (met as f64 / judged as f64 - share) / libm::sqrt(variance);
        normal(z)
    };
    (0..spec.requirements.len()).map(of).fold(1.0, f64::min)
}

fn normal(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}
