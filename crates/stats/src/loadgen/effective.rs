//! From requested to effective settings, and what is wrong with them.

use super::settings::{Library, Mode, Scenario, Settings};

/// LoadGen's `TestSettingsInternal`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the names are LoadGen's own
pub struct Effective {
    pub requested: Settings,
    pub samples_per_query: u64,
    pub target_qps: f64,
    pub target_latency_ns: u64,
    pub target_latency_percentile: f64,
    pub max_async_queries: u64,
    pub target_duration_ms: u64,
    pub min_duration_ms: u64,
    pub max_duration_ms: u64,
    pub min_query_count: u64,
    pub max_query_count: u64,
    pub min_sample_count: u64,
    pub qsl_rng_seed: u64,
    pub sample_index_rng_seed: u64,
    pub schedule_rng_seed: u64,
    pub performance_sample_count: u64,
    pub accuracy_sample_count: u64,
}

/// Why settings cannot be run. LoadGen logs the first three as errors and runs on, or asserts; we refuse.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    /// A rate of zero or below, not a number, or without end.
    #[error(
        "{field} is {value}: a rate must be a finite number above zero (set {field} to the queries per second to ask for)"
    )]
    Rate {
        /// LoadGen's field.
        field: &'static str,
        /// What it was.
        value: f64,
    },
    /// The repeated sample is not in the set.
    #[error("performance_issue_same_index is {index} but the set holds {count} samples: choose one under {count}")]
    SameIndex {
        /// What was asked for.
        index: u64,
        /// The size of the set.
        count: u64,
    },
    /// Both repeat modes at once.
    #[error("performance_issue_unique and performance_issue_same are both set: keep one")]
    UniqueAndSame,
    /// Nothing to issue.
    #[error("{field} is 0: the sample library is empty, give it at least one sample")]
    Empty {
        /// Which count.
        field: &'static str,
    },
    /// A percentile outside the open interval.
    #[error("{field} is {value}: a percentile must lie between 0 and 1, both excluded (0.99 for P99)")]
    Percentile {
        /// LoadGen's field.
        field: &'static str,
        /// What it was.
        value: f64,
    },
    /// An expected latency that gives no rate.
    #[error("{field} is {value} ns: an expected latency must be above zero")]
    Expected {
        /// LoadGen's field.
        field: &'static str,
        /// What it was.
        value: f64,
    },
    /// A query of no samples.
    #[error("multi_stream_samples_per_query is 0: a query needs at least one sample")]
    NoSamples,
    /// A peak search without an end.
    #[error(
        "server_find_peak_qps_decimals_of_precision is {decimals} and server_find_peak_qps_boundary_step_size {step}: the \
         search needs at least 0 decimals, at most 6, and a step above 0"
    )]
    PeakSearch {
        /// Decimals.
        decimals: i64,
        /// Step.
        step: f64,
    },
    /// A peak search outside Server.
    #[error("FindPeakPerformance searches the Server scenario alone: set the scenario to Server, or another mode")]
    PeakScenario,
    /// More queries than can be planned.
    #[error(
        "these settings ask for about {queries:.3e} samples in one run, more than {limit:.0e}: lower the rate, the duration or min_query_count"
    )]
    TooMany {
        /// The estimate.
        queries: f64,
        /// The most we plan.
        limit: f64,
    },
}

/// The most samples one run may plan: enough for a week at 100 a second, and it fits in memory.
const MOST_SAMPLES: f64 = 1e8;

impl Effective {
    /// What LoadGen would run with: its derivations, and its answers to impossible rates (a rate of 1).
    pub fn of(requested: &Settings, library: Library) -> Effective {
        let r = requested;
        let (seeds_qsl, seeds_sample, seeds_schedule) = if r.test05 {
            (r.test05_qsl_rng_seed, r.test05_sample_index_rng_seed, r.test05_schedule_rng_seed)
        } else {
            (r.qsl_rng_seed, r.sample_index_rng_seed, r.schedule_rng_seed)
        };
        let or = |chosen: u64, otherwise: u64| if chosen == 0 { otherwise } else { chosen };
        let usable = |rate: f64| if rate >= 0.0 { rate } else { 1.0 };
        let (target_qps, percentile, max_async) = match r.scenario {
            Scenario::SingleStream => {
                (1e9 / r.single_stream_expected_latency_ns, r.single_stream_target_latency_percentile, 1)
            }
            Scenario::MultiStream => {
                (1e9 / r.multi_stream_expected_latency_ns, r.multi_stream_target_latency_percentile, 1)
            }
            Scenario::Server => {
                (usable(r.server_target_qps), r.server_target_latency_percentile, r.server_max_async_queries)
            }
            Scenario::Offline => (usable(r.offline_expected_qps), 0.99, 1),
        };
        let mut e = Effective {
            requested: r.clone(),
            samples_per_query: 1,
            target_qps,
            target_latency_ns: if r.scenario == Scenario::Server { r.server_target_latency_ns } else { 0 },
            target_latency_percentile: percentile,
            max_async_queries: max_async,
            target_duration_ms: r.min_duration_ms,
            min_duration_ms: r.min_duration_ms,
            max_duration_ms: r.max_duration_ms,
            min_query_count: r.min_query_count,
            max_query_count: r.max_query_count,
            min_sample_count: 0,
            qsl_rng_seed: seeds_qsl,
            sample_index_rng_seed: seeds_sample,
            schedule_rng_seed: seeds_schedule,
            performance_sample_count: or(r.performance_sample_count_override, library.performance),
            accuracy_sample_count: or(r.accuracy_sample_count_override, library.total),
        };
        e.derive_counts();
        e
    }

