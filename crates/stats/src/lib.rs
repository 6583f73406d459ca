//! Rows in, numbers out.
//!
//! Everything here is a pure function of [`tailbound_record::Row`]s and a few facts about the run: latency
//! distributions with their percentiles and intervals, token counts and where they came from, throughput, exact
//! concurrency, the steady-state window, goodput and attainment, and the verdict on whether the run counts at all.
//! Nothing here knows whether a live client, a gateway or a simulation wrote the rows.
//!
//! Durations inside a [`Dist`] are nanoseconds as `f64` (exact up to 104 days). What was not measured is `None`, never 0;
//! only the figures of [`Vllm`] are kept the way `vllm bench serve` defines them, for comparison.

mod binomial;
pub mod capacity;
mod collect;
pub mod compare;
mod concurrency;
mod dist;
mod facts;
mod failures;
pub mod fluidity;
mod goodput;
mod groups;
mod latency;
mod lengths;
mod over_time;
pub mod pareto;
mod peak;
mod request;
pub mod servers;
mod sort;
mod steady;
mod student;
mod summary;
pub mod verdict;
mod vllm;

pub use binomial::wilson;
pub use collect::summarize;
pub use concurrency::Concurrency;
pub use dist::Dist;
pub use facts::{Objective, ObjectiveMetric, Objectives, ParseObjectiveError, Ramp, RampLaw, RunFacts};
pub use failures::FailureGroup;
pub use goodput::{Goodput, MetricAttainment, verdict as met};
pub use groups::{Group, by_group};
pub use latency::{Latencies, Metric};
pub use lengths::{Lengths, Pair, TokenSource, Tokens};
pub use over_time::{Drift, OverTime, Percentiles, Slice, over_time};
pub use request::{departure, output_tokens, tpot_ns};
pub use steady::Steady;
pub use student::mean_interval;
pub use summary::{Coalesced, RequestCounts, StampMix, Summary, Throughput};
pub use verdict::{Bounds, ClientHealth, Code, Reason, Verdict, judge};
pub use vllm::Vllm;

pub mod loadgen;
