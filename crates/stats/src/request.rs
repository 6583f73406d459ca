//! Figures of a single request.

use crate::lengths::TokenSource;
use tailbound_clock::Time;
use tailbound_record::{Chunk, Moment, Row};

/// When the request left: when connecting began for it, else when its first byte was written. `None` if it never left.
pub fn departure(row: &Row) -> Option<Time> {
    let write = row.at.get(Moment::WriteStart);
    match (row.at.get(Moment::ConnectStart), row.at.get(Moment::Released)) {
        // A connection opened ahead of the release is not this request's departure.
        (Some(connect), Some(released)) if connect >= released => Some(connect),
        (Some(connect), None) => Some(connect),
        _ => write,
    }
}

/// The last thing known to have happened to it.
pub(crate) fn last_moment(row: &Row) -> Option<Time> {
    row.at.get(Moment::StreamEnd).or_else(|| Moment::ALL.into_iter().filter_map(|m| row.at.get(m)).max())
}

/// Output tokens and who counted them: the server (its usage, else the token ids it sent with every event), else a tokenizer run
/// here, else the stream's events. A server that says 0 of an answer that had tokens is not believed.
pub fn output_tokens(row: &Row) -> (u32, TokenSource) {
    let believed = |n: &u32| *n > 0 || row.chunks.is_empty();
    if let Some(n) = row.tokens.output_server.filter(believed).or_else(|| row.chunks.stated_tokens()) {
        return (n, TokenSource::Server);
    }
    if let Some(n) = row.tokens.output_tokenized.filter(believed) {
        return (n, TokenSource::Tokenizer);
    }
    (row.chunks.len() as u32, TokenSource::Events)
}

/// Tokens in the first event: as stated, else all of them if there was but one event, else 1.
pub(crate) fn first_chunk_tokens(row: &Row, output: u32) -> u32 {
    match row.chunks.as_slice() {
        [] => 1,
        [_only] => output,
        [first, ..] => u32::from(first.tokens).max(1),
    }
}

/// First to last token in nanoseconds.
pub(crate) fn decode_ns(row: &Row) -> Option<f64> {
    row.at.between(Moment::FirstToken, Moment::LastToken).map(|d| d.ns() as f64)
}

/// Time per output token after the first event, in nanoseconds: (last token − first token) / (n − k₁), where k₁ tokens came with the
/// first event. `None` where nothing came after it.
pub fn tpot_ns(row: &Row) -> Option<f64> {
    let (n, _) = output_tokens(row);
    let after = n.checked_sub(first_chunk_tokens(row, n)).filter(|after| *after > 0)?;
    Some(decode_ns(row)? / f64::from(after))
}

/// vLLM's TPOT in nanoseconds: (last token − first token) / (n − 1), `None` for answers of one token.
pub(crate) fn tpot_vllm_ns(row: &Row) -> Option<f64> {
    let (n, _) = output_tokens(row);
    if n <= 1 {
        return None;
    }
    Some(decode_ns(row)? / f64::from(n - 1))
}

/// Each event with its share of the output: what it stated, or, where any event of the row stated nothing, an even spread of the whole
/// count over the events (in integers that add up to it).
pub(crate) fn weighted(row: &Row) -> impl Iterator<Item = (&Chunk, u32)> {
    let chunks = row.chunks.as_slice();
    let stated = chunks.iter().all(|c| c.tokens > 0);
    let (n, _) = output_tokens(row);
    let (n, m) = (u64::from(n), chunks.len().max(1) as u64);
    chunks.iter().zip(0u64..).map(move |(chunk, i)| {
        let spread = || (((i + 1) * n) / m - (i * n) / m) as u32;
        (chunk, if stated { u32::from(chunk.tokens) } else { spread() })
    })
}
