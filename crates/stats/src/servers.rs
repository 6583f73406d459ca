//! What servers said of themselves over a run: gauges over its time, growth of counters across restarts, and the server's own time to first
//! token beside the one measured here.

use crate::Dist;
use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};
use tailbound_record::server::{Buckets, Measure, Reading, Scrape, System};

/// All servers whose metrics were read, in the order of their first scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Servers {
    /// Each of them.
    pub all: Vec<Server>,
    /// TTFT from the write, ns, of every request that had a first token: warm-ups and probes too, as a server can't tell them apart.
    pub ttft_here: Dist,
}

/// One server over the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    /// Where its metrics are.
    pub url: String,
    /// By whose names it speaks.
    pub system: Option<System>,
    /// Scrapes that were answered.
    pub answered: usize,
    /// Scrapes that weren't.
    pub missed: usize,
    /// How often it began again: its counters fell, or it says that it started at another time.
    pub restarts: usize,
    /// From the first answer to the last.
    pub span: Dur,
    /// Gauges at each answered scrape.
    pub glances: Vec<Glance>,
    /// Gauges over the scrapes between the run's start and end; empty for a run between two scrapes.
    pub gauges: BTreeMap<Measure, Gauge>,
    /// By how much counters grew from the first answer to the last. What a server counted before it began again is lost from its last
    /// answer on, and is never subtracted.
    pub growth: BTreeMap<Measure, f64>,
    /// The same of drafted tokens accepted at each position.
    pub accepted_at: Vec<f64>,
    /// The same of its times to first token.
    pub ttft: Option<Buckets>,
}

/// One answered scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance {
    /// Seconds from the run's start; negative before it.
    pub at_s: f64,
    /// What held then.
    pub gauges: BTreeMap<Measure, f64>,
}

/// A gauge over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    /// Mean of the scrapes.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// What to make of the two times to first token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gap {
    /// The server counted other first tokens than came here: (there, here).
    OtherRequests(f64, f64),
    /// The mean is longer here by so much, s.
    LongerHere(f64),
    /// The mean is longer there by so much, s.
    LongerThere(f64),
    /// Neither: the difference of the means, s.
    Close(f64),
}

/// Means nearer than this, or than a twentieth of the server's, are the same.
const SAME_S: f64 = 1e-3;

impl Servers {
    /// From the scrapes, in any order, and the TTFT of every request that had a first token. `None` without a scrape.
    pub fn new(scrapes: &[Scrape], ttfts: &[Dur], start: Time, end: Time) -> Option<Servers> {
        let mut by_url: Vec<(&str, Vec<&Scrape>)> = Vec::new();
        for scrape in scrapes {
            match by_url.iter_mut().find(|(url, _)| *url == scrape.from) {
                Some((_, all)) => all.push(scrape),
                None => by_url.push((&scrape.from, vec![scrape])),
            }
        }
        if by_url.is_empty() {
            return None;
        }
        let all = by_url.into_iter().map(|(url, scrapes)| Server::new(url, scrapes, start, end)).collect();
        Some(Servers { all, ttft_here: Dist::new(ttfts.iter().map(|d| d.ns() as f64).collect()) })
    }

    /// All servers' times to first token together; `None` where none states them, or their bounds differ.
    pub fn ttft(&self) -> Option<Buckets> {
        let mut stated = self.all.iter().filter_map(|server| server.ttft.as_ref()).filter(|b| b.count > 0.0);
        let first = stated.next()?.clone();
        stated.try_fold(first, |all, more| all.with(more))
    }

    /// What to make of it, compared with what was measured here.
    pub fn gap(&self) -> Option<Gap> {
        let there = self.ttft()?;
        let here = self.ttft_here.n() as f64;
        if (there.count - here).abs() > (0.01 * here).max(0.5) {
            return Some(Gap::OtherRequests(there.count, here));
        }
        let mean = there.mean()?;
        let by = self.ttft_here.mean()? / 1e9 - mean;
        let same = SAME_S.max(mean / 20.0);
        Some(match by {
            _ if by > same => Gap::LongerHere(by),
            _ if by < -same => Gap::LongerThere(-by),
            _ => Gap::Close(by),
        })
    }

