//! What servers said of themselves, over the same time as the requests.

use super::{Told, ms};
use crate::page::{Axis, Block, Column, Mark, Plot, Series, Table, brief, percent};
use crate::text::{server_range, server_sentence};
use tailbound_record::server::Measure;
use tailbound_stats::servers::{Server, Servers};

pub(super) fn blocks(told: &Told<'_>, absent: &mut Vec<String>) -> Vec<Block> {
    let Some(servers) = &told.run.extras.servers else {
        // A model has none.
        if told.run.description.protocol.is_some() {
            absent.push("The server itself: no metrics of it were read.".into());
        }
        return Vec::new();
    };
    let plots = [requests(told, servers), cache(told, servers), busy(told, servers)];
    if plots.iter().all(Option::is_none) {
        absent.push(
            "The server over time: its metrics were looked at once a second, and the run was over too soon.".into(),
        );
    }
    let mut blocks: Vec<Block> = plots.into_iter().flatten().map(Block::Plot).collect();
    blocks.push(Block::Table(figures(servers)));
    blocks.extend(ttft(servers).map(Block::Table));
    blocks.extend(server_sentence(servers).map(Block::Note));
    blocks
}

/// A gauge at every look: when, and what each server that states it said. One server's looks stand where they were; those of several are
/// taken together by the second, where all of them answered.
fn looks(told: &Told<'_>, servers: &Servers, measure: Measure) -> Vec<(f64, Vec<f64>)> {
    let end = told.span().1;
    let stating = |s: &&Server| s.glances.iter().any(|g| g.gauges.contains_key(&measure));
    let stating: Vec<&Server> = servers.all.iter().filter(stating).collect();
    let of = |server: &Server| -> Vec<(f64, f64)> {
        let glances = server.glances.iter().filter(|g| g.at_s > -1.0 && g.at_s <= end + 1.0);
        // A look just before or after the run shows what it began and ended with.
        glances.filter_map(|g| Some((g.at_s.clamp(0.0, end), *g.gauges.get(&measure)?))).collect()
    };
    if let [only] = stating[..] {
        return of(only).into_iter().map(|(at, value)| (at, vec![value])).collect();
    }
    let all: Vec<Vec<(f64, f64)>> = stating.iter().map(|server| of(server)).collect();
    let seconds = 0..=end.ceil() as u64;
    let within = |second: u64| -> Option<(f64, Vec<f64>)> {
        let last = |looks: &Vec<(f64, f64)>| looks.iter().rfind(|(at, _)| *at as u64 == second).map(|(_, v)| *v);
        let values: Vec<f64> = all.iter().map(last).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| ((second as f64 + 0.5).min(end), values))
    };
    seconds.filter_map(within).collect()
}

type Join = fn(&[f64]) -> f64;
const SUM: Join = |values| values.iter().sum();
const MEAN: Join = |values| values.iter().sum::<f64>() / values.len() as f64;
const MOST: Join = |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);

/// A line of a gauge; `None` with fewer than two looks.
fn line(name: &str, looks: &[(f64, Vec<f64>)], join: Join, scale: f64) -> Option<Series> {
    let points = looks.iter().map(|(at, values)| (*at, scale * join(values)));
    (looks.len() >= 2).then(|| Series::new(name, Mark::Line, points))
}

fn highest(looks: &[(f64, Vec<f64>)], join: Join) -> f64 {
    looks.iter().map(|(_, values)| join(values)).fold(0.0, f64::max)
}

