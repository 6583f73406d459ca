//! Writes the submission folder of a measured curve, including the steady-state block that no official tool writes.

pub(super) mod summary;
mod yaml;

use serde_json::{Map, Value, json};

use super::check::{Folder, PUBLISHED};
use super::passes::{Seen, super_passes};
use super::plan::{Offline, by_rule_s};
use super::point::Answered;
use super::steady;

/// What was sent before a point was measured.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // point.yaml's names
pub struct Warmup {
    pub duration_s: f64,
    pub requests_issued: u64,
    pub requests_completed: u64,
    pub data_source: String,
    pub concurrency: u64,
}

/// One measured point.
#[derive(Clone, Debug)]
pub struct MeasuredPoint {
    /// Requests in flight.
    pub concurrency: u64,
    /// Its part in the offline result.
    pub offline: Offline,
    /// Performance requests in issue order; one without an end is no completed sample.
    pub samples: Vec<Answered>,
    /// Requests that failed.
    pub failed: u64,
    /// Its warm-up.
    pub warmup: Warmup,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
    /// What the client ran with (`config.yaml`).
    pub config: Value,
    /// Its accuracy report (`accuracy_results.json`).
    pub accuracy: Option<Value>,
}

/// A submission of one curve.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The submitting organisation, which names the outer folder.
    pub organisation: String,
    /// Names the inner folder.
    pub id: String,
    /// Names the system's folder.
    pub system: String,
    /// The model, by its accepted name.
    pub model: String,
    /// The data set, by its official name.
    pub dataset: String,
    /// Samples of the data set: the size of a super-pass.
    pub dataset_samples: usize,
    /// The cohort aimed for, `YYYY-MM-C0` or `C1`.
    pub target_cohort: String,
    /// The highest concurrency the system supports.
    pub c_max: u64,
    /// `system_desc.json`, but for what is derived.
    pub system_desc: Map<String, Value>,
    /// The further fields of `point.yaml` (division, model_precision, link_to_model, dataset_name …).
    pub disclosure: Map<String, Value>,
    /// The implementation's name and the text of its README.
    pub source: (String, String),
    /// The text of `docs/README.md`.
    pub docs: String,
    /// The version of the program that measured.
    pub version: String,
    /// The points.
    pub points: Vec<MeasuredPoint>,
}

/// Why there is nothing to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotExport {
    /// A name that would not be one folder.
    #[error("{what} {name:?} cannot name a folder: use letters, digits, '.', '-' and '_'")]
    Name {
        /// Which.
        what: &'static str,
        /// What it was.
        name: String,
    },
    /// A point without a single answer.
    #[error("the point of concurrency {0} has no completed request: measure it again before exporting")]
    Empty(u64),
    /// Two points of one concurrency share a folder.
    #[error("two points have concurrency {0}: export one of them")]
    Twice(u64),
    /// No data set size.
    #[error("the data set has no samples: its size tells where a super-pass ends")]
    NoDataset,
}

/// The folder, from the organisation's folder on.
///
/// # Errors
/// If a point has nothing to report or a name cannot name a folder.
pub fn export(submission: &Submission) -> Result<Folder, CannotExport> {
    let s = submission;
    for (what, name) in [
        ("organisation", &s.organisation),
        ("submission id", &s.id),
        ("system", &s.system),
        ("model", &s.model),
        ("implementation", &s.source.0),
    ] {
        let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if name.is_empty() || name.starts_with('.') || !fits {
            return Err(CannotExport::Name { what, name: name.clone() });
        }
    }
    if s.dataset_samples == 0 {
        return Err(CannotExport::NoDataset);
    }
    let mut folder = Folder::default();
    let root = format!("{}/{}", s.organisation, s.id);
    folder.insert(&format!("{root}/docs/README.md"), s.docs.as_bytes());
    folder.insert(&format!("{root}/src/{}/README.md", s.source.0), s.source.1.as_bytes());
    for (p, files) in s.points.iter().zip(files(s)?) {
        let at = format!("{root}/results/{}/{}/r{}", s.system, s.model, p.concurrency);
        if folder.get(&format!("{at}/point.yaml")).is_some() {
            return Err(CannotExport::Twice(p.concurrency));
        }
        for (name, content) in files {
            folder.insert(&format!("{at}/{name}"), content);
        }
    }
    Ok(folder)
}

