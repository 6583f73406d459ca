//! `point.yaml`: the rules a single point can be held to.

use serde_json::Value;

use super::Findings;
use super::doc::{at, number, text, whole};

/// A point whose `point.yaml` could be read.
#[derive(Debug)]
pub(super) struct Point {
    /// The folder's name, `r<N>`.
    pub name: String,
    /// The path of `point.yaml`.
    pub path: String,
    pub doc: Value,
    pub concurrency: i128,
}

impl Point {
    pub(super) fn offline(&self) -> Option<&str> {
        text(&self.doc, "offline")
    }
    pub(super) fn dedicated(&self) -> bool {
        self.offline() == Some("dedicated")
    }
    pub(super) fn load_pattern(&self) -> &str {
        text(&self.doc, "runtime_settings.load_pattern").unwrap_or("concurrency")
    }
    pub(super) fn agentic(&self) -> bool {
        self.load_pattern() == "agentic_inference"
    }
}

/// Problems that make the file unusable.
pub(super) fn schema(doc: &Value) -> Vec<String> {
    let mut bad = Vec::new();
    let mut need_whole = |path: &str, required: bool| {
        if whole(doc, path).is_none() && (required || at(doc, path).is_some()) {
            bad.push(format!("{path} must be a whole number"));
        }
    };
    need_whole("concurrency", true);
    need_whole("max_supported_concurrency", false);
    need_whole("runtime_settings.min_duration_ms", false);
    need_whole("runtime_settings.min_sample_count", false);
    for seed in ["scheduler_rng_seed", "sample_index_rng_seed", "model_seed"] {
        need_whole(&format!("runtime_settings.runtime.{seed}"), false);
    }
    if !at(doc, "runtime_settings.runtime").is_some_and(Value::is_object) {
        bad.push("runtime_settings.runtime must hold the three seeds".into());
    }
    if at(doc, "warmup").is_some() {
        warmup_schema(doc, &mut bad);
    }
    bad
}

fn warmup_schema(doc: &Value, bad: &mut Vec<String>) {
    let duration = number(doc, "warmup.duration_s");
    if !duration.is_some_and(|d| (0.0..=86_400.0).contains(&d)) {
        bad.push("warmup.duration_s must be a number of seconds from 0 to 86400".into());
    }
    let mut count = |name: &str| {
        let value = whole(doc, &format!("warmup.{name}")).filter(|&v| v >= 0);
        if value.is_none() {
            bad.push(format!("warmup.{name} must be a whole number, not negative"));
        }
        value.unwrap_or(0)
    };
    let (issued, completed, concurrency) =
        (count("requests_issued"), count("requests_completed"), count("concurrency"));
    if text(doc, "warmup.data_source").is_none() {
        bad.push("warmup.data_source must say what was sent".into());
    }
    if completed > issued {
        bad.push(format!("warmup.requests_completed {completed} is more than requests_issued {issued}"));
    }
    let disabled = duration == Some(0.0) && issued == 0 && completed == 0;
    if concurrency == 0 && !disabled {
        bad.push("warmup.concurrency may be 0 only without any warm-up".into());
    }
}

const DISCLOSURE: [&str; 12] = [
    "division",
    "max_supported_concurrency",
    "model_name",
    "model_precision",
    "link_to_model",
    "dataset_name",
    "dataset_type",
    "dataset_link",
    "shared_src",
    "shared_docs",
    "seed_set",
    "target_cohort",
];
const REGIONS: [&str; 6] =
    ["low_latency", "low_concurrency", "med_concurrency", "high_concurrency", "margin", "submitters_choice"];

/// The rules that need no other file.
pub(super) fn check(p: &Point, found: &mut Findings) {
    if let Some(offline) = p.offline().filter(|o| !["dedicated", "elected", "none"].contains(o)) {
        let message = format!("offline is {offline:?}: write dedicated, elected or none");
        found.error("offline-declared", &p.path, message);
    }
    steady_state(p, found);
    let missing: Vec<&str> = DISCLOSURE.into_iter().filter(|f| at(&p.doc, f).is_none_or(|v| v == "")).collect();
    if !missing.is_empty() {
        found.error("point-disclosure-complete", &p.path, format!("add {}", missing.join(", ")));
    }
    if let Some(cohort) = text(&p.doc, "target_cohort").filter(|c| !is_cohort(c)) {
        found.error("target-cohort", &p.path, format!("target_cohort is {cohort:?}: write YYYY-MM-C0 or YYYY-MM-C1"));
    }
    legacy_seeds(p, found);
    warmup(p, found);
    load_pattern(p, found);
    if let Some(region) = text(&p.doc, "region").filter(|r| !REGIONS.contains(r)) {
        found.error("region-declared", &p.path, format!("region is {region:?}: write one of {}", REGIONS.join(", ")));
    }
}

fn is_cohort(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() == 10
        && text.is_ascii()
        && b[..4].iter().chain(&b[5..7]).all(u8::is_ascii_digit)
        && &text[4..5] == "-"
        && matches!(&text[7..], "-C0" | "-C1")
}

