//! Accuracy results and the scores a model must reach.

use serde_json::Value;

use super::Findings;
use super::doc::{at, text};

/// The entries of a results file by data set.
#[derive(Debug, Default)]
pub(super) struct Accuracy {
    pub entries: Vec<(String, Value)>,
}

impl Accuracy {
    /// Reads the native report (a list of entries under `accuracy_scores`) or a mapping by data set.
    pub(super) fn read(doc: &Value) -> Result<Accuracy, String> {
        let scores = doc.get("accuracy_scores").unwrap_or(doc);
        match scores {
            Value::Object(by_name) => {
                if let Some((name, _)) = by_name.iter().find(|(_, entry)| !entry.is_object()) {
                    return Err(format!("{name} is no entry with a score"));
                }
                Ok(Accuracy { entries: by_name.iter().map(|(k, v)| (k.clone(), v.clone())).collect() })
            }
            Value::Array(list) => {
                let mut entries: Vec<(String, Value)> = Vec::new();
                for entry in list {
                    let name = text(entry, "dataset_name").ok_or("every entry needs a dataset_name")?;
                    if entries.iter().any(|(n, _)| n == name) {
                        return Err(format!("{name} has two entries: keep one"));
                    }
                    if entry.get("score").is_none() {
                        return Err(format!("{name} has no score"));
                    }
                    entries.push((name.to_owned(), entry.clone()));
                }
                Ok(Accuracy { entries })
            }
            _ => Err("accuracy_scores must be a list or a mapping".into()),
        }
    }

    /// Whether it has anything but the score of the performance run itself.
    pub(super) fn has_runs(&self) -> bool {
        let inline = |name: &str, e: &Value| {
            text(e, "dataset_type") == Some("performance") || (name == "performance" && at(e, "dataset_type").is_none())
        };
        self.entries.iter().any(|(n, e)| !inline(n, e))
    }

    /// Scores by metric, averaged over data sets by their samples.
    fn scores(&self) -> Vec<(String, f64)> {
        let mut sums: Vec<(String, f64, f64)> = Vec::new();
        for (_, entry) in &self.entries {
            let weight = ["num_samples", "unit_samples"].iter().find_map(|n| at(entry, n)?.as_f64()).unwrap_or(1.0);
            let metrics: Vec<(String, f64)> = match entry.get("score") {
                Some(Value::Object(by_metric)) => {
                    by_metric.iter().filter_map(|(k, v)| Some((k.to_lowercase(), v.as_f64()?))).collect()
                }
                Some(v) => v.as_f64().map(|v| ("score".to_owned(), v)).into_iter().collect(),
                None => Vec::new(),
            };
            for (metric, value) in metrics {
                match sums.iter_mut().find(|s| s.0 == metric) {
                    Some(s) => (s.1, s.2) = (s.1 + value * weight, s.2 + weight),
                    None => sums.push((metric, value * weight, weight)),
                }
            }
        }
        sums.into_iter().filter(|s| s.2 > 0.0).map(|(m, sum, weight)| (m, sum / weight)).collect()
    }

    /// Samples issued, repeats counted; `None` if no entry says.
    fn samples(&self) -> Option<f64> {
        let of = |e: &Value| {
            let samples = ["num_samples", "unit_samples"].iter().find_map(|n| at(e, n)?.as_f64())?;
            let repeats = ["n_repeats", "num_repeats"].iter().find_map(|n| at(e, n)?.as_f64()).unwrap_or(1.0);
            Some(samples * repeats.max(1.0))
        };
        let counts: Vec<f64> = self.entries.iter().filter_map(|(_, e)| of(e)).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

/// What a model must score: metric, at least, at most; and over how many samples.
type Target = (&'static str, &'static [(&'static str, f64, f64)], f64);

const TARGETS: [Target; 3] = [
    ("deepseek-r1", &[("exact_match", 81.3582 * 0.99, f64::INFINITY)], 4388.0),
    ("gpt-oss-120b", &[("exact_match", 83.13 * 0.99, f64::INFINITY)], 4395.0),
    (
        "llama3_1-8b",
        &[
            ("rouge1", 38.7792 * 0.99, f64::INFINITY),
            ("rouge2", 15.9075 * 0.99, f64::INFINITY),
            ("rougel", 24.4957 * 0.99, f64::INFINITY),
            ("rougelsum", 35.793 * 0.99, f64::INFINITY),
            ("gen_len", 8_167_644.0 * 0.9, 8_167_644.0 * 1.1),
        ],
        13_368.0,
    ),
];

/// Holds a result against its model's targets; `false` if there are none.
pub(super) fn gate(model: &str, accuracy: &Accuracy, path: &str, found: &mut Findings) -> bool {
    let Some((_, targets, least)) = TARGETS.iter().find(|t| t.0 == model) else { return false };
    if let Some(samples) = accuracy.samples().filter(|s| s < least) {
        let message = format!("the accuracy run has {samples} samples, fewer than {least}: run the whole data set");
        found.error("accuracy-sample-count", path, message);
    }
    let mut scores = accuracy.scores();
    if let ([(name, _)], [only]) = (scores.as_mut_slice(), targets)
        && name == "score"
    {
        *name = only.0.to_owned();
        found.warning("accuracy-gate", path, format!("the score has no metric's name; it is taken for {}", only.0));
    }
    for &(metric, low, high) in *targets {
        let Some((_, score)) = scores.iter().find(|s| s.0 == metric) else { continue };
        let score = if (0.0..=1.0).contains(score) && low > 1.0 { score * 100.0 } else { *score };
        if score < low {
            found.error(
                "accuracy-gate",
                path,
                format!("{metric} is {score:.4}, under {low:.4}: the answers are not good enough"),
            );
        } else if score > high {
            found.error(
                "accuracy-gate",
                path,
                format!("{metric} is {score:.4}, over {high:.4}: the answers are too long"),
            );
        }
    }
    true
}
