//! Token counts and times per output token, with LoadGen's treatment of counts it does not accept.

use super::samples::Sample;

/// What LoadGen logs, once a sample, about a token count it does not accept.
pub fn count_error(tokens: Option<i64>) -> Option<&'static str> {
    match tokens {
        None | Some(0) => Some("n_tokens argument missing or attempted to record 0 as number of tokens"),
        Some(n) if n < 0 => Some("Attempted to record a negative number of tokens"),
        Some(1) => Some("Number of tokens need to be greater than 1"),
        Some(_) => None,
    }
}

/// The count LoadGen goes on with: anything it does not accept becomes 0.
pub fn accepted(tokens: Option<i64>) -> i64 {
    tokens.filter(|&n| n > 1).unwrap_or(0)
}

/// Parity: `(latency − ttft) / (n − 1)`, truncated toward zero. A count of 0 divides by −1 and gives a negative time.
pub fn tpot_parity(sample: &Sample) -> i64 {
    (sample.latency_ns - sample.ttft_ns.unwrap_or(0)) / (accepted(sample.tokens) - 1)
}

/// Improved: `None` where there are too few tokens for a time between them, or no first token.
pub fn tpot(sample: &Sample) -> Option<i64> {
    let tokens = sample.tokens.filter(|&n| n > 1)?;
    let after_first = sample.latency_ns - sample.ttft_ns?;
    (after_first >= 0).then(|| after_first / (tokens - 1))
}
