//! The page of a run: whether to believe it, what it came to, and how that came about.

mod classes;
mod columns;
mod head;
mod health;
mod latency;
mod over_time;
mod requests;
mod servers;

use crate::page::{Attachment, Block, Page, Section, Series};
use crate::{Run, explain, json};
use tailbound_stats::{ClientHealth, OverTime};

/// What a page needs beside the run itself.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The command, as it may be shown: without keys.
    pub command: &'a str,
    /// Where requests went.
    pub target: &'a str,
    /// The plan's hash; empty if there was no plan.
    pub plan: &'a str,
    /// The seed of everything random, if it is known.
    pub seed: Option<u64>,
    /// What the client knows of itself.
    pub health: &'a ClientHealth,
    /// Sentences for the reader.
    pub notes: &'a [String],
}

/// A run with everything its page is made from.
struct Told<'a> {
    run: &'a Run<'a>,
    about: &'a About<'a>,
    over_time: OverTime,
}

/// The page of a run.
pub fn run_page(run: &Run<'_>, about: &About<'_>) -> Page {
    let over_time = tailbound_stats::over_time(run.rows, run.facts);
    let told = Told { run, about, over_time };
    let mut absent = Vec::new();
    let simulated = run.summary.stamps.virtual_time > 0;
    let sections = [
        section("objectives", "Objectives", head::objectives(&told, &mut absent)),
        section("run", "What was run", head::what(&told)),
        section("latency", "Latency", latency::blocks(&told, &mut absent)),
        section("time", "Over time", over_time::blocks(&told, &mut absent)),
        section("requests", "Requests", requests::blocks(&told)),
        section("classes", "Classes", classes::blocks(&told, &mut absent)),
        section("server", "The server itself", servers::blocks(&told, &mut absent)),
        section("client", "The client itself", health::blocks(&told, simulated, &mut absent)),
        section("definitions", "Definitions", vec![head::definitions(explain::all())]),
    ];
    let plan = if about.plan.is_empty() { String::new() } else { format!(" · plan {}", about.plan) };
    Page {
        title: head::title(run),
        kind: if simulated { "SIMULATED".into() } else { "MEASURED".into() },
        lead: head::lead(run),
        verdict: Some(head::strip(&told)),
        cards: head::cards(run),
        sections: sections.into_iter().flatten().map(|s| stamped(s, run.verdict.valid())).collect(),
        absent,
        attachments: vec![
            Attachment::json("result", "result.json", json::vllm_result(run, json::Detail::Totals)),
            columns::attachment(run),
        ],
        footer: format!("tailbound {}{plan} · {}", env!("CARGO_PKG_VERSION"), run.description.date),
    }
}

/// An INVALID run says so across each of its plots, and over each table whose rows are not struck out already.
fn stamped(mut section: Section, valid: bool) -> Section {
    let of_the_run = !["run", "definitions"].contains(&section.id.as_str());
    for block in section.blocks.iter_mut().filter(|_| !valid) {
        match block {
            Block::Plot(plot) => {
                plot.finding = format!("INVALID run. {}", plot.finding);
                plot.series.push(Series::invalid_run());
            }
            Block::Timeline(timeline) => timeline.finding = format!("INVALID run. {}", timeline.finding),
            Block::Table(table) if of_the_run && table.invalid.is_empty() => table.caption += " (INVALID run)",
            _ => {}
        }
    }
    section
}

fn section(id: &str, heading: &str, blocks: Vec<Block>) -> Option<Section> {
    (!blocks.is_empty()).then(|| Section { id: id.into(), heading: heading.into(), blocks })
}

impl Told<'_> {
    /// The run's length in seconds, for axes of time.
    fn span(&self) -> (f64, f64) {
        (0.0, self.run.summary.duration.secs().max(1e-3))
    }
}

/// Nanoseconds in milliseconds.
fn ms(ns: f64) -> f64 {
    ns * 1e-6
}
