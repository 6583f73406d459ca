//! The client's own condition: drawn even when it is good.

use super::{Told, ms};
use crate::page::{Axis, Block, Column, Mark, Plot, Series, Table, brief, count, percent};
use tailbound_stats::{Bounds, Dist};

pub(super) fn blocks(told: &Told<'_>, simulated: bool, absent: &mut Vec<String>) -> Vec<Block> {
    if simulated {
        absent.push("The client itself: the run is simulated, so nobody sent anything.".into());
        return Vec::new();
    }
    let mut blocks: Vec<Block> = lateness(told).into_iter().map(Block::Plot).collect();
    blocks.push(table(told));
    blocks
}

/// How late requests left, over time, against what is allowed.
fn lateness(told: &Told<'_>) -> Option<Plot> {
    let slices = &told.over_time.lateness;
    if slices.iter().filter(|p| p.p50.is_some()).count() < 2 {
        return None;
    }
    // A send that left within a microsecond has its place at the foot of a logarithmic axis.
    let shown = |v: Option<f64>| v.map_or(f64::NAN, |ns| ms(ns).max(1e-3));
    let line = |name: &str, of: fn(&tailbound_stats::Percentiles) -> Option<f64>| {
        Series::new(name, Mark::Line, slices.iter().map(|p| (p.at.secs(), shown(of(p)))))
    };
    let limit = limit_ns(told);
    let mut series = vec![line("p50", |p| p.p50).coloured(0), line("largest", |p| p.max).coloured(1)];
    if slices.iter().any(|p| p.p99.is_some()) {
        series.push(line("p99", |p| p.p99).coloured(3));
    }
    series.push(Series::level(format!("limit on p99, {}\u{202f}ms", brief(ms(limit))), ms(limit)).coloured(2));
    let all = sends(told);
    Some(Plot {
        title: "How late requests left".into(),
        finding: format!(
            "p99 {} ms over the run, largest {} ms; a p99 above {} ms makes a run INVALID.",
            all.nearest_rank(99.0).map_or("–".into(), |v| brief(ms(v))),
            all.max().map_or("–".into(), |v| brief(ms(v))),
            brief(ms(limit))
        ),
        x: Axis::run_time(told.span()),
        y: Axis::log("ms after being due"),
        series,
    })
}

/// The pacer's own figures, else those in the rows.
fn sends(told: &Told<'_>) -> Dist {
    match &told.about.health.lateness_ns {
        Some(ns) => Dist::new(ns.iter().map(|ns| *ns as f64).collect()),
        None => told.run.summary.latency.lateness.clone(),
    }
}

fn limit_ns(told: &Told<'_>) -> f64 {
    let bounds = Bounds::default();
    let ttft = told.run.summary.latency.ttft.median().unwrap_or(0.0);
    bounds.lateness_ns.max(bounds.lateness_share * ttft)
}

fn table(told: &Told<'_>) -> Block {
    let (s, health, bounds) = (told.run.summary, told.about.health, Bounds::default());
    let late = sends(told);
    let noise = health.probe_noise_ns.as_ref().map(|ns| Dist::new(ns.iter().map(|ns| *ns as f64).collect()));
    let at =
        |d: &Dist, p: f64| d.nearest_rank(p).map_or("not measured".into(), |v| format!("{}\u{202f}ms", brief(ms(v))));
    let share = |v: Option<f64>| v.map_or("not measured".into(), percent);
    let told_rows = [
        ("sends late, p99", at(&late, 99.0), format!("≤ {}\u{202f}ms", brief(ms(limit_ns(told))))),
        (
            "sends late, largest",
            late.max().map_or("not measured".into(), |v| format!("{}\u{202f}ms", brief(ms(v)))),
            String::new(),
        ),
        ("busiest loop, share of a core", share(health.cpu_share), format!("< {}", percent(bounds.cpu_share))),
        ("events that shared a read", share(s.coalesced.share()), format!("≤ {}", percent(bounds.coalesced_share))),
        (
            "reads late, p99",
            health.reader_late_p99_ns.map_or("not measured".into(), |v| format!("{}\u{202f}ms", brief(ms(v)))),
            "below the median gap between tokens".into(),
        ),
        ("timers of this machine late, p99", noise.map_or("not measured".into(), |d| at(&d, 99.0)), String::new()),
        ("ran out of files or ports", yes(health.fd_limit_hit), "no".into()),
        ("sent again on stale connections", count(s.retries), String::new()),
        ("failures on this client's side", count(s.requests.failed_here as u64), String::new()),
        ("receive times taken by", s.stamps.name().into(), "kernel".into()),
    ];
    let columns = ["what", "found", "limit"].map(|c| Column::Text(c.into())).to_vec();
    let rows = told_rows.into_iter().map(|(what, found, limit)| vec![what.into(), found, limit]).collect();
    Block::Table(Table { caption: "The client's condition".into(), columns, rows, ..Table::default() })
}

fn yes(hit: Option<bool>) -> String {
    hit.map_or("not measured", |hit| if hit { "yes" } else { "no" }).into()
}
