//! Distributions on the nines axis, and the table of percentiles.

use super::head::in_ms;
use super::{Told, ms};
use crate::Run;
use crate::page::{Axis, Block, Column, Mark, Plot, Point, Series, Table, count, interval, percent};
use tailbound_stats::{Dist, ObjectiveMetric};

/// Points of a distribution that are drawn.
const POINTS: usize = 120;

pub(super) fn blocks(told: &Told<'_>, absent: &mut Vec<String>) -> Vec<Block> {
    let run = told.run;
    if run.summary.requests.completed == 0 {
        absent.push("Latency: nothing completed.".into());
        return Vec::new();
    }
    let l = &run.summary.latency;
    let open = run.facts.open_loop();
    let from = |arrival, write| {
        if open { vec![("from arrival", arrival), ("from the write", write)] } else { vec![("from the write", write)] }
    };
    let plots = [
        cdf(run, "Time to first token", "TTFT", Some(ObjectiveMetric::Ttft), &from(&l.ttft_scheduled, &l.ttft)),
        cdf(
            run,
            "Time per token",
            "TPOT",
            Some(ObjectiveMetric::Tpot),
            &[("TPOT, one a request", &l.tpot), ("ITL, one a gap", &l.itl)],
        ),
        cdf(run, "End-to-end latency", "E2E", Some(ObjectiveMetric::E2el), &from(&l.e2e_scheduled, &l.e2e)),
    ];
    let mut blocks: Vec<Block> = plots.into_iter().flatten().map(Block::Plot).collect();
    if l.tpot.is_empty() {
        absent.push("Time per token: no answer had tokens after its first event.".into());
    }
    blocks.push(table(run));
    blocks
}

/// One or two distributions of a latency, with its objective.
fn cdf(
    run: &Run<'_>,
    title: &str,
    word: &str,
    metric: Option<ObjectiveMetric>,
    dists: &[(&str, &Dist)],
) -> Option<Plot> {
    let known: Vec<_> = dists.iter().filter(|(_, d)| !d.is_empty()).collect();
    let (_, first) = known.first()?;
    let most = known.iter().map(|(_, d)| d.n()).max().unwrap_or(1);
    // The largest value stands where one in two of so many is left.
    let top = 1.0 - 1.0 / (2.0 * most.max(5) as f64);
    let mut series: Vec<Series> = Vec::new();
    if let Some(band) = band(first, top) {
        series.push(band.coloured(0));
    }
    for (i, (name, dist)) in known.iter().enumerate() {
        series.push(Series::new(*name, Mark::Line, curve(dist, top)).coloured(i));
    }
    let mut finding = format!(
        "{word} p50 {}, p99 {}, slowest {}; {} values. Further left is better.",
        first.median().map_or("–".into(), in_ms),
        first.nearest_rank(99.0).map_or("–".into(), in_ms),
        first.max().map_or("–".into(), in_ms),
        count(first.n() as u64)
    );
    let limit = run.facts.objectives.all.iter().find(|o| Some(o.metric) == metric);
    if let Some(limit) = limit {
        let kept =
            run.summary.goodput.as_ref().and_then(|g| g.by_metric.iter().find(|m| m.metric == limit.metric)?.share());
        let words = format!("≤ {}: {}", in_ms(limit.limit_ns()), kept.map_or("–".into(), percent));
        finding += &format!(" Objective {words} kept to it.");
        series.push(Series::upright("objective", limit.limit_ms, words).coloured(2));
    }
    Some(Plot {
        title: title.into(),
        finding,
        x: Axis::log("ms, at most"),
        y: Axis { range: Some((0.0, top)), ..Axis::nines("share of values") },
        series,
    })
}

/// A distribution as points evenly spread over the nines.
fn curve(dist: &Dist, top: f64) -> Vec<(f64, f64)> {
    let last = 1.0 - 1.0 / (2.0 * dist.n() as f64);
    let nines = -(1.0 - last.min(top)).log10();
    let share = |i: usize| 1.0 - 10f64.powf(-nines * i as f64 / POINTS as f64);
    let mut points: Vec<(f64, f64)> = (0..=POINTS)
        .filter_map(|i| Some((ms(dist.nearest_rank(100.0 * share(i)).filter(|v| *v > 0.0)?), share(i))))
        .collect();
    points.dedup_by(|b, a| a.0 == b.0 && b.1 < last.min(top));
    points
}

/// Where the whole true curve lies with 95 % confidence, if values are independent (Dvoretzky, Kiefer and Wolfowitz, Massart's constant).
fn band(dist: &Dist, top: f64) -> Option<Series> {
    if dist.n() < 20 {
        return None;
    }
    let reach = (f64::ln(2.0 / 0.05) / (2.0 * dist.n() as f64)).sqrt();
    let point =
        |(x, share): (f64, f64)| Point::within(x, share, Some(((share - reach).max(0.0), (share + reach).min(top))));
    Some(Series::new("95 % band of the first", Mark::Band, curve(dist, top).into_iter().map(point)))
}

fn table(run: &Run<'_>) -> Block {
    let (s, l) = (run.summary, &run.summary.latency);
    let open = run.facts.open_loop();
    let misses = s.misses();
    let dists: [(bool, &str, &Dist, bool); 10] = [
        (open, "TTFT from arrival", &l.ttft_scheduled, true),
        (true, "TTFT from write", &l.ttft, true),
        (l.ttfo != l.ttft, "first visible token", &l.ttfo, true),
        (true, "TPOT", &l.tpot, false),
        (true, "ITL", &l.itl, false),
        (l.itl != l.icl, "between events (ICL)", &l.icl, false),
        (open, "E2E from arrival", &l.e2e_scheduled, true),
        (true, "E2E from write", &l.e2e, true),
        (true, "connect", &l.connect, false),
        (run.facts.max_concurrency.is_some() && open, "client queue", &l.client_queue, false),
    ];
    let plain = |v: Option<f64>| {
        v.map_or("–".into(), |ns| if ns.is_infinite() { "∞".into() } else { crate::page::brief(ms(ns)) })
    };
    let mut columns = vec![Column::Text("latency (ms)".into())];
    columns.extend(
        ["n", "mean", "p50", "p90", "p99", "95 % interval of p99", "p99.9", "max"].map(|c| Column::Figure(c.into())),
    );
    if misses > 0 {
        columns.push(Column::Figure("p99, misses as ∞".into()));
    }
    let row = |(_, name, d, per_request): &(bool, &str, &Dist, bool)| {
        let range = d.interval(99.0, 0.95).map(|(a, b)| (ms(a), ms(b)));
        let range = if range.is_some() { interval(range, "") } else { "too few".into() };
        let at = |p: f64| plain(d.nearest_rank(p));
        let mut cells = vec![
            (*name).to_owned(),
            count(d.n() as u64),
            plain(d.mean()),
            at(50.0),
            at(90.0),
            at(99.0),
            range,
            at(99.9),
            plain(d.max()),
        ];
        if misses > 0 {
            cells.push(if *per_request { plain(d.nearest_rank_with_failures(99.0, misses)) } else { String::new() });
        }
        cells
    };
    let rows: Vec<_> = dists.iter().filter(|(told, _, d, _)| *told && !d.is_empty()).map(row).collect();
    let invalid = if run.verdict.valid() { Vec::new() } else { (0..rows.len()).collect() };
    Block::Table(Table { caption: "Percentiles, by nearest rank".into(), columns, rows, invalid })
}
