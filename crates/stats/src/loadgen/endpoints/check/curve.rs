//! One curve: a system with a model.

use super::doc::{json, text, whole, yaml};
use super::point::{self, Point};
use super::{Findings, Folder, curve_accuracy, result, seeds, shape, system};
use crate::loadgen::endpoints::regions::{Regions, ULTRA_LOW_MAX};

/// Where it is.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    pub system: &'a str,
    pub model: &'a str,
    pub path: String,
}

/// Accepted models, which are also the names of their folders.
pub const MODELS: [&str; 6] =
    ["llama3_1-8b", "gpt-oss-120b", "deepseek-r1", "kimi-k3", "qwen3_6-35b-a3b", "deepseek-v4_1-flash"];

/// The points of a curve as far as their files could be read.
#[derive(Debug, Default)]
pub(super) struct Points {
    pub read: Vec<Point>,
    /// Folder and concurrency of those whose `point.yaml` could not.
    pub unread: Vec<(String, Option<i128>)>,
    /// Results of the points that were read.
    pub results: Vec<(i128, f64)>,
    pub datasets: Vec<String>,
}

impl Points {
    /// Folder and concurrency of every point that has one.
    pub(super) fn present(&self) -> Vec<(&str, i128)> {
        let read = self.read.iter().map(|p| (p.name.as_str(), p.concurrency));
        read.chain(self.unread.iter().filter_map(|(n, c)| Some((n.as_str(), (*c)?)))).collect()
    }
}

/// The point folders of a curve, `r<N>`, by N.
pub(super) fn point_folders(folder: &Folder, curve: &str) -> Vec<(u64, String)> {
    let number = |name: &str| name.strip_prefix('r').filter(|n| n.bytes().all(|b| b.is_ascii_digit()))?.parse().ok();
    let mut found: Vec<(u64, String)> =
        folder.folders_in(curve).iter().filter_map(|n| Some((number(n)?, (*n).to_owned()))).collect();
    found.sort();
    found
}

/// Checks a curve.
pub(super) fn check(folder: &Folder, root: &str, curve: &Curve<'_>, found: &mut Findings) {
    let folders = point_folders(folder, &curve.path);
    if folders.is_empty() {
        let message =
            format!("results/{}/{}/ holds no point: put each into a folder r<concurrency>", curve.system, curve.model);
        return found.error("point-dirs", &curve.path, message);
    }
    let mut points = load(folder, curve, &folders, found);
    let names: Vec<String> = folders.iter().map(|(_, n)| n.clone()).collect();
    let described = system::check(folder, curve, &names, found);
    model_names(curve, &points, found);
    let regions = if described.override_bad { None } else { regions(&described, &points, curve, folders.len(), found) };
    place(&points, regions.as_ref(), found);
    results(folder, curve, &mut points, regions.as_ref(), found);
    shared_paths(folder, root, &points, found);
    seeds::check(curve, &points.read, found);
    let overridden = described.c_min_override.is_some();
    shape::check(curve, &points, regions.as_ref(), overridden, described.c_max, folders.len(), found);
    curve_accuracy::check(folder, curve, &points, regions.as_ref(), overridden, found);
}

