//! `tailbound bench loadgen verdict DIR`.

use super::{folder, improved};
use crate::failure::{Outcome, exit};
use crate::output;
use clap::Args;
use std::path::PathBuf;
use tailbound_stats::loadgen::verdict::{of_detail, of_samples};

/// Judge a run again.
#[derive(Args, Debug)]
pub struct VerdictArgs {
    /// The folder of its logs: mlperf_log_detail.txt and, if there are any, samples.csv or mlperf_log_trace.json
    dir: PathBuf,
    /// Then judge more strictly than LoadGen, and name every reason with what it would take; the exit code is this judgement's
    #[arg(long)]
    improved: bool,
}

/// Prints LoadGen's summary, made anew. A log that its own figures, or its samples, contradict is INVALID whatever it says.
pub fn run(args: &VerdictArgs) -> Outcome<u8> {
    let log = folder::detail(&args.dir)?;
    let unjudged = |e| folder::garbled(&args.dir, "mlperf_log_detail.txt", &e);
    let verdict = of_detail(&log).map_err(unjudged)?;
    let samples = folder::samples(&args.dir, &log)?;
    let by_samples = match &samples {
        Some(samples) => Some(of_samples(&log, &samples.list, None).map_err(unjudged)?),
        None => None,
    };
    let mut contradictions = verdict.contradictions;
    contradictions.extend(by_samples.iter().flat_map(|v| v.contradictions.iter().cloned()));
    for what in &contradictions {
        eprintln!("contradiction: {what}");
    }
    for line in &verdict.rounded {
        eprintln!("note: the detail log does not hold every digit of {line:?}");
    }
    let mut valid = verdict.score.as_ref().is_none_or(|s| s.decision.valid());
    let mut text = verdict.summary;
    match &verdict.score {
        None => eprintln!("note: an accuracy run; LoadGen gives it no verdict"),
        Some(of_log) if args.improved => {
            let measured = by_samples.as_ref().and_then(|v| v.score.as_ref()).zip(samples.as_ref());
            let judged = match measured {
                Some((score, samples)) => improved::by_samples(&log, score, samples),
                None => improved::by_log(of_log),
            };
            valid = judged.valid;
            text += &judged.text;
        }
        Some(_) => {}
    }
    output::print(&text)?;
    Ok(if valid && contradictions.is_empty() { 0 } else { exit::INVALID })
}
