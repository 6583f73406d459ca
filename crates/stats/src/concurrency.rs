use crate::request::{departure, last_moment};
use crate::{RunFacts, sort};
use tailbound_clock::Time;
use tailbound_record::Row;

/// Requests in flight, exactly: every request counts from its departure to the end of its stream, whatever its end was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Concurrency {
    /// Most requests in flight at once.
    pub peak: u32,
    /// Time-weighted mean over the run; `None` for a run without length.
    pub mean: Option<f64>,
    /// Share of the run with the cap's number in flight; `None` without a cap.
    pub at_cap: Option<f64>,
    /// Whenever the number changes: the moment and the number from then on.
    pub(crate) steps: Vec<(Time, u32)>,
}

impl Concurrency {
    pub(crate) fn of(spans: Spans, facts: &RunFacts) -> Concurrency {
        let steps = spans.sweep();
        let run = facts.duration().ns() as f64;
        let (mut area, mut capped) = (0.0, 0.0);
        for (i, (from, n)) in steps.iter().enumerate() {
            let until = steps.get(i + 1).map_or(facts.end, |next| next.0);
            let held = until.min(facts.end).since((*from).max(facts.start)).ns() as f64;
            area += held * f64::from(*n);
            if facts.max_concurrency.is_some_and(|cap| *n >= cap) {
                capped += held;
            }
        }
        Concurrency {
            peak: steps.iter().map(|s| s.1).max().unwrap_or(0),
            mean: (run > 0.0).then(|| area / run),
            at_cap: facts.max_concurrency.filter(|_| run > 0.0).map(|_| capped / run),
            steps,
        }
    }

    /// Whenever the number in flight changes: the moment and the number from then on.
    pub fn steps(&self) -> &[(Time, u32)] {
        &self.steps
    }
}

/// When requests began and ended being in flight.
#[derive(Default)]
pub(crate) struct Spans {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Spans {
    pub(crate) fn add(&mut self, row: &Row) {
        let Some(from) = departure(row) else { return };
        self.starts.push(from.ns());
        self.ends.push(last_moment(row).unwrap_or(from).ns().max(from.ns() + 1));
    }

    /// The step function of requests in flight. An end at the moment of a start comes first, so that a place handed on counts once.
    fn sweep(mut self) -> Vec<(Time, u32)> {
        sort::times(&mut self.starts);
        sort::times(&mut self.ends);
        let (starts, ends) = (self.starts, self.ends);
        let mut steps: Vec<(Time, u32)> = Vec::with_capacity(starts.len() * 2);
        let (mut s, mut e) = (0, 0);
        while e < ends.len() {
            let now = ends[e].min(starts.get(s).copied().unwrap_or(u64::MAX));
            while e < ends.len() && ends[e] == now {
                e += 1;
            }
            while s < starts.len() && starts[s] == now {
                s += 1;
            }
            steps.push((Time(now), (s - e) as u32));
        }
        steps
    }
}