    /// The growth of a counter over all servers; `None` where none has it.
    pub fn growth(&self, measure: Measure) -> Option<f64> {
        let stated: Vec<f64> = self.all.iter().filter_map(|s| s.growth.get(&measure)).copied().collect();
        (!stated.is_empty()).then(|| stated.iter().sum())
    }

    /// The same of drafted tokens accepted at each position.
    pub fn accepted_at(&self) -> Vec<f64> {
        let mut sum = Vec::new();
        self.all.iter().for_each(|server| add(&mut sum, &server.accepted_at, &[]));
        sum
    }
}

impl Server {
    fn new(url: &str, mut scrapes: Vec<&Scrape>, start: Time, end: Time) -> Server {
        scrapes.sort_by_key(|scrape| scrape.at);
        let answers: Vec<(Time, &Reading)> =
            scrapes.iter().filter_map(|scrape| Some((scrape.at, scrape.reading.as_ref()?))).collect();
        let mut server = Server {
            url: url.to_owned(),
            system: answers.first().and_then(|(_, reading)| reading.system),
            answered: answers.len(),
            missed: scrapes.len() - answers.len(),
            ..Server::default()
        };
        let mut before: Option<&Reading> = None;
        let mut within: BTreeMap<Measure, Vec<f64>> = BTreeMap::new();
        for &(at, reading) in &answers {
            let again = before.is_some_and(|before| began_again(before, reading));
            server.restarts += usize::from(again);
            if let Some(before) = before {
                server.grow(if again { None } else { Some(before) }, reading);
            }
            let gauges = gauges(before.filter(|_| !again), reading);
            if at >= start && at <= end {
                gauges.iter().for_each(|(&measure, &value)| within.entry(measure).or_default().push(value));
            }
            server.glances.push(Glance { at_s: at.minus(start) as f64 / 1e9, gauges });
            before = Some(reading);
        }
        server.gauges = within.into_iter().map(|(measure, values)| (measure, Gauge::of(&values))).collect();
        server.span = answers.first().zip(answers.last()).map_or(Dur::ZERO, |(a, b)| b.0.since(a.0));
        server
    }

    /// Adds what was counted between two answers, or since it began again.
    fn grow(&mut self, before: Option<&Reading>, now: &Reading) {
        for (&measure, &value) in now.values.iter().filter(|(measure, _)| measure.counts()) {
            let then = before.and_then(|before| before.values.get(&measure)).copied().unwrap_or(0.0);
            *self.growth.entry(measure).or_default() += value - then;
        }
        add(&mut self.accepted_at, &now.accepted_at, before.map_or(&[], |before| &before.accepted_at));
        let grown = now.ttft.as_ref().and_then(|ttft| match before.and_then(|before| before.ttft.as_ref()) {
            Some(then) => ttft.since(then),
            None => Some(ttft.clone()),
        });
        let Some(grown) = grown else { return };
        self.ttft = match &self.ttft {
            Some(sum) => sum.with(&grown),
            None => Some(grown),
        };
    }

    /// A counter's growth per second.
    pub fn per_s(&self, measure: Measure) -> Option<f64> {
        let seconds = self.span.secs();
        self.growth.get(&measure).filter(|_| seconds > 0.0).map(|growth| growth / seconds)
    }

    /// Share of prompt tokens that the prefix cache had: by its counters, else the mean of what the server reckons.
    pub fn prefix_hit_share(&self) -> Option<f64> {
        self.share(Measure::PrefixHits, Measure::PrefixQueries, Measure::PrefixHitShare)
    }

    /// Share of drafted tokens that were right.
    pub fn acceptance_share(&self) -> Option<f64> {
        self.share(Measure::AcceptedTokens, Measure::DraftTokens, Measure::AcceptanceShare)
    }

    fn share(&self, part: Measure, whole: Measure, stated: Measure) -> Option<f64> {
        let counted = self.growth.get(&part).zip(self.growth.get(&whole)).filter(|(_, whole)| **whole > 0.0);
        counted.map(|(part, whole)| part / whole).or_else(|| self.gauges.get(&stated).map(|g| g.mean))
    }
}

