//! Percentile bands, concurrency and queue, rates, tokens: all over the same time.

use super::head::apart;
use super::{Told, ms};
use crate::page::{Axis, Block, Mark, Plot, Point, Series, brief};
use tailbound_stats::{ObjectiveMetric, Percentiles, Slice};

pub(super) fn blocks(told: &Told<'_>, absent: &mut Vec<String>) -> Vec<Block> {
    let o = &told.over_time;
    if o.slices.is_empty() {
        absent.push("Over time: nothing happened.".into());
        return Vec::new();
    }
    let mut blocks: Vec<Block> = apart(told).map(Block::Beware).into_iter().collect();
    let plots = [
        bands(told, "TTFT over time", "TTFT", &o.ttft, Some(ObjectiveMetric::Ttft)),
        bands(told, "TPOT over time", "TPOT", &o.tpot, Some(ObjectiveMetric::Tpot)),
        bands(told, "End-to-end latency over time", "E2E", &o.e2e, Some(ObjectiveMetric::E2el)),
        Some(in_flight(told)),
        Some(rates(told)),
    ];
    blocks.extend(plots.into_iter().flatten().chain(tokens(told)).map(Block::Plot));
    if told.run.summary.steady.is_none() {
        absent.push("Steady state: no stretch of the run in which the load stood still.".into());
    }
    blocks
}

/// The steady part as a zone behind everything else.
fn steady(told: &Told<'_>) -> Option<Series> {
    let w = told.run.summary.steady.as_ref()?;
    let at = |t: tailbound_clock::Time| t.since(told.run.facts.start).secs();
    Some(Series::zone(if w.short { "steady (short)" } else { "steady" }, at(w.from), at(w.until)).coloured(3))
}

/// p50 as a line, p50 to p90 and p90 to p99 as bands of its colour.
pub(super) fn bands(
    told: &Told<'_>,
    title: &str,
    word: &str,
    slices: &[Percentiles],
    metric: Option<ObjectiveMetric>,
) -> Option<Plot> {
    let known: Vec<&Percentiles> = slices.iter().filter(|p| p.p50.is_some()).collect();
    if known.len() < 2 {
        return None;
    }
    let nan = |v: Option<f64>| v.map_or(f64::NAN, ms);
    let points = |low: fn(&Percentiles) -> Option<f64>, high: fn(&Percentiles) -> Option<f64>| {
        slices.iter().map(move |p| (p.at.secs(), nan(low(p)), nan(high(p))))
    };
    let mut series = vec![
        Series::band("p90 to p99", points(|p| p.p90, |p| p.p99)).coloured(0).fainter(),
        Series::band("p50 to p90", points(|p| p.p50, |p| p.p90)).coloured(0),
        Series::new("p99", Mark::Line, slices.iter().map(|p| (p.at.secs(), nan(p.p99)))).coloured(2),
        Series::new("p50", Mark::Line, slices.iter().map(|p| (p.at.secs(), nan(p.p50)))).coloured(0),
    ];
    if slices.iter().all(|p| p.p99.is_none()) {
        series.retain(|s| !s.name.contains("p99"));
    }
    let limit = told.run.facts.objectives.all.iter().find(|o| Some(o.metric) == metric);
    if let Some(limit) = limit {
        series
            .push(Series::level(format!("objective {}\u{202f}ms", brief(limit.limit_ms)), limit.limit_ms).coloured(1));
    }
    let (first, last) = (known[0], known[known.len() - 1]);
    let cut = if slices.iter().any(|p| p.n > 0 && p.p99.is_none()) {
        " Where a slice has under 100 requests its p99 is left out."
    } else {
        ""
    };
    let finding = format!(
        "Median {word} {} ms in the first slice, {} ms in the last, by arrival, in slices of {} s.{cut}",
        brief(nan(first.p50)),
        brief(nan(last.p50)),
        brief(2.0 * slices[0].at.secs())
    );
    Some(Plot { title: title.into(), finding, x: Axis::run_time(told.span()), y: Axis::log("ms"), series })
}

/// A figure of each slice, as steps.
pub(super) fn steps(slices: &[Slice], value: impl Fn(&Slice) -> f64) -> Vec<Point> {
    let mut points: Vec<Point> = slices.iter().map(|s| (s.from.secs(), value(s)).into()).collect();
    if let Some(last) = slices.last() {
        points.push(((last.from + last.length).secs(), value(last)).into());
    }
    points
}

