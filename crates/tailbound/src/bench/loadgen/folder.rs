//! What a LoadGen folder holds.

use crate::failure::{Failure, Outcome};
use std::io::ErrorKind;
use std::path::Path;
use tailbound_stats::loadgen::log::Log;
use tailbound_stats::loadgen::samples::{Sample, from_csv};
use tailbound_stats::loadgen::{Effective, Mode};
use tailbound_stats::loadgen::{trace, verdict};

const DETAIL: &str = "mlperf_log_detail.txt";
const SAMPLES: &str = "samples.csv";
const TRACE: &str = "mlperf_log_trace.json";

/// The samples of a run, and the file that held them.
pub struct Samples {
    /// Its name.
    pub file: &'static str,
    /// In order of their numbers.
    pub list: Vec<Sample>,
}

/// The detail log.
pub fn detail(dir: &Path) -> Outcome<Log> {
    let path = dir.join(DETAIL);
    let text = std::fs::read_to_string(&path).map_err(|e| {
        Failure::new(format!("failed to read {}: {e}", path.display()))
            .hint(format!("name the folder LoadGen wrote its logs to: the one with {DETAIL}"))
    })?;
    Log::parse(&text).map_err(|e| garbled(dir, DETAIL, &e))
}

/// The samples, if the folder has some that belong to one performance run: our table before LoadGen's trace, which has no
/// token counts.
pub fn samples(dir: &Path, log: &Log) -> Outcome<Option<Samples>> {
    let effective = verdict::effective_of(log).map_err(|e| garbled(dir, DETAIL, &e))?;
    if effective.requested.mode != Mode::PerformanceOnly {
        return Ok(None);
    }
    if let Some(text) = read(dir, SAMPLES)? {
        return sane(dir, SAMPLES, from_csv(&text).map_err(|e| garbled(dir, SAMPLES, &e))?);
    }
    match read(dir, TRACE)? {
        Some(_) if needs_tokens(&effective) => Ok(None),
        Some(text) => sane(dir, TRACE, trace::parse(&text).map_err(|e| garbled(dir, TRACE, &e))?),
        None => Ok(None),
    }
}

fn needs_tokens(effective: &Effective) -> bool {
    effective.requested.use_token_latencies
}

fn read(dir: &Path, name: &str) -> Outcome<Option<String>> {
    let path = dir.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::new(format!("failed to read {}: {e}", path.display()))),
    }
}

/// Numbers beyond any run would only overflow the sums made of them.
fn sane(dir: &Path, file: &'static str, mut list: Vec<Sample>) -> Outcome<Option<Samples>> {
    let near = |n: i64| n.unsigned_abs() < 1 << 60;
    let usual = |s: &Sample| {
        s.seq < 1 << 40
            && s.query < 1 << 40
            && s.due_ns < 1 << 60
            && [s.issue_delay_ns, s.latency_ns, s.ttft_ns.unwrap_or(0), s.tokens.unwrap_or(0)].into_iter().all(near)
    };
    if let Some(i) = list.iter().position(|s| !usual(s)) {
        return Err(garbled(dir, file, &format!("sample {} has a number beyond any run's", i + 1)));
    }
    list.sort_by_key(|s| s.seq);
    if let (Some(first), Some(last)) = (list.first(), list.last()) {
        let missing = last.seq - first.seq + 1;
        if missing > 4 * list.len() as u64 + 1000 {
            return Err(garbled(dir, file, &format!("{} samples cannot span {missing} numbers", list.len())));
        }
    }
    // A trace that was switched off is an empty file.
    Ok((!list.is_empty()).then_some(Samples { file, list }))
}

/// A log that can't be judged.
pub fn garbled(dir: &Path, file: &str, what: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("failed to judge {}: {what}", dir.join(file).display()))
        .hint("judge the folder as LoadGen left it; a run that was cut short leaves nothing to judge")
}
