//! `mlperf_log_summary.txt`, byte for byte.

use super::effective::Effective;
use super::number::{fixed, general};
use super::score::Score;
use super::settings::Scenario;
use super::spread::{GRID, Spread};

const RULE: &str = "================================================";

/// What stands around the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The system's name.
    pub sut_name: String,
    /// Errors logged.
    pub errors: u64,
    /// Warnings logged.
    pub warnings: u64,
}

/// The summary of a performance run, or with `None` that of an accuracy run, which is only the footer.
pub fn write(score: Option<&Score>, frame: &Frame) -> String {
    let mut out = Lines(String::new());
    if let Some(score) = score {
        results(&mut out, score, frame);
        recommendations(&mut out, score);
        stopping(&mut out, score);
        statistics(&mut out, score);
        parameters(&mut out, &score.effective);
    }
    footer(&mut out, frame);
    out.0
}

struct Lines(String);

impl Lines {
    fn line(&mut self, text: impl AsRef<str>) {
        self.0.push_str(text.as_ref());
        self.0.push('\n');
    }
    fn heading(&mut self, text: &str) {
        self.line(format!("{RULE}\n{text}\n{RULE}"));
    }
}

fn results(out: &mut Lines, score: &Score, frame: &Frame) {
    let e = &score.effective;
    out.heading("MLPerf Results Summary");
    out.line(format!("SUT name : {}", frame.sut_name));
    out.line(format!("Scenario : {}", e.requested.scenario.name()));
    out.line(format!("Mode     : {}", e.requested.mode.name()));
    let label = fixed(e.target_latency_percentile * 100.0, 1);
    let target = |s: Option<&Spread>| s.and_then(|s| s.target).map_or_else(|| "?".to_owned(), |v| v.to_string());
    match e.requested.scenario {
        Scenario::SingleStream => {
            out.line(format!("{label}th percentile latency (ns) : {}", target(Some(&score.latency))));
        }
        Scenario::MultiStream => {
            out.line(format!("{label}th percentile latency (ns) : {}", target(score.query_latency.as_ref())));
        }
        Scenario::Server => {
            out.line(format!("Completed samples per second    : {}", fixed(score.rates.completed, 2)));
        }
        Scenario::Offline => out.line(format!("Samples per second: {}", general(score.rates.offline))),
    }
    let Some(tokens) = &score.tokens else { return verdict(out, score) };
    match e.requested.scenario {
        Scenario::SingleStream | Scenario::MultiStream => {
            out.line(format!("{label}th first token percentile latency (ns) : {}", target(tokens.ttft.as_ref())));
        }
        Scenario::Server => {
            out.line(format!("Completed tokens per second: {}", fixed(score.rates.tokens_completed, 2)));
        }
        Scenario::Offline => out.line(format!("Tokens per second: {}", general(score.rates.tokens_offline))),
    }
    verdict(out, score);
}

fn verdict(out: &mut Lines, score: &Score) {
    let d = &score.decision;
    let word = |met: bool| if met { "Yes" } else { "NO" };
    out.line(format!("Result is : {}", if d.valid() { "VALID" } else { "INVALID" }));
    if let Some(met) = d.constraints {
        out.line(format!("  Performance constraints satisfied : {}", word(met)));
    }
    out.line(format!("  Min duration satisfied : {}", word(d.duration)));
    out.line(format!("  Min queries satisfied : {}", word(d.queries)));
    out.line(format!("  Early stopping satisfied: {}", word(d.stopping)));
}

/// What LoadGen advises when the run is too short.
pub(super) fn duration_advice(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::SingleStream | Scenario::MultiStream => {
            "Decrease the expected latency so the loadgen pre-generates more queries."
        }
        Scenario::Server => "Increase the target QPS so the loadgen pre-generates more queries.",
        Scenario::Offline => "Increase expected QPS so the loadgen pre-generates a larger (coalesced) query.",
    }
}

fn recommendations(out: &mut Lines, score: &Score) {
    let d = &score.decision;
    if d.valid() {
        return;
    }
    out.line("Recommendations:");
    if d.constraints == Some(false) {
        out.line(format!(" * {}", d.constraints_text));
    }
    if !d.duration {
        out.line(format!(" * {}", duration_advice(score.effective.requested.scenario)));
    }
    if !d.queries {
        out.line(
            " * The test exited early, before enough queries were issued.\n   See the detailed log for why this may have occurred.",
        );
    }
}

fn stopping(out: &mut Lines, score: &Score) {
    if score.effective.requested.scenario == Scenario::Offline {
        return;
    }
    if score.tokens.is_none() {
        out.line("Early Stopping Result:");
        out.line(&score.decision.stopping_text);
        return;
    }
    out.line("TTFT Early Stopping Result:");
    out.line(&score.decision.stopping_ttft_text);
    out.line("TPOT Early Stopping Result:");
    out.line(&score.decision.stopping_text);
}

