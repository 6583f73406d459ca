//! A run cut into slices of time: rates, what was in which state, percentiles; and whether throughput rose while goodput fell.

use crate::goodput::verdict;
use crate::request::{departure, last_moment, weighted};
use crate::{Dist, RunFacts, tpot_ns};
use tailbound_clock::{Dur, Time};
use tailbound_record::{End, Moment, Row};

/// A run over time. Times count from its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Slices of equal length, up to about 80.
    pub slices: Vec<Slice>,
    /// Percentiles of TTFT by scheduled arrival (by the write in a closed loop), in wider slices.
    pub ttft: Vec<Percentiles>,
    /// The same of TPOT.
    pub tpot: Vec<Percentiles>,
    /// The same of end-to-end latency.
    pub e2e: Vec<Percentiles>,
    /// How late requests left, by when they were due.
    pub lateness: Vec<Percentiles>,
    /// Throughput and goodput at the beginning and at the end; `None` without objectives or with too little to compare.
    pub drift: Option<Drift>,
}

/// What happened in one slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// From.
    pub from: Dur,
    /// How long.
    pub length: Dur,
    /// Requests that were due by the schedule.
    pub scheduled: u32,
    /// That left.
    pub sent: u32,
    /// Whose whole answer had come.
    pub completed: u32,
    /// That failed.
    pub failed: u32,
    /// That completed and met all their objectives; stays 0 without objectives.
    pub good: u32,
    /// Prompt tokens of requests whose first token came, as far as they are known.
    pub input_tokens: u64,
    /// Output tokens that came.
    pub output_tokens: u64,
    /// Mean number of requests due and not yet sent.
    pub waiting_here: f64,
    /// Mean number sent, without a token yet.
    pub waiting_there: f64,
    /// Mean number whose tokens were coming.
    pub decoding: f64,
}

impl Slice {
    /// A count or a sum as a rate per second.
    pub fn per_s(&self, n: f64) -> f64 {
        n / (self.length.ns() as f64 / 1e9)
    }
}

/// Percentiles of the requests of one slice, ns. A percentile that too few requests carry is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// The slice's middle.
    pub at: Dur,
    /// How many requests.
    pub n: usize,
    /// Median.
    pub p50: Option<f64>,
    /// Needs ten.
    pub p90: Option<f64>,
    /// Needs a hundred.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// The first third of the load against the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Completed requests per second, first and last.
    pub completed_per_s: (f64, f64),
    /// Output tokens per second.
    pub output_tokens_per_s: (f64, f64),
    /// Good requests per second.
    pub good_per_s: (f64, f64),
    /// Whether throughput (requests or tokens) rose by a twentieth or more while goodput fell by a tenth or more, and the fall is more
    /// than chance among counts like these (three standard deviations).
    pub apart: bool,
}

/// Lengths of slices people can read: 1, 2 or 5 times a power of ten.
fn round_length(at_least: Dur) -> Dur {
    let mut unit = Dur::from_ms(1).ns();
    loop {
        if let Some(length) = [1, 2, 5].into_iter().map(|m| m * unit).find(|length| *length >= at_least.ns()) {
            return Dur(length);
        }
        unit *= 10;
    }
}

/// How many slices at most.
const MOST: u64 = 80;

/// Cuts a run into slices. Rows may come in any order.
pub fn over_time(rows: &[Row], facts: &RunFacts) -> OverTime {
    let run = facts.duration();
    if run == Dur::ZERO || rows.is_empty() {
        return OverTime::default();
    }
    let mut slices = Slices::new(facts.start, run);
    let mut latencies = Latencies::default();
    for row in rows {
        slices.add(row, facts);
        latencies.add(row, facts);
    }
    let last_due = rows.iter().filter_map(departure).max().map_or(run, |t| t.since(facts.start));
    // A hundred requests carry a p99; fewer than eight slices tell nothing about time.
    let n = (rows.len() as u64 / 100).clamp(8, 40);
    let length = round_length(last_due.max(Dur(1)) / n);
    OverTime {
        ttft: latencies.cut(&latencies.ttft, length),
        tpot: latencies.cut(&latencies.tpot, length),
        e2e: latencies.cut(&latencies.e2e, length),
        lateness: latencies.cut(&latencies.lateness, length),
        drift: drift(rows, facts, last_due),
        slices: slices.slices,
    }
}

struct Slices {
    start: Time,
    length: Dur,
    slices: Vec<Slice>,
}

impl Slices {
    fn new(start: Time, run: Dur) -> Slices {
        let length = round_length(run / MOST);
        let n = run.ns().div_ceil(length.ns());
        let slice = |i: u64| {
            let from = length * i;
            Slice { from, length: length.min(Dur(run.ns() - from.ns())), ..Slice::default() }
        };
        Slices { start, length, slices: (0..n).map(slice).collect() }
    }

    fn at(&mut self, at: Option<Time>) -> Option<&mut Slice> {
        let at = at?;
        if at < self.start {
            return None;
        }
        let last = self.slices.len() - 1;
        let i = at.since(self.start).ns() / self.length.ns();
        self.slices.get_mut((i as usize).min(last))
    }

