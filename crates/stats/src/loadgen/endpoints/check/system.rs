//! `system_desc.json`: one system for a whole curve.

use serde_json::Value;

use super::curve::Curve;
use super::doc::{at, json, text, whole};
use super::{Findings, Folder};

/// Fields that may differ between the points of one curve.
const PER_POINT: [&str; 9] = [
    "tps_utilization",
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "data_parallel",
    "disaggregated",
    "batch",
    "config_summary",
    "config_summary_notes",
];

/// What a curve's descriptions say.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub c_max: Option<i128>,
    pub c_min_override: Option<u64>,
    /// The override is declared wrongly, so that there are no regions.
    pub override_bad: bool,
    /// Where to report on it: the first description, else the curve.
    pub path: String,
}

/// Checks the descriptions of a curve's points.
pub(super) fn check(folder: &Folder, curve: &Curve<'_>, points: &[String], found: &mut Findings) -> Described {
    let mut read: Vec<(String, Value)> = Vec::new();
    for point in points {
        let path = format!("{}/{point}/system_desc.json", curve.path);
        match folder.get(&path).map(json) {
            None => found.error(
                "system-description-present",
                &path,
                format!("{point} has no system_desc.json: copy the curve's into it"),
            ),
            Some(Err(why)) => {
                found.error("system-description-valid", &path, format!("system_desc.json cannot be read: {why}"))
            }
            Some(Ok(doc)) => read.push((path, doc)),
        }
    }
    let Some((first_path, first)) = read.first() else {
        found.error("system-description-present", &curve.path, "no point has a readable system_desc.json");
        return Described { path: curve.path.clone(), ..Described::default() };
    };
    same_system(&read, found);
    for problem in schema(first) {
        found.error("system-description-valid", first_path, problem);
    }
    let (c_min_override, override_bad) = c_min_override(&read, points.len(), curve, found);
    let c_max = whole(first, "max_supported_concurrency").filter(|&c| c > 0);
    Described { c_max, c_min_override, override_bad, path: first_path.clone() }
}

fn same_system(read: &[(String, Value)], found: &mut Findings) {
    let identity = |doc: &Value| -> Vec<(String, Value)> {
        let mut fields: Vec<_> = doc
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(k, _)| !PER_POINT.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields
    };
    let reference = identity(&read[0].1);
    for (path, doc) in &read[1..] {
        let other = identity(doc);
        if other == reference {
            continue;
        }
        let differing: Vec<&str> = reference
            .iter()
            .chain(&other)
            .filter(|field| !(reference.contains(field) && other.contains(field)))
            .map(|(k, _)| k.as_str())
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let message = format!(
            "it differs from {} in {}: all points of a curve describe one system",
            read[0].0,
            differing.join(", ")
        );
        found.error("system-description-consistency", path, message);
        return;
    }
}

fn schema(doc: &Value) -> Vec<String> {
    let mut bad = Vec::new();
    for name in ["system_name", "system_size", "shortened_system_name", "division"] {
        if text(doc, name).is_none() {
            bad.push(format!("{name} must be a text"));
        }
    }
    for name in ["max_supported_concurrency", "system_node_ensemble_count", "system_node_ensemble_total"] {
        if whole(doc, name).is_none() {
            bad.push(format!("{name} must be a whole number"));
        }
    }
    if let Some(name) = text(doc, "shortened_system_name").filter(|n| n.trim().is_empty() || n.chars().count() > 20) {
        bad.push(format!("shortened_system_name {name:?} must have 1 to 20 characters"));
    }
    let division = text(doc, "division").map(|d| d.trim().to_lowercase());
    if division.as_deref().is_some_and(|d| !["standardized", "serviced", "rdi"].contains(&d)) {
        bad.push("division must be Standardized, Serviced or RDI".into());
    }
    availability(doc, &mut bad);
    match at(doc, "config_summary") {
        None | Some(Value::Object(_)) => {}
        Some(Value::String(s)) if s.chars().count() >= 4 => {}
        Some(_) => bad.push("config_summary must be an object, or a text of at least 4 characters".into()),
    }
    nodes(doc, &mut bad);
    bad
}

