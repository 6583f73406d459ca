//! Attainment and latency by class, client and turn.

use super::Told;
use super::head::in_ms;
use crate::Grouping;
use crate::page::figure::{Estimate, forest};
use crate::page::{Axis, Block, Column, Table, brief, count, interval, percent};
use tailbound_stats::{Group, wilson};

/// Rows of a plot; the table has all of them.
const SHOWN: usize = 16;

pub(super) fn blocks(told: &Told<'_>, absent: &mut Vec<String>) -> Vec<Block> {
    let run = told.run;
    let named: Vec<&Grouping> = run.extras.groups.iter().collect();
    let mut blocks: Vec<Block> = named.iter().flat_map(|g| grouping(told, g.by, &g.groups)).collect();
    if named.is_empty() {
        blocks = unnamed(told);
    }
    if blocks.is_empty() {
        absent.push("Classes: all requests are of one class.".into());
    }
    blocks
}

/// Classes that have numbers only, by the objectives' own count.
fn unnamed(told: &Told<'_>) -> Vec<Block> {
    let Some(g) = told.run.summary.goodput.as_ref().filter(|g| g.by_class.len() > 1) else { return Vec::new() };
    let shares: Vec<_> =
        g.by_class.iter().map(|(class, judged, good)| (format!("class {class}"), *judged, *good)).collect();
    vec![Block::Plot(attainment(told, "class", &shares))]
}

fn grouping(told: &Told<'_>, by: &str, groups: &[(String, Group)]) -> Vec<Block> {
    let shares: Vec<_> =
        groups.iter().filter(|(_, g)| g.judged > 0).map(|(name, g)| (name.clone(), g.judged, g.good)).collect();
    let plot = (!shares.is_empty()).then(|| Block::Plot(attainment(told, by, &shares)));
    plot.into_iter().chain([table(told, by, groups)]).collect()
}

fn attainment(told: &Told<'_>, by: &str, shares: &[(String, usize, usize)]) -> crate::page::Plot {
    let required = told.run.facts.objectives.required_share;
    let mut sorted: Vec<&(String, usize, usize)> = shares.iter().collect();
    let share = |(_, judged, good): &(String, usize, usize)| *good as f64 / *judged as f64;
    if sorted.len() > SHOWN {
        sorted.sort_by(|a, b| share(a).total_cmp(&share(b)));
        sorted.truncate(SHOWN);
    }
    let invalid = !told.run.verdict.valid();
    let row = |one: &&(String, usize, usize)| Estimate {
        name: one.0.clone(),
        value: Some(100.0 * share(one)),
        interval: wilson(one.2, one.1, 0.95).map(|(low, high)| (100.0 * low, 100.0 * high)),
        invalid,
    };
    let worst = sorted.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let finding = worst
        .map_or(String::new(), |w| format!("Lowest: {} with {} of {} requests good.", w.0, percent(share(w)), w.1));
    let left_out = if shares.len() > SHOWN {
        format!(" The {SHOWN} lowest of {} are drawn.", shares.len())
    } else {
        String::new()
    };
    let rows: Vec<Estimate> = sorted.iter().map(row).collect();
    let x = Axis { range: Some((0.0, 100.0)), ..Axis::linear("% of requests within all their objectives") };
    let mut plot = forest(&format!("Attainment by {by}"), &(finding + &left_out), x, &rows, 100.0 * required, None);
    for series in plot.series.iter_mut().filter(|s| s.name == "no difference") {
        series.name = format!("{} asked for", percent(required));
    }
    plot
}

fn table(told: &Told<'_>, by: &str, groups: &[(String, Group)]) -> Block {
    let mut columns = vec![Column::Text(by.to_owned())];
    let heads = [
        "planned",
        "completed",
        "failed",
        "good",
        "95 % interval",
        "TTFT p50",
        "TTFT p99",
        "TPOT p50",
        "TPOT p99",
        "E2E p99",
        "output tokens",
    ];
    columns.extend(heads.map(|h| Column::Figure(h.into())));
    let at = |d: &tailbound_stats::Dist, p: f64| d.nearest_rank(p).map_or("–".into(), in_ms);
    let row = |(name, g): &(String, Group)| {
        let good = if g.judged > 0 { percent(g.good as f64 / g.judged as f64) } else { "–".into() };
        let range = wilson(g.good, g.judged, 0.95).filter(|_| g.judged > 0).map(|(a, b)| (100.0 * a, 100.0 * b));
        vec![
            name.clone(),
            count(g.requests.planned as u64),
            count(g.requests.completed as u64),
            count(g.requests.failed as u64),
            good,
            interval(range, "\u{202f}%"),
            at(&g.ttft, 50.0),
            at(&g.ttft, 99.0),
            at(&g.tpot, 50.0),
            at(&g.tpot, 99.0),
            at(&g.e2e, 99.0),
            brief(g.output_tokens as f64),
        ]
    };
    let rows: Vec<_> = groups.iter().map(row).collect();
    let invalid = if told.run.verdict.valid() { Vec::new() } else { (0..rows.len()).collect() };
    Block::Table(Table { caption: format!("By {by}"), columns, rows, invalid })
}
