//! A run's figures and LoadGen's decision on them.

use super::effective::Effective;
use super::samples::{Ending, Sample};
use super::settings::{Mode, Scenario};
use super::spread::Spread;
use super::stopping::{self, Stopping};
use super::tokens;

/// What a performance run scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The settings it ran with.
    pub effective: Effective,
    /// Queries issued.
    pub queries: u64,
    /// Samples completed.
    pub samples: u64,
    /// Sample latencies.
    pub latency: Spread,
    /// Query latencies (MultiStream alone).
    pub query_latency: Option<Spread>,
    /// Token figures, in token mode.
    pub tokens: Option<TokenScore>,
    /// Samples over the latency bound (Server; in token mode LoadGen still counts against the unused bound).
    pub over_latency: u64,
    /// Rates.
    pub rates: Rates,
    /// The decision.
    pub decision: Decision,
}

/// Token figures. Offline reports only the count.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenScore {
    /// Accepted output tokens.
    pub count: i64,
    /// Time to first token.
    pub ttft: Option<Spread>,
    /// Time per output token.
    pub tpot: Option<Spread>,
}

/// Rates in 1/s; those that a scenario doesn't report are computed all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// `(n − 1) / last due`.
    pub scheduled: f64,
    /// `(n − 1) / last done`.
    pub completed: f64,
    /// `(n − 1) / last issued`.
    pub with_overhead: f64,
    /// `1 / mean latency`.
    pub without_overhead: f64,
    /// `n / maximum latency` (Offline).
    pub offline: f64,
    /// Tokens over last done.
    pub tokens_completed: f64,
    /// Tokens over last issued.
    pub tokens_with_overhead: f64,
    /// Tokens over the sum of latencies in *nanoseconds*, as LoadGen's detail log has it.
    pub tokens_per_latency_ns: f64,
    /// Tokens over maximum latency (Offline).
    pub tokens_offline: f64,
}

/// The four checks and the texts that go with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// `None` outside Server.
    pub constraints: Option<bool>,
    /// Why constraints failed; lines are separated by `\n * `.
    pub constraints_text: String,
    /// Long enough.
    pub duration: bool,
    /// Enough queries and samples.
    pub queries: bool,
    /// Early stopping as a whole.
    pub stopping: bool,
    /// The text for latency, or in token mode for TPOT.
    pub stopping_text: String,
    /// Token mode: the text for TTFT, empty where TPOT already failed.
    pub stopping_ttft_text: String,
    /// LoadGen's `early_stopping_latency_ss`, 0 if there is none.
    pub estimate_ss: i64,
    /// LoadGen's `early_stopping_latency_ms`.
    pub estimate_ms: i64,
}

impl Decision {
    /// VALID or not.
    pub fn valid(&self) -> bool {
        self.constraints != Some(false) && self.duration && self.queries && self.stopping
    }
}

/// A run without a single completed sample has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run completed no sample: there is nothing to score (check that the system under test answers)")]
pub struct NoSamples;

/// Scores a run as LoadGen does.
///
/// # Errors
/// [`NoSamples`].
pub fn measure(e: &Effective, samples: &[Sample], ending: Ending) -> Result<Score, NoSamples> {
    if samples.is_empty() {
        return Err(NoSamples);
    }
    let lists = Lists::of(e, samples);
    let percentile = e.target_latency_percentile;
    let latency = Spread::of(&lists.latency, percentile);
    let tokens = e.requested.use_token_latencies.then(|| token_score(e, samples, &lists));
    let over = lists.latency.len() - lists.latency.partition_point(|&v| v <= e.target_latency_ns as i64);
    let count = tokens.as_ref().map_or(0, |t| t.count);
    let rates = rates(&latency, samples.len(), count, ending);
    let decision = decide(e, &lists, &latency, tokens.as_ref(), samples.len(), ending);
    Ok(Score {
        effective: e.clone(),
        queries: ending.queries_issued,
        samples: samples.len() as u64,
        query_latency: (!lists.query.is_empty()).then(|| Spread::of(&lists.query, percentile)),
        latency,
        tokens,
        over_latency: over as u64,
        rates,
        decision,
    })
}

/// Everything that is sorted.
struct Lists {
    latency: Vec<i64>,
    query: Vec<i64>,
    ttft: Vec<i64>,
    tpot: Vec<i64>,
}

impl Lists {
    fn of(e: &Effective, samples: &[Sample]) -> Lists {
        let sorted = |mut list: Vec<i64>| {
            list.sort_unstable();
            list
        };
        let scenario = e.requested.scenario;
        let timed_tokens = e.requested.use_token_latencies && scenario != Scenario::Offline;
        let mut lists = Lists {
            latency: sorted(samples.iter().map(|s| s.latency_ns).collect()),
            query: vec![],
            ttft: vec![],
            tpot: vec![],
        };
        if scenario == Scenario::MultiStream {
            let mut by_query = std::collections::BTreeMap::new();
            for s in samples {
                let longest = by_query.entry(s.query).or_insert(s.latency_ns);
                *longest = (*longest).max(s.latency_ns);
            }
            lists.query = sorted(by_query.into_values().collect());
        }
        if timed_tokens {
            lists.ttft = sorted(samples.iter().map(|s| s.ttft_ns.unwrap_or(0)).collect());
            lists.tpot = sorted(samples.iter().map(tokens::tpot_parity).collect());
        }
        lists
    }
}

