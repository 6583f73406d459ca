use crate::peak::TokenEvents;
use crate::request::{departure, tpot_ns};
use crate::{Concurrency, Dist, RunFacts};
use tailbound_clock::{Dur, Time};
use tailbound_record::{Moment, Row};

/// The concurrency that counts as steady, as a share of the target.
const THRESHOLD: f64 = 0.95;
/// Parts of the window for the interval of its throughput.
const BATCHES: u64 = 20;
/// Student's two-sided 95 % quantile for 19 degrees of freedom.
const T_95: f64 = 2.093_024_054_408_263;

/// Figures of the part of the run in which the load stood still, without ramp-up and drain.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Where it begins.
    pub from: Time,
    /// Where it ends.
    pub until: Time,
    /// The concurrency it was looked for at; `None` for open-loop runs, where the window is that of the arrivals.
    pub target: Option<u32>,
    /// Time-weighted mean concurrency within it.
    pub concurrency: f64,
    /// Requests per second: each completed request counts by the share of its life inside the window, so that cohorts
    /// which end together at its edge are not lost.
    pub requests_per_s: f64,
    /// Prompt tokens per second, shared out likewise. `None` if prompts are unknown.
    pub input_tokens_per_s: Option<f64>,
    /// Output tokens per second, each counted when it came.
    pub output_tokens_per_s: f64,
    /// 95 % interval of that, by batch means; `None` where the batches hold too little.
    pub output_interval: Option<(f64, f64)>,
    /// TTFT of completed requests written within it, ns.
    pub ttft: Dist,
    /// TPOT of the same, ns.
    pub tpot: Dist,
    /// Whether it is shorter than 10 s or a tenth of the run: too short to build on.
    pub short: bool,
}

impl Steady {
    /// With a cap: the longest stretch from a moment at which the concurrency rises to 95 % of its target (the cap, or the peak if
    /// that is never reached) to one at which it falls below, whose time-weighted mean is at least that. Short dips inside, as
    /// between lock-step cohorts, don't end it. In an open loop: from the first departure plus the median latency to the last
    /// scheduled arrival that was sent, which is `arrivals`.
    pub(crate) fn of(
        rows: &[Row],
        facts: &RunFacts,
        concurrency: &Concurrency,
        arrivals: Option<(Time, Time)>,
        events: &TokenEvents,
    ) -> Option<Steady> {
        let target = facts.max_concurrency.map(|cap| cap.min(concurrency.peak)).filter(|_| !facts.open_loop());
        let (from, until) = match target {
            Some(target) => plateau(&concurrency.steps, f64::from(target) * THRESHOLD)?,
            None => arrivals.filter(|(from, until)| facts.open_loop() && from < until)?,
        };
        let length = until.since(from).ns() as f64 / 1e9;
        if length <= 0.0 {
            return None;
        }

        let (mut requests, mut input, mut known) = (0.0, 0.0, false);
        let (mut ttft, mut tpot) = (Vec::new(), Vec::new());
        for row in rows.iter().filter(|r| r.ok()) {
            let share = share_inside(row, from, until);
            requests += share;
            if let Some(n) = row.prompt_tokens() {
                input += share * f64::from(n);
                known = true;
            }
            if row.at.get(Moment::WriteStart).is_some_and(|t| t >= from && t < until) {
                ttft.extend(row.ttft().map(|d| d.ns() as f64));
                tpot.extend(tpot_ns(row));
            }
        }
        let run = facts.duration();
        Some(Steady {
            from,
            until,
            target,
            concurrency: mean_between(&concurrency.steps, from, until),
            requests_per_s: requests / length,
            input_tokens_per_s: known.then(|| input / length),
            output_tokens_per_s: events.between(from, until) as f64 / length,
            output_interval: batch_interval(&events.batches(from, until, BATCHES), length / BATCHES as f64),
            ttft: Dist::new(ttft),
            tpot: Dist::new(tpot),
            short: until.since(from) < Dur::from_secs(10).max(run / 10),
        })
    }

    /// How long it is.
    pub fn length(&self) -> Dur {
        self.until.since(self.from)
    }
}

/// The longest [rise, fall) whose mean is at least `level`, by prefix sums of (concurrency − level)·time: for each fall, the
/// earliest rise with no larger sum.
fn plateau(steps: &[(Time, u32)], level: f64) -> Option<(Time, Time)> {
    let mut sum = 0.0;
    let mut before: Option<(Time, u32)> = None;
    let mut rises: Vec<(f64, Time)> = Vec::new();
    let mut falls: Vec<(f64, Time)> = Vec::new();
    for (at, n) in steps {
        let was = before.map_or(0, |b| b.1);
        if let Some((from, n)) = before {
            sum += (f64::from(n) - level) * (at.since(from).ns() as f64);
        }
        let (above_before, above_now) = (f64::from(was) >= level, f64::from(*n) >= level);
        if !above_before && above_now && rises.last().is_none_or(|last| sum < last.0) {
            // Only a new low can be the best beginning of anything later.
            rises.push((sum, *at));
        }
        if above_before && !above_now {
            falls.push((sum, *at));
        }
        before = Some((*at, *n));
    }

    let mut best: Option<(Time, Time)> = None;
    for (sum, until) in falls {
        let earliest = rises.partition_point(|rise| rise.0 > sum);
        let Some((_, from)) = rises.get(earliest).filter(|rise| rise.1 < until) else { continue };
        if best.is_none_or(|b| until.since(*from) > b.1.since(b.0)) {
            best = Some((*from, until));
        }
    }
    best
}

/// The share of a request's life, departure to last token, that lies inside.
fn share_inside(row: &Row, from: Time, until: Time) -> f64 {
    let Some((begin, end)) = departure(row).zip(row.at.get(Moment::LastToken)) else { return 0.0 };
    let life = end.since(begin).ns() as f64;
    if life == 0.0 {
        return if begin >= from && begin < until { 1.0 } else { 0.0 };
    }
    end.min(until).since(begin.max(from)).ns() as f64 / life
}

fn mean_between(steps: &[(Time, u32)], from: Time, until: Time) -> f64 {
    let area: f64 = steps
        .windows(2)
        .map(|pair| f64::from(pair[0].1) * pair[1].0.min(until).since(pair[0].0.max(from)).ns() as f64)
        .sum();
    area / until.since(from).ns() as f64
}

fn batch_interval(batches: &[u64], batch_s: f64) -> Option<(f64, f64)> {
    let n = batches.len();
    // A mean of a handful of tokens is nothing like normal.
    if n < 2 || batches.iter().any(|tokens| *tokens < 10) {
        return None;
    }
    let rates: Vec<f64> = batches.iter().map(|tokens| *tokens as f64 / batch_s).collect();
    let mean = rates.iter().sum::<f64>() / n as f64;
    let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / (n - 1) as f64;
    let reach = T_95 * (variance / n as f64).sqrt();
    Some((mean - reach, mean + reach))
}
