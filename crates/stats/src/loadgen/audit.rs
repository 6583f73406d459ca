//! The compliance tests that apply to LLM benchmarks, as far as they can be told from logs.
//!
//! TEST06 (output consistency) reads an accuracy log made in performance mode; TEST09 (output length) the token counts of
//! one. TEST01, TEST04 and TEST08 exempt LLMs, TEST05 was withdrawn, TEST07 needs the benchmark's own scorer.

use super::accuracy::Answer;

/// `audit.config` of TEST06.
pub const TEST06_CONFIG: &str = "*.*.mode = 2\n*.*.accuracy_log_sampling_target = 100\n*.*.min_query_count = 100\n\
                                 *.*.min_duration = 0\n*.*.sample_concatenate_permutation = 0\n";

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
