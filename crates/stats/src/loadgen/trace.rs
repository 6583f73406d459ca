//! `mlperf_log_trace.json`: the samples of a run, to the nanosecond.
//!
//! The file is a Chrome trace that is not quite JSON, so it is read line by line.

use super::samples::Sample;

/// The samples of a trace in order of their numbers. Times count from the first sample's due moment. Token counts are not
/// traced.
///
/// # Errors
/// A sample line without one of its numbers, by line number; a trace without samples gives none.
pub fn parse(text: &str) -> Result<Vec<Sample>, super::samples::BadSamples> {
    let mut samples = Vec::new();
    // Server traces first tokens by the moment their sample was due, the other scenarios by its number.
    let mut first_tokens = std::collections::BTreeMap::new();
    let mut by_due = std::collections::BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let bad = |field: &str| super::samples::BadSamples {
            line: at + 1,
            what: format!("a traced sample without {field:?}: the trace is cut off or was edited"),
        };
        if line.starts_with("{\"name\":\"Token_Latency\"") {
            let due = due_ns(line).ok_or_else(|| bad("ts"))?;
            let delay = number(line, "issue_delay").ok_or_else(|| bad("issue_delay"))?;
            let after = number(line, "issue_to_done").ok_or_else(|| bad("issue_to_done"))?;
            by_due.entry(due).or_insert_with(Vec::new).push(delay + after);
        }
        if line.starts_with("{\"name\":\"Token\"") && line.contains("\"ph\":\"b\"") {
            let seq = number(line, "sample_seq").ok_or_else(|| bad("sample_seq"))?;
            let ttft = number(line, "complete_ns").ok_or_else(|| bad("complete_ns"))?;
            first_tokens.insert(seq as u64, ttft);
        }
        if line.starts_with("{\"name\":\"Sample\"") && line.contains("\"ph\":\"b\"") {
            let field = |name: &'static str| number(line, name).ok_or_else(|| bad(name));
            samples.push(Sample {
                seq: field("sample_seq")? as u64,
                query: field("query_seq")? as u64,
                index: field("sample_idx")? as u32,
                due_ns: due_ns(line).ok_or_else(|| bad("ts"))?,
                issue_delay_ns: field("issue_start_ns")?,
                ttft_ns: None,
                latency_ns: field("complete_ns")?,
                tokens: None,
            });
        }
    }
    samples.sort_by_key(|s| s.seq);
    for s in &mut samples {
        s.ttft_ns = first_tokens.remove(&s.seq).or_else(|| by_due.get_mut(&s.due_ns).and_then(|list| list.pop()));
    }
    let start = samples.iter().map(|s| s.due_ns).min().unwrap_or(0);
    for s in &mut samples {
        s.due_ns -= start;
    }
    Ok(samples)
}

/// The `ts` of an event, microseconds with three decimals, as whole nanoseconds.
fn due_ns(line: &str) -> Option<u64> {
    let text = after(line, "\"ts\":")?;
    let (whole, fraction) = text.split_once('.')?;
    let fraction = fraction.get(..3)?;
    Some(whole.parse::<u64>().ok()? * 1000 + fraction.parse::<u64>().ok()?)
}

fn number(line: &str, name: &str) -> Option<i64> {
    after(line, &format!("\"{name}\":"))?.parse().ok()
}

fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find([',', '}'])?;
    Some(&rest[..end])
}