fn in_flight(told: &Told<'_>) -> Plot {
    let slices = &told.over_time.slices;
    let c = &told.run.summary.concurrency;
    let mut series: Vec<Series> = steady(told).into_iter().collect();
    series.push(Series::new("tokens coming", Mark::Step, steps(slices, |s| s.decoding)).coloured(0));
    series.push(Series::new("sent, no token yet", Mark::Step, steps(slices, |s| s.waiting_there)).coloured(1));
    if slices.iter().any(|s| s.waiting_here > 0.005) {
        series.push(Series::new("due, not yet sent", Mark::Step, steps(slices, |s| s.waiting_here)).coloured(2));
    }
    if let Some(cap) = told.run.facts.max_concurrency {
        series.push(Series::level(format!("cap {cap}"), f64::from(cap)).coloured(4));
    }
    let mean = c.mean.map_or(String::new(), |m| format!(", {} on average", brief(m)));
    let worst = slices.iter().map(|s| s.waiting_there).fold(0.0, f64::max);
    Plot {
        title: "Requests in flight and waiting".into(),
        finding: format!(
            "At most {} in flight{mean}; up to {} of them were waiting for a first token.",
            c.peak,
            brief(worst)
        ),
        x: Axis::run_time(told.span()),
        y: Axis::linear("requests, mean of each slice"),
        series,
    }
}

fn rates(told: &Told<'_>) -> Plot {
    let slices = &told.over_time.slices;
    let per_s = |n: fn(&Slice) -> u32| steps(slices, move |s| s.per_s(f64::from(n(s))));
    let mut series: Vec<Series> = steady(told).into_iter().collect();
    if told.run.facts.open_loop() {
        series.push(Series::new("asked", Mark::Step, per_s(|s| s.scheduled)).coloured(4));
    }
    series.push(Series::new("sent", Mark::Step, per_s(|s| s.sent)).coloured(1));
    series.push(Series::new("completed", Mark::Step, per_s(|s| s.completed)).coloured(0));
    if told.run.summary.goodput.is_some() {
        series.push(Series::new("good", Mark::Step, per_s(|s| s.good)).coloured(2));
    }
    let failed: u32 = slices.iter().map(|s| s.failed).sum();
    if failed > 0 {
        series.push(Series::new("failed", Mark::Step, per_s(|s| s.failed)).coloured(3));
    }
    let t = &told.run.summary.throughput;
    let rate = |r: Option<f64>| r.map_or("–".into(), brief);
    let good =
        told.run.summary.goodput.as_ref().map_or(String::new(), |g| format!(", {} good", brief(g.requests_per_s)));
    Plot {
        title: "Requests per second: asked, sent, completed, good".into(),
        finding: format!(
            "Over the whole run {} sent and {} completed per second{good}.",
            rate(t.sent_per_s),
            rate(t.requests_per_s)
        ),
        x: Axis::run_time(told.span()),
        y: Axis::linear("requests/s"),
        series,
    }
}

/// Output and input each on its own scale: prompts are often many times as long as answers.
fn tokens(told: &Told<'_>) -> Vec<Plot> {
    let slices = &told.over_time.slices;
    let t = &told.run.summary.throughput;
    let rate = |r: Option<f64>| r.map_or("–".into(), brief);
    let plot = |title: &str, finding: String, colour: usize, tokens: fn(&Slice) -> u64| {
        let mut series: Vec<Series> = steady(told).into_iter().collect();
        let line = steps(slices, |s| s.per_s(tokens(s) as f64));
        series.push(Series::new("tokens/s", Mark::Step, line).coloured(colour));
        Plot { title: title.into(), finding, x: Axis::run_time(told.span()), y: Axis::linear("tokens/s"), series }
    };
    let (made, peak) = (rate(t.output_tokens_per_s), rate(t.peak_output_tokens_per_s));
    let finding = format!("{made} output tokens/s over the run, at most {peak} in any second.");
    let mut plots = vec![plot("Output tokens per second", finding, 0, |s| s.output_tokens)];
    if t.input_tokens_per_s.is_some() {
        let finding = format!(
            "{} input tokens/s over the run; a prompt counts when its first token comes.",
            rate(t.input_tokens_per_s)
        );
        plots.push(plot("Input tokens per second", finding, 1, |s| s.input_tokens));
    }
    plots
}
