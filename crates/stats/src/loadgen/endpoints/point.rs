//! A point of the curve: from its rows to the figures the rules ask for, and whether it counts.

use serde::Serialize;
use serde_json::Value;
use tailbound_record::{Moment, Row};

use super::export::summary;
use super::passes::{Seen, super_passes};
use super::plan::{Offline, PlannedPoint};
use super::steady::{Detection, MIN_DURATION_S, detect_within};

/// One request of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its moments and tokens after the first chunk.
    pub seen: Seen,
    /// All its output tokens.
    pub output_tokens: u64,
}

/// The requests of a run in issue order. A request is issued when the load lets it go, so that connecting is part of its TTFT; one that
/// was never let go is left out, and one that failed has no end.
///
/// Tokens are the server's usage where it says (see [`Row::output_tokens`]); those of the first chunk are what that event stated, or one.
pub fn answered(rows: &[Row]) -> Vec<Answered> {
    let ns = |row: &Row, moment| row.at.get(moment).map(|t| t.ns() as i64);
    let mut all: Vec<(u64, Answered)> = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(issued_ns) = ns(row, Moment::Released) else { continue };
        let output_tokens = u64::from(row.output_tokens());
        let first_chunk = row.chunks.as_slice().first().map_or(0, |c| u64::from(c.tokens.max(1)));
        let done = ns(row, Moment::StreamEnd).or_else(|| ns(row, Moment::LastToken)).filter(|_| row.ok());
        let seen = Seen {
            issued_ns,
            first_ns: ns(row, Moment::FirstToken).filter(|_| row.ok()),
            done_ns: done,
            tokens_after_first: output_tokens.saturating_sub(first_chunk),
        };
        all.push((row.id, Answered { seen, output_tokens }));
    }
    all.sort_by_key(|(id, a)| (a.seen.issued_ns, *id));
    all.into_iter().map(|(_, a)| a).collect()
}

/// A measured point.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// What was planned.
    pub plan: PlannedPoint,
    /// Its headline figures over the whole run.
    pub figures: Figures,
    /// The steady window, and what it shows.
    pub steady: Detection,
    /// `result_summary.json`; `None` if nothing was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Why it doesn't count; empty for a point that does.
    pub reasons: Vec<Reason>,
}

/// The headline figures of a point; `None` for what could not be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests let go.
    pub issued: u64,
    /// Requests whose whole answer came.
    pub completed: u64,
    /// The others.
    pub failed: u64,
    /// From the first issue to the last answer's end, s.
    pub duration_s: Option<f64>,
    /// Output tokens over the duration, 1/s.
    pub system_tps: Option<f64>,
    /// 1000 / TPOT P90 in ms.
    pub tps_per_user: Option<f64>,
    /// Time to first token, ms.
    pub ttft_p90_ms: Option<f64>,
    /// Time to first token, ms (v0.7's headline).
    pub ttft_p95_ms: Option<f64>,
    /// Time per output token after the first chunk, ms.
    pub tpot_p90_ms: Option<f64>,
    /// Latency, ms.
    pub latency_p90_ms: Option<f64>,
    /// The early-stopping estimate of TTFT P90, ms: what confidence 0.99 allows to be claimed.
    pub ttft_p90_early_stopping_ms: Option<f64>,
    /// The same of TTFT P95.
    pub ttft_p95_early_stopping_ms: Option<f64>,
    /// The same of TPOT P90.
    pub tpot_p90_early_stopping_ms: Option<f64>,
}

/// Why a point doesn't count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// For programs.
    pub code: String,
    /// For people: what is wrong and how to mend it.
    pub sentence: String,
}

impl Reason {
    /// A reason.
    pub fn new(code: impl Into<String>, sentence: impl Into<String>) -> Reason {
        Reason { code: code.into(), sentence: sentence.into() }
    }
}

/// What a point's figures are made with.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What was planned.
    pub plan: PlannedPoint,
    /// Samples of the data set: the size of a super-pass.
    pub dataset: u64,
    /// The measured rows.
    pub rows: &'a [Row],
    /// The version of the program that measured.
    pub version: &'a str,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
}

