//! What a run's reader is told: LoadGen's summary, the improved judgement, and what LoadGen would keep to itself.

use super::args::RunArgs;
use super::heard::Heard;
use super::rules::Rules;
use super::{improved, logs};
use crate::bench::serve::exit_code;
use crate::failure::Outcome;
use crate::output;
use std::fmt::Write as _;
use tailbound_os::signals;
use tailbound_stats::loadgen::scenario::{Run, Test};
use tailbound_stats::loadgen::{Mode, Scenario, peak};

/// Prints and writes what a test came to; the exit code tells the verdict.
pub fn tell(args: &RunArgs, test: &Test, heard: &Heard, virtual_time: bool) -> Outcome<u8> {
    // Written first, so that "written to …" stands above the summary; but logs that can't be written must not cost the summary.
    let written = match &args.rules.output_dir {
        Some(folder) => {
            logs::write(folder, test, virtual_time).map(|()| eprintln!("logs written to {}", folder.display()))
        }
        None => {
            output::note("the logs were not kept: --output-dir DIR keeps them");
            Ok(())
        }
    };
    let mut text = test.summary();
    text += &tried(test);
    let valid = match test.result() {
        Some(run) => performance(args, run, heard, &mut text),
        None => accuracy(test, heard),
    };
    output::print(&text)?;
    written?;
    let (interrupted, terminated) = (signals::interrupts() > 0, signals::terminates() > 0);
    Ok(exit_code(interrupted, terminated, valid, true))
}

fn performance(args: &RunArgs, run: &Run, heard: &Heard, text: &mut String) -> bool {
    let complaint = heard.complaint();
    let Some(score) = &run.score else {
        eprintln!("INVALID: no sample was answered\n{}", complaint.trim_end());
        return false;
    };
    let judged = improved::of_run(score, &run.outcome);
    let lost = run.outcome.lost.len() as u64;
    if heard.losses() > 0 {
        eprintln!("{} samples were never answered:\n{}", heard.losses(), complaint.trim_end());
    }
    // Of a submission run, answers to its accuracy part: there is no share of them that may be missing.
    let unlogged = heard.losses().saturating_sub(lost);
    if unlogged > 0 {
        eprintln!("INVALID: the accuracy log lacks {unlogged} answers that never came");
    }
    if args.rules.improved {
        *text += &judged.text;
        return judged.valid && unlogged == 0;
    }
    let official = score.decision.valid();
    if lost > 0 {
        eprintln!("INVALID: LoadGen would wait for {lost} of the answers for ever");
    } else if official && !judged.valid {
        let why = judged.text.lines().filter(|l| l.starts_with(" * ")).collect::<Vec<_>>().join("\n");
        eprintln!("note: LoadGen calls this VALID; --improved would not:\n{why}");
    } else if !official {
        eprintln!("note: --improved names every reason, with what it would take");
    }
    official && heard.losses() == 0
}

/// An accuracy run has no verdict; but a log that lacks answers is none.
fn accuracy(test: &Test, heard: &Heard) -> bool {
    if heard.losses() > 0 {
        let (n, complaint) = (heard.losses(), heard.complaint());
        eprintln!("INVALID: the accuracy log lacks {n} answers that never came:\n{}", complaint.trim_end());
        return false;
    }
    test.finished()
}

/// The rates of a peak search.
fn tried(test: &Test) -> String {
    let Some(last) = test.tried().last() else { return String::new() };
    let mut out = String::from("\nPeak search, queries/s:\n");
    for t in test.tried() {
        let word = if t.passed { "passes" } else { "fails" };
        let early = if t.stopping { "" } else { ", early stopping not satisfied" };
        let _ = writeln!(out, "  {:>12.3}  {word} ({} queries{early})", t.qps, t.queries);
    }
    let passed = test.tried().iter().any(|t| t.passed);
    match test.result().and_then(|r| r.score.as_ref()) {
        Some(score) if passed => {
            let (qps, shown) = (score.effective.target_qps, peak::shown(score));
            let _ = writeln!(out, "  peak: {qps:.3} asked for, {shown:.3} both scheduled and completed");
        }
        _ => {
            let _ = writeln!(out, "  none passes: not even {:.3}", last.qps);
        }
    }
    out
}

/// `--dry-run`.
pub fn plan(test: &Test, rules: &Rules) -> String {
    let e = test.effective();
    let r = &e.requested;
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<22} {value}");
    };
    line("scenario", r.scenario.name().to_owned());
    line("mode", r.mode.name().to_owned());
    line("benchmark", if rules.benchmark == "*" { "none".into() } else { rules.benchmark.clone() });
    line("samples in the set", e.performance_sample_count.to_string());
    if r.mode != Mode::AccuracyOnly {
        line("queries, at least", e.min_query_count.to_string());
        line("samples per query", e.samples_per_query.to_string());
        line("lasts, at least", format!("{} s", e.min_duration_ms as f64 / 1e3));
        if matches!(r.scenario, Scenario::Server | Scenario::Offline) {
            line("queries/s asked for", e.target_qps.to_string());
        }
    }
    match (r.scenario, r.use_token_latencies) {
        (Scenario::Server, true) => {
            let ms = |ns: u64| ns as f64 / 1e6;
            let (ttft, tpot, p) = (ms(r.ttft_latency), ms(r.tpot_latency), e.target_latency_percentile * 100.0);
            line("limits", format!("P{p} TTFT {ttft} ms, P{p} TPOT {tpot} ms"));
        }
        (Scenario::Server, false) => {
            let (ms, p) = (e.target_latency_ns as f64 / 1e6, e.target_latency_percentile * 100.0);
            line("limits", format!("P{p} latency {ms} ms"));
        }
        _ => {}
    }
    let seeds = [e.qsl_rng_seed, e.sample_index_rng_seed, e.schedule_rng_seed].map(|s| s.to_string());
    line("seeds", seeds.join(", "));
    out
}
