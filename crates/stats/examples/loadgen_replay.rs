//! `loadgen_replay DIR`: what we make of a run of the official LoadGen, as one line of JSON.
//!
//! DIR holds `settings.json` (LoadGen's settings by name, with `qsl_total` and `qsl_perf`), its detail log, summary and
//! trace, and, in token mode, token counts as `tokens = 2 + index % modulus` (`token_modulus` of the settings). The
//! schedule, the sample indices and the accuracy-log picks are generated from the settings and compared with the trace
//! and the accuracy log; the traced samples are scored and our summary compared with the official one.
//! `tests/loadgen_official.py` calls this.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_stats::loadgen::log::Log;
use tailbound_stats::loadgen::samples::{Ending, Sample};
use tailbound_stats::loadgen::schedule::{self, Phase, Sequence, SetChoice};
use tailbound_stats::loadgen::summary::{self, Frame};
use tailbound_stats::loadgen::{Effective, Library, Mode, Scenario, Settings, accuracy, score, trace, verdict};

fn main() -> ExitCode {
    let Some(dir) = std::env::args().nth(1) else {
        eprintln!("usage: loadgen_replay DIR");
        return ExitCode::from(2);
    };
    match replay(Path::new(&dir)) {
        Ok(found) => {
            let differences = found["differences"].as_array().map_or(0, Vec::len);
            #[allow(clippy::print_stdout)] // the result of an example
            {
                println!("{found}");
            }
            ExitCode::from(u8::from(differences > 0))
        }
        Err(error) => {
            eprintln!("failed to replay {dir}: {error}");
            ExitCode::from(1)
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn replay(dir: &Path) -> Result<Value, Failure> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).map_err(|e| format!("{name}: {e}"));
    let given: Value = serde_json::from_str(&read("settings.json")?)?;
    let settings: Settings = serde_json::from_value(given.clone())?;
    let count = |key: &str| given[key].as_u64().unwrap_or(0);
    let library = Library { total: count("qsl_total"), performance: count("qsl_perf") };
    let e = Effective::of(&settings, library);
    let mut samples = trace::parse(&read("mlperf_log_trace.json")?)?;
    if settings.use_token_latencies && count("token_modulus") > 0 {
        for s in &mut samples {
            s.tokens = Some(2 + i64::from(s.index) % count("token_modulus") as i64);
        }
    }
    let mut differences = Vec::new();
    let mode = settings.mode;
    let log = Log::parse(&read("mlperf_log_detail.txt")?)?;
    let rates = rates_tried(&log, e.target_qps);
    let plan = Plan::of(&e, library, &rates);
    plan.compare(&e, &samples, &read("mlperf_log_accuracy.json")?, &mut differences)?;
    let official = read("mlperf_log_summary.txt")?;
    compare_summary(&verdict::of_detail(&log)?.summary, &official, "detail log", true, &mut differences);
    // A peak search scores its last passing round.
    if !matches!(mode, Mode::AccuracyOnly | Mode::FindPeakPerformance) {
        let timed = from_first(&samples, plan.first_timed);
        let ending = Ending::of(&timed).ok_or("the trace holds no sample of the performance run")?;
        let mut ending = ending;
        if matches!(e.requested.scenario, Scenario::SingleStream | Scenario::MultiStream) {
            // As generated, not as issued.
            ending.scheduled_s = 0.0;
        }
        let frame = Frame {
            sut_name: "PySUT".into(),
            errors: log.entries().iter().filter(|l| l.error).count() as u64,
            warnings: log.entries().iter().filter(|l| l.warning).count() as u64,
        };
        let ours = summary::write(Some(&score::measure(&e, &timed, ending)?), &frame);
        compare_summary(&ours, &official, "samples", false, &mut differences);
    }
    Ok(json!({ "samples": samples.len(), "differences": differences }))
}

/// The samples from that number on, with times counted from the first of them.
fn from_first(samples: &[Sample], first: u64) -> Vec<Sample> {
    let mut timed: Vec<Sample> = samples.iter().filter(|s| s.seq >= first).cloned().collect();
    let start = timed.iter().map(|s| s.due_ns).min().unwrap_or(0);
    timed.iter_mut().for_each(|s| s.due_ns -= start);
    timed
}

/// The rates of a run's rounds, as the messages of a peak search name them.
fn rates_tried(log: &Log, base: f64) -> Vec<f64> {
    let messages = log.entries().iter().filter(|e| e.key == "generic_message").map(|e| e.value.trim_matches('"'));
    let mut rates: Vec<f64> = messages
        .filter_map(|m| {
            let rest = m.strip_prefix("FindPeakPerformance: Check validity of the base settings field: ");
            let bounds = m.strip_prefix("FindBoundaries: Checking fields [").and_then(|r| r.split(", ").nth(1));
            let middle = m.strip_prefix("FindPeakPerformanceBinarySearch: ").and_then(|r| r.rsplit(": ").next());
            rest.or(bounds).or(middle)?.trim_end_matches(')').parse().ok()
        })
        .collect();
    if rates.is_empty() {
        rates.push(base);
    }
    rates
}

/// What we would have issued, by sample number.
struct Plan {
    /// Query, library index, due moment.
    samples: Vec<(u64, u32, u64)>,
    logged: Vec<bool>,
    /// The first sample of the performance phase.
    first_timed: u64,
}

impl Plan {
    fn of(e: &Effective, library: Library, rates: &[f64]) -> Plan {
        let phases: &[Phase] = match e.requested.mode {
            Mode::AccuracyOnly => &[Phase::Accuracy],
            Mode::SubmissionRun => &[Phase::Accuracy, Phase::Performance],
            _ => &[Phase::Performance],
        };
        let mut sequence = Sequence::default();
        let mut plan = Plan { samples: Vec::new(), logged: Vec::new(), first_timed: 0 };
        for &phase in phases {
            plan.first_timed = plan.samples.len() as u64;
            for set in schedule::loadable_sets(e, library, phase, SetChoice::FirstN) {
                for &target_qps in rates {
                    let e = Effective { target_qps, ..e.clone() };
                    let made = schedule::generate(&e, &set, phase, &mut sequence);
                    for q in &made.queries {
                        plan.samples.extend(q.samples.iter().map(|&index| (q.seq, index, q.due_ns)));
                    }
                    plan.logged.extend(made.logged);
                }
            }
        }
        plan
    }

    fn compare(
        &self,
        e: &Effective,
        samples: &[Sample],
        answers: &str,
        differences: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let mut started = 0;
        for s in samples {
            let Some(&(query, index, due)) = self.samples.get(s.seq as usize) else {
                differences.push(format!("sample {} is not in our plan of {}", s.seq, self.samples.len()));
                break;
            };
            if due == 0 {
                started = s.due_ns;
            }
            let server = e.requested.scenario == Scenario::Server;
            if (query, index) != (s.query, s.index) || (server && due != s.due_ns - started) {
                differences.push(format!("sample {}: planned {query} {index} {due}, traced {s:?}", s.seq));
                break;
            }
        }
        let mut theirs: Vec<u64> = accuracy::parse(answers)?.iter().map(|a| a.seq).collect();
        theirs.sort_unstable();
        let picked = |seq: &u64| self.logged.get(*seq as usize) == Some(&true);
        let ours: Vec<u64> = samples.iter().map(|s| s.seq).filter(picked).collect();
        if ours != theirs {
            differences.push(format!("logged answers: {} of ours, {} of theirs", ours.len(), theirs.len()));
        }
        Ok(())
    }
}

/// A line of both summaries that agrees, or could not agree to the last digit.
///
/// A trace holds the moment a stream run started only to some microseconds, on which its rates with overhead depend; the
/// detail log holds rates to six digits, and the token limits of an Offline run not at all.
fn agree(ours: &str, official: &str, six_digits: bool, offline: bool) -> bool {
    let value = |line: &str| line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok());
    let (Some(a), Some(b)) = (value(ours), value(official)) else { return ours == official };
    let label = |line: &str| line.rsplit_once(' ').map(|(l, _)| l.to_owned());
    if ours == official || label(ours) != label(official) {
        return ours == official;
    }
    if ours.starts_with("QPS w/ ") || ours.starts_with("TPS w/ ") {
        return a.is_nan() || a.is_infinite() || (a - b).abs() <= (b * 2e-3).max(0.011);
    }
    let rate = ours.contains("er second") || ours.contains("loadgen overhead");
    let unlogged = offline && ours.contains("_latency (ns): ");
    six_digits && (unlogged || (rate && (a - b).abs() <= (b * 1e-5).max(0.011)))
}

fn compare_summary(ours: &str, official: &str, from: &str, six_digits: bool, differences: &mut Vec<String>) {
    let offline = official.contains("Scenario : Offline");
    for (a, b) in ours.lines().zip(official.lines()) {
        if !agree(a, b, six_digits, offline) {
            differences.push(format!("summary from {from}: ours {a:?}, official {b:?}"));
        }
    }
    let (n, m) = (ours.lines().count(), official.lines().count());
    if n != m {
        differences.push(format!("summary from {from}: {n} lines, official {m}"));
    }
}
