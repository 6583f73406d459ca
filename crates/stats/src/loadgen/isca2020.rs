//! The rules of the benchmark's first paper (Reddi et al., "MLPerf Inference Benchmark", ISCA 2020), where they differ from today's.
//!
//! MultiStream sent N samples at a fixed interval and was scored by the N that a system sustained: a query that is still being answered
//! when the next is due makes it wait by whole intervals, and no more than 1 % of queries (translation: 3 %) may do so. Server held
//! 99 % of vision queries and 97 % of translation queries to a bound of each task. Every run lasted at least a minute.

use tailbound_clock::Dur;

use super::round::Outcome;
use super::settings::{Scenario, Settings};

/// A task of the paper: its tables III to V.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Its name here.
    pub name: &'static str,
    /// The share of queries that may be late: 0.01 for vision, 0.03 for translation.
    pub late_share: f64,
    /// The Server bound.
    pub server_bound: Dur,
    /// The MultiStream interval.
    pub interval: Dur,
}

/// The five of them.
pub const TASKS: [Task; 5] = [
    Task { name: "resnet50", late_share: VISION, server_bound: Dur::from_ms(15), interval: Dur::from_ms(50) },
    Task { name: "mobilenet", late_share: VISION, server_bound: Dur::from_ms(10), interval: Dur::from_ms(50) },
    Task { name: "ssd-resnet34", late_share: VISION, server_bound: Dur::from_ms(100), interval: Dur::from_ms(66) },
    Task { name: "ssd-mobilenet", late_share: VISION, server_bound: Dur::from_ms(10), interval: Dur::from_ms(50) },
    Task { name: "gnmt", late_share: TRANSLATION, server_bound: Dur::from_ms(250), interval: Dur::from_ms(100) },
];

const VISION: f64 = 0.01;
const TRANSLATION: f64 = 0.03;

impl Task {
    /// The task of that name.
    pub fn named(name: &str) -> Option<Task> {
        TASKS.into_iter().find(|t| t.name == name)
    }

    /// The percentile its latencies are held at.
    pub fn percentile(&self) -> f64 {
        1.0 - self.late_share
    }

    /// Lays its rules over settings; MultiStream with so many streams.
    pub fn apply(&self, settings: &mut Settings, streams: u64) {
        settings.min_duration_ms = 60_000;
        settings.use_token_latencies = false;
        settings.sample_concatenate_permutation = false;
        match settings.scenario {
            Scenario::SingleStream => settings.min_query_count = 1024,
            Scenario::Offline => settings.min_query_count = queries_for(0.90),
            Scenario::Server => {
                settings.server_target_latency_ns = self.server_bound.ns();
                settings.server_target_latency_percentile = self.percentile();
                settings.min_query_count = queries_for(self.percentile());
            }
            Scenario::MultiStream => {
                settings.multi_stream_samples_per_query = streams;
                settings.multi_stream_expected_latency_ns = self.interval.ns() as f64;
                settings.multi_stream_target_latency_percentile = self.percentile();
                // The paper counts samples here: 270K over N.
                settings.min_query_count = queries_for(self.percentile()).div_ceil(streams.max(1));
            }
        }
    }
}

/// How many queries a percentile needs: `z² · p (1 − p) / m²` at 99 % confidence with a margin `m` of a twentieth of `1 − p`, rounded up
/// to a multiple of 2¹³ (the paper's equations 1 and 2, table IV).
pub fn queries_for(percentile: f64) -> u64 {
    const Z: f64 = 2.575_829_303_548_901;
    const UNIT: u64 = 1 << 13;
    let margin = (1.0 - percentile) / 20.0;
    let needed = Z * Z * percentile * (1.0 - percentile) / (margin * margin);
    (libm::ceil(needed) as u64).div_ceil(UNIT) * UNIT
}

/// What a MultiStream run at a fixed interval came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streams {
    /// Samples in each query.
    pub streams: u64,
    /// Queries issued.
    pub queries: u64,
    /// Queries that made the next one wait, or were never answered whole.
    pub late: u64,
    /// Intervals that passed without a query.
    pub skipped: u64,
    /// Of the queries, how many may be late.
    pub allowed: u64,
    /// Whether it was long enough and none but the allowed share was late.
    pub sustained: bool,
}

/// Judges such a run of `streams` samples a query; `enough`: whether it had the queries and the length it needs.
pub fn judge(task: &Task, streams: u64, outcome: &Outcome, enough: bool) -> Streams {
    let queries = outcome.ending.map_or(0, |e| e.queries_issued);
    let mut late: std::collections::BTreeSet<u64> = outcome.skips.iter().map(|s| s.query).collect();
    let first = outcome.samples.iter().map(|s| (s.query, s.seq)).min();
    late.extend(outcome.lost.iter().filter_map(|lost| {
        let (query, seq) = first?;
        // Samples are numbered through, so many to a query.
        Some((lost / streams).wrapping_sub(seq / streams).wrapping_add(query))
    }));
    let late = late.len() as u64;
    let allowed = (queries as f64 * task.late_share) as u64;
    let skipped = outcome.skips.iter().map(|s| u64::from(s.intervals)).sum();
    Streams { streams, queries, late, skipped, allowed, sustained: enough && queries > 0 && late <= allowed }
}

/// The search for the most streams: doubles until a number fails, then halves the gap.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    sustained: u64,
    failed: Option<u64>,
    most: u64,
}

impl Search {
    /// A search up to `most` streams (a query's samples all differ, so no more than the set has).
    pub fn new(most: u64) -> Search {
        Search { sustained: 0, failed: None, most: most.max(1) }
    }

    /// The next number to try; `None` when the answer is known.
    pub fn next(&self) -> Option<u64> {
        match self.failed {
            Some(failed) if failed - self.sustained <= 1 => None,
            Some(failed) => Some(self.sustained + (failed - self.sustained) / 2),
            None if self.sustained >= self.most => None,
            None => Some((2 * self.sustained).clamp(1, self.most)),
        }
    }

    /// A number was tried.
    pub fn tried(&mut self, streams: u64, sustained: bool) {
        match sustained {
            true => self.sustained = self.sustained.max(streams),
            false => self.failed = Some(self.failed.map_or(streams, |f| f.min(streams))),
        }
    }

    /// The most streams sustained so far; 0 if not even one.
    pub fn sustained(&self) -> u64 {
        self.sustained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_counts_are_the_papers() {
        let table = [(0.90, 24_576), (0.95, 57_344), (0.97, 90_112), (0.99, 270_336)];
        for (percentile, queries) in table {
            assert_eq!(queries_for(percentile), queries);
        }
    }

    #[test]
    fn the_search_finds_the_largest_number_that_passes() {
        for most in 1..40 {
            for limit in 0..50 {
                let mut search = Search::new(most);
                let mut tries = 0;
                while let Some(n) = search.next() {
                    assert!((1..=most).contains(&n));
                    search.tried(n, n <= limit);
                    tries += 1;
                    assert!(tries < 20);
                }
                assert_eq!(search.sustained(), limit.min(most), "limit {limit}, most {most}");
            }
        }
    }
}