impl Point {
    /// Sums up and judges by the rules: whole passes, all answered, and a steady window that lasts long enough.
    pub fn of(m: Measured<'_>) -> Point {
        let samples = answered(m.rows);
        let completed = samples.iter().filter(|s| s.seen.done_ns.is_some()).count() as u64;
        let failed = samples.len() as u64 - completed;
        let summary = (completed > 0).then(|| summary::of(&samples, failed, m.version, m.started_at_ms)).flatten();
        let seen: Vec<Seen> = samples.iter().map(|s| s.seen).collect();
        let floor_s = m.plan.min_window_s.min(MIN_DURATION_S);
        let steady = detect_within(&super_passes(&seen, m.dataset.max(1) as usize), floor_s);
        let figures = Figures { issued: samples.len() as u64, completed, failed, ..Figures::of(summary.as_ref()) };
        let reasons = reasons(&m.plan, &figures, &steady);
        Point { plan: m.plan, figures, steady, summary, reasons }
    }

    /// Whether it counts.
    pub fn valid(&self) -> bool {
        self.reasons.is_empty()
    }
}

impl Figures {
    fn of(summary: Option<&Value>) -> Figures {
        let Some(s) = summary else { return Figures::default() };
        let ms = |metric: &str, map: &str, p: &str| s[metric][map][p].as_f64().map(|ns| ns / 1e6);
        let plain = |metric: &str, p: &str| ms(metric, "percentiles", p);
        let stopping = |metric: &str, p: &str| ms(metric, "early_stopping_percentiles", p);
        let tpot_p90_ms = plain("tpot", "90.0");
        Figures {
            duration_s: s["duration_ns"].as_f64().map(|ns| ns / 1e9),
            system_tps: s["tps"].as_f64(),
            tps_per_user: tpot_p90_ms.filter(|&ms| ms > 0.0).map(|ms| 1000.0 / ms),
            ttft_p90_ms: plain("ttft", "90.0"),
            ttft_p95_ms: plain("ttft", "95.0"),
            tpot_p90_ms,
            latency_p90_ms: plain("latency", "90.0"),
            ttft_p90_early_stopping_ms: stopping("ttft", "90.0"),
            ttft_p95_early_stopping_ms: stopping("ttft", "95.0"),
            tpot_p90_early_stopping_ms: stopping("tpot", "90.0"),
            ..Figures::default()
        }
    }
}

fn reasons(plan: &PlannedPoint, f: &Figures, steady: &Detection) -> Vec<Reason> {
    let mut why = Vec::new();
    if f.issued < plan.samples {
        let sentence = format!(
            "{} of {} requests were issued: a point issues whole passes over the data set; measure it again",
            f.issued, plan.samples
        );
        why.push(Reason::new("samples_missing", sentence));
    }
    if f.completed == 0 {
        why.push(Reason::new("nothing_completed", "no request was answered: see the failures in the point's result"));
        return why;
    }
    if f.tpot_p90_ms.is_none() && plan.offline != Offline::Dedicated {
        let sentence =
            "no answer has tokens after its first chunk, so there is no TPOT: stream, and ask for more than one token";
        why.push(Reason::new("no_tpot", sentence));
    }
    why.extend(window_reason(plan, steady));
    // TPOT is level in a window that was found; the rules want the other metrics to be level as well.
    let drifting: Vec<&str> = steady.drifting().map(|(name, _)| name).filter(|n| n.starts_with("ttft")).collect();
    if steady.found && !drifting.is_empty() {
        let sentence = format!(
            "{} drifts by 5 % or more from the steady window on: warm up longer, or look for what fills up",
            drifting.join(" and ")
        );
        why.push(Reason::new("ttft_drifts", sentence));
    }
    why
}

fn window_reason(plan: &PlannedPoint, steady: &Detection) -> Option<Reason> {
    let needed = plan.min_window_s;
    let Some(window) = &steady.window else {
        let sentence = format!(
            "no steady window: TPOT never held level over 4 of the {} passes after warm-up; issue more passes, or look for what drifts",
            steady.passes
        );
        return Some(Reason::new("no_steady_state", sentence));
    };
    let required = window.required;
    let needed = required.min_s.max(needed);
    if steady.found && required.window_s >= needed {
        return None;
    }
    let sentence = format!(
        "the steady window lasts {:.1} s of the {needed:.0} s it needs: {}",
        required.window_s,
        longer(&required, needed, window.end - window.first)
    );
    Some(Reason::new("window_too_short", sentence))
}

/// What would make the window long enough.
fn longer(required: &super::steady::Required, needed_s: f64, passes: usize) -> String {
    let a_pass = required.window_s / passes.max(1) as f64;
    if a_pass <= 0.0 {
        return "issue more passes".to_owned();
    }
    let more = libm::ceil((needed_s - required.window_s) / a_pass).max(1.0);
    format!("issue about {more:.0} passes more")
}
