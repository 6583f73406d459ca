//! The early-stopping check of a run, in LoadGen's words.

use super::early_stopping::{estimate_rank, queries_needed};
use super::settings::Scenario;

/// The outcome of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stopping {
    /// Whether the run passes.
    pub met: bool,
    /// LoadGen's text, lines separated by `\n`.
    pub text: String,
    /// The estimate at the scenario's percentile, ns (SingleStream and MultiStream).
    pub estimate: Option<i64>,
    /// SingleStream's second estimate, at P99.
    pub estimate_99: Option<i64>,
    /// How many more queries the run needs if every one of them is under the bound; 0 when it passes.
    pub more_needed: u64,
}

/// The percentile of SingleStream's second estimate.
const MULTI_STREAM_PERCENTILE: f64 = 0.99;

/// Checks `sorted` latencies of a run of `queries` queries against `bound_ns` (Server) or estimates their percentile
/// (SingleStream, MultiStream). Offline always passes and has no text.
pub fn check(scenario: Scenario, sorted: &[i64], queries: u64, percentile: f64, bound_ns: i64) -> Stopping {
    match scenario {
        Scenario::Offline => Stopping { met: true, ..Stopping::default() },
        Scenario::Server => {
            let over = (sorted.len() - sorted.partition_point(|&v| v <= bound_ns)) as u64;
            server(over, queries, percentile)
        }
        Scenario::SingleStream => {
            let mut outcome = estimate(sorted, queries, percentile);
            if outcome.met {
                add_multi_stream(&mut outcome, sorted, queries);
            }
            outcome
        }
        Scenario::MultiStream => estimate(sorted, queries, percentile),
    }
}

fn server(over: u64, queries: u64, percentile: f64) -> Stopping {
    let needed = queries_needed(over, percentile);
    if queries >= needed {
        return Stopping { met: true, text: " * Run successful.".into(), ..Stopping::default() };
    }
    let more_needed = needed - queries;
    let text = format!(
        " * Run unsuccessful.\n * Processed {queries} queries.\n * Would need to run at least {more_needed} more \
         queries,\n with the run being successful if every additional\n query were under latency."
    );
    Stopping { met: false, text, more_needed, ..Stopping::default() }
}

fn estimate(sorted: &[i64], queries: u64, percentile: f64) -> Stopping {
    let floor = queries_needed(1, percentile);
    let Some((rank, value)) = ranked(sorted, queries, percentile) else {
        let text = format!(
            " * Only processed {queries} queries.\n * Need to process at least {floor} queries for early stopping."
        );
        return Stopping { text, more_needed: floor.saturating_sub(queries), ..Stopping::default() };
    };
    let text = format!(
        " * Processed at least {floor} queries ({queries}).\n * Would discard {} highest latency queries.\n \
         * Early stopping {}th percentile estimate: {value}",
        rank - 1,
        super::number::fixed(percentile * 100.0, 1),
    );
    Stopping { met: true, text, estimate: Some(value), ..Stopping::default() }
}

fn add_multi_stream(outcome: &mut Stopping, sorted: &[i64], queries: u64) {
    let floor = queries_needed(1, MULTI_STREAM_PERCENTILE);
    let label = super::number::fixed(MULTI_STREAM_PERCENTILE * 100.0, 1);
    match ranked(sorted, queries, MULTI_STREAM_PERCENTILE) {
        Some((_, value)) => {
            outcome.text += &format!("\n * Early stopping {label}th percentile estimate: {value}");
            outcome.estimate_99 = Some(value);
        }
        None => {
            outcome.text += &format!(
                "\n * Not enough queries processed for {label}th percentile\n early stopping estimate (would need to \
                 process at\n least {floor} total queries)."
            );
        }
    }
}

fn ranked(sorted: &[i64], queries: u64, percentile: f64) -> Option<(u64, i64)> {
    let rank = estimate_rank(queries, percentile)?;
    let value = sorted.get((queries - rank) as usize)?;
    Some((rank, *value))
}
