//! The page of comparisons: the sentence first, then differences with their intervals, then what they rest on.

use super::record::{Contrast, Finding, Record};
use super::words::{agreed, apart, capital, change, claim, gate, label, rests_on, shown, span};
use crate::page::figure::{Estimate, forest};
use crate::page::{Axis, Block, Card, Column, Page, Plot, Section, Series, Strip, Table, Tone, count};
use tailbound_stats::compare::number;

pub(super) fn page(records: &[Record]) -> Page {
    let names: Vec<&str> = records.first().map_or(Vec::new(), |r| r.sides.iter().map(|s| s.name.as_str()).collect());
    let sentences = records.iter().flat_map(|r| {
        let of = if records.len() > 1 { format!("{}: ", r.workload) } else { String::new() };
        r.contrasts.iter().map(move |c| format!("{of}{}.", c.sentence))
    });
    let sections = records.iter().enumerate().flat_map(|(i, record)| sections(record, i, records.len() > 1));
    Page {
        title: names.join(" · "),
        kind: "comparison".into(),
        lead: sentences.collect::<Vec<_>>().join(" "),
        verdict: Some(strip(records)),
        cards: records.iter().flat_map(|r| cards(r, records.len() > 1)).collect(),
        sections: sections.collect(),
        footer: format!("tailbound bench compare · tailbound {}", env!("CARGO_PKG_VERSION")),
        ..Page::default()
    }
}

fn strip(records: &[Record]) -> Strip {
    let valid = records.iter().all(|r| r.valid);
    let gates: Vec<String> = records.iter().filter_map(gate).collect();
    let failed = records.iter().any(|r| r.gate.is_some_and(|g| g.passes == Some(false)));
    let (tone, word, sentence) = match (valid, failed) {
        (false, _) => (Tone::Void, "INVALID", "A run does not count, so nothing is claimed.".to_owned()),
        (true, true) => (Tone::Missed, "REGRESSION", format!("Gate {}.", gates.join("; "))),
        (true, false) if gates.is_empty() => (Tone::Good, "VALID", "Every run counts.".to_owned()),
        (true, false) => (Tone::Good, "VALID", format!("Every run counts. Gate {}.", gates.join("; "))),
    };
    let mut reasons = Vec::new();
    for record in records {
        for side in &record.sides {
            for run in side.runs.iter().filter(|run| !run.valid) {
                let why = run.reasons.join("; ");
                reasons.push((format!("{}, round {} is INVALID: {why}.", side.name, run.round), String::new()));
            }
        }
    }
    let apart = records.iter().flat_map(|r| &r.contrasts).filter_map(apart);
    let notes = records.iter().flat_map(|r| r.notes.iter().cloned());
    let cautions = apart.chain(notes).map(|words| (words, String::new())).collect();
    Strip { tone, word: word.into(), sentence, reasons, cautions }
}

/// The metric that decides, for each other side.
fn cards(record: &Record, several: bool) -> Vec<Card> {
    let card = |c: &Contrast| {
        let f = c.findings.first()?;
        let of = if several { format!(", {}", record.workload) } else { String::new() };
        let value = |v: Option<f64>| shown(f, v).unwrap_or_else(|| "–".into());
        let detail = format!("{} → {}; {}", value(f.a), value(f.b), claim(f));
        Some(Card {
            label: format!("{}: {} against {}{of}", label(f), c.side, c.against),
            value: span(f).unwrap_or_else(|| "no interval".into()),
            detail,
            void: !record.valid,
        })
    };
    let runs = || record.sides.iter().flat_map(|s| &s.runs);
    let invalid = runs().filter(|r| !r.valid).count();
    let of = if several { format!(", {}", record.workload) } else { String::new() };
    let all = Card {
        label: format!("Runs{of}"),
        value: count(runs().count() as u64),
        detail: match invalid {
            0 => format!("all count; {} requests", count(runs().map(|r| r.requests as u64).sum())),
            n => format!("{n} INVALID"),
        },
        void: false,
    };
    record.contrasts.iter().filter_map(card).chain([all]).collect()
}

fn sections(record: &Record, i: usize, several: bool) -> Vec<Section> {
    let named = |what: &str| if several { format!("{what}: {}", record.workload) } else { what.to_owned() };
    let section =
        |id: &str, heading: &str, blocks| Section { id: format!("{id}-{i}"), heading: named(heading), blocks };
    let mut differences = Vec::new();
    for contrast in &record.contrasts {
        differences.extend(apart(contrast).map(Block::Beware));
        differences.extend(plots(record, contrast).into_iter().map(Block::Plot));
        differences.push(Block::Table(table(record, contrast)));
        differences.push(Block::Note(format!("{}.", rests_on(record, contrast))));
        differences.extend(contrast.agreement.as_ref().map(|a| Block::Note(format!("Answers: {}.", agreed(a)))));
    }
    let load = if record.load.is_empty() { "the sides' loads differ".to_owned() } else { record.load.clone() };
    let asked = Block::Note(format!("{}, {load}.", record.workload));
    vec![
        section("differences", "Differences", differences),
        section("runs", "The runs", vec![asked, Block::Table(runs(record))]),
    ]
}