/// The same points as run folders, the layout that MLPerf Inference v6.1's checker and `endpoints-submission-cli runs create` take:
/// `<system>/<model>/r<N>/` with `performance/` and `accuracy/` inside.
///
/// # Errors
/// If a point has nothing to report.
pub fn run_folders(submission: &Submission) -> Result<Folder, CannotExport> {
    let s = submission;
    let mut folder = Folder::default();
    for (p, files) in s.points.iter().zip(files(s)?) {
        for (name, content) in files {
            let inside = match name {
                "result_summary.json" => "performance/",
                "accuracy_results.json" => "accuracy/",
                _ => "",
            };
            folder.insert(&format!("{}/{}/r{}/{inside}{name}", s.system, s.model, p.concurrency), content);
        }
    }
    Ok(folder)
}

/// A point's files by name.
type Files = Vec<(&'static str, Vec<u8>)>;

/// Every point's files.
fn files(s: &Submission) -> Result<Vec<Files>, CannotExport> {
    let mut summaries = Vec::new();
    for p in &s.points {
        let summary = summary::of(&p.samples, p.failed, &s.version, p.started_at_ms).filter(|_| p.completed() > 0);
        summaries.push(summary.ok_or(CannotExport::Empty(p.concurrency))?);
    }
    let best = summaries.iter().filter_map(|v| v["tps"].as_f64()).fold(0.0, f64::max);
    let of = |(p, summary): (&MeasuredPoint, &Value)| {
        let mut desc = s.system_desc.clone();
        desc.insert("max_supported_concurrency".into(), s.c_max.into());
        let share = summary["tps"].as_f64().filter(|_| best > 0.0).map(|tps| tps / best);
        desc.insert("tps_utilization".into(), json!(share));
        let mut files = vec![
            ("system_desc.json", pretty(&Value::Object(desc))),
            ("result_summary.json", pretty(summary)),
            ("config.yaml", yaml::text(&p.config).into_bytes()),
            ("point.yaml", yaml::text(&point(s, p, summary)).into_bytes()),
        ];
        files.extend(p.accuracy.as_ref().map(|a| ("accuracy_results.json", pretty(a))));
        files
    };
    Ok(s.points.iter().zip(&summaries).map(of).collect())
}

impl MeasuredPoint {
    fn completed(&self) -> usize {
        self.samples.iter().filter(|s| s.seen.done_ns.is_some()).count()
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

fn point(s: &Submission, p: &MeasuredPoint, summary: &Value) -> Value {
    let seeds = &PUBLISHED[PUBLISHED.len() - 1];
    let dedicated = p.offline == Offline::Dedicated;
    let mut doc = json!({
        "concurrency": p.concurrency,
        "dataset": s.dataset,
        "runtime_settings": {
            "load_pattern": if dedicated { "max_throughput" } else { "concurrency" },
            "min_duration_ms": (by_rule_s(p.concurrency) * 1000.0) as u64,
            "stream_all_chunks": true,
            "runtime": {
                "scheduler_rng_seed": seeds.scheduler,
                "sample_index_rng_seed": seeds.sample_index,
                "model_seed": seeds.model,
            },
        },
        "warmup": {
            "duration_s": p.warmup.duration_s,
            "requests_issued": p.warmup.requests_issued,
            "requests_completed": p.warmup.requests_completed,
            "data_source": p.warmup.data_source,
            "concurrency": p.warmup.concurrency,
            "initialization_steps": ["none"],
            "logs_retained": true,
            "link_logs": "docs/",
        },
        "max_supported_concurrency": s.c_max,
        "model_name": s.model,
        "shared_src": format!("src/{}", s.source.0),
        "shared_docs": "docs",
        "seed_set": seeds.id,
        "target_cohort": s.target_cohort,
        "offline": match p.offline {
            Offline::None => "none",
            Offline::Elected => "elected",
            Offline::Dedicated => "dedicated",
        },
        "output_token_average": summary["output_sequence_lengths"]["avg"],
        "steady_state": steady_state(p, s.dataset_samples),
    });
    for (name, value) in &s.disclosure {
        doc[name.as_str()] = value.clone();
    }
    doc
}

fn steady_state(p: &MeasuredPoint, size: usize) -> Value {
    let seen: Vec<Seen> = p.samples.iter().map(|s| s.seen).collect();
    let detection = steady::detect(&super_passes(&seen, size));
    let block = detection.block(size);
    let state: Map<String, Value> = block.state.iter().map(|&(name, word)| (name.into(), word.into())).collect();
    let mut doc = json!({ "status": block.status, "verdict": block.verdict, "state": state });
    if seen.len() < size {
        doc["status"] = "partial_dataset".into();
    }
    if let Some(window) = block.window {
        doc["window"] = json!(window);
    }
    if let Some(anomaly) = detection.anomaly {
        doc["anomaly"] = json!(anomaly);
    }
    doc
}
