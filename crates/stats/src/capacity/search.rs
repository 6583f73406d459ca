//! Probes so far → the next probe, or the answer.

use super::answer::{Answer, Reason};
use super::interval::interval;
use super::{End, Interval, Probe, Probed, Spec, Unit, certify, expect};
use serde::{Deserialize, Serialize};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Run this.
    Probe(Probe),
    /// The search is over.
    Answer(Answer),
}

/// Clear and hopeless loads further apart than this are bracketed further.
const BRACKET: f64 = 1.6;
/// Dwelling probes lie to either side of the believed root where the fit's logit is so far from the root's,
const SIDE: f64 = 0.4;
/// but at least and at most at loads so far from it, as shares.
const LEAST_TILT: f64 = 0.01;
const MOST_TILT: f64 = 0.1;
/// Where nothing better is known, a load so far beyond one that is known is tried.
const BEYOND: f64 = 0.04;
/// Under so many requests in flight they hardly ever meet.
const ALONE: f64 = 0.1;
/// A bracketing probe takes this part of a long one.
const SHORT: u64 = 3;
/// Of a probe's requests, at least one in so many is not judged, from the first on,
const SETTLE: u64 = 7;
/// and so many times as many as a miss is remembered, up to a third.
const SETTLED: f64 = 5.0;
/// A probe of so many requests in flight sends so many times as many.
const ROUNDS: f64 = 4.0;
/// Loads of an invalid and of a clear probe so near are the client's limit.
const LIMIT: f64 = 1.1;

/// What the probes have shown so far.
struct State<'a> {
    spec: &'a Spec,
    probes: &'a [Probed],
    usable: Vec<&'a Probed>,
    /// The highest plainly clear load under every plainly hopeless one.
    clear: Option<f64>,
    /// The lowest plainly hopeless load.
    hopeless: Option<f64>,
    /// The lowest load that this client could not deliver.
    limit: Option<f64>,
    /// The highest load that looked borne under every one that did not, and the lowest that did not, by attainment alone.
    above: Option<f64>,
    below: Option<f64>,
    spent: u64,
}

/// Says what to do next.
pub fn next(spec: &Spec, probes: &[Probed]) -> Step {
    let state = State::new(spec, probes);
    let step = match spec.expect {
        Some(load) => expect::step(spec, &state.usable, load, state.spent),
        None => state.step(),
    };
    let step = match step {
        Step::Probe(probe) => state.filled(probe),
        answer => answer,
    };
    match step {
        Step::Probe(probe) => Step::Probe(Probe { number: probes.len() as u32, ..probe }),
        Step::Answer(answer) => Step::Answer(Answer {
            requests: probes.iter().map(|p| p.requests).sum(),
            probes: probes.len() as u32,
            ..answer
        }),
    }
}

/// A probe of `requests` requests at a load.
pub(super) fn probe(load: f64, requests: u64) -> Step {
    let settle = requests / SETTLE;
    Step::Probe(Probe { number: 0, load, requests, settle, whole: false, certifies: false })
}

/// A dwelling probe runs to its end: those that were let off early would be the luckiest and the unluckiest of them.
fn dwelling(load: f64, requests: u64, settle: u64) -> Step {
    Step::Probe(Probe { number: 0, load, requests, settle, whole: true, certifies: false })
}

