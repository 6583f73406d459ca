//! From rows to what is printed, saved and returned.

use super::args::ServeArgs;
use super::live::Ran;
use crate::failure::{Failure, Outcome};
use crate::output;
use tailbound_clock::Time;
use tailbound_record::{Moment, Row};
use tailbound_report::{Probes, Run, Selected, Selection, json, text};
use tailbound_stats::{Bounds, Summary, Verdict, judge, summarize};

/// A run with its figures and its verdict.
pub struct Judged<'a> {
    ran: &'a Ran,
    summary: Summary,
    verdict: Verdict,
    selection: Selection,
}

impl<'a> Judged<'a> {
    /// Sums up and judges.
    pub fn new(args: &ServeArgs, ran: &'a Ran) -> Outcome<Judged<'a>> {
        let summary = summarize(&ran.rows, &ran.facts);
        let mut health = ran.health.clone();
        if let Some(file) = &args.report.calibration {
            health.calibrated_lateness_p99_ns = crate::calibrate::lateness_p99_ns(file, ran.facts.request_rate)?;
        }
        let bounds = Bounds {
            error_share: args.report.max_error_share,
            percentiles: args.report.metric_percentiles.clone(),
            ..Bounds::default()
        };
        let verdict = judge(&summary, &ran.facts, &health, &bounds);
        Ok(Judged { ran, summary, verdict, selection: selection(args)? })
    }

    /// Everything a report is made from.
    pub fn run(&self) -> Run<'_> {
        Run {
            description: &self.ran.description,
            facts: &self.ran.facts,
            summary: &self.summary,
            verdict: &self.verdict,
            rows: &self.ran.rows,
            selection: &self.selection,
            extras: &self.ran.extras,
        }
    }

    /// The report for people.
    pub fn text(&self, explain: bool) -> String {
        let colour = if output::color() { text::Colour::On } else { text::Colour::Off };
        let run = self.run();
        let mut out = text::report(&run, colour);
        for note in &self.ran.notes {
            out += &format!("note: {note}\n");
        }
        if explain {
            out += "\n";
            out += &text::explanations(&run);
        }
        out
    }

    /// The report for programs.
    pub fn json(&self, args: &ServeArgs) -> String {
        json::vllm_result(&self.run(), detail(args))
    }

    /// By the verdict and the objectives.
    pub fn exit_code(&self) -> u8 {
        let held = self.ran.extras.thresholds.iter().all(|threshold| threshold.held);
        let met = self.summary.goodput.as_ref().is_none_or(|g| g.met()) && held;
        super::exit_code(self.ran.interrupted(), self.ran.terminated, self.verdict.valid(), met)
    }
}

/// How much of single requests goes into the JSON.
pub fn detail(args: &ServeArgs) -> json::Detail {
    if args.report.save_detailed { json::Detail::PerRequest } else { json::Detail::Totals }
}

fn selection(args: &ServeArgs) -> Outcome<Selection> {
    let metrics = args.report.percentile_metrics.iter().map(|name| name.parse::<Selected>());
    Ok(Selection {
        metrics: metrics.collect::<Result<_, _>>().map_err(|e| Failure::usage(format!("--percentile-metrics: {e}")))?,
        percentiles: args.report.metric_percentiles.clone(),
        token_lines: true,
    })
}

/// When a request was over.
pub fn ended(row: &Row) -> Option<Time> {
    row.at.get(Moment::StreamEnd).or_else(|| row.at.get(Moment::LastToken))
}

/// The probes beside the load, if there were any.
pub fn probes(rows: &[Row]) -> Option<Probes> {
    if rows.is_empty() {
        return None;
    }
    let ms: Vec<f64> = rows.iter().filter(|r| r.ok()).filter_map(|r| r.e2e()).map(|d| d.ms()).collect();
    let dist = tailbound_stats::Dist::new(ms);
    let at = |p: f64| dist.percentile(p).unwrap_or(0.0);
    Some(Probes {
        completed: dist.n(),
        failed: rows.len() - dist.n(),
        median_e2e_ms: at(50.0),
        p99_e2e_ms: at(99.0),
        max_e2e_ms: at(100.0),
    })
}