fn steady_state(p: &Point, found: &mut Findings) {
    const STATUSES: [&str; 4] = ["windowable", "insufficient_duration", "insufficient_passes", "partial_dataset"];
    const VERDICTS: [&str; 5] = ["STEADY STATE", "drifting_up", "drifting_down", "anomaly", "not found"];
    const STATES: [&str; 3] = ["Plateau", "Drifting Up", "Drifting Down"];
    if at(&p.doc, "steady_state").is_none() {
        return;
    }
    let mut bad = Vec::new();
    let status = text(&p.doc, "steady_state.status");
    if let Some(s) = status.filter(|s| !STATUSES.contains(s)) {
        bad.push(format!("status {s:?} is none of {}", STATUSES.join(", ")));
    }
    if let Some(v) = text(&p.doc, "steady_state.verdict").filter(|v| !VERDICTS.contains(v)) {
        bad.push(format!("verdict {v:?} is none of {}", VERDICTS.join(", ")));
    }
    for (metric, state) in states(p) {
        if !STATES.contains(&state) {
            bad.push(format!("{metric} is {state:?}, none of {}", STATES.join(", ")));
        }
    }
    if !bad.is_empty() {
        found.error("steady-state-valid", &p.path, bad.join("; "));
    }
    let passes = super_passes(p);
    let mut wrong = Vec::new();
    match (status, passes) {
        (Some("windowable"), passes) => {
            if let Some(n) = passes.filter(|&n| n < 4) {
                wrong.push(format!("the window has {n} super-passes, windowable needs 4"));
            }
            let drifting = drifting(p);
            if !drifting.is_empty() {
                wrong
                    .push(format!("windowable asks for a Plateau of every metric, but {} drifts", drifting.join(", ")));
            }
        }
        (Some("insufficient_passes"), Some(n)) if n >= 4 => {
            wrong.push(format!("insufficient_passes over {n} super-passes, which are enough"));
        }
        _ => {}
    }
    if !wrong.is_empty() {
        found.error("steady-state-consistency", &p.path, wrong.join("; "));
    }
}

pub(super) fn states(p: &Point) -> Vec<(&str, &str)> {
    let states = at(&p.doc, "steady_state.state").and_then(Value::as_object);
    states.into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect()
}

pub(super) fn drifting(p: &Point) -> Vec<&str> {
    let mut names: Vec<&str> =
        states(p).into_iter().filter(|(_, s)| s.starts_with("Drifting")).map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}

fn super_passes(p: &Point) -> Option<i128> {
    let end = whole(&p.doc, "steady_state.window.super_pass_end")?;
    Some(end - whole(&p.doc, "steady_state.window.super_pass_start")? + 1)
}

/// Without a seed set, v0.7 held every seed at 42.
fn legacy_seeds(p: &Point, found: &mut Findings) {
    if at(&p.doc, "seed_set").is_some() {
        return;
    }
    for name in ["scheduler_rng_seed", "sample_index_rng_seed"] {
        let path = format!("runtime_settings.runtime.{name}");
        match whole(&p.doc, &path) {
            Some(42) => {
                found.warning(
                    "seed-config-legacy",
                    &p.path,
                    format!("{path} is 42, as v0.7 had it: bind a published seed_set"),
                );
            }
            other => found.error(
                "seed-config-legacy",
                &p.path,
                format!("{path} is {other:?} without a seed_set: bind a published one"),
            ),
        }
    }
}

fn warmup(p: &Point, found: &mut Findings) {
    if at(&p.doc, "runtime_settings.warmup.salt").and_then(Value::as_bool) == Some(true) {
        found.warning("warmup-salt", &p.path, "runtime_settings.warmup.salt is set: say why warm-up needs it");
    }
    if at(&p.doc, "warmup").is_none() {
        found.error(
            "warmup-present",
            &p.path,
            "there is no warmup block: declare what was sent before the measurement, or zeros",
        );
        return;
    }
    let zero = |name: &str| number(&p.doc, &format!("warmup.{name}")) == Some(0.0);
    if zero("duration_s") && zero("requests_issued") && zero("requests_completed") {
        return;
    }
    if at(&p.doc, "warmup.logs_retained").and_then(Value::as_bool) != Some(true) {
        found.warning(
            "warmup-logs-retained",
            &p.path,
            "warmup.logs_retained is not true: keep the warm-up's logs for reviewers and say so",
        );
    }
}

fn load_pattern(p: &Point, found: &mut Findings) {
    if p.dedicated() {
        return;
    }
    let pattern = p.load_pattern();
    if !["concurrency", "agentic_inference"].contains(&pattern) {
        let message =
            format!("load_pattern is {pattern:?}: every point but a dedicated offline one holds a fixed concurrency");
        found.error("load-pattern", &p.path, message);
    } else if p.concurrency <= 0 {
        found.error("load-pattern", &p.path, format!("concurrency is {}: it must be above 0", p.concurrency));
    }
}