impl<'a> State<'a> {
    fn new(spec: &'a Spec, probes: &'a [Probed]) -> State<'a> {
        let usable: Vec<&Probed> = probes.iter().filter(|p| p.counts()).collect();
        let loads = |of: fn(&Probed) -> bool| usable.iter().filter(move |p| of(p)).map(|p| p.probe.load);
        let hopeless = loads(|p| matches!(p.end, End::Hopeless | End::OverSaturated)).reduce(f64::min);
        let ceiling = hopeless.unwrap_or(f64::MAX);
        let clear = loads(|p| p.end == End::Clear).filter(|&l| l < ceiling).reduce(f64::max);
        let below = usable.iter().filter(|p| !looks_borne(spec, p)).map(|p| p.probe.load).reduce(f64::min);
        let under = |load: f64| below.is_none_or(|below| load < below);
        let above =
            usable.iter().filter(|p| looks_borne(spec, p)).map(|p| p.probe.load).filter(|&l| under(l)).reduce(f64::max);
        let floor = above.unwrap_or(0.0);
        let limit = probes.iter().filter(|p| p.invalid.is_some()).map(|p| p.probe.load).filter(|&l| l > floor);
        State {
            spec,
            probes,
            clear,
            hopeless,
            limit: limit.reduce(f64::min),
            above,
            below,
            spent: probes.iter().filter(|p| !p.probe.certifies).map(|p| p.requests).sum(),
            usable,
        }
    }

    fn left(&self) -> u64 {
        self.spec.budget.saturating_sub(self.spent)
    }

    /// So many requests in flight need some rounds of as many requests; what that takes may not be left.
    fn filled(&self, probe: Probe) -> Step {
        if self.spec.unit == Unit::Rate {
            return Step::Probe(probe);
        }
        let load = probe.load.round().max(1.0);
        let (round, needed) = (load as u64, (ROUNDS * load) as u64);
        let probe = Probe { load, requests: probe.requests.max(needed), settle: probe.settle.max(round), ..probe };
        if probe.certifies || self.left() >= probe.requests { Step::Probe(probe) } else { self.give_up() }
    }

    fn step(&self) -> Step {
        let short = (self.spec.probe_requests / SHORT).max(1);
        let at = |load: f64| if self.left() >= short { probe(load, short) } else { self.give_up() };
        // Then the fit knows more than which probe chanced to lie on which side.
        let dwelt = self.usable.iter().any(|p| p.probe.whole);
        match (self.above, self.below) {
            (None, None) => match self.limit {
                None => at(self.spec.first),
                Some(limit) if self.probes.len() < 12 => at(limit / 2.0),
                Some(_) => self.client_limited(),
            },
            (Some(above), None) => match self.limit {
                None => at(above * 2.0),
                Some(limit) if limit <= above * LIMIT || self.no_load_between(above, limit) => self.client_limited(),
                Some(limit) => at(libm::sqrt(above * limit)),
            },
            (None, Some(below)) => {
                let alone = self.usable.iter().any(|p| p.probe.load <= below && p.in_flight < ALONE);
                let least = self.spec.unit == Unit::Concurrency && below <= 1.0;
                if alone || least { self.infeasible(below) } else { at(below / 2.0) }
            }
            (Some(above), Some(below)) if below > above * BRACKET && !dwelt && !self.no_load_between(above, below) => {
                at(libm::sqrt(above * below))
            }
            _ => self.dwell(),
        }
    }

    /// Between whole numbers next to each other there is nothing to try.
    fn no_load_between(&self, low: f64, high: f64) -> bool {
        self.spec.unit == Unit::Concurrency && high - low <= 1.0
    }

    /// Probes near the root, until the interval is narrow or the requests are spent.
    fn dwell(&self) -> Step {
        let Some(found) = self.found() else { return probe(self.spec.first, self.spec.probe_requests) };
        if self.settled(&found) {
            return self.answer(Reason::Converged, &found);
        }
        if let Some(limit) = self.limit.filter(|&limit| found.root > limit / LIMIT) {
            let above = self.above.unwrap_or(0.0);
            if limit <= above * LIMIT || self.left() < self.spec.probe_requests {
                return self.client_limited();
            }
        }
        let requests = self.spec.probe_requests.min(self.left());
        if requests < self.spec.probe_requests / 2 {
            return self.answer(Reason::BudgetSpent, &found);
        }
        // To either side in turn, further where attainment falls gently: its slope must be seen.
        let tilt = (SIDE / found.fit.steepness).clamp(LEAST_TILT, MOST_TILT);
        let tilt = if self.probes.len().is_multiple_of(2) { 1.0 + tilt } else { 1.0 - tilt };
        let load = found.root * tilt;
        // Where long probes have dwelt already, the fit knows better than any one that was cut short.
        let load = if self.told(&found) >= 2 { load } else { self.inside(load) };
        // From empty to its usual state a system takes some times as long as it remembers a miss.
        let settle = (SETTLED * found.memory) as u64;
        dwelling(load, requests, settle.clamp(requests / SETTLE, requests / 3))
    }

    fn answer(&self, reason: Reason, found: &Interval) -> Step {
        let answer = self.rounded(Answer::within(reason, self.spec.unit, found));
        if self.spec.certify { certify::step(self.spec, self.probes, found, answer) } else { Step::Answer(answer) }
    }

    /// A load that isn't known to be clear, hopeless, or beyond this client.
    fn inside(&self, load: f64) -> f64 {
        let low = self.clear.unwrap_or(0.0);
        let high = [self.hopeless, self.limit].into_iter().flatten().fold(f64::MAX, f64::min);
        match (load <= low, load >= high) {
            (true, _) if high < f64::MAX => libm::sqrt(low * high),
            (true, _) => low * (1.0 + BEYOND),
            (_, true) if low > 0.0 => libm::sqrt(low * high),
            (_, true) => high * (1.0 - BEYOND),
            _ => load,
        }
    }

    /// The fit's root with its interval; no narrower than the loads in between which nothing was tried.
    fn found(&self) -> Option<Interval> {
        let middle = match (self.above, self.below) {
            (Some(above), Some(below)) => libm::sqrt(above * below),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => self.usable.last()?.probe.load,
        };
        let mut found = interval(self.spec, &self.usable, middle)?;
        if self.told(&found) == 0
            && let (Some(clear), Some(hopeless)) = (self.clear, self.hopeless)
        {
            found.root = found.root.clamp(clear, hopeless);
            found.low = found.low.min(clear);
            found.high = found.high.max(hopeless);
        }
        Some(found)
    }

    /// Narrow enough, and by more than one probe that was not cut short.
    fn settled(&self, found: &Interval) -> bool {
        let near = self.told(found);
        let adjacent = matches!((self.clear, self.hopeless), (Some(c), Some(h)) if self.no_load_between(c, h));
        let cliff = matches!((self.clear, self.hopeless), (Some(c), Some(h)) if h <= c * (1.0 + self.spec.precision));
        adjacent || cliff || (near >= 2 && found.reach() <= self.spec.precision)
    }

    /// Probes near the root that were not cut short.
    fn told(&self, found: &Interval) -> usize {
        self.usable.iter().filter(|p| p.end == End::Whole && apart(p.probe.load, found.root) < 0.15).count()
    }

    /// Of a number of requests in flight, the largest whole one.
    fn rounded(&self, answer: Answer) -> Answer {
        let floor = |load: Option<f64>| match self.spec.unit {
            Unit::Rate => load,
            Unit::Concurrency => load.map(libm::floor),
        };
        Answer { capacity: floor(answer.capacity), low: floor(answer.low), high: floor(answer.high), ..answer }
    }

    fn give_up(&self) -> Step {
        let open = self.bare(Reason::BudgetSpent);
        Step::Answer(Answer { capacity: self.above, low: self.clear, high: self.hopeless, ..open })
    }

    fn client_limited(&self) -> Step {
        Step::Answer(Answer { capacity: self.above, low: self.above, ..self.bare(Reason::ClientLimited) })
    }

    fn infeasible(&self, hopeless: f64) -> Step {
        Step::Answer(Answer { high: Some(hopeless), ..self.bare(Reason::Infeasible) })
    }

    fn bare(&self, reason: Reason) -> Answer {
        Answer {
            reason,
            unit: self.spec.unit,
            capacity: None,
            low: None,
            high: None,
            confidence: self.spec.confidence,
            binding: None,
            requests: 0,
            probes: 0,
            certified: None,
            expected: None,
        }
    }
}

/// Whether every requirement's share was met, however surely.
fn looks_borne(spec: &Spec, probed: &Probed) -> bool {
    match probed.end {
        End::Clear => true,
        End::Hopeless | End::OverSaturated => false,
        End::Whole => {
            let met = |(k, r): (usize, &super::Requirement)| probed.attainment(k).is_none_or(|met| met >= r.share);
            spec.requirements.iter().enumerate().all(met)
        }
    }
}

/// How far two loads are apart: the logarithm of their ratio.
fn apart(a: f64, b: f64) -> f64 {
    libm::fabs(libm::log(a / b))
}
