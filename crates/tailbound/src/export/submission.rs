//! What only the submitter knows: from a YAML file, and flags that win over it. What is missing is told all at once.

use crate::failure::{Failure, Outcome};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file to fill in.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// Who submits what.
#[derive(Args, Debug, Default)]
pub struct SubmissionArgs {
    /// What only the submitter knows, as YAML (--template prints one); flags win over it
    #[arg(long, value_name = "FILE")]
    submission: Option<PathBuf>,
    /// Submitting organisation
    #[arg(long, value_name = "NAME")]
    organisation: Option<String>,
    /// Name of the submission's folder
    #[arg(long, value_name = "NAME")]
    submission_id: Option<String>,
    /// Name of the system's folder
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The model by its official name, e.g. llama3_1-8b
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The data set by its official name, e.g. gpqa
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// The cohort aimed for, e.g. 2026-11-C0
    #[arg(long, value_name = "COHORT")]
    target_cohort: Option<String>,
    /// The system's description (system_desc.json, or as YAML)
    #[arg(long, value_name = "FILE")]
    system_desc: Option<PathBuf>,
    /// A point's accuracy results, as the accuracy run wrote them
    #[arg(long, value_name = "POINT=FILE")]
    accuracy: Vec<String>,
}

/// The file, as it is written.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    organisation: Option<String>,
    submission_id: Option<String>,
    system: Option<String>,
    model: Option<String>,
    dataset: Option<String>,
    target_cohort: Option<String>,
    system_desc: Option<Value>,
    disclosure: Option<Map<String, Value>>,
    source: Option<Source>,
    docs: Option<PathBuf>,
    accuracy: BTreeMap<String, PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: String,
    readme: PathBuf,
}

/// All of it.
pub struct Given {
    pub organisation: String,
    pub submission_id: String,
    pub system: String,
    pub model: String,
    pub dataset: String,
    pub target_cohort: String,
    pub system_desc: Map<String, Value>,
    pub disclosure: Map<String, Value>,
    pub source: (String, String),
    pub docs: String,
    pub accuracy: BTreeMap<String, Value>,
}

/// The fields of point.yaml that nobody else can fill in.
const DISCLOSED: [&str; 6] =
    ["division", "model_precision", "link_to_model", "dataset_name", "dataset_type", "dataset_link"];

impl Given {
    /// From the file and the flags.
    pub fn read(args: &SubmissionArgs) -> Outcome<Given> {
        let file: File = match &args.submission {
            Some(path) => yaml(path)?,
            None => File::default(),
        };
        let beside = args.submission.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut missing = Missing::default();
        let mut named = |flag: &Option<String>, field: Option<String>, name: &str| {
            missing.take(flag.clone().or(field), &format!("{name} (--{})", name.replace('_', "-")))
        };
        let organisation = named(&args.organisation, file.organisation, "organisation");
        let submission_id = named(&args.submission_id, file.submission_id, "submission_id");
        let system = named(&args.system, file.system, "system");
        let model = named(&args.model, file.model, "model");
        let dataset = named(&args.dataset, file.dataset, "dataset");
        let target_cohort = named(&args.target_cohort, file.target_cohort, "target_cohort");
        let system_desc = match (&args.system_desc, file.system_desc) {
            (Some(path), _) => Some(mapping(yaml(path)?, path)?),
            (None, Some(Value::String(path))) => {
                let path = beside.join(path);
                Some(mapping(yaml(&path)?, &path)?)
            }
            (None, Some(Value::Object(fields))) => Some(fields),
            (None, Some(_)) => {
                return Err(Failure::usage("system_desc must be a mapping of fields, or the name of a file"));
            }
            (None, None) => None,
        };
        let system_desc = missing.take(system_desc, "system_desc (--system-desc)");
        let disclosure = file.disclosure.unwrap_or_default();
        for name in DISCLOSED {
            missing.take(disclosure.get(name).filter(|v| !v.is_null()).map(|_| ()), &format!("disclosure.{name}"));
        }
        let source = missing.take(file.source, "source (name and readme)");
        let docs = missing.take(file.docs, "docs");
        if !missing.0.is_empty() {
            return Err(Failure::usage(format!("the submission lacks {}", missing.0.join(", "))).hint(
                "write them into a file and name it with --submission; `tailbound export endpoints --template` prints one",
            ));
        }
        let source = source.map_or(Ok(Default::default()), |s| Ok((s.name, text(&beside.join(s.readme))?)))?;
        let docs = docs.map_or(Ok(String::new()), |path| text(&beside.join(path)))?;
        let (organisation, submission_id, system) =
            (organisation.unwrap_or_default(), submission_id.unwrap_or_default(), system.unwrap_or_default());
        Ok(Given {
            organisation,
            submission_id,
            system,
            model: model.unwrap_or_default(),
            dataset: dataset.unwrap_or_default(),
            target_cohort: target_cohort.unwrap_or_default(),
            system_desc: system_desc.unwrap_or_default(),
            disclosure,
            source,
            docs,
            accuracy: accuracy(args, file.accuracy, beside)?,
        })
    }
}

/// What is missing, by name.
#[derive(Default)]
struct Missing(Vec<String>);

impl Missing {
    fn take<T>(&mut self, value: Option<T>, name: &str) -> Option<T> {
        if value.is_none() {
            self.0.push(name.to_owned());
        }
        value
    }
}

fn accuracy(args: &SubmissionArgs, file: BTreeMap<String, PathBuf>, beside: &Path) -> Outcome<BTreeMap<String, Value>> {
    let mut paths: BTreeMap<String, PathBuf> =
        file.into_iter().map(|(point, path)| (point, beside.join(path))).collect();
    for pair in &args.accuracy {
        let (point, path) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--accuracy {pair}: not of the form POINT=FILE"))
                .hint("e.g. --accuracy r8=accuracy_results.json")
        })?;
        paths.insert(point.to_owned(), path.into());
    }
    let read = |(point, path): (String, PathBuf)| {
        let value = serde_json::from_str(&text(&path)?)
            .map_err(|e| Failure::new(format!("failed to read {}: not JSON: {e}", path.display())))?;
        Ok((point, value))
    };
    paths.into_iter().map(read).collect()
}

fn text(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))
}

fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> Outcome<T> {
    serde_saphyr::from_str(&text(path)?).map_err(|e| {
        let first = e.to_string();
        Failure::usage(format!("failed to read {}: {}", path.display(), first.lines().next().unwrap_or_default()))
    })
}

fn mapping(value: Value, path: &Path) -> Outcome<Map<String, Value>> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Failure::usage(format!("failed to read {}: not a mapping of fields", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_a_submission_that_lacks_only_its_files() {
        let file: File = serde_saphyr::from_str(TEMPLATE).unwrap();
        let disclosure = file.disclosure.unwrap();
        assert!(DISCLOSED.iter().all(|name| disclosure.contains_key(*name)));
        assert!(
            file.organisation.is_some() && file.system_desc.is_some() && file.source.is_some() && file.docs.is_some()
        );
    }
}
