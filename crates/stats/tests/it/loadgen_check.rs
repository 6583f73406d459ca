use std::path::Path;

use serde_json::{Value, json};
use tailbound_stats::loadgen::endpoints::check::{Folder, Severity, check, passes};

use super::data;

const CURVE: &str = "ExampleOrg/sub-0001/results/sys_sim_1x/llama3_1-8b";
const POINTS: [&str; 8] = ["r4", "r8", "r10", "r24", "r48", "r100", "r200", "r256"];

/// A folder of the disk, in memory.
pub fn load(root: &Path) -> Folder {
    let mut folder = Folder::default();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folder.insert_folder(&inside);
                open.push(path);
            } else {
                folder.insert(&inside, std::fs::read(&path).unwrap());
            }
        }
    }
    folder
}

fn edit_json(f: &mut Folder, point: &str, file: &str, edit: impl Fn(&mut Value)) {
    let path = format!("{CURVE}/{point}/{file}");
    let mut doc: Value = serde_json::from_slice(f.get(&path).unwrap()).unwrap();
    edit(&mut doc);
    f.insert(&path, serde_json::to_vec(&doc).unwrap());
}

/// Replaces text in `point.yaml`, which must hold it.
fn edit_point(f: &mut Folder, point: &str, from: &str, to: &str) {
    let path = format!("{CURVE}/{point}/point.yaml");
    let text = String::from_utf8(f.get(&path).unwrap().to_vec()).unwrap();
    assert!(text.contains(from), "{point} has no {from:?}");
    f.insert(&path, text.replace(from, to));
}

fn add_to_point(f: &mut Folder, point: &str, line: &str) {
    let path = format!("{CURVE}/{point}/point.yaml");
    let text = String::from_utf8(f.get(&path).unwrap().to_vec()).unwrap();
    f.insert(&path, format!("{text}{line}\n"));
}

/// Cuts a top-level block out of `point.yaml`.
fn cut(f: &mut Folder, point: &str, block: &str) {
    let path = format!("{CURVE}/{point}/point.yaml");
    let text = String::from_utf8(f.get(&path).unwrap().to_vec()).unwrap();
    let mut inside = false;
    let kept: String = text
        .lines()
        .filter(|l| {
            if !l.starts_with([' ', '-']) {
                inside = l.starts_with(&format!("{block}:"));
            }
            !inside
        })
        .map(|l| format!("{l}\n"))
        .collect();
    f.insert(&path, kept);
}