fn load(folder: &Folder, curve: &Curve<'_>, folders: &[(u64, String)], found: &mut Findings) -> Points {
    let mut points = Points::default();
    for (number, name) in folders {
        let config = format!("{}/{name}/config.yaml", curve.path);
        match folder.get(&config).map(yaml) {
            None => found.error(
                "config-file-present",
                &config,
                format!("{name} has no config.yaml: add what the client ran with"),
            ),
            Some(Err(why)) => found.error("config-file-present", &config, format!("config.yaml cannot be read: {why}")),
            Some(Ok(_)) => {}
        }
        let path = format!("{}/{name}/point.yaml", curve.path);
        let Some(content) = folder.get(&path) else {
            found.error("measurement-points-present", &path, format!("{name} has no point.yaml: add its declaration"));
            points.unread.push((name.clone(), Some((*number).into())));
            continue;
        };
        let (doc, problems) = match yaml(content) {
            Ok(doc) => {
                let problems = point::schema(&doc);
                (Some(doc), problems)
            }
            Err(why) => (None, vec![format!("point.yaml cannot be read: {why}")]),
        };
        let concurrency = doc.as_ref().and_then(|d| whole(d, "concurrency"));
        for problem in &problems {
            found.error("point-config-valid", &path, problem.clone());
        }
        match (doc, concurrency) {
            (Some(doc), Some(concurrency)) if problems.is_empty() => {
                if concurrency != i128::from(*number) {
                    let message =
                        format!("the folder is {name}, but the point declares concurrency {concurrency}: rename one");
                    found.warning("point-dirname-concurrency", &path, message);
                }
                let p = Point { name: name.clone(), path, doc, concurrency };
                point::check(&p, found);
                points.read.push(p);
            }
            _ => points.unread.push((name.clone(), concurrency.filter(|&c| c > 0).or(Some((*number).into())))),
        }
    }
    if points.read.is_empty() {
        found.error("measurement-points-present", &curve.path, "no point has a usable point.yaml");
    }
    points
}

fn model_names(curve: &Curve<'_>, points: &Points, found: &mut Findings) {
    let mut names: Vec<(&str, &Point)> = Vec::new();
    for p in &points.read {
        if let Some(name) = text(&p.doc, "model_name").filter(|n| !names.iter().any(|(m, _)| m == n)) {
            names.push((name, p));
        }
    }
    for (name, p) in names.iter().filter(|(n, _)| !MODELS.contains(n)) {
        let spelled = name.rsplit('/').next().unwrap_or(name).replace('.', "_");
        let hint = if MODELS.contains(&spelled.as_str()) {
            format!("write {spelled:?}")
        } else {
            format!("use one of {}", MODELS.join(", "))
        };
        found.error("model-name-valid", &p.path, format!("model_name {name:?} is not an accepted model: {hint}"));
    }
    match names.first() {
        None => found.warning("model-name-consistency", &curve.path, "no point names its model"),
        Some((name, _)) if *name != curve.model => {
            let message =
                format!("the points declare model {name:?}, their folder is {:?}: make them the same", curve.model);
            found.error("model-name-consistency", &curve.path, message);
        }
        Some(_) => {}
    }
    if names.len() > 1 {
        let list: Vec<&str> = names.iter().map(|(n, _)| *n).collect();
        found.error(
            "config-consistency-model",
            &curve.path,
            format!("a curve has one model, its points name {}", list.join(", ")),
        );
    }
}

fn regions(
    described: &system::Described,
    points: &Points,
    curve: &Curve<'_>,
    folders: usize,
    found: &mut Findings,
) -> Option<Regions> {
    let present = points.present();
    let Some(c_max) = described.c_max else {
        found.warning(
            "region-basis",
            &described.path,
            "max_supported_concurrency cannot be read, so no region can be told",
        );
        return None;
    };
    let Some(lowest) = present.iter().map(|(_, c)| *c).min() else {
        found.error("region-basis", &curve.path, "no point has a concurrency, so no region can be told");
        return None;
    };
    let c_min = match described.c_min_override {
        Some(c) => {
            let fixed = points.read.iter().filter(|p| !p.dedicated()).map(|p| p.concurrency);
            let unread = points.unread.iter().filter_map(|(_, c)| *c);
            if !fixed.chain(unread).any(|p| p == i128::from(c)) {
                found.error(
                    "c-min-override",
                    &curve.path,
                    format!("c_min_override is {c}, but no point has that concurrency: measure one"),
                );
                return None;
            }
            c
        }
        None => {
            if present.len() < folders {
                found.warning(
                    "region-basis",
                    &curve.path,
                    "some points have no readable concurrency; the regions leave them out",
                );
            }
            u64::try_from(lowest).unwrap_or(0).min(ULTRA_LOW_MAX)
        }
    };
    match Regions::of(u64::try_from(c_max).unwrap_or(0), c_min) {
        Ok(regions) => Some(regions),
        Err(why) => {
            found.error("region-computation", &described.path, format!("{why}: declare what the system supports"));
            None
        }
    }
}