fn statistics(out: &mut Lines, score: &Score) {
    out.line("");
    out.heading("Additional Stats");
    let r = &score.rates;
    match score.effective.requested.scenario {
        Scenario::SingleStream => {
            out.line(format!("QPS w/ loadgen overhead         : {}", fixed(r.with_overhead, 2)));
            out.line(format!("QPS w/o loadgen overhead        : {}", fixed(r.without_overhead, 2)));
            out.line("");
        }
        Scenario::MultiStream => out.line("Per-query latency:  "),
        Scenario::Server => out.line(format!("Scheduled samples per second : {}", fixed(r.scheduled, 2))),
        Scenario::Offline => {}
    }
    let latency = score.query_latency.as_ref().unwrap_or(&score.latency);
    out.line(format!("Min latency (ns)                : {}", latency.min));
    out.line(format!("Max latency (ns)                : {}", latency.max));
    out.line(format!("Mean latency (ns)               : {}", latency.mean));
    percentiles(out, latency, "percentile latency (ns)");
    token_statistics(out, score);
    out.line("");
}

fn token_statistics(out: &mut Lines, score: &Score) {
    let Some(tokens) = &score.tokens else { return };
    let r = &score.rates;
    out.line("");
    match score.effective.requested.scenario {
        Scenario::SingleStream => {
            out.line(format!("TPS w/ loadgen overhead         : {}", fixed(r.tokens_with_overhead, 2)));
            out.line(format!("TPS w/o loadgen overhead        : {}", fixed(r.tokens_per_latency_ns * 1e9, 2)));
        }
        Scenario::Server => {
            out.line(format!("Completed tokens per second                 : {}", fixed(r.tokens_completed, 2)));
        }
        Scenario::MultiStream | Scenario::Offline => {}
    }
    let (Some(ttft), Some(tpot)) = (&tokens.ttft, &tokens.tpot) else { return };
    out.line(format!("Min First Token latency (ns)                : {}", ttft.min));
    out.line(format!("Max First Token latency (ns)                : {}", ttft.max));
    out.line(format!("Mean First Token latency (ns)               : {}", ttft.mean));
    percentiles(out, ttft, "percentile first token latency (ns)");
    out.line("");
    out.line(format!("Min Time per Output Token (ns)                : {}", tpot.min));
    out.line(format!("Max Time per Output Token (ns)                : {}", tpot.max));
    out.line(format!("Mean Time per Output Token (ns)               : {}", tpot.mean));
    percentiles(out, tpot, "percentile time to output token (ns)");
}

fn percentiles(out: &mut Lines, spread: &Spread, what: &str) {
    for (q, value) in GRID.into_iter().zip(spread.grid) {
        out.line(format!("{} {what}   : {value}", fixed(q * 100.0, 2)));
    }
}

fn parameters(out: &mut Lines, e: &Effective) {
    let r = &e.requested;
    out.heading("Test Parameters Used");
    out.line(format!("samples_per_query : {}", e.samples_per_query));
    out.line(format!("target_qps : {}", general(e.target_qps)));
    if r.use_token_latencies {
        out.line(format!("ttft_latency (ns): {}", r.ttft_latency));
        out.line(format!("tpot_latency (ns): {}", r.tpot_latency));
    } else {
        out.line(format!("target_latency (ns): {}", e.target_latency_ns));
    }
    out.line(format!("max_async_queries : {}", e.max_async_queries));
    out.line(format!("min_duration (ms): {}", e.min_duration_ms));
    out.line(format!("max_duration (ms): {}", e.max_duration_ms));
    out.line(format!("min_query_count : {}", e.min_query_count));
    out.line(format!("max_query_count : {}", e.max_query_count));
    out.line(format!("qsl_rng_seed : {}", e.qsl_rng_seed));
    out.line(format!("sample_index_rng_seed : {}", e.sample_index_rng_seed));
    out.line(format!("schedule_rng_seed : {}", e.schedule_rng_seed));
    out.line(format!("accuracy_log_rng_seed : {}", r.accuracy_log_rng_seed));
    out.line(format!("accuracy_log_probability : {}", general(r.accuracy_log_probability)));
    out.line(format!("accuracy_log_sampling_target : {}", r.accuracy_log_sampling_target));
    out.line(format!("print_timestamps : {}", u8::from(r.print_timestamps)));
    out.line(format!("performance_issue_unique : {}", u8::from(r.performance_issue_unique)));
    out.line(format!("performance_issue_same : {}", u8::from(r.performance_issue_same)));
    out.line(format!("performance_issue_same_index : {}", r.performance_issue_same_index));
    out.line(format!("performance_sample_count : {}", e.performance_sample_count));
    out.line(format!("accuracy_sample_count : {}", e.accuracy_sample_count));
    if r.sample_concatenate_permutation {
        out.line(
            "WARNING: sample_concatenate_permutation was set to true. \n\
             Generated samples per query might be different as the one in the setting.\n\
             Check the generated_samples_per_query line in the detailed log for the real\n\
             samples_per_query value",
        );
    }
}

fn footer(out: &mut Lines, frame: &Frame) {
    match frame.warnings {
        0 => out.line("\nNo warnings encountered during test."),
        1 => out.line("\n1 warning encountered. See detailed log."),
        n => out.line(format!("\n{n} warnings encountered. See detailed log.")),
    }
    match frame.errors {
        0 => out.line("\nNo errors encountered during test."),
        1 => out.line("\n1 ERROR encountered. See detailed log."),
        n => out.line(format!("\n{n} ERRORS encountered. See detailed log.")),
    }
}