/// The mutation of that name, as its findings describe it; `None` for a name we do not know.
fn mutate(name: &str, f: &mut Folder) -> Option<()> {
    let at = |file: &str| format!("{CURVE}/r48/{file}");
    let summary = "result_summary.json";
    let desc = "system_desc.json";
    match name {
        "no_change" => {}
        "drop_result_summary" => f.remove(&at(summary)),
        "drop_point_yaml" => f.remove(&at("point.yaml")),
        "drop_system_desc" => f.remove(&at(desc)),
        "drop_config_yaml" => f.remove(&at("config.yaml")),
        "drop_src" => f.remove("ExampleOrg/sub-0001/src"),
        "drop_docs" => f.remove("ExampleOrg/sub-0001/docs"),
        "too_few_points" => ["r100", "r200"].iter().for_each(|p| f.remove(&format!("{CURVE}/{p}"))),
        "no_low_region_point" => ["r8", "r10"].iter().for_each(|p| f.remove(&format!("{CURVE}/{p}"))),
        "no_offline" => edit_point(f, "r256", "offline: elected\n", ""),
        "elected_not_cmax" => {
            edit_point(f, "r256", "offline: elected\n", "");
            add_to_point(f, "r200", "offline: elected");
        }
        "offline_bad_value" => edit_point(f, "r256", "offline: elected", "offline: 'yes'"),
        "poisson_load_pattern" => edit_point(f, "r48", "load_pattern: concurrency", "load_pattern: poisson"),
        "concurrency_over_margin" => edit_point(f, "r200", "concurrency: 200\ndataset", "concurrency: 283\ndataset"),
        "dirname_mismatch" => edit_point(f, "r48", "concurrency: 48\ndataset", "concurrency: 49\ndataset"),
        "issued_ne_completed_plus_failed" => edit_json(f, "r48", summary, |d| d["n_samples_issued"] = json!(13370)),
        "negative_duration" => edit_json(f, "r48", summary, |d| d["duration_ns"] = json!(-1.0)),
        "no_tpot_p90" => edit_json(f, "r48", summary, |d| {
            d["tpot"]["percentiles"].as_object_mut().unwrap().remove("90.0");
        }),
        "zero_tpot_p90" => edit_json(f, "r48", summary, |d| d["tpot"]["percentiles"]["90.0"] = json!(0.0)),
        "percentile_key_conflict" => edit_json(f, "r48", summary, |d| d["tpot"]["percentiles"]["90"] = json!(1.0)),
        "bad_stored_system_tps" => edit_json(f, "r48", summary, |d| d["system_tps"] = json!(1.0)),
        "bad_stored_tps_per_user" => edit_json(f, "r48", summary, |d| d["tps_per_user"] = json!(1.0)),
        "bad_tps_utilization" => edit_json(f, "r48", desc, |d| d["tps_utilization"] = json!(0.95)),
        "system_desc_differs" => edit_json(f, "r48", desc, |d| d["system_name"] = json!("another")),
        "too_few_queries" => edit_json(f, "r48", summary, |d| {
            d["n_samples_issued"] = json!(13000);
            d["n_samples_completed"] = json!(13000);
        }),
        "short_window" => edit_point(f, "r48", "duration_s: 2500.0", "duration_s: 1199.0"),
        "short_window_ultralow" => edit_point(f, "r4", "duration_s: 2500.0", "duration_s: 599.0"),
        "no_steady_state" => cut(f, "r48", "steady_state"),
        "windowable_3_superpasses" => edit_point(f, "r48", "super_pass_end: 6", "super_pass_end: 3"),
        "windowable_drifting" => edit_point(f, "r48", "tpot_p90: Plateau", "tpot_p90: Drifting Up"),
        "wrong_seed" => edit_point(f, "r48", "scheduler_rng_seed: 10487924139932647040", "scheduler_rng_seed: 42"),
        "unknown_seed_set" => POINTS.iter().for_each(|p| edit_point(f, p, "seed_set: A", "seed_set: Z")),
        "late_cohort" => POINTS.iter().for_each(|p| edit_point(f, p, "2026-11-C0", "2026-12-C1")),
        "bad_cohort" => edit_point(f, "r48", "target_cohort: 2026-11-C0", "target_cohort: '2026-12'"),
        "no_warmup" => cut(f, "r48", "warmup"),
        "warmup_logs_not_retained" => edit_point(f, "r48", "logs_retained: true", "logs_retained: false"),
        "bad_model_name" => {
            POINTS.iter().for_each(|p| edit_point(f, p, "model_name: llama3_1-8b", "model_name: llama3.1-8b"));
        }
        "shared_src_escape" => edit_point(f, "r48", "shared_src: src/simserver", "shared_src: ../x"),
        "standardized_without_power" => {
            POINTS.iter().for_each(|p| edit_json(f, p, desc, |d| d["division"] = json!("Standardized")));
        }
        "available_without_url" => {
            POINTS.iter().for_each(|p| edit_json(f, p, desc, |d| d["system_availability_status"] = json!("Available")));
        }
        "rouge_below_target" => {
            edit_json(f, "r4", "accuracy_results.json", |d| d["accuracy_scores"][0]["score"]["rouge1"] = json!(38.0));
        }
        "accuracy_missing_band" => f.remove(&format!("{CURVE}/r24/accuracy_results.json")),
        "accuracy_extra" => {
            let any = f.get(&format!("{CURVE}/r24/accuracy_results.json")).unwrap().to_vec();
            f.insert(&at("accuracy_results.json"), any);
        }
        "cmax_too_low" => {
            POINTS.iter().for_each(|p| edit_json(f, p, desc, |d| d["max_supported_concurrency"] = json!(32)));
        }
        "c_min_override_8" => POINTS.iter().for_each(|p| edit_json(f, p, desc, |d| d["c_min_override"] = json!(8))),
        "region_declared_wrong" => add_to_point(f, "r48", "region: low_concurrency"),
        "region_declared_bad" => add_to_point(f, "r48", "region: mid"),
        "stream_all_chunks_false" => edit_point(f, "r48", "stream_all_chunks: true", "stream_all_chunks: false"),
        _ => return None,
    }
    Some(())
}

#[test]
fn the_checker_agrees_with_the_official_one_on_every_mutation() {
    let Some(folder) = data::folder() else { return };
    let good = load(&folder.join("endpoints_submission_v1"));
    let vectors = data::vectors("endpoints_checker_mutations.json").unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 48);
    let mut failures = Vec::new();
    for v in vectors {
        let name = v["mutation"].as_str().unwrap();
        let mut bad = good.clone();
        mutate(name, &mut bad).unwrap_or_else(|| panic!("no such mutation: {name}"));
        let findings = check(&bad);
        let mut ours: Vec<(String, String, String)> = findings
            .iter()
            .map(|f| {
                let severity = if f.severity == Severity::Error { "error" } else { "warning" };
                (severity.into(), f.rule.into(), f.path.clone())
            })
            .collect();
        let text = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
        let mut theirs: Vec<(String, String, String)> = v["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (text(f, "severity"), text(f, "rule"), text(f, "path")))
            .collect();
        ours.sort();
        theirs.sort();
        if ours != theirs || passes(&findings) != v["passed"].as_bool().unwrap() {
            failures.push(format!("{name}:\n  ours   {ours:?}\n  theirs {theirs:?}\n  {findings:#?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn messages_say_how_to_mend() {
    let Some(folder) = data::folder() else { return };
    let mut bad = load(&folder.join("endpoints_submission_v1"));
    mutate("bad_model_name", &mut bad).unwrap();
    let findings = check(&bad);
    assert!(findings.iter().any(|f| f.message.contains("write \"llama3_1-8b\"")), "{findings:#?}");
}

#[test]
fn garbage_is_reported_and_never_panics() {
    assert!(!passes(&check(&Folder::default())));
    let Some(folder) = data::folder() else { return };
    let good = load(&folder.join("endpoints_submission_v1"));
    for file in ["point.yaml", "config.yaml", "result_summary.json", "system_desc.json", "accuracy_results.json"] {
        for content in ["", "{", "- a\n- b", "{\"concurrency\": \"many\"}"] {
            if file == "config.yaml" && content.starts_with("{\"") {
                continue; // any mapping is a configuration
            }
            let mut bad = good.clone();
            bad.insert(&format!("{CURVE}/r10/{file}"), content);
            assert!(!check(&bad).is_empty(), "{file} {content:?}");
        }
    }
}