    fn add(&mut self, row: &Row, facts: &RunFacts) {
        let (due, sent, over) = (row.at.get(Moment::Scheduled), departure(row), last_moment(row));
        let (first, last) = (row.at.get(Moment::FirstToken), row.at.get(Moment::LastToken));
        self.at(due).into_iter().for_each(|s| s.scheduled += 1);
        self.at(sent).into_iter().for_each(|s| s.sent += 1);
        let good = !facts.objectives.is_empty() && verdict(row, facts) == Some(true);
        if let Some(slice) = self.at(over).filter(|_| sent.is_some()) {
            slice.completed += u32::from(row.ok());
            slice.failed += u32::from(matches!(row.end, End::Failed { .. }));
            slice.good += u32::from(good);
        }
        if let (Some(slice), Some(tokens)) = (self.at(first), row.prompt_tokens()) {
            slice.input_tokens += u64::from(tokens);
        }
        for (chunk, tokens) in weighted(row) {
            self.at(Some(chunk.at)).into_iter().for_each(|s| s.output_tokens += u64::from(tokens));
        }
        self.spread(due, sent.or(over), |s| &mut s.waiting_here);
        self.spread(sent, first.or(over), |s| &mut s.waiting_there);
        self.spread(first, last, |s| &mut s.decoding);
    }

    /// Adds the share of each slice that lies between two moments.
    fn spread(&mut self, from: Option<Time>, until: Option<Time>, field: impl Fn(&mut Slice) -> &mut f64) {
        let Some((from, until)) = from.zip(until) else { return };
        let (from, until) = (from.since(self.start), until.since(self.start));
        let first = (from.ns() / self.length.ns()) as usize;
        for slice in self.slices.iter_mut().skip(first) {
            if slice.from >= until {
                break;
            }
            let end = until.min(slice.from + slice.length);
            let held = end.ns().saturating_sub(from.max(slice.from).ns());
            *field(slice) += held as f64 / slice.length.ns() as f64;
        }
    }
}

#[derive(Default)]
struct Latencies {
    ttft: Vec<(Dur, f64)>,
    tpot: Vec<(Dur, f64)>,
    e2e: Vec<(Dur, f64)>,
    lateness: Vec<(Dur, f64)>,
}

impl Latencies {
    fn add(&mut self, row: &Row, facts: &RunFacts) {
        let due = row.at.get(Moment::Released).or(row.at.get(Moment::Scheduled));
        if let Some((left, due)) = departure(row).zip(due) {
            self.lateness.push((due.since(facts.start), left.since(due).ns() as f64));
        }
        let open = facts.open_loop();
        let begun = if open { row.at.get(Moment::Scheduled) } else { row.at.get(Moment::WriteStart) };
        let Some(at) = begun.filter(|_| row.ok()).map(|t| t.since(facts.start)) else { return };
        let ns = |d: Dur| d.ns() as f64;
        let ttft = if open { row.ttft_scheduled() } else { row.ttft() };
        let e2e = if open { row.e2e_scheduled() } else { row.e2e() };
        self.ttft.extend(ttft.map(|d| (at, ns(d))));
        self.e2e.extend(e2e.map(|d| (at, ns(d))));
        self.tpot.extend(tpot_ns(row).map(|d| (at, d)));
    }

    fn cut(&self, values: &[(Dur, f64)], length: Dur) -> Vec<Percentiles> {
        let n = values.iter().map(|v| v.0.ns() / length.ns()).max().map_or(0, |last| last as usize + 1);
        let mut slices: Vec<Vec<f64>> = vec![Vec::new(); n];
        for (at, value) in values {
            slices[(at.ns() / length.ns()) as usize].push(*value);
        }
        let percentiles = |(i, values): (usize, Vec<f64>)| {
            let dist = Dist::new(values);
            let carried = |p: f64, least: usize| dist.nearest_rank(p).filter(|_| dist.n() >= least);
            Percentiles {
                at: length * i as u64 + length / 2,
                n: dist.n(),
                p50: dist.nearest_rank(50.0),
                p90: carried(90.0, 10),
                p99: carried(99.0, 100),
                max: dist.max(),
            }
        };
        slices.into_iter().enumerate().map(percentiles).collect()
    }
}

/// Completions, tokens and good completions in the first and in the last third of the time in which requests were sent.
fn drift(rows: &[Row], facts: &RunFacts, sending: Dur) -> Option<Drift> {
    let third = sending / 3;
    if facts.objectives.is_empty() || third == Dur::ZERO {
        return None;
    }
    let part = |at: Time| {
        let at = at.since(facts.start);
        if at < third { Some(0) } else { (at >= third * 2 && at < sending).then_some(1) }
    };
    let (mut completed, mut good, mut tokens) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for row in rows.iter().filter(|r| r.ok()) {
        if let Some(i) = last_moment(row).and_then(part) {
            completed[i] += 1.0;
            good[i] += f64::from(u8::from(verdict(row, facts) == Some(true)));
        }
        for (chunk, n) in weighted(row) {
            if let Some(i) = part(chunk.at) {
                tokens[i] += f64::from(n);
            }
        }
    }
    let seconds = third.ns() as f64 / 1e9;
    let rate = |n: [f64; 2]| (n[0] / seconds, n[1] / seconds);
    let rose = |n: [f64; 2]| n[0] > 0.0 && n[1] >= 1.05 * n[0];
    let fell = good[1] <= 0.9 * good[0] && good[0] - good[1] > 3.0 * (good[0] + good[1]).sqrt();
    (completed[0] + completed[1] > 0.0).then(|| Drift {
        completed_per_s: rate(completed),
        output_tokens_per_s: rate(tokens),
        good_per_s: rate(good),
        apart: fell && (rose(completed) || rose(tokens)),
    })
}
