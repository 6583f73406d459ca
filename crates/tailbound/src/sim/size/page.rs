//! The same as a page.

use super::{Load, Planned, SizeArgs};
use tailbound_report::page::figure::{Curve, lines};
use tailbound_report::page::{Axis, Block, Card, Column, Page, Point, Section, Series, Table, brief};

/// The page of a sizing.
pub fn page(args: &SizeArgs, real: &Load, planned: Option<&Planned>) -> Page {
    let loads: Vec<&Load> = std::iter::once(real).chain(planned.map(|p| &p.load)).collect();
    let section = |id: &str, heading: &str, blocks| Section { id: id.into(), heading: heading.into(), blocks };
    let against = args.against.as_ref().map_or(String::new(), |f| format!(" --against {}", f.display()));
    let (metric, percentile, limit) = (args.slo.to_string(), args.slo.percentile, args.slo.limit_ms / 1e3);
    Page {
        title: real.name.clone(),
        kind: "how many replicas".into(),
        lead: lead(args, real, planned),
        verdict: None,
        cards: cards(args, real, planned),
        sections: vec![
            section("plot", "Over the size of the fleet", vec![Block::Plot(plot(&loads, percentile, limit))]),
            section("tried", "Every size that was tried", vec![Block::Table(table(&loads, percentile))]),
            section("loads", "The loads", about(&loads)),
        ],
        absent: vec!["The single requests: `tailbound sim SCENARIO.toml --run-dir DIR` keeps them.".into()],
        attachments: Vec::new(),
        footer: format!(
            "tailbound sim size {}{against} --seeds {} · {metric} · tailbound {}",
            args.scenario.display(),
            args.seeds,
            env!("CARGO_PKG_VERSION")
        ),
    }
}

fn lead(args: &SizeArgs, real: &Load, planned: Option<&Planned>) -> String {
    let mut text = format!("{} needs {} replicas for {}.", real.name, real.needs(args.max), args.slo);
    let Some(planned) = planned else { return text };
    text += &format!(" Planned with {}, it would be {}", planned.load.name, planned.load.needs(args.max));
    match planned.short_by(real) {
        Some(short) if short > 0.0 => text += &format!(": {}\u{202f}% too few.", brief(100.0 * short)),
        Some(short) if short < 0.0 => text += &format!(": {}\u{202f}% more than needed.", brief(-100.0 * short)),
        _ => text += ".",
    }
    if let Some(then) = &planned.then {
        text += &format!(" With that fleet {}\u{202f}% of its requests are late.", brief(100.0 * then.late));
    }
    text
}

fn cards(args: &SizeArgs, real: &Load, planned: Option<&Planned>) -> Vec<Card> {
    let card = |label: &str, value: String, detail: String| Card { label: label.into(), value, detail, void: false };
    let mut all = vec![card("Replicas needed", real.needs(args.max), real.name.clone())];
    if let Some(planned) = planned {
        all.push(card("Replicas planned", planned.load.needs(args.max), planned.load.name.clone()));
        if let Some(then) = &planned.then {
            let detail = format!("of {}, with {} replicas", real.name, then.count);
            all.push(card("Late with the plan", format!("{}\u{202f}%", brief(100.0 * then.late)), detail));
        }
    }
    all
}

fn plot(loads: &[&Load], percentile: f64, limit_s: f64) -> tailbound_report::page::Plot {
    let point = |t: &tailbound_sim::Tried| Point::within(f64::from(t.count), t.value_ms / 1e3, None);
    let curve = |load: &&Load| Curve {
        name: load.name.clone(),
        points: load.sizing.tried.iter().filter(|t| t.value_ms.is_finite()).map(point).collect(),
    };
    let curves: Vec<Curve> = loads.iter().map(curve).collect();
    let crossing = |load: &&Load| Some(format!("{} at {}", load.name, load.sizing.needed?));
    let met: Vec<String> = loads.iter().filter_map(crossing).collect();
    let finding = format!("The limit is met by {}.", met.join(", by "));
    let (x, y) = (Axis::log("replicas"), Axis::log(format!("P{percentile} (s)")));
    let mut plot = lines("The percentile against the number of replicas", &finding, x, y, &curves);
    plot.series.push(Series::level("the limit", limit_s));
    plot
}

fn table(loads: &[&Load], percentile: f64) -> Table {
    let row = |load: &Load, t: &tailbound_sim::Tried| {
        let value = if t.value_ms.is_finite() { format!("{:.3}", t.value_ms / 1e3) } else { "failed".to_owned() };
        vec![
            load.name.clone(),
            t.count.to_string(),
            value,
            format!("{:.2}", 100.0 * t.late),
            format!("{:.0}", t.requests),
        ]
    };
    Table {
        caption: "Each line is the median of all seeds".into(),
        columns: vec![
            Column::Text("load".into()),
            Column::Figure("replicas".into()),
            Column::Figure(format!("P{percentile} (s)")),
            Column::Figure("late (%)".into()),
            Column::Figure("requests a run".into()),
        ],
        rows: loads.iter().flat_map(|load| load.sizing.tried.iter().map(|t| row(load, t))).collect(),
        invalid: Vec::new(),
    }
}

fn about(loads: &[&Load]) -> Vec<Block> {
    loads.iter().map(|load| Block::Note(format!("{}: {}", load.name, load.about))).collect()
}
