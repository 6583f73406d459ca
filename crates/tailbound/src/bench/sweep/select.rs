//! Which of an experiment's runs a figure is about: vLLM's filters, bins and groups.

use super::results::{RunData, figure};
use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tailbound_sweep::{layout, python};

/// The runs of one combination.
pub struct Summary {
    /// Its folder, from the experiment's; the experiment's own name for the combination of nothing.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunData>,
}

/// Every combination below a folder, in the order of their names.
pub fn summaries(folder: &Path) -> Outcome<Vec<Summary>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let failed = |e| Failure::usage(format!("failed to read the folder {}: {e}", folder.display()));
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name == layout::SUMMARY) {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Failure::usage(format!("{} holds no results of a sweep", folder.display()))
            .hint("name an experiment's folder: what -o and -e were, in `tailbound bench sweep serve`"));
    }
    found.iter().map(|path| read(folder, path)).collect()
}

fn read(experiment: &Path, path: &Path) -> Outcome<Summary> {
    let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
    let Value::Array(items) = python::read_json(&bytes).map_err(|e| failed(e.to_string()))? else {
        return Err(failed("it is no list of runs".into()));
    };
    let runs = items.into_iter().map(|item| match item {
        Value::Object(run) => Ok(run),
        other => Err(failed(format!("{other} is no run"))),
    });
    // By its way from the experiment's folder, which may hold several sweeps with the same combinations.
    let folder = path.parent().unwrap_or(experiment);
    let way = folder.strip_prefix(experiment).ok().filter(|way| !way.as_os_str().is_empty());
    let name = way.or(folder.file_name().map(Path::new)).unwrap_or(folder).display().to_string();
    Ok(Summary { name, runs: runs.collect::<Outcome<_>>()? })
}

/// Conditions on runs, all of which must hold.
#[derive(Debug, Default)]
pub struct Filters(Vec<(String, Operator, String)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// Longer ones first: `<=` begins with `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Below),
    (">", Operator::Above),
];

impl Filters {
    /// From `--filter-by`.
    pub fn parse(text: &str) -> Outcome<Filters> {
        let one = |part: &str| {
            let wrong = |what: &str| Failure::usage(format!("--filter-by {part}: {what}"));
            let (sign, operator) = *OPERATORS
                .iter()
                .find(|(sign, _)| part.contains(sign))
                .ok_or_else(|| wrong("there is no comparison in it").hint("one of == != <= >= < >"))?;
            let (key, target) = part.split_once(sign).unwrap_or((part, ""));
            let target = target.trim().trim_matches('\'').trim_matches('"').to_owned();
            let ordered = !matches!(operator, Operator::Equal | Operator::NotEqual);
            if ordered && target.parse::<f64>().is_err() {
                return Err(wrong("only numbers are greater or less"));
            }
            Ok((key.trim().to_owned(), operator, target))
        };
        text.split(',').filter(|part| !part.trim().is_empty()).map(one).collect::<Outcome<_>>().map(Filters)
    }

    /// Whether a run passes. One that doesn't have the variable passes only an inequality.
    pub fn pass(&self, run: &RunData) -> bool {
        self.0.iter().all(|(key, operator, target)| {
            let (value, number) = (figure(run, key), target.parse::<f64>().ok());
            let equal = || match (value, number) {
                (Some(value), Some(number)) => value == number,
                _ => run.get(key).is_some_and(|v| matches_text(v, target)),
            };
            let compared = value.zip(number);
            match operator {
                Operator::Equal => equal(),
                Operator::NotEqual => !equal(),
                Operator::AtMost => compared.is_some_and(|(v, n)| v <= n),
                Operator::AtLeast => compared.is_some_and(|(v, n)| v >= n),
                Operator::Below => compared.is_some_and(|(v, n)| v < n),
                Operator::Above => compared.is_some_and(|(v, n)| v > n),
            }
        })
    }
}

/// `True` and `true` are the same for a switch.
fn matches_text(value: &Value, target: &str) -> bool {
    match value {
        Value::Bool(on) => target.eq_ignore_ascii_case(if *on { "true" } else { "false" }),
        other => python::text(other) == target,
    }
}

/// Variables whose values are taken together: the size of the steps.
#[derive(Debug, Default)]
pub struct Bins(Vec<(String, f64)>);

impl Bins {
    /// From `--bin-by`.
    pub fn parse(text: &str) -> Outcome<Bins> {
        let one = |part: &str| match part.split_once('%').map(|(key, size)| (key.trim(), size.trim().parse::<f64>())) {
            Some((key, Ok(size))) if size > 0.0 && size.is_finite() => Ok((key.to_owned(), size)),
            _ => Err(Failure::usage(format!("--bin-by {part}: not of the form KEY%SIZE"))),
        };
        text.split(',').filter(|part| !part.trim().is_empty()).map(one).collect::<Outcome<_>>().map(Bins)
    }

    /// Whether a variable is taken in steps.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// Puts a run's values onto their steps.
    pub fn apply(&self, run: &mut RunData) {
        for (key, size) in &self.0 {
            if let Some(value) = figure(run, key) {
                run.insert(key.clone(), Value::from((value / size).floor() * size));
            }
        }
    }
}

/// What a run is by some variables: `k=v` each.
pub fn group(run: &RunData, keys: &[String]) -> Outcome<Vec<String>> {
    let of = |key: &String| match run.get(key) {
        Some(value) => Ok(format!("{key}={}", python::text(value))),
        None => Err(unknown(key, run)),
    };
    keys.iter().map(of).collect()
}

/// A variable no run has.
pub fn unknown(key: &str, run: &RunData) -> Failure {
    let numbers: Vec<&str> =
        run.iter().filter(|(_, v)| !v.is_array() && !v.is_object()).map(|(k, _)| k.as_str()).collect();
    Failure::usage(format!("`{key}` is no variable of the runs")).hint(format!("they have {}", numbers.join(", ")))
}

/// Things by what they are, in the order of first appearance.
pub fn grouped<T>(items: Vec<T>, key: impl Fn(&T) -> Outcome<Vec<String>>) -> Outcome<Vec<(Vec<String>, Vec<T>)>> {
    let mut groups: Vec<(Vec<String>, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item)?;
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    Ok(groups)
}
