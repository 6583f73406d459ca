//! What a run recorded, sample by sample.

/// One completed sample. Moments are ns after the run's start; latencies are counted from the due moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its number within the test.
    pub seq: u64,
    /// Its query's number.
    pub query: u64,
    /// Its place in the library.
    pub index: u32,
    /// When it was due.
    pub due_ns: u64,
    /// How much later it was issued.
    pub issue_delay_ns: i64,
    /// Time to first token, where one was reported.
    pub ttft_ns: Option<i64>,
    /// Latency.
    pub latency_ns: i64,
    /// Output tokens as the system under test counted them.
    pub tokens: Option<i64>,
}

/// The moments of the last *issued* query, which LoadGen takes for the length of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ending {
    /// Queries issued.
    pub queries_issued: u64,
    /// When the last was due, seconds after the start.
    pub scheduled_s: f64,
    /// When the last was issued.
    pub issued_s: f64,
    /// When all its samples were done.
    pub done_s: f64,
}

/// Why a table of samples could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadSamples {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong and how it should look.
    pub what: String,
}

/// The columns of [`to_csv`].
pub const COLUMNS: &str = "seq,query,sample_idx,scheduled_ns,issue_delay_ns,ttft_ns,latency_ns,n_tokens";

/// Reads a table with the columns [`COLUMNS`]; `ttft_ns` and `n_tokens` may be empty.
///
/// # Errors
/// The first line that is not as it should be.
pub fn from_csv(text: &str) -> Result<Vec<Sample>, BadSamples> {
    let mut lines = text.lines().enumerate();
    let header = lines.next().map(|(_, l)| l.trim());
    if header != Some(COLUMNS) {
        return Err(BadSamples { line: 1, what: format!("the header must read {COLUMNS:?}, found {header:?}") });
    }
    lines
        .filter(|(_, l)| !l.trim().is_empty())
        .map(|(at, line)| sample(line).map_err(|what| BadSamples { line: at + 1, what }))
        .collect()
}

fn sample(line: &str) -> Result<Sample, String> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [seq, query, index, due, delay, ttft, latency, tokens] = fields[..] else {
        return Err(format!("expected 8 fields, found {}: {line:?}", fields.len()));
    };
    fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("{name} must be a whole number, found {text:?}"))
    }
    fn optional(name: &str, text: &str) -> Result<Option<i64>, String> {
        if text.is_empty() { Ok(None) } else { number(name, text).map(Some) }
    }
    Ok(Sample {
        seq: number("seq", seq)?,
        query: number("query", query)?,
        index: number("sample_idx", index)?,
        due_ns: number("scheduled_ns", due)?,
        issue_delay_ns: number("issue_delay_ns", delay)?,
        ttft_ns: optional("ttft_ns", ttft)?,
        latency_ns: number("latency_ns", latency)?,
        tokens: optional("n_tokens", tokens)?,
    })
}

/// The table [`from_csv`] reads.
pub fn to_csv(samples: &[Sample]) -> String {
    let mut out = format!("{COLUMNS}\n");
    let optional = |v: Option<i64>| v.map(|v| v.to_string()).unwrap_or_default();
    for s in samples {
        out += &format!(
            "{},{},{},{},{},{},{},{}\n",
            s.seq,
            s.query,
            s.index,
            s.due_ns,
            s.issue_delay_ns,
            optional(s.ttft_ns),
            s.latency_ns,
            optional(s.tokens)
        );
    }
    out
}

impl Ending {
    /// The ending of a run whose samples these are; `None` without any.
    pub fn of(samples: &[Sample]) -> Option<Ending> {
        let last = samples.iter().max_by_key(|s| s.query)?;
        let first = samples.iter().map(|s| s.query).min()?;
        let of_last = || samples.iter().filter(|s| s.query == last.query);
        let done = of_last().map(|s| s.due_ns as i64 + s.latency_ns).max()?;
        let seconds = |ns: i64| ns as f64 / 1e9;
        Some(Ending {
            queries_issued: last.query - first + 1,
            scheduled_s: seconds(last.due_ns as i64),
            issued_s: seconds(last.due_ns as i64 + last.issue_delay_ns),
            done_s: seconds(done),
        })
    }
}