fn availability(doc: &Value, bad: &mut Vec<String>) {
    let spellings = ["system_availability_status", "publication_status", "availability_status"];
    let mut said: Vec<String> =
        spellings.iter().filter_map(|s| text(doc, s)).map(|s| s.trim().to_lowercase()).collect();
    said.dedup();
    let filled = |name: &str| text(doc, name).is_some_and(|t| !t.trim().is_empty());
    match said.as_slice() {
        [] => bad.push("system_availability_status must be Available, Preview or RDI".into()),
        [status] => match status.as_str() {
            "available" if !filled("availability_url") => {
                bad.push("the system is Available, so availability_url must say where".into());
            }
            "preview" if !filled("target_availability_date") => {
                bad.push("the system is a Preview, so target_availability_date must say when".into());
            }
            "available" | "preview" | "rdi" => {}
            other => bad.push(format!("system_availability_status {other:?} must be Available, Preview or RDI")),
        },
        several => bad.push(format!("the availability is stated differently: {}", several.join(", "))),
    }
    if let Some(date) = text(doc, "target_availability_date").filter(|d| !d.trim().is_empty() && !is_date(d)) {
        bad.push(format!("target_availability_date {date:?} must be YYYY-MM-DD"));
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [y, m, d] = parts[..] else { return false };
    let in_range = |t: &str, len: usize, most: u32| {
        t.len() == len && t.bytes().all(|b| b.is_ascii_digit()) && t.parse().is_ok_and(|v: u32| (1..=most).contains(&v))
    };
    in_range(y, 4, 9999) && in_range(m, 2, 12) && in_range(d, 2, 31)
}

fn nodes(doc: &Value, bad: &mut Vec<String>) {
    let Some(nodes) = at(doc, "node_types").and_then(Value::as_array) else {
        bad.push("node_types must list the kinds of nodes".into());
        return;
    };
    for (i, node) in nodes.iter().enumerate() {
        for name in ["host_memory_configuration", "host_network_card_count", "driver", "filesystem"] {
            if !at(node, name).is_some_and(Value::is_string) {
                bad.push(format!("node_types.{i}.{name} must be a text"));
            }
        }
        let counted =
            ["host_processor_core_count", "host_processor_vcpu_count"].iter().any(|n| whole(node, n).is_some());
        if !counted {
            bad.push(format!("node_types.{i} must count its processor cores or vCPUs"));
        }
    }
}

/// All descriptions must declare the same override, or none.
fn c_min_override(
    read: &[(String, Value)],
    points: usize,
    curve: &Curve<'_>,
    found: &mut Findings,
) -> (Option<u64>, bool) {
    const RULE: &str = "c-min-override";
    if !read.iter().any(|(_, d)| d.get("c_min_override").is_some()) {
        return (None, false);
    }
    let before = found.0.len();
    let mut values = std::collections::BTreeSet::new();
    for (path, doc) in read {
        match doc.get("c_min_override").map(Value::as_u64) {
            None => {
                found.error(RULE, path, "c_min_override is declared at other points of the curve: declare it here too")
            }
            Some(Some(v)) if (1..=32).contains(&v) => {
                values.insert(v);
            }
            Some(_) => found.error(RULE, path, "c_min_override must be a whole number from 1 to 32"),
        }
    }
    if read.len() < points {
        found.error(RULE, &curve.path, "c_min_override is not declared at every point: some have no description");
    }
    if values.len() > 1 {
        found.error(RULE, &curve.path, format!("c_min_override differs between points: {values:?}"));
    }
    let bad = found.0.len() > before;
    (values.first().copied().filter(|_| !bad), bad)
}
