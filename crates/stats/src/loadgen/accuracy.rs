//! `mlperf_log_accuracy.json`, byte for byte.

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The sample's number within the test.
    pub seq: u64,
    /// Its place in the library.
    pub index: u32,
    /// The answer's bytes as the accuracy script expects them (LLM benchmarks: token ids, 32-bit little-endian).
    pub data: Vec<u8>,
    /// The first token's bytes, in token mode outside Offline.
    pub first_token: Option<Vec<u8>>,
    /// The number of tokens, in token mode.
    pub tokens: Option<i64>,
}

/// The log of these answers, in the order in which they were completed.
pub fn write(answers: &[Answer]) -> String {
    let mut out = String::from("[");
    for (i, a) in answers.iter().enumerate() {
        out += if i == 0 { "\n" } else { ",\n" };
        out += &format!("{{ \"seq_id\" : {}, \"qsl_idx\" : {}, \"data\" : \"{}\"", a.seq, a.index, hex(&a.data));
        if let Some(first) = &a.first_token {
            out += &format!(", \"token_data\" : \"{}\"", hex(first));
        }
        if let Some(tokens) = a.tokens {
            out += &format!(", \"token_count\" : {tokens}");
        }
        out += " }";
    }
    out + "\n]\n"
}

/// Why an accuracy log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadAnswers {
    /// Not JSON of the right shape.
    #[error("the accuracy log is not a list of {{seq_id, qsl_idx, data}} objects: {0}")]
    Json(#[from] serde_json::Error),
    /// Not hexadecimal.
    #[error("the accuracy log's answer {seq} has {field} that is not hexadecimal bytes")]
    Hex {
        /// Whose.
        seq: u64,
        /// Which.
        field: &'static str,
    },
}

#[derive(serde::Deserialize)]
struct Line {
    seq_id: u64,
    qsl_idx: u32,
    data: String,
    token_data: Option<String>,
    token_count: Option<i64>,
}

/// Reads a log back.
///
/// # Errors
/// If it is not such a log.
pub fn parse(text: &str) -> Result<Vec<Answer>, BadAnswers> {
    let lines: Vec<Line> = serde_json::from_str(text)?;
    let read = |l: Line| {
        let bytes = |field, text: &str| unhex(text).ok_or(BadAnswers::Hex { seq: l.seq_id, field });
        Ok(Answer {
            seq: l.seq_id,
            index: l.qsl_idx,
            data: bytes("data", &l.data)?,
            first_token: l.token_data.as_deref().map(|t| bytes("token_data", t)).transpose()?,
            tokens: l.token_count,
        })
    };
    lines.into_iter().map(read).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() % 2 == 1 {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}
