//! The compliance tests that apply to LLM benchmarks, as far as they can be told from logs.
//!
//! TEST06 (output consistency) reads an accuracy log made in performance mode; TEST09 (output length) the token counts of
//! one, TEST07 both and a scorer's result. TEST04 (nothing answered from memory) exempts LLMs officially, and is offered for what it tells
//! of caches: it compares a run with one that repeats a single sample. TEST01 and TEST08 exempt LLMs, TEST05 was withdrawn.

use super::accuracy::Answer;
use super::score::Score;
use super::settings::Scenario;

/// `audit.config` of TEST06.
pub const TEST06_CONFIG: &str = "*.*.mode = 2\n*.*.accuracy_log_sampling_target = 100\n*.*.min_query_count = 100\n\
                                 *.*.min_duration = 0\n*.*.sample_concatenate_permutation = 0\n";

/// `audit.config` of TEST04: one sample again and again, which an answer cache would make faster.
pub const TEST04_CONFIG: &str = "*.*.mode = 2\n*.*.performance_issue_same = 1\n*.*.performance_issue_same_index = 3\n\
                                 *.*.sample_concatenate_permutation = 0\n";

/// `audit.config` of TEST07: answers to 990 different samples, logged in performance mode.
pub const TEST07_CONFIG: &str = "*.*.mode = 2\n*.*.accuracy_log_sampling_target = 990\n*.*.min_query_count = 990\n\
                                 *.*.performance_issue_unique = 1\n*.*.min_duration = 0\n\
                                 *.*.sample_concatenate_permutation = 0\n";

/// `audit.config` of TEST09: the length of every answer, in performance mode.
pub const TEST09_CONFIG: &str = "*.*.mode = 2\n*.*.accuracy_log_sampling_target = 10000\n*.*.min_query_count = 6396\n\
                                 *.*.performance_issue_unique = 1\n*.*.min_duration = 0\n\
                                 *.*.sample_concatenate_permutation = 0\n";

/// The built-in audit configuration of that test (`test04`, `test06`, `test07`, `test09`).
pub fn config(test: &str) -> Option<&'static str> {
    match test {
        "test04" => Some(TEST04_CONFIG),
        "test06" => Some(TEST06_CONFIG),
        "test07" => Some(TEST07_CONFIG),
        "test09" => Some(TEST09_CONFIG),
        _ => None,
    }
}

/// The end-of-sequence token of the official models.
pub const EOS: u32 = 2;

/// What TEST06 found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test06 {
    /// Samples looked at.
    pub samples: usize,
    /// Samples whose first token is not the first of their output.
    pub first_token: Vec<u64>,
    /// Samples that end in more than one end-of-sequence token.
    pub eos: Vec<u64>,
    /// Samples whose output is not as long as they report.
    pub length: Vec<u64>,
}

impl Test06 {
    /// Whether the test passes; not without samples.
    pub fn passes(&self) -> bool {
        self.samples > 0 && self.first_token.is_empty() && self.eos.is_empty() && self.length.is_empty()
    }
}

/// TEST06 over an accuracy log: first token, trailing end-of-sequence tokens, reported length. Data are token ids of 32
/// bits, little-endian. Offline reports no first tokens, so there that check is left out.
pub fn test06(answers: &[Answer], offline: bool, eos: u32) -> Test06 {
    let mut found = Test06 { samples: answers.len(), ..Test06::default() };
    for a in answers {
        let tokens = ids(&a.data);
        let first = a.first_token.as_deref().and_then(|t| ids(t).first().copied());
        if !offline && (first.is_none() || first != tokens.first().copied()) {
            found.first_token.push(a.seq);
        }
        if tokens.iter().rev().take_while(|&&t| t == eos).count() > 1 {
            found.eos.push(a.seq);
        }
        if !a.data.len().is_multiple_of(4) || a.tokens != Some(tokens.len() as i64) {
            found.length.push(a.seq);
        }
    }
    found
}

fn ids(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// How much faster the repeated sample may be in TEST04.
pub const TEST04_MARGIN: f64 = 0.10;

/// What TEST04 found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test04 {
    /// The speed of the reference: samples a second (Offline), or of a second's queries at the reported latency (streams).
    pub reference: f64,
    /// The same of the run that repeats one sample.
    pub repeated: f64,
}

impl Test04 {
    /// Compares two scored runs; `None` where the scenario fixes the rate, so that it can tell nothing (Server).
    pub fn of(reference: &Score, repeated: &Score) -> Option<Test04> {
        let speed = |s: &Score| match s.effective.requested.scenario {
            Scenario::Offline => Some(s.rates.offline),
            Scenario::SingleStream | Scenario::MultiStream => {
                let spread = s.query_latency.as_ref().unwrap_or(&s.latency);
                spread.target.filter(|&ns| ns > 0).map(|ns| 1e9 / ns as f64)
            }
            Scenario::Server => None,
        };
        Some(Test04 { reference: speed(reference)?, repeated: speed(repeated)? })
    }

    /// How much faster the repeated sample was; 0.1 is 10 %.
    pub fn faster_by(&self) -> f64 {
        self.repeated / self.reference - 1.0
    }

    /// Whether nothing was answered from memory, as far as speed can tell.
    pub fn passes(&self) -> bool {
        self.faster_by() <= TEST04_MARGIN
    }
}

/// The accuracy that TEST07 asks of gpt-oss-120b, percent of exact matches.
pub const TEST07_ACCURACY: f64 = 60.698;
/// How many answers TEST07 asks for.
pub const TEST07_ANSWERS: usize = 990;

/// TEST07, as far as the log tells: how many different samples were answered. Their accuracy is for the benchmark's own scorer.
pub fn test07_answered(answers: &[Answer]) -> usize {
    answers.iter().filter(|a| !a.data.is_empty()).map(|a| a.index).collect::<std::collections::BTreeSet<_>>().len()
}

/// TEST09: the mean output length must be within 10 % of the reference (1278.20 tokens for gpt-oss-120b). `None` without
/// counts; otherwise the mean and whether it is.
pub fn test09(answers: &[Answer], reference_mean: f64) -> Option<(f64, bool)> {
    let counts: Vec<i64> = answers.iter().filter_map(|a| a.tokens).collect();
    if counts.is_empty() {
        return None;
    }
    let mean = counts.iter().sum::<i64>() as f64 / counts.len() as f64;
    Some((mean, (0.9 * reference_mean..=1.1 * reference_mean).contains(&mean)))
}
