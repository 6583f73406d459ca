//! The curve as people and programs read it.

use super::folder::Settings;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use tailbound_stats::loadgen::endpoints::plan::{CurvePlan, Offline};
use tailbound_stats::loadgen::endpoints::point::Point;

/// A measured curve.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The model, as reports name it.
    pub model: String,
    /// Samples of the data set.
    pub dataset_samples: u64,
    /// The hash of the plan.
    pub hash: String,
    /// The profile of the engine model, if that was measured in virtual time instead of a server.
    pub virtual_profile: Option<String>,
    /// Its points by concurrency, a dedicated offline point last.
    pub rows: Vec<Row>,
}

/// One point.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its folder.
    pub folder: String,
    /// Whether it counts.
    pub valid: bool,
    /// Everything about it but `result_summary.json`, which its folder has.
    #[serde(flatten)]
    pub point: Point,
}

impl Row {
    /// Of a measured point.
    pub fn new(folder: String, mut point: Point) -> Row {
        point.summary = None;
        Row { folder, valid: point.valid(), point }
    }
}

impl Table {
    /// Of measured points.
    pub fn new(settings: &Settings, rows: Vec<Row>) -> Table {
        let Settings { model, dataset_samples, hash, virtual_profile, .. } = settings.clone();
        Table { model, dataset_samples, hash, virtual_profile, rows }
    }

    /// Whether every point counts.
    pub fn valid(&self) -> bool {
        self.rows.iter().all(|r| r.valid)
    }

    /// For programs.
    pub fn json(&self) -> String {
        format!("{:#}\n", json!({ "valid": self.valid(), "curve": self }))
    }

    /// For people: a line for each point, then why those that don't count don't.
    pub fn text(&self, colour: bool) -> String {
        let mut out =
            format!("model {}, {} samples a pass, plan {}\n\n", self.model, self.dataset_samples, &self.hash[..12]);
        out += &format!(
            "{:>11}  {:<16} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7}  {}\n",
            "", "", "", "", "TTFT", "TTFT", "TPOT", "tokens/s", "system", "steady", "steady", ""
        );
        out += &format!(
            "{:>11}  {:<16} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7}  {}\n",
            "concurrency",
            "region",
            "requests",
            "failed",
            "P90 ms",
            "P95 ms",
            "P90 ms",
            "/user",
            "tokens/s",
            "tokens/s",
            "for",
            "verdict"
        );
        if let Some(profile) = &self.virtual_profile {
            out = format!("modelled by {profile} in virtual time: no server was measured\n{out}");
        }
        for row in &self.rows {
            out += &line(row, colour);
        }
        for row in self.rows.iter().filter(|r| !r.valid) {
            out.push('\n');
            for reason in &row.point.reasons {
                let _ = writeln!(out, "{} is INVALID [{}]: {}", row.folder, reason.code, reason.sentence);
            }
        }
        out
    }
}

fn line(row: &Row, colour: bool) -> String {
    let (plan, f) = (&row.point.plan, &row.point.figures);
    let region = match (plan.region, plan.offline) {
        (_, Offline::Dedicated) => "offline",
        (Some(region), _) => region.name(),
        (None, _) => "",
    };
    // Half a window is no figure of a steady state.
    let window = row.point.steady.window.as_ref().filter(|_| row.point.steady.found);
    let verdict = match (row.valid, colour) {
        (true, _) => "VALID".to_owned(),
        (false, true) => "\x1b[31mINVALID\x1b[0m".to_owned(),
        (false, false) => "INVALID".to_owned(),
    };
    let elected = if plan.offline == Offline::Elected { ", offline too" } else { "" };
    format!(
        "{:>11}  {:<16} {:>8} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7}  {verdict}{elected}\n",
        plan.concurrency,
        region,
        f.issued,
        f.failed,
        figure(f.ttft_p90_ms),
        figure(f.ttft_p95_ms),
        figure(f.tpot_p90_ms),
        figure(f.tps_per_user),
        figure(f.system_tps),
        figure(window.map(|w| w.system_tps)),
        window.map_or_else(|| "-".into(), |w| super::plan::length(w.required.window_s)),
    )
}

/// Four digits, as far as there are any.
fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v >= 1000.0 => format!("{v:.0}"),
        Some(v) if v >= 100.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}

/// A plan for programs.
pub fn plan_json(plan: &CurvePlan, model: &str, dataset_samples: u64, hash: Option<&str>) -> String {
    let expected_s = plan.expected_s();
    format!(
        "{:#}\n",
        json!({ "hash": hash, "model": model, "dataset_samples": dataset_samples, "expected_s": expected_s, "plan": plan })
    )
}
