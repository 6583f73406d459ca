//! A run by the rules of the ISCA 2020 paper: MultiStream scored by the streams sustained, Server by the paper's bounds.

use super::args::RunArgs;
use super::logs;
use super::rules::Rules;
use super::run::Bench;
use crate::bench::serve::exit_code;
use crate::failure::{Failure, Outcome};
use crate::output;
use std::fmt::Write as _;
use tailbound_os::signals;
use tailbound_stats::loadgen::isca2020::{Search, Streams, Task, judge, queries_for};
use tailbound_stats::loadgen::scenario::Test;
use tailbound_stats::loadgen::{Mode, Scenario, Settings};

/// Runs the test, or the tests of a search.
pub fn run(args: &RunArgs, rules: &Rules, bench: &Bench<'_>) -> Outcome<u8> {
    let Some(task) = &rules.task else { return Err(Failure::new("the paper's rules need a task")) };
    if rules.settings.mode != Mode::PerformanceOnly {
        return Err(Failure::usage("--rules isca2020: the paper's rules judge performance runs; leave --mode out"));
    }
    if rules.settings.scenario == Scenario::MultiStream {
        return multi_stream(args, task, &rules.settings, bench);
    }
    let mut test = bench.test(&rules.settings, None)?;
    let heard = bench.run(&mut test)?;
    let (valid, text) = single(task, &test);
    if heard.losses() > 0 {
        eprintln!("{} samples were never answered:\n{}", heard.losses(), heard.complaint().trim_end());
    }
    finish(args, &test, valid && heard.losses() == 0, &text)
}

fn finish(args: &RunArgs, test: &Test, valid: bool, text: &str) -> Outcome<u8> {
    let written = match &args.rules.output_dir {
        Some(folder) => logs::write(folder, test, args.rules.virtual_time),
        None => Ok(()),
    };
    output::print(text)?;
    written?;
    Ok(exit_code(signals::interrupts() > 0, signals::terminates() > 0, valid, true))
}

/// SingleStream, Server and Offline: the paper asks for so many queries, a minute, and in Server the bound.
fn single(task: &Task, test: &Test) -> (bool, String) {
    let mut out = heading(task, test.effective().requested.scenario);
    let Some(score) = test.result().and_then(|r| r.score.as_ref()) else {
        out += "Result is : INVALID\n * no sample was answered\n";
        return (false, out);
    };
    let e = &score.effective;
    let mut reasons = Vec::new();
    if !score.decision.duration {
        reasons.push(format!("the run was shorter than the {} s it needs", e.min_duration_ms as f64 / 1e3));
    }
    if !score.decision.queries {
        let (n, need) = (score.samples, e.min_sample_count);
        reasons.push(format!("{n} samples were answered of the {need} it needs"));
    }
    let ms = |ns: i64| ns as f64 / 1e6;
    match e.requested.scenario {
        Scenario::Server => {
            let (over, allowed) = (score.over_latency, (score.samples as f64 * task.late_share) as u64);
            if over > allowed {
                reasons.push(format!("{over} queries were over the bound, allowed {allowed}: lower the rate"));
            }
            let _ = writeln!(out, "Queries/s scheduled: {:.2}", score.rates.scheduled);
            let share = 100.0 * over as f64 / score.samples as f64;
            let _ = writeln!(
                out,
                "Over the bound of {} ms: {over} of {} ({share:.3} %)",
                task.server_bound.ms(),
                score.samples
            );
        }
        Scenario::Offline => {
            let _ = writeln!(out, "Samples/s: {:.2}", score.rates.offline);
        }
        Scenario::SingleStream | Scenario::MultiStream => {
            let p90 = score.latency.target.map_or_else(|| "?".into(), |ns| format!("{:.3} ms", ms(ns)));
            let _ = writeln!(out, "90th percentile latency: {p90}");
        }
    }
    verdict(&mut out, &reasons, e.min_query_count.max(e.min_sample_count), needed(task, e.requested.scenario));
    (reasons.is_empty(), out)
}

fn needed(task: &Task, scenario: Scenario) -> u64 {
    match scenario {
        Scenario::SingleStream => 1024,
        Scenario::Offline => queries_for(0.90),
        Scenario::Server | Scenario::MultiStream => queries_for(task.percentile()),
    }
}

fn verdict(out: &mut String, reasons: &[String], asked: u64, papers: u64) {
    let _ = writeln!(out, "Result is : {}", if reasons.is_empty() { "VALID" } else { "INVALID" });
    for reason in reasons {
        let _ = writeln!(out, " * {reason}");
    }
    if asked < papers {
        let _ = writeln!(
            out,
            "   min_query_count was lowered to {asked}; the paper asks for {papers}: this is for practice"
        );
    }
}

fn heading(task: &Task, scenario: Scenario) -> String {
    let share = task.late_share * 100.0;
    format!("ISCA 2020 rules, {}, {} ({share} % may be late)\n", scenario.name(), task.name)
}

fn multi_stream(args: &RunArgs, task: &Task, settings: &Settings, bench: &Bench<'_>) -> Outcome<u8> {
    let most = bench.library.performance;
    if args.rules.streams.is_some_and(|n| u64::from(n) > most) {
        return Err(Failure::usage(format!("--streams: a query's samples all differ, and the library has {most}")));
    }
    let mut out = heading(task, Scenario::MultiStream);
    let samples = settings.min_query_count;
    let _ = writeln!(out, "A query every {} ms:", task.interval.ms());
    let mut search = Search::new(most);
    let mut last = None;
    while let Some(streams) =
        args.rules.streams.map_or_else(|| search.next(), |n| last.is_none().then_some(u64::from(n)))
    {
        let mut settings = settings.clone();
        settings.multi_stream_samples_per_query = streams;
        settings.min_query_count = samples.div_ceil(streams);
        let mut test = bench.test(&settings, Some(task.interval))?;
        let heard = bench.run(&mut test)?;
        let judged = tried(task, streams, &test);
        let word = if judged.sustained { "sustained" } else { "not sustained" };
        let _ = writeln!(
            out,
            "  {streams:>5} streams  {word}: {} of {} queries late ({} allowed), {} intervals skipped",
            judged.late, judged.queries, judged.allowed, judged.skipped
        );
        if heard.losses() > 0 {
            out += &heard.complaint();
        }
        search.tried(streams, judged.sustained);
        let sustained = judged.sustained;
        if sustained || last.is_none() {
            last = Some(test);
        }
        if signals::interrupts() + signals::terminates() > 0 {
            break;
        }
    }
    let sustained = search.sustained();
    let _ = writeln!(out, "Streams sustained: {sustained}");
    if args.rules.streams.is_none() && sustained == most {
        let _ = writeln!(out, "   that is every sample of the library: --num-samples N allows more");
    }
    let reasons: Vec<String> =
        (sustained == 0).then(|| "no number of streams was sustained".into()).into_iter().collect();
    verdict(&mut out, &reasons, samples, needed(task, Scenario::MultiStream));
    let Some(test) = last else { return Err(Failure::new("no number of streams was tried")) };
    finish(args, &test, sustained > 0, &out)
}

fn tried(task: &Task, streams: u64, test: &Test) -> Streams {
    match test.result() {
        Some(run) => {
            let enough =
                run.score.as_ref().is_some_and(|s| s.decision.duration && s.queries >= s.effective.min_query_count);
            judge(task, streams, &run.outcome, enough)
        }
        None => Streams { streams, queries: 0, late: 0, skipped: 0, allowed: 0, sustained: false },
    }
}
