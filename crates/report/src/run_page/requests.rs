//! Single requests: the timeline, the slowest, the failures.

use super::Told;
use super::head::in_ms;
use crate::page::{Block, Column, Table, Timeline, brief, count};
use crate::rows::outcome;
use tailbound_record::Row;

/// Rows of the table of the slowest.
const SLOWEST: usize = 20;

pub(super) fn blocks(told: &Told<'_>) -> Vec<Block> {
    let run = told.run;
    let mut blocks = Vec::new();
    if !run.rows.is_empty() {
        let finding = format!(
            "{} requests, one above the other while they overlap: at most {} at once.",
            count(run.rows.len() as u64),
            run.summary.concurrency.peak
        );
        blocks.push(Block::Timeline(Timeline {
            title: "Timeline of requests".into(),
            finding,
            rows: super::columns::ID.into(),
        }));
    }
    blocks.extend(slowest(told));
    blocks.extend(failures(told));
    blocks
}

fn slowest(told: &Told<'_>) -> Option<Block> {
    let run = told.run;
    let open = run.facts.open_loop();
    let ttft = |r: &Row| if open { r.ttft_scheduled() } else { r.ttft() };
    let mut rows: Vec<&Row> = run.rows.iter().filter(|r| r.ok()).collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(ttft(r)), r.id));
    rows.truncate(SLOWEST);
    let heads = ["request", "due at (s)", "TTFT", "TPOT", "E2E", "prompt tokens", "output tokens"];
    let mut columns: Vec<Column> = heads.map(|h| Column::Figure(h.into())).to_vec();
    columns[0] = Column::Text("request".into());
    columns.push(Column::Text("outcome".into()));
    let number = |n: Option<u32>| n.map_or("–".into(), |n| count(u64::from(n)));
    let time = |d: Option<tailbound_clock::Dur>| d.map_or("–".into(), |d| in_ms(d.ns() as f64));
    let row = |r: &&Row| {
        let due = r.at.get(tailbound_record::Moment::Scheduled).or_else(|| tailbound_stats::departure(r));
        vec![
            r.id.to_string(),
            due.map_or("–".into(), |t| brief(t.since(run.facts.start).secs())),
            time(ttft(r)),
            tailbound_stats::tpot_ns(r).map_or("–".into(), in_ms),
            time(if open { r.e2e_scheduled() } else { r.e2e() }),
            number(r.prompt_tokens()),
            number(Some(r.output_tokens())),
            outcome(r, run.facts),
        ]
    };
    let invalid = if run.verdict.valid() { Vec::new() } else { (0..rows.len()).collect() };
    let caption = format!("The {} requests that waited longest for a first token", rows.len());
    let table = Table { caption, columns, rows: rows.iter().map(row).collect(), invalid };
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

fn failures(told: &Told<'_>) -> Option<Block> {
    let groups = &told.run.summary.failures;
    let columns = ["what", "how many", "whose side", "how far", "first request", "its words"];
    let row = |g: &tailbound_stats::FailureGroup| {
        vec![
            g.cause.to_string(),
            count(g.count as u64),
            format!("{:?}", g.blame).to_lowercase(),
            format!("{:?}", g.phase).to_lowercase(),
            g.sample.0.to_string(),
            g.sample.1.chars().take(300).collect(),
        ]
    };
    let table = Table {
        caption: "Failures, by kind".into(),
        columns: columns.map(|c| Column::Text(c.into())).to_vec(),
        rows: groups.iter().map(row).collect(),
        ..Table::default()
    };
    (!groups.is_empty()).then_some(Block::Table(table))
}
