//! The tree: what must be where.

use super::curve::Curve;
use super::doc::{at, json, number, text};
use super::{Findings, Folder, curve};

/// Checks everything, from the root down.
pub(super) fn check(folder: &Folder, found: &mut Findings) {
    let root = submission_root(folder);
    let join = |name: &str| if root.is_empty() { name.to_owned() } else { format!("{root}/{name}") };
    let results = join("results");
    for name in ["results", "docs"] {
        if !folder.is_folder(&join(name)) {
            let old = ["pareto", "documentation"].iter().any(|n| folder.is_folder(&join(n)));
            let hint = if old {
                " (this looks like the layout of v0.7; v1.0 has results/<system>/<model>/r<N>/ and docs/)"
            } else {
                ""
            };
            found.error("required-dir", &join(name), format!("the folder {name}/ is missing: create it{hint}"));
        }
    }
    source(folder, &join("src"), found);
    if !folder.is_folder(&results) {
        return;
    }
    let systems = folder.folders_in(&results);
    if systems.is_empty() {
        found.error(
            "system-results-dir",
            &results,
            "results/ holds no system: put each system's results into a folder of its name",
        );
    }
    for system in &systems {
        let path = format!("{results}/{system}");
        power(folder, &path, found);
        let models = folder.folders_in(&path);
        if models.is_empty() {
            found.error(
                "benchmark-model-dir",
                &path,
                format!("{system}/ holds no model: put each curve into a folder of its model's name"),
            );
        }
        for model in models {
            curve::check(folder, &root, &Curve { system, model, path: format!("{path}/{model}") }, found);
        }
    }
    utilization(folder, &results, found);
    let scored = folder.files().any(|(p, c)| {
        p.starts_with(&results)
            && (p.ends_with("/accuracy_results.json")
                || p.ends_with("/results.json")
                    && json(c).is_ok_and(|d| {
                        at(&d, "accuracy_scores").is_some_and(|s| {
                            s.as_object().map_or_else(|| s.as_array().map_or(0, Vec::len), |o| o.len()) > 0
                        })
                    }))
    });
    if !scored {
        found.error(
            "accuracy-present",
            &results,
            "no point has accuracy results: run the accuracy data set at the points that need it",
        );
    }
}

/// The folder with `results/`, or its only child that has one.
fn submission_root(folder: &Folder) -> String {
    if folder.is_folder("results") {
        return String::new();
    }
    let mut levels: Vec<String> = folder.folders_in("").iter().map(|n| (*n).to_owned()).collect();
    for _ in 0..2 {
        let with_results: Vec<&String> = levels.iter().filter(|l| folder.is_folder(&format!("{l}/results"))).collect();
        if let [only] = with_results[..] {
            return only.clone();
        }
        levels =
            levels.iter().flat_map(|l| folder.folders_in(l).into_iter().map(move |n| format!("{l}/{n}"))).collect();
    }
    String::new()
}

fn source(folder: &Folder, src: &str, found: &mut Findings) {
    let implementations = folder.folders_in(src);
    if !folder.is_folder(src) {
        found.error("src-dir", src, "the folder src/ is missing: put each implementation into a folder in it");
    } else if implementations.is_empty() {
        found.error("src-dir", src, "src/ holds no implementation: put each into a folder of its own");
    }
    for name in implementations {
        let path = format!("{src}/{name}");
        if !folder.files_in(&path).iter().any(|f| f.eq_ignore_ascii_case("readme.md")) {
            let readme = format!("{path}/README.md");
            found.error("src-readme", &readme, format!("src/{name}/ has no README.md: say how to build and run it"));
        }
    }
}

/// Every Standardized system needs a power descriptor.
fn power(folder: &Folder, system: &str, found: &mut Findings) {
    let path = format!("{system}/system_power.json");
    if let Some(content) = folder.get(&path) {
        if let Err(why) = json(content) {
            found.error("power-descriptor", &path, format!("system_power.json cannot be read: {why}"));
        }
        return;
    }
    let inside = format!("{system}/");
    let division = folder
        .files()
        .filter(|(p, _)| p.starts_with(&inside) && p.ends_with("/system_desc.json"))
        .find_map(|(_, c)| json(c).ok())
        .and_then(|d| text(&d, "division").map(|t| t.trim().to_lowercase()));
    if !matches!(division.as_deref(), Some("rdi" | "serviced")) {
        found.error(
            "power-descriptor",
            &path,
            "system_power.json is missing: the Standardized division needs one for each system",
        );
    }
}

/// Each point's `tps_utilization` is its throughput over the best of its curve.
fn utilization(folder: &Folder, results: &str, found: &mut Findings) {
    const TOLERANCE: f64 = 0.1;
    for system in folder.folders_in(results) {
        for model in folder.folders_in(&format!("{results}/{system}")) {
            let curve = format!("{results}/{system}/{model}");
            let mut points = Vec::new();
            for (_, name) in curve::point_folders(folder, &curve) {
                let path = format!("{curve}/{name}/system_desc.json");
                let declared =
                    folder.get(&path).and_then(|c| json(c).ok()).and_then(|d| at(&d, "tps_utilization")?.as_f64());
                let summary = folder.get(&format!("{curve}/{name}/result_summary.json")).and_then(|c| json(c).ok());
                let rate = summary.and_then(|s| {
                    let duration = number(&s, "duration_ns").filter(|&d| d > 0.0)?;
                    Some(number(&s, "output_sequence_lengths.total")? / (duration / 1e9))
                });
                points.extend(declared.zip(rate).map(|(d, r)| (path, d, r)));
            }
            let best = points.iter().map(|p| p.2).fold(0.0, f64::max);
            for (path, declared, rate) in points.iter().filter(|_| best > 0.0) {
                let expected = rate / best;
                if (declared - expected).abs() > TOLERANCE {
                    let message = format!(
                        "tps_utilization is {declared}, but {rate:.1} of the curve's best {best:.1} tokens/s is {expected:.4}: write that"
                    );
                    found.error("tps-utilization", path, message);
                }
            }
        }
    }
}
