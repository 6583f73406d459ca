//! What a sweep's runs came to, as their files say.

use crate::bundle;
use crate::failure::{Failure, Outcome};
use serde_json::{Map, Value};
use std::path::Path;
use tailbound_sweep::{layout, python};

/// One run: the benchmark's JSON with `run_number` and the parameters.
pub type RunData = Map<String, Value>;

/// A figure of a run; `None` if it is missing or no number.
pub fn figure(run: &RunData, key: &str) -> Option<f64> {
    match run.get(key)? {
        Value::String(text) if text == "inf" => Some(f64::INFINITY),
        value => value.as_f64(),
    }
}

/// Why a run's figures don't describe the server; `None` if they do, or if the benchmark doesn't judge itself.
pub fn invalid(run: &RunData) -> Option<String> {
    let verdict = run.get("tailbound")?.get("verdict")?;
    if verdict["valid"] != Value::Bool(false) {
        return None;
    }
    let reasons = verdict["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let codes: Vec<&str> = reasons.iter().filter_map(|r| r["code"].as_str()).collect();
    Some(if codes.is_empty() { "no reason given".into() } else { codes.join(", ") })
}

/// A result file; `None` if there is none, or none that was written to its end.
pub fn read(path: &Path) -> Option<RunData> {
    match python::read_json(&std::fs::read(path).ok()?) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// Writes JSON as Python's `json.dump(…, indent=…)` lays it out, whole or not at all.
pub fn write(path: &Path, value: &impl serde::Serialize, indent: usize) -> Outcome<()> {
    let mut out = Vec::new();
    let blanks = b" ".repeat(indent);
    let pretty = serde_json::ser::PrettyFormatter::with_indent(&blanks);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, pretty)).map_err(Failure::new)?;
    bundle::write(path, &out)
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> Outcome<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("failed to remove {}: {e}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Makes room for a run to be measured again: what an unfinished one left is removed, and nothing else is.
pub fn clear(result: &Path) -> Outcome<()> {
    let rows = layout::rows(result);
    super::super::curve::folder::clear(&rows)?;
    remove(&rows.join(bundle::MANIFEST))?;
    remove(result)
}