fn place(points: &Points, regions: Option<&Regions>, found: &mut Findings) {
    let Some(regions) = regions else { return };
    for p in &points.read {
        let region = u64::try_from(p.concurrency).ok().and_then(|c| regions.place(c));
        if region.is_none() && !p.dedicated() {
            let message = format!(
                "concurrency {} is beyond the range with its 10 % margin, {}",
                p.concurrency, regions.margin[1]
            );
            found.error("concurrency-in-range", &p.path, message);
        }
        let declared = text(&p.doc, "region").filter(|&r| r != "submitters_choice");
        if let (Some(declared), Some(region)) = (declared, region)
            && declared != region.name()
        {
            let message = format!(
                "region {declared:?} is declared, {:?} is where concurrency {} lies",
                region.name(),
                p.concurrency
            );
            found.warning("region-placement", &p.path, message);
        }
    }
}

fn results(folder: &Folder, curve: &Curve<'_>, points: &mut Points, regions: Option<&Regions>, found: &mut Findings) {
    let read = |name: &str, found: &mut Findings| {
        let path = format!("{}/{name}/result_summary.json", curve.path);
        let Some(content) = folder.get(&path) else {
            found.error(
                "result-summary-present",
                &path,
                format!("{name} has no result_summary.json: add the client's"),
            );
            return None;
        };
        let problems = match json(content) {
            Ok(doc) => match result::schema(&doc) {
                bad if bad.is_empty() => return Some((path, doc)),
                bad => bad,
            },
            Err(why) => vec![why],
        };
        for problem in problems {
            found.error("result-file-valid", &path, format!("result_summary.json: {problem}"));
        }
        None
    };
    for p in &points.read {
        let Some((path, doc)) = read(&p.name, found) else { continue };
        result::check(p, &doc, &path, regions, found);
        points.results.push((p.concurrency, result::system_tps(&doc)));
        points.datasets.push(text(&p.doc, "dataset").unwrap_or("").to_owned());
    }
    for (name, _) in &points.unread {
        read(name, found);
        let path = format!("{}/{name}/point.yaml", curve.path);
        found.warning(
            "point-rules-skipped",
            &path,
            "without a usable point.yaml this point's placement and figures were not checked",
        );
    }
}

fn shared_paths(folder: &Folder, root: &str, points: &Points, found: &mut Findings) {
    let mut named: Vec<(&str, &str, Vec<&Point>)> = Vec::new();
    for p in &points.read {
        for field in ["shared_src", "shared_docs"] {
            let Some(value) = text(&p.doc, field) else { continue };
            match named.iter_mut().find(|(f, v, _)| (*f, *v) == (field, value)) {
                Some((.., of)) => of.push(p),
                None => named.push((field, value, vec![p])),
            }
        }
    }
    for (field, value, of) in named {
        let parts: Vec<&str> = value.trim().split(['/', '\\']).filter(|s| !s.is_empty() && *s != ".").collect();
        let inside = !value.trim().starts_with(['/', '~']) && !parts.is_empty() && !parts.contains(&"..");
        let path = if root.is_empty() { parts.join("/") } else { format!("{root}/{}", parts.join("/")) };
        if !inside || !folder.is_folder(&path) {
            let names: Vec<&str> = of.iter().map(|p| p.name.as_str()).collect();
            let message = format!(
                "{field} {value:?} (of {}) is no folder of the submission: give a path from its root, without ..",
                names.join(", ")
            );
            found.error("shared-path-resolution", &of[0].path, message);
        }
    }
}
