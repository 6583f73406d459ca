//! Judges a folder of logs again: from the detail log alone, or better, from the samples of the run.

use super::effective::Effective;
use super::log::{BadLog, Log};
use super::number::fixed;
use super::samples::{Ending, Sample};
use super::score::{self, Decision, Rates, Score, TokenScore};
use super::settings::{Library, Mode, Scenario, Settings};
use super::spread::{GRID, Spread};
use super::summary::{self, Frame};

/// A judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The figures; `None` for an accuracy run.
    pub score: Option<Score>,
    /// What `mlperf_log_summary.txt` says, or should.
    pub summary: String,
    /// What the log states and its own figures contradict (an edited log, or another program's).
    pub contradictions: Vec<String>,
    /// Summary lines whose last decimals the detail log, with six digits, doesn't hold, or, of an Offline run in token
    /// mode, the unused token limits, which it doesn't hold at all.
    pub rounded: Vec<&'static str>,
}

/// Why a folder could not be judged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CannotJudge {
    /// The detail log.
    #[error(transparent)]
    Log(#[from] BadLog),
    /// The samples.
    #[error(transparent)]
    Samples(#[from] score::NoSamples),
}

/// Judges by the detail log alone.
///
/// # Errors
/// If the log is garbled or cut short.
pub fn of_detail(log: &Log) -> Result<Verdict, CannotJudge> {
    let e = effective_of(log)?;
    let frame = frame_of(log)?;
    if e.requested.mode == Mode::AccuracyOnly {
        let summary = summary::write(None, &frame);
        return Ok(Verdict { score: None, summary, contradictions: vec![], rounded: vec![] });
    }
    let score = score_of(log, e)?;
    let contradictions = contradictions(log, &score)?;
    let summary = summary::write(Some(&score), &frame);
    let rounded = rounded(&score);
    Ok(Verdict { score: Some(score), summary, contradictions, rounded })
}

/// Judges by the samples, with the settings of the detail log.
///
/// # Errors
/// If the log is garbled or cut short, or there is no sample.
pub fn of_samples(log: &Log, samples: &[Sample], ending: Option<Ending>) -> Result<Verdict, CannotJudge> {
    let e = effective_of(log)?;
    let ending = ending.or_else(|| Ending::of(samples)).ok_or(score::NoSamples)?;
    let score = score::measure(&e, samples, ending)?;
    let mut contradictions = Vec::new();
    let said = log.text("result_validity")?;
    let found = if score.decision.valid() { "VALID" } else { "INVALID" };
    if said != found {
        contradictions.push(format!("the log says {said}, its samples say {found}"));
    }
    let queries: u64 = log.number("result_query_count")?;
    if queries != score.queries {
        contradictions.push(format!("the log counts {queries} queries, its samples belong to {}", score.queries));
    }
    for (q, value) in GRID.into_iter().zip(score.latency.grid) {
        let key = format!("result_{}_percentile_latency_ns", fixed(q * 100.0, 2));
        let said: i64 = log.number(&key)?;
        if said != value {
            contradictions.push(format!("{key} is {said} in the log and {value} by its samples"));
        }
    }
    let summary = summary::write(Some(&score), &frame_of(log)?);
    Ok(Verdict { score: Some(score), summary, contradictions, rounded: vec![] })
}

fn frame_of(log: &Log) -> Result<Frame, BadLog> {
    let count = |pick: fn(&super::detail::Entry) -> bool| log.entries().iter().filter(|e| pick(e)).count() as u64;
    Ok(Frame { sut_name: log.text("sut_name")?, errors: count(|e| e.error), warnings: count(|e| e.warning) })
}

/// The settings a log states. Decimal numbers have the six digits LoadGen logs.
///
/// # Errors
/// If one is missing or garbled.
pub fn effective_of(log: &Log) -> Result<Effective, BadLog> {
    let requested = requested_of(log)?;
    let library = Library {
        total: log.number("qsl_reported_total_count")?,
        performance: log.number("qsl_reported_performance_count")?,
    };
    let mut e = Effective::of(&requested, library);
    e.samples_per_query = log.number("effective_samples_per_query")?;
    e.target_qps = log.number("effective_target_qps")?;
    e.target_latency_ns = log.number("effective_target_latency_ns")?;
    e.target_latency_percentile = log.number("effective_target_latency_percentile")?;
    e.max_async_queries = log.number("effective_max_async_queries")?;
    e.target_duration_ms = log.number("effective_target_duration_ms")?;
    e.min_duration_ms = log.number("effective_min_duration_ms")?;
    e.max_duration_ms = log.number("effective_max_duration_ms")?;
    e.min_query_count = log.number("effective_min_query_count")?;
    e.max_query_count = log.number("effective_max_query_count")?;
    e.min_sample_count = log.number("effective_min_sample_count")?;
    e.qsl_rng_seed = log.number("effective_qsl_rng_seed")?;
    e.sample_index_rng_seed = log.number("effective_sample_index_rng_seed")?;
    e.schedule_rng_seed = log.number("effective_schedule_rng_seed")?;
    e.performance_sample_count = log.number("effective_performance_sample_count")?;
    e.accuracy_sample_count = log.number("effective_accuracy_sample_count")?;
    if let Some(qps) = peak_of(log) {
        e.target_qps = qps;
    }
    Ok(e)
}

/// The rate a peak search settled on, which its summary then prints.
fn peak_of(log: &Log) -> Option<f64> {
    let found = "\"FindPeakPerformance: Found peak performance field: ";
    let line = log.entries().iter().rev().find(|e| e.value.starts_with(found))?;
    line.value[found.len()..].trim_end_matches('"').parse().ok()
}

fn requested_of(log: &Log) -> Result<Settings, BadLog> {
    let named = |key: &str| log.text(key);
    let unknown = |key: &str, value: String, expected| BadLog::Value { key: key.into(), value, expected };
    let scenario = named("requested_scenario")?;
    let mode = named("effective_test_mode")?;
    let mut s = Settings {
        scenario: Scenario::named(&scenario)
            .ok_or_else(|| unknown("requested_scenario", scenario, "one of the four scenarios"))?,
        mode: Mode::named(&mode).ok_or_else(|| unknown("effective_test_mode", mode, "one of the four modes"))?,
        ..Settings::default()
    };
    s.min_duration_ms = log.number("requested_min_duration_ms")?;
    s.max_duration_ms = log.number("requested_max_duration_ms")?;
    s.min_query_count = log.number("requested_min_query_count")?;
    s.max_query_count = log.number("requested_max_query_count")?;
    s.qsl_rng_seed = log.number("requested_qsl_rng_seed")?;
    s.sample_index_rng_seed = log.number("requested_sample_index_rng_seed")?;
    s.schedule_rng_seed = log.number("requested_schedule_rng_seed")?;
    s.accuracy_log_rng_seed = log.number("requested_accuracy_log_rng_seed")?;
    s.accuracy_log_probability = log.number("requested_accuracy_log_probability")?;
    s.accuracy_log_sampling_target = log.number("requested_accuracy_log_sampling_target")?;
    s.print_timestamps = log.flag("requested_print_timestamps")?;
    s.performance_issue_unique = log.flag("requested_performance_issue_unique")?;
    s.performance_issue_same = log.flag("requested_performance_issue_same")?;
    s.performance_issue_same_index = log.number("requested_performance_issue_same_index")?;
    s.performance_sample_count_override = log.number("requested_performance_sample_count_override")?;
    s.accuracy_sample_count_override = log.number_or("requested_accuracy_sample_count_override", 0)?;
    s.sample_concatenate_permutation = log.flag("requested_sample_concatenate_permutation")?;
    s.use_token_latencies = log.get("requested_use_token_latencies") == Some("true");
    s.ttft_latency = log.number_or("requested_server_ttft_latency", s.ttft_latency)?;
    s.tpot_latency = log.number_or("requested_server_tpot_latency", s.tpot_latency)?;
    match s.scenario {
        Scenario::SingleStream => {
            s.single_stream_expected_latency_ns = log.number("requested_single_stream_expected_latency_ns")?;
        }
        Scenario::MultiStream => {
            s.multi_stream_expected_latency_ns = log.number("requested_multi_stream_expected_latency_ns")?;
            s.multi_stream_samples_per_query = log.number("requested_multi_stream_samples_per_query")?;
        }
        Scenario::Server => {
            s.server_target_qps = log.number("requested_server_target_qps")?;
            s.server_target_latency_ns = log.number("requested_server_target_latency_ns")?;
            s.server_coalesce_queries = log.flag("requested_server_coalesce_queries")?;
        }
        Scenario::Offline => s.offline_expected_qps = log.number("requested_offline_expected_qps")?,
    }
    Ok(s)
}

fn score_of(log: &Log, e: Effective) -> Result<Score, BadLog> {
    let scenario = e.requested.scenario;
    let percentile = e.target_latency_percentile;
    let queries: u64 = log.number("result_query_count")?;
    let latency = spread(
        log,
        ["result_min_latency_ns", "result_max_latency_ns", "result_mean_latency_ns"],
        ["result_", "_percentile_latency_ns"],
        percentile,
    )?;
    let query_latency = match scenario {
        Scenario::MultiStream => Some(spread(
            log,
            ["result_min_query_latency_ns", "result_max_query_latency_ns", "result_mean_query_latency_ns"],
            ["result_", "_percentile_per_query_latency_ns"],
            percentile,
        )?),
        _ => None,
    };
    let tokens = if e.requested.use_token_latencies { Some(tokens_of(log, scenario, percentile)?) } else { None };
    Ok(Score {
        queries,
        samples: queries.saturating_mul(e.samples_per_query),
        latency,
        query_latency,
        tokens,
        over_latency: log.number_or("result_overlatency_query_count", 0)?,
        rates: rates_of(log)?,
        decision: decision_of(log, scenario, e.requested.use_token_latencies)?,
        effective: e,
    })
}

fn spread(log: &Log, [min, max, mean]: [&str; 3], [before, after]: [&str; 2], q: f64) -> Result<Spread, BadLog> {
    let mut grid = [0; 6];
    for (value, q) in grid.iter_mut().zip(GRID) {
        *value = log.number(&format!("{before}{}{after}", fixed(q * 100.0, 2)))?;
    }
    let target = GRID.iter().position(|g| (g - q).abs() < 1e-9).map(|i| grid[i]);
    Ok(Spread { min: log.number(min)?, max: log.number(max)?, mean: log.number(mean)?, grid, target })
}

fn tokens_of(log: &Log, scenario: Scenario, q: f64) -> Result<TokenScore, BadLog> {
    if scenario == Scenario::Offline {
        return Ok(TokenScore { count: 0, ttft: None, tpot: None });
    }
    let ttft = spread(
        log,
        [
            "result_first_token_min_latency_ns",
            "result_first_token_max_latency_ns",
            "result_first_token_mean_latency_ns",
        ],
        ["result_first_token_", "_percentile_latency_ns"],
        q,
    )?;
    let tpot = spread(
        log,
        ["result_time_to_output_token_min", "result_time_to_output_token_max", "result_time_to_output_token_mean"],
        ["result_time_per_output_token_", "_percentile_ns"],
        q,
    )?;
    Ok(TokenScore { count: 0, ttft: Some(ttft), tpot: Some(tpot) })
}

fn rates_of(log: &Log) -> Result<Rates, BadLog> {
    Ok(Rates {
        scheduled: log.number_or("result_scheduled_samples_per_sec", 0.0)?,
        completed: log.number_or("result_completed_samples_per_sec", 0.0)?,
        with_overhead: log.number_or("result_qps_with_loadgen_overhead", 0.0)?,
        without_overhead: log.number_or("result_qps_without_loadgen_overhead", 0.0)?,
        offline: log.number_or("result_samples_per_second", 0.0)?,
        tokens_completed: log.number_or("result_completed_tokens_per_second", 0.0)?,
        tokens_with_overhead: log.number_or("result_token_throughput_with_loadgen_overhead", 0.0)?,
        tokens_per_latency_ns: log.number_or("result_token_throughput", 0.0)?,
        tokens_offline: log.number_or("result_tokens_per_second", 0.0)?,
    })
}

fn decision_of(log: &Log, scenario: Scenario, token_mode: bool) -> Result<Decision, BadLog> {
    let server = scenario == Scenario::Server;
    let constraints = if server { Some(log.flag("result_perf_constraints_met")?) } else { None };
    // In one line the log has a blank for each newline, and every line of these texts begins with one.
    let lines = |key: &str| log.text(key).map(|t| t.replace("  ", "\n "));
    let (stopping_text, stopping_ttft_text) = if token_mode {
        (lines("early_stopping_tpot_result")?, lines("early_stopping_ttft_result")?)
    } else {
        (lines("early_stopping_result")?, String::new())
    };
    let reason =
        if log.get("result_invalid_reason").is_some() { log.text("result_invalid_reason")? } else { String::new() };
    Ok(Decision {
        constraints,
        constraints_text: constraints_text(&reason),
        duration: log.flag("result_min_duration_met")?,
        queries: log.flag("result_min_queries_met")?,
        stopping: log.flag("early_stopping_met")?,
        stopping_text,
        stopping_ttft_text,
        estimate_ss: log.number_or("early_stopping_latency_ss", 0)?,
        estimate_ms: log.number_or("early_stopping_latency_ms", 0)?,
    })
}

/// The part of an invalid reason that speaks of constraints, with its line break back.
fn constraints_text(reason: &str) -> String {
    const ADVICE: &str = "Reduce target QPS to improve latency.";
    let end = reason.rfind(ADVICE).map_or(0, |at| at + ADVICE.len());
    reason[..end].replace("  * ", "\n * ")
}

/// Statements of the log that its own figures refute.
fn contradictions(log: &Log, score: &Score) -> Result<Vec<String>, BadLog> {
    let mut found = Vec::new();
    let d = &score.decision;
    let said = log.text("result_validity")?;
    if (said == "VALID") != d.valid() {
        found.push(format!("the log says {said}, but its four checks say otherwise"));
    }
    if let (Some(met), None, Some(value)) = (d.constraints, &score.tokens, score.latency.target) {
        let bound = score.effective.target_latency_ns;
        if met != (value <= bound as i64) {
            found.push(format!(
                "the log says constraints met: {met}, but {value} ns stands against a bound of {bound} ns"
            ));
        }
    }
    if score.tokens.is_none() && score.effective.requested.scenario == Scenario::Server {
        let needed =
            super::early_stopping::queries_needed(score.over_latency, score.effective.target_latency_percentile);
        if d.stopping != (score.queries >= needed) {
            let over = score.over_latency;
            found.push(format!(
                "the log says early stopping met: {}, but {over} of {} queries are over, which needs {needed}",
                d.stopping, score.queries
            ));
        }
    }
    if d.queries && score.queries < score.effective.min_query_count {
        let (n, least) = (score.queries, score.effective.min_query_count);
        found.push(format!("the log says enough queries, but {n} are fewer than min_query_count {least}"));
    }
    let errors: u64 = log.number_or("num_errors", 0)?;
    let lines = log.entries().iter().filter(|e| e.error).count() as u64;
    if log.get("num_errors").is_some() && errors != lines {
        found.push(format!("the log counts {errors} errors and holds {lines}"));
    }
    Ok(found)
}

/// Rates of 10 000 and more have two decimals in the summary and fewer in the log; smaller ones may have been rounded to a
/// tie, which the summary's two decimals then break by guess.
fn rounded(score: &Score) -> Vec<&'static str> {
    let r = &score.rates;
    let offline_tokens = score.tokens.is_some() && score.effective.requested.scenario == Scenario::Offline;
    let unlogged: &[&'static str] = if offline_tokens { &["ttft_latency", "tpot_latency"] } else { &[] };
    [
        ("Completed samples per second", r.completed),
        ("Scheduled samples per second", r.scheduled),
        ("Completed tokens per second", r.tokens_completed),
        ("QPS w/ loadgen overhead", r.with_overhead),
        ("QPS w/o loadgen overhead", r.without_overhead),
        ("TPS w/ loadgen overhead", r.tokens_with_overhead),
        ("TPS w/o loadgen overhead", r.tokens_per_latency_ns * 1e9),
    ]
    .into_iter()
    .filter(|(_, rate)| {
        let cents = rate.abs() * 100.0;
        cents >= 999_999.5 || (cents - libm::floor(cents) - 0.5).abs() < 1e-6
    })
    .map(|(name, _)| name)
    .chain(unlogged.iter().copied())
    .collect()
}
