//! Rows from a result file of `vllm bench serve --save-detailed`: as much of them as it holds.

use super::measured::Measured;
use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::path::Path;
use tailbound_clock::{Dur, Time};
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row};
use tailbound_stats::RunFacts;

/// Reads one. There is no verdict in it, so the run counts as valid.
pub fn read(path: &Path) -> Outcome<Measured> {
    let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| failed(format!("not one JSON object: {e}")))?;
    let (rows, facts) = rows(&value).map_err(|why| {
        failed(why)
            .hint("per-request figures are in a result only with --save-detailed; or keep whole runs: --run-dir DIR")
    })?;
    Ok(Measured {
        rows,
        facts,
        reasons: Vec::new(),
        model: value["model_id"].as_str().unwrap_or_default().to_owned(),
        order: None,
        folder: Some(path.to_owned()),
        requests: None,
        stopped: None,
        temperature: None,
    })
}

fn rows(value: &Value) -> Result<(Vec<Row>, RunFacts), String> {
    let array = |key: &str| value[key].as_array().ok_or_else(|| format!("it has no array `{key}`"));
    let (ttfts, itls, lengths) = (array("ttfts")?, array("itls")?, array("output_lens")?);
    let n = ttfts.len();
    if itls.len() != n || lengths.len() != n {
        return Err(format!("{n} ttfts, {} itls, {} output_lens: they must be as many", itls.len(), lengths.len()));
    }
    let duration = value["duration"].as_f64().filter(|s| *s > 0.0).ok_or("it has no `duration`")?;
    let starts = value["start_times"].as_array().filter(|starts| starts.len() == n);
    let starts: Option<Vec<f64>> = starts.and_then(|starts| starts.iter().map(Value::as_f64).collect());
    let origin = starts.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let list = |key: &str, i: usize| value[key].get(i);
    let mut out = Vec::with_capacity(n);
    for i in 0..n {
        let mut row = Row::new(i as u64);
        // Without starts only the order is known; every latency counts from the start, so none is wrong for it.
        let start = starts.as_ref().map_or(0.0, |starts| starts[i] - origin);
        let sent = Time::ZERO + Dur::from_secs_f64(start);
        for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
            row.at.set(moment, sent);
        }
        row.tokens.prompt_server = list("input_lens", i).and_then(Value::as_u64).map(|n| n as u32);
        row.text = list("generated_texts", i).and_then(Value::as_str).map(Into::into);
        let error = list("errors", i).and_then(Value::as_str).unwrap_or_default();
        let tokens = lengths[i].as_u64().unwrap_or(0);
        if !error.is_empty() || tokens == 0 {
            row.end =
                End::Failed { phase: Phase::Stream, blame: Blame::Server, cause: Cause::Io, detail: error.into() };
            out.push(row);
            continue;
        }
        let ttft = ttfts[i].as_f64().ok_or_else(|| format!("ttfts[{i}] is no number"))?;
        let gaps = itls[i].as_array().ok_or_else(|| format!("itls[{i}] is no array"))?;
        let mut at = start + ttft;
        events(&mut row, at, gaps, &mut at).ok_or_else(|| format!("itls[{i}] holds something that is no number"))?;
        let end = Time::ZERO + Dur::from_secs_f64(at);
        row.at.set(Moment::FirstToken, Time::ZERO + Dur::from_secs_f64(start + ttft));
        row.at.set(Moment::LastToken, end);
        row.at.set(Moment::StreamEnd, end);
        row.tokens.output_server = Some(tokens as u32);
        row.end = End::Done(Finish::Unstated);
        out.push(row);
    }
    // Where nobody knows when requests began there are no rates in time.
    let end = starts.map_or(Time::ZERO, |_| Time::ZERO + Dur::from_secs_f64(duration));
    let facts = RunFacts {
        request_rate: value["request_rate"].as_f64(),
        max_concurrency: value["max_concurrency"].as_u64().map(|n| n as u32),
        ..RunFacts::new(Time::ZERO, end)
    };
    Ok((out, facts))
}

fn events(row: &mut Row, first: f64, gaps: &[Value], last: &mut f64) -> Option<()> {
    row.chunks.push(Time::ZERO + Dur::from_secs_f64(first), 0, 0, true);
    for (read, gap) in (1..).zip(gaps) {
        *last += gap.as_f64()?;
        row.chunks.push(Time::ZERO + Dur::from_secs_f64(*last), read, 0, true);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_of_vllms_gives_rows_and_says_what_it_lacks() {
        let mut result = json!({
            "duration": 2.0, "max_concurrency": 4, "ttfts": [0.1, 0.2, 0.0], "itls": [[0.01, 0.02], [], []],
            "output_lens": [3, 1, 0], "input_lens": [10, 20, 30], "errors": ["", "", "boom"],
            "generated_texts": ["a b c", "x", ""], "start_times": [100.0, 100.5, 101.0],
        });
        let (rows, facts) = rows(&result).unwrap();
        assert_eq!((rows.len(), facts.duration(), facts.max_concurrency), (3, Dur::from_secs(2), Some(4)));
        assert_eq!((rows[0].ttft(), rows[0].e2e()), (Some(Dur::from_ms(100)), Some(Dur::from_ms(130))));
        assert_eq!(rows[1].at.get(Moment::WriteStart), Some(Time(500_000_000)));
        assert!(!rows[2].ok() && rows[0].text.as_deref() == Some("a b c"));
        result["itls"] = json!([]);
        assert!(super::rows(&result).unwrap_err().contains("3 ttfts, 0 itls"));
        assert!(super::rows(&json!({"duration": 1})).unwrap_err().contains("`ttfts`"));
    }
}
