//! How long a run's figures take once its last byte has come: 100,000 rows of 16 events, summed up, judged, and laid out as text
//! and JSON.
//!
//! `cargo run --release -p tailbound-report --example summarize_speed [rows] [events] [tokens per event]`
#![allow(clippy::print_stdout, reason = "a benchmark driver's output is its figures")]

use tailbound_clock::{Seed, Time};
use tailbound_record::{End, Finish, Moment, Row, StampSource};
use tailbound_report::{Description, Extras, Run, Selection, json, text};
use tailbound_stats::{Bounds, ClientHealth, Objectives, RunFacts, judge, summarize};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("arguments are whole numbers"));
    let n = arguments.next().unwrap_or(100_000);
    let events = arguments.next().unwrap_or(16) as u32;
    let bundle = arguments.next().unwrap_or(1) as u16;
    let rows = rows(n, events, bundle);
    let end = rows.iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max().unwrap_or(Time::ZERO);
    let facts = RunFacts {
        request_rate: Some(1_000.0),
        objectives: Objectives { all: vec!["ttft:200".parse().expect("an objective")], ..Objectives::default() },
        ..RunFacts::new(Time::ZERO, end)
    };
    println!("{n} rows of {events} events of {bundle} tokens; CPU time of this thread in ms, five rounds");
    println!("{:>10} {:>8} {:>8} {:>8} {:>8}", "summarize", "judge", "text", "JSON", "all");
    let mut totals: Vec<f64> = (0..5).map(|_| round(&rows, &facts)).collect();
    totals.sort_by(f64::total_cmp);
    println!("median of all: {:.1} ms", totals[2]);
}

fn round(rows: &[Row], facts: &RunFacts) -> f64 {
    let start = cpu_ms();
    let summary = summarize(rows, facts);
    let summed = cpu_ms();
    let verdict = judge(&summary, facts, &ClientHealth::default(), &Bounds::default());
    let judged = cpu_ms();
    let run = Run {
        description: &Description::default(),
        facts,
        summary: &summary,
        verdict: &verdict,
        rows,
        selection: &Selection::default(),
        extras: &Extras::default(),
    };
    let shown = text::report(&run, text::Colour::Off);
    let texted = cpu_ms();
    let result = json::vllm_result(&run, json::Detail::Totals);
    let done = cpu_ms();
    assert!(shown.contains("Successful requests") && result.len() > rows.len());
    let all = done - start;
    println!(
        "{:>10.1} {:>8.1} {:>8.1} {:>8.1} {all:>8.1}",
        summed - start,
        judged - summed,
        texted - judged,
        done - texted
    );
    all
}

fn rows(n: u64, events: u32, bundle: u16) -> Vec<Row> {
    let mut rng = Seed(1).stream("rows");
    let mut now = 0u64;
    (0..n)
        .map(|id| {
            now += (rng.exponential() * 1e6) as u64;
            let mut row = Row::new(id);
            for moment in [Moment::Scheduled, Moment::Released] {
                row.at.set(moment, Time(now));
            }
            row.at.set(Moment::WriteStart, Time(now + rng.below(50_000)));
            let mut at = now + 20_000_000 + (rng.exponential() * 40e6) as u64;
            row.at.set(Moment::FirstToken, Time(at));
            row.at.set(Moment::FirstVisible, Time(at));
            for read in 0..events {
                row.chunks.push(Time(at), read, bundle, true);
                at += 5_000_000 + rng.below(20_000_000);
            }
            row.chunks.shrink();
            row.at.set(Moment::LastToken, row.chunks.as_slice().last().map_or(Time(at), |c| c.at));
            row.at.set(Moment::StreamEnd, Time(at));
            row.tokens.output_server = Some(events * u32::from(bundle));
            row.tokens.prompt_server = Some(128);
            row.stamps = StampSource::Kernel;
            row.end = End::Done(Finish::Length);
            row
        })
        .collect()
}

/// CPU time this thread has used so far (Linux), to the nanosecond.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps a thread's CPU time there");
    let ns = stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("its first field is a number");
    ns * 1e-6
}