    fn derive_counts(&mut self) {
        let seconds = self.min_duration_ms as f64 / 1e3;
        match self.requested.scenario {
            Scenario::MultiStream => self.samples_per_query = self.requested.multi_stream_samples_per_query,
            Scenario::Offline => {
                // One query, 10 % larger than the expected rate needs to last the minimum duration.
                let wanted = (1.1 * seconds * self.target_qps) as u64;
                self.samples_per_query = if self.requested.performance_issue_unique {
                    self.performance_sample_count
                } else {
                    self.min_query_count.max(wanted)
                };
                self.min_query_count = 1;
                self.target_duration_ms = 0;
            }
            Scenario::SingleStream if self.requested.sample_concatenate_permutation => {
                let wanted = (2.0 * seconds * self.target_qps) as u64;
                let count = self.min_query_count.max(wanted);
                // LoadGen adds a whole set even to an exact multiple.
                let set = self.performance_sample_count.max(1);
                self.min_query_count = count + set - count % set;
            }
            Scenario::SingleStream | Scenario::Server => {}
        }
        self.min_sample_count = self.min_query_count.saturating_mul(self.samples_per_query);
    }

    /// Everything that makes these settings impossible; empty if they can be run.
    pub fn complaints(&self) -> Vec<Impossible> {
        let r = &self.requested;
        let mut found = Vec::new();
        let rate = |field, value: f64, found: &mut Vec<Impossible>| {
            if !(value >= 0.0 && value.is_finite()) || value.is_sign_negative() {
                found.push(Impossible::Rate { field, value });
            }
        };
        let expected = |field, value: f64, found: &mut Vec<Impossible>| {
            if !(value > 0.0 && value.is_finite()) {
                found.push(Impossible::Expected { field, value });
            }
        };
        match r.scenario {
            Scenario::SingleStream => {
                expected("single_stream_expected_latency_ns", r.single_stream_expected_latency_ns, &mut found);
            }
            Scenario::MultiStream => {
                expected("multi_stream_expected_latency_ns", r.multi_stream_expected_latency_ns, &mut found);
                if r.multi_stream_samples_per_query == 0 {
                    found.push(Impossible::NoSamples);
                }
            }
            Scenario::Server => {
                // At a rate of zero the next arrival never comes, and LoadGen never returns.
                let value = if r.server_target_qps == 0.0 { -0.0 } else { r.server_target_qps };
                rate("server_target_qps", value, &mut found);
            }
            Scenario::Offline => rate("offline_expected_qps", r.offline_expected_qps, &mut found),
        }
        let percentile = self.target_latency_percentile;
        if !(percentile > 0.0 && percentile < 1.0) {
            found.push(Impossible::Percentile { field: "target_latency_percentile", value: percentile });
        }
        if self.performance_sample_count == 0 {
            found.push(Impossible::Empty { field: "performance_sample_count" });
        }
        if self.accuracy_sample_count == 0 {
            found.push(Impossible::Empty { field: "accuracy_sample_count" });
        }
        if r.performance_issue_same && r.performance_issue_same_index >= self.performance_sample_count {
            found.push(Impossible::SameIndex {
                index: r.performance_issue_same_index,
                count: self.performance_sample_count,
            });
        }
        if r.performance_issue_unique && r.performance_issue_same {
            found.push(Impossible::UniqueAndSame);
        }
        let decimals = r.server_find_peak_qps_decimals_of_precision;
        let step = r.server_find_peak_qps_boundary_step_size;
        let endless = !(0..=6).contains(&decimals) || step.is_nan() || step <= 0.0;
        if r.mode == Mode::FindPeakPerformance && endless {
            found.push(Impossible::PeakSearch { decimals, step });
        }
        if r.mode == Mode::FindPeakPerformance && r.scenario != Scenario::Server {
            found.push(Impossible::PeakScenario);
        }
        self.complain_of_size(&mut found);
        found
    }

    fn complain_of_size(&self, found: &mut Vec<Impossible>) {
        let by_duration = 2.0 * self.target_duration_ms as f64 / 1e3 * self.target_qps.min(1e12);
        let queries = by_duration.max(self.min_query_count as f64) * self.samples_per_query as f64;
        if queries > MOST_SAMPLES {
            found.push(Impossible::TooMany { queries, limit: MOST_SAMPLES });
        }
    }
}