impl Gauge {
    fn of(values: &[f64]) -> Gauge {
        Gauge {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Whether counters count from 0 again.
fn began_again(before: &Reading, now: &Reading) -> bool {
    // Some servers' start wanders by their clock's steps.
    let elsewhen = before.started.zip(now.started).is_some_and(|(then, now)| (now - then).abs() > 1.0);
    let counters = now.values.iter().filter(|(measure, _)| measure.counts());
    let fell = counters.into_iter().any(|(measure, value)| before.values.get(measure).is_some_and(|then| value < then));
    let times = before.ttft.as_ref().zip(now.ttft.as_ref());
    elsewhen || fell || times.is_some_and(|(then, now)| now.bounds == then.bounds && now.since(then).is_none())
}

/// What holds now; the use of CPUs by their time since the answer before.
fn gauges(before: Option<&Reading>, now: &Reading) -> BTreeMap<Measure, f64> {
    let mut gauges: BTreeMap<Measure, f64> =
        now.values.iter().filter(|(measure, _)| !measure.counts()).map(|(m, v)| (*m, *v)).collect();
    let grown = |measure| Some(now.values.get(&measure)? - before?.values.get(&measure)?);
    if let Some((idle, time)) = grown(Measure::CpuIdle).zip(grown(Measure::CpuTime)).filter(|(_, time)| *time > 0.0) {
        gauges.insert(Measure::CpuUse, (1.0 - idle / time).clamp(0.0, 1.0));
    }
    gauges
}

/// `sum += now - before`, position by position.
fn add(sum: &mut Vec<f64>, now: &[f64], before: &[f64]) {
    if sum.len() < now.len() {
        sum.resize(now.len(), 0.0);
    }
    for (i, (sum, now)) in sum.iter_mut().zip(now).enumerate() {
        *sum += now - before.get(i).copied().unwrap_or(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn scrape(at_s: u64, values: &[(Measure, f64)]) -> Scrape {
        let reading = Reading { values: values.iter().copied().collect(), ..Reading::default() };
        Scrape { from: "a".into(), at: Time(at_s * S), took: Dur::ZERO, reading: Some(reading) }
    }

    fn buckets(low: f64, count: f64, sum: f64) -> Buckets {
        Buckets { bounds: vec![0.1, 1.0], counts: vec![low, count], count, sum }
    }

    fn with_ttft(mut scrape: Scrape, ttft: Buckets) -> Scrape {
        scrape.reading.as_mut().unwrap().ttft = Some(ttft);
        scrape
    }

    fn told(scrapes: &[Scrape]) -> Servers {
        Servers::new(scrapes, &[], Time(10 * S), Time(20 * S)).unwrap()
    }

    #[test]
    fn gauges_count_within_the_run_and_counters_from_first_to_last() {
        let all = [(5, 9.0, 100.0), (10, 1.0, 110.0), (15, 2.0, 150.0), (20, 6.0, 200.0), (21, 0.0, 205.0)];
        let mut scrapes: Vec<Scrape> = all
            .map(|(at, running, tokens)| scrape(at, &[(Measure::Running, running), (Measure::GeneratedTokens, tokens)]))
            .to_vec();
        scrapes.reverse();
        scrapes.push(Scrape { reading: None, ..scrape(12, &[]) });
        let server = &told(&scrapes).all[0];
        assert_eq!(server.gauges[&Measure::Running], Gauge { mean: 3.0, min: 1.0, max: 6.0 });
        assert_eq!(server.growth[&Measure::GeneratedTokens], 105.0);
        assert_eq!((server.answered, server.missed, server.restarts), (5, 1, 0));
        assert_eq!(server.per_s(Measure::GeneratedTokens), Some(105.0 / 16.0));
        assert_eq!((server.glances[0].at_s, server.glances[4].at_s), (-5.0, 11.0));
    }

    #[test]
    fn a_restart_is_seen_and_nothing_is_subtracted() {
        let tokens = |at, n| scrape(at, &[(Measure::GeneratedTokens, n), (Measure::Preemptions, 0.0)]);
        let scrapes = [tokens(10, 100.0), tokens(11, 150.0), tokens(12, 7.0), tokens(13, 20.0)];
        let server = &told(&scrapes).all[0];
        assert_eq!((server.restarts, server.growth[&Measure::GeneratedTokens]), (1, 70.0));
        // One that has counted further than before by the next look is known by the time of its start.
        let mut scrapes = [tokens(10, 100.0), tokens(11, 150.0), tokens(12, 160.0)];
        for (scrape, started) in scrapes.iter_mut().zip([1000.0, 1000.4, 1011.5]) {
            scrape.reading.as_mut().unwrap().started = Some(started);
        }
        let server = &told(&scrapes).all[0];
        assert_eq!((server.restarts, server.growth[&Measure::GeneratedTokens]), (1, 210.0));
    }

    #[test]
    fn the_servers_ttft_is_what_came_between_first_and_last() {
        let ttft = |at, low, count, sum| with_ttft(scrape(at, &[]), buckets(low, count, sum));
        let scrapes = [ttft(10, 5.0, 9.0, 3.0), ttft(11, 6.0, 12.0, 4.0), ttft(12, 1.0, 2.0, 0.5)];
        let told = told(&scrapes);
        assert_eq!(told.ttft(), Some(buckets(2.0, 5.0, 1.5)));
        assert_eq!(told.all[0].restarts, 1);
    }

    #[test]
    fn what_a_gap_means() {
        let gap = |rows: &[Dur], count: f64, sum: f64| {
            let scrapes = [
                with_ttft(scrape(10, &[]), buckets(0.0, 0.0, 0.0)),
                with_ttft(scrape(20, &[]), buckets(0.0, count, sum)),
            ];
            Servers::new(&scrapes, rows, Time(10 * S), Time(20 * S)).unwrap().gap()
        };
        let rows = [Dur::from_ms(100), Dur::from_ms(200)];
        assert_eq!(gap(&rows, 2.0, 0.3), Some(Gap::Close(0.0)));
        assert_eq!(gap(&rows, 3.0, 0.3), Some(Gap::OtherRequests(3.0, 2.0)));
        assert!(matches!(gap(&rows, 2.0, 0.2), Some(Gap::LongerHere(by)) if (by - 0.05).abs() < 1e-9));
        assert!(matches!(gap(&rows, 2.0, 0.4), Some(Gap::LongerThere(by)) if (by - 0.05).abs() < 1e-9));
        assert_eq!(gap(&rows, 0.0, 0.0), None);
    }

    #[test]
    fn shares_come_from_counters_else_from_what_the_server_reckons() {
        let at = |at, hits, queries| scrape(at, &[(Measure::PrefixHits, hits), (Measure::PrefixQueries, queries)]);
        assert_eq!(told(&[at(10, 50.0, 100.0), at(11, 80.0, 200.0)]).all[0].prefix_hit_share(), Some(0.3));
        assert_eq!(told(&[at(10, 50.0, 100.0), at(11, 50.0, 100.0)]).all[0].prefix_hit_share(), None);
        let reckoned = |at, share| scrape(at, &[(Measure::PrefixHitShare, share)]);
        assert_eq!(told(&[reckoned(10, 0.25), reckoned(11, 0.75)]).all[0].prefix_hit_share(), Some(0.5));
        let cpu = |at, idle, time| scrape(at, &[(Measure::CpuIdle, idle), (Measure::CpuTime, time)]);
        let told = told(&[cpu(10, 0.0, 0.0), cpu(12, 3.0, 4.0)]);
        assert_eq!(told.all[0].gauges[&Measure::CpuUse].mean, 0.25);
        assert_eq!(Servers::new(&[], &[], Time(0), Time(1)), None);
    }

    proptest! {
        /// Whatever a server says, and however often it restarts, no rate is negative.
        #[test]
        fn no_growth_is_negative(values in proptest::collection::vec((0u32..100, 0u32..100, 0u32..50), 0..20)) {
            let scrapes: Vec<Scrape> = values.iter().zip(10..).map(|(&(a, b, n), at)| {
                let values = [(Measure::PromptTokens, f64::from(a)), (Measure::Preemptions, f64::from(b))];
                with_ttft(scrape(at, &values), buckets(f64::from(n.min(a)), f64::from(n), f64::from(n)))
            }).collect();
            if let Some(told) = Servers::new(&scrapes, &[], Time(10 * S), Time(20 * S)) {
                for server in &told.all {
                    prop_assert!(server.growth.values().all(|v| *v >= 0.0), "{:?}", server.growth);
                    prop_assert!(server.ttft.iter().all(|t| t.count >= 0.0 && t.counts.iter().all(|n| *n >= 0.0)));
                }
            }
        }
    }
}