fn requests(told: &Told<'_>, servers: &Servers) -> Option<Plot> {
    let (running, waiting) = (looks(told, servers, Measure::Running), looks(told, servers, Measure::Waiting));
    let series: Vec<Series> = [
        line("running", &running, SUM, 1.0).map(|s| s.coloured(0)),
        line("waiting", &waiting, SUM, 1.0).map(|s| s.coloured(1)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if series.is_empty() {
        return None;
    }
    Some(Plot {
        title: "Requests at the server, as it says".into(),
        finding: format!(
            "At most {} running and {} waiting, at about one look a second.",
            brief(highest(&running, SUM)),
            brief(highest(&waiting, SUM))
        ),
        x: Axis::run_time(told.span()),
        y: Axis::linear("requests"),
        series,
    })
}

fn cache(told: &Told<'_>, servers: &Servers) -> Option<Plot> {
    let used = looks(told, servers, Measure::KvUse);
    let several = used.iter().any(|(_, values)| values.len() > 1);
    let mut series =
        vec![line(if several { "mean of the servers" } else { "in use" }, &used, MEAN, 100.0)?.coloured(0)];
    if several {
        series.extend(line("fullest", &used, MOST, 100.0).map(|s| s.coloured(1)));
    }
    let preempted = servers.growth(Measure::Preemptions).filter(|n| *n > 0.0);
    let preempted = preempted.map_or(String::new(), |n| format!(" {} preemptions.", brief(n)));
    Some(Plot {
        title: "KV cache in use".into(),
        finding: format!("At most {} of the KV cache.{preempted}", percent(highest(&used, MOST))),
        x: Axis::run_time(told.span()),
        y: Axis::linear("%"),
        series,
    })
}

fn busy(told: &Told<'_>, servers: &Servers) -> Option<Plot> {
    let (gpus, cpus) = (looks(told, servers, Measure::GpuUse), looks(told, servers, Measure::CpuUse));
    let series: Vec<Series> = [
        line("GPUs", &gpus, MEAN, 100.0).map(|s| s.coloured(0)),
        line("CPUs", &cpus, MEAN, 100.0).map(|s| s.coloured(1)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if series.is_empty() {
        return None;
    }
    let most = [("GPUs", &gpus), ("CPUs", &cpus)].map(|(name, looks)| match looks.len() {
        ..2 => None,
        _ => Some(format!("{name} at most {} busy", percent(highest(looks, MEAN)))),
    });
    Some(Plot {
        title: "GPUs and CPUs busy, as their exporters say".into(),
        finding: most.into_iter().flatten().collect::<Vec<_>>().join(", ") + ".",
        x: Axis::run_time(told.span()),
        y: Axis::linear("%"),
        series,
    })
}

/// Every figure of every server.
fn figures(servers: &Servers) -> Table {
    let mut rows = Vec::new();
    for server in &servers.all {
        let name = server.system.map_or("unknown", |system| system.name());
        let who = format!("{name}, {}", server.url);
        let missed = if server.missed > 0 { format!(", {} not answered", server.missed) } else { String::new() };
        rows.push(vec![who.clone(), "looks".into(), format!("{}{missed}", server.answered), String::new()]);
        if server.restarts > 0 {
            rows.push(vec![who.clone(), "began to count anew".into(), server.restarts.to_string(), String::new()]);
        }
        for (measure, gauge) in &server.gauges {
            let most = format!("{} to {}", brief(gauge.min), brief(gauge.max));
            rows.push(vec![who.clone(), measure.name().into(), brief(gauge.mean), most]);
        }
        for (measure, growth) in &server.growth {
            let rate = server.per_s(*measure).map_or(String::new(), |r| format!("{} per s", brief(r)));
            rows.push(vec![who.clone(), measure.name().into(), format!("+{}", brief(*growth)), rate]);
        }
        for (what, share) in [
            ("prompt tokens in its prefix cache", server.prefix_hit_share()),
            ("drafted tokens it accepted", server.acceptance_share()),
        ] {
            rows.extend(share.map(|share| vec![who.clone(), what.into(), percent(share), String::new()]));
        }
    }
    let columns = vec![
        Column::Text("server".into()),
        Column::Text("figure".into()),
        Column::Figure("mean, or growth".into()),
        Column::Figure("range, or rate".into()),
    ];
    Table { caption: "What it said of itself".into(), columns, rows, ..Table::default() }
}

/// Its times to first token beside those measured here.
fn ttft(servers: &Servers) -> Option<Table> {
    let (there, here) = (servers.ttft()?, &servers.ttft_here);
    let shown = |ns: Option<f64>| ns.map_or("–".into(), |ns| brief(ms(ns)));
    let percentile = |p: f64| vec![format!("p{p}"), server_range(&there, p), shown(here.nearest_rank(p))];
    let rows = vec![
        vec!["requests".into(), brief(there.count), here.n().to_string()],
        vec!["mean".into(), shown(there.mean().map(|s| s * 1e9)), shown(here.mean())],
        percentile(50.0),
        percentile(99.0),
    ];
    let columns = vec![
        Column::Text("TTFT".into()),
        Column::Figure("by the server, ms".into()),
        Column::Figure("measured here, ms".into()),
    ];
    let caption = "Time to first token from the write, by two clocks; the server's percentiles are bounds of a bucket";
    Some(Table { caption: caption.into(), columns, rows, ..Table::default() })
}