fn token_score(e: &Effective, samples: &[Sample], lists: &Lists) -> TokenScore {
    let spread = |list: &[i64]| (!list.is_empty()).then(|| Spread::of(list, e.target_latency_percentile));
    TokenScore {
        count: samples.iter().map(|s| tokens::accepted(s.tokens)).sum(),
        ttft: spread(&lists.ttft),
        tpot: spread(&lists.tpot),
    }
}

fn rates(latency: &Spread, samples: usize, tokens: i64, ending: Ending) -> Rates {
    let n = samples as f64;
    let after_first = (samples - 1) as f64;
    let tokens = tokens as f64;
    let longest_s = latency.max as f64 / 1e9;
    Rates {
        scheduled: after_first / ending.scheduled_s,
        completed: after_first / ending.done_s,
        with_overhead: after_first / ending.issued_s,
        without_overhead: 1.0 / (latency.mean as f64 / 1e9),
        offline: n / longest_s,
        tokens_completed: tokens / ending.done_s,
        tokens_with_overhead: tokens / ending.issued_s,
        tokens_per_latency_ns: tokens / (latency.mean as f64 * n),
        tokens_offline: tokens / longest_s,
    }
}

fn decide(
    e: &Effective,
    lists: &Lists,
    latency: &Spread,
    tokens: Option<&TokenScore>,
    samples: usize,
    ending: Ending,
) -> Decision {
    let min_duration_s = e.min_duration_ms as f64 / 1e3;
    let duration = match e.requested.scenario {
        Scenario::Offline => latency.max as f64 / 1e9 >= min_duration_s,
        Scenario::Server => ending.scheduled_s >= min_duration_s,
        Scenario::SingleStream | Scenario::MultiStream => ending.issued_s >= min_duration_s,
    };
    let (constraints, constraints_text) = constraints(e, latency, tokens);
    let mut decision = Decision {
        constraints,
        constraints_text,
        duration,
        queries: ending.queries_issued >= e.min_query_count && samples as u64 >= e.min_sample_count,
        stopping: true,
        stopping_text: String::new(),
        stopping_ttft_text: String::new(),
        estimate_ss: 0,
        estimate_ms: 0,
    };
    stop(e, lists, ending.queries_issued, &mut decision);
    decision
}

fn constraints(e: &Effective, latency: &Spread, tokens: Option<&TokenScore>) -> (Option<bool>, String) {
    if e.requested.scenario != Scenario::Server {
        return (None, String::new());
    }
    const ADVICE: &str = "Reduce target QPS to improve latency.";
    let over = |spread: Option<&Spread>, bound: u64| {
        spread.and_then(|s| s.target).is_some_and(|v| i128::from(v) > i128::from(bound))
    };
    let mut lines = Vec::new();
    match tokens {
        None if over(Some(latency), e.target_latency_ns) => lines.push(ADVICE.to_owned()),
        None => {}
        Some(t) => {
            // LoadGen's own spelling.
            if over(t.ttft.as_ref(), e.requested.ttft_latency) {
                lines.push(format!("TTFT constrain not met: {ADVICE}"));
            }
            if over(t.tpot.as_ref(), e.requested.tpot_latency) {
                lines.push(format!("TPOT constrain not met: {ADVICE}"));
            }
        }
    }
    (Some(lines.is_empty()), lines.join("\n * "))
}

/// Early stopping as LoadGen runs it: in token mode TPOT first, TTFT only if that passed.
fn stop(e: &Effective, lists: &Lists, queries: u64, decision: &mut Decision) {
    let scenario = e.requested.scenario;
    let check = |list: &[i64], bound: u64| {
        // MultiStream estimates query latency whatever it was asked about.
        let list = if scenario == Scenario::MultiStream { &lists.query } else { list };
        stopping::check(scenario, list, queries, e.target_latency_percentile, bound as i64)
    };
    let keep = |outcome: &Stopping, decision: &mut Decision| {
        decision.stopping &= outcome.met;
        let (ss, ms) = match scenario {
            Scenario::MultiStream => (None, outcome.estimate),
            _ => (outcome.estimate, outcome.estimate_99),
        };
        decision.estimate_ss = ss.unwrap_or(decision.estimate_ss);
        decision.estimate_ms = ms.unwrap_or(decision.estimate_ms);
    };
    if !e.requested.use_token_latencies {
        let outcome = check(&lists.latency, e.target_latency_ns);
        keep(&outcome, decision);
        decision.stopping_text = outcome.text;
        return;
    }
    let tpot = check(&lists.tpot, e.requested.tpot_latency);
    keep(&tpot, decision);
    decision.stopping_text = tpot.text;
    if tpot.met {
        let ttft = check(&lists.ttft, e.requested.ttft_latency);
        keep(&ttft, decision);
        decision.stopping_ttft_text = ttft.text;
    }
}

impl Score {
    /// Whether this score comes with figures at all (accuracy runs have none).
    pub fn is_performance(&self) -> bool {
        self.effective.requested.mode != Mode::AccuracyOnly
    }
}