/// What is plotted together: on one axis, with one direction that is better.
struct Group {
    title: &'static str,
    axis: &'static str,
    takes: fn(&Finding) -> bool,
    margin: fn(&Record) -> f64,
}

const GROUPS: [Group; 3] = [
    Group {
        title: "Latencies",
        axis: "change in % (further left is better)",
        takes: |f| f.unit == "ms",
        margin: |r| r.design.margin,
    },
    Group {
        title: "Rates",
        axis: "change in % (further right is better)",
        takes: |f| f.unit == "1/s",
        margin: |r| r.design.margin,
    },
    Group {
        title: "Shares of requests",
        axis: "change in points (further right is better)",
        takes: |f| f.unit == "share",
        margin: |r| r.design.share_margin,
    },
];

fn plots(record: &Record, contrast: &Contrast) -> Vec<Plot> {
    GROUPS.iter().filter_map(|group| plot(record, contrast, group)).collect()
}

fn plot(record: &Record, contrast: &Contrast, group: &Group) -> Option<Plot> {
    let findings: Vec<&Finding> = contrast.findings.iter().filter(|f| (group.takes)(f)).collect();
    let row = |f: &&Finding| {
        let (change, _) = change(f)?;
        let name = format!("{}{}", label(f), if f.primary { " *" } else { "" });
        Some(Estimate {
            name,
            value: Some(change.value?),
            interval: change.low.zip(change.high),
            invalid: !record.valid,
        })
    };
    let rows: Vec<Estimate> = findings.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let finding = match record.valid {
        false => "INVALID run: nothing is claimed.".to_owned(),
        true => claims(&findings),
    };
    let title = format!("{}: {} against {}", group.title, contrast.side, contrast.against);
    let margin = 100.0 * (group.margin)(record);
    let mut plot = forest(&title, &finding, Axis::linear(group.axis), &rows, 0.0, Some((-margin, margin)));
    if !record.valid {
        plot.series.push(Series::invalid_run());
    }
    Some(plot)
}

/// `Lower, better: Mean TTFT, P99 TTFT. Can't be told: P50 TTFT.`
fn claims(findings: &[&Finding]) -> String {
    let mut by_claim: Vec<(&str, Vec<String>)> = Vec::new();
    for finding in findings {
        match by_claim.iter_mut().find(|(said, _)| *said == claim(finding)) {
            Some((_, names)) => names.push(label(finding)),
            None => by_claim.push((claim(finding), vec![label(finding)])),
        }
    }
    let told = |(said, names): &(&str, Vec<String>)| format!("{}: {}.", capital(said), names.join(", "));
    by_claim.iter().map(told).collect::<Vec<_>>().join(" ")
}

fn table(record: &Record, contrast: &Contrast) -> Table {
    let mut columns = vec![Column::Text("metric".into())];
    columns.extend([&contrast.against, &contrast.side].map(|side| Column::Figure(side.clone())));
    columns.extend(["change, interval", "p", "p, adjusted"].map(|c| Column::Figure(c.into())));
    columns.push(Column::Text("claim".into()));
    let known = |f: &&Finding| f.a.is_some() || f.b.is_some();
    let p = |p: Option<f64>| p.map_or("–".into(), number);
    let row = |f: &Finding| {
        vec![
            format!("{}{}", label(f), if f.primary { " *" } else { "" }),
            shown(f, f.a).unwrap_or_else(|| "–".into()),
            shown(f, f.b).unwrap_or_else(|| "–".into()),
            span(f).unwrap_or_else(|| "–".into()),
            p(f.p),
            p(f.adjusted_p),
            claim(f).to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = contrast.findings.iter().filter(known).map(row).collect();
    Table {
        caption: format!("{} against {}; * decides", contrast.side, contrast.against),
        columns,
        invalid: if record.valid { Vec::new() } else { (0..rows.len()).collect() },
        rows,
    }
}

fn runs(record: &Record) -> Table {
    let heads = ["round", "measured as", "requests", "completed"];
    let mut columns = vec![Column::Text("side".into())];
    columns.extend(heads.map(|head| Column::Figure(head.into())));
    columns.extend(["what", "verdict"].map(|head| Column::Text(head.into())));
    let (mut rows, mut invalid) = (Vec::new(), Vec::new());
    for side in &record.sides {
        for run in &side.runs {
            if !run.valid {
                invalid.push(rows.len());
            }
            rows.push(vec![
                side.name.clone(),
                run.round.to_string(),
                run.order.map_or("before".into(), |n| format!("{n}.")),
                count(run.requests as u64),
                count(run.completed as u64),
                side.source.clone(),
                if run.valid { "VALID".into() } else { run.reasons.join("; ") },
            ]);
        }
    }
    Table { caption: "Every run".into(), columns, rows, invalid }
}
