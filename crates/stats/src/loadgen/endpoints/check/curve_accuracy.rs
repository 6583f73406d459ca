//! Which points of a curve need accuracy runs, and what these must show.

use super::accuracy::{self, Accuracy};
use super::curve::{Curve, Points};
use super::doc::json;
use super::point::Point;
use super::{Findings, Folder};
use crate::loadgen::endpoints::regions::{Region, Regions, ULTRA_LOW_MAX};

/// A point with an accuracy run and the bands it could stand for.
struct Candidate {
    concurrency: i128,
    bands: Vec<Region>,
    elected: bool,
}

/// Checks the accuracy results of a curve.
pub(super) fn check(
    folder: &Folder,
    curve: &Curve<'_>,
    points: &Points,
    regions: Option<&Regions>,
    overridden: bool,
    found: &mut Findings,
) {
    let results = load(folder, curve, points, found);
    let with_runs: Vec<i128> = results.iter().filter(|(_, _, a)| a.has_runs()).map(|(_, c, _)| *c).collect();
    if let Some(regions) = regions {
        coverage(curve, points, regions, overridden, &with_runs, found);
    }
    let agentic = !points.read.is_empty() && points.read.iter().filter(|p| !p.dedicated()).all(Point::agentic);
    if agentic {
        return; // their targets go by other rules
    }
    // The official checker names one file for all.
    let Some((first, ..)) = results.first() else { return };
    let path = format!("{}/{first}/results.json", curve.path);
    for (_, _, result) in &results {
        if !accuracy::gate(curve.model, result, &path, found) {
            let message = format!("no accuracy targets are known for {:?}", curve.model);
            found.warning("accuracy-gate", &curve.path, message);
            return;
        }
    }
}

fn load<'a>(
    folder: &Folder,
    curve: &Curve<'_>,
    points: &'a Points,
    found: &mut Findings,
) -> Vec<(&'a str, i128, Accuracy)> {
    let mut results = Vec::new();
    for (name, concurrency) in points.present() {
        let own = format!("{}/{name}/accuracy_results.json", curve.path);
        let embedded = format!("{}/{name}/results.json", curve.path);
        let (path, content) = match (folder.get(&own), folder.get(&embedded)) {
            (Some(content), _) => (own, content),
            (None, Some(content)) => (embedded, content),
            (None, None) => continue,
        };
        let read = json(content).and_then(|d| Accuracy::read(&d));
        match read {
            Ok(a) if a.entries.is_empty() => {
                found.error("accuracy-valid", &path, "it holds no score: remove it or run the accuracy data set")
            }
            Ok(a) => results.push((name, concurrency, a)),
            Err(why) => found.error("accuracy-valid", &path, format!("accuracy results cannot be read: {why}")),
        }
    }
    results.sort_by_key(|(_, c, _)| *c);
    results
}

fn coverage(
    curve: &Curve<'_>,
    points: &Points,
    regions: &Regions,
    overridden: bool,
    with_runs: &[i128],
    found: &mut Findings,
) {
    const RULE: &str = "accuracy-coverage";
    if points.present().is_empty() {
        return;
    }
    let of = |kind: &str| -> Vec<i128> {
        points.read.iter().filter(|p| p.offline() == Some(kind)).map(|p| p.concurrency).collect()
    };
    let (dedicated, elected) = (of("dedicated"), of("elected"));
    let ultra_low = if overridden { regions.low_latency[1] } else { ULTRA_LOW_MAX };
    let mut candidates: Vec<Candidate> = with_runs
        .iter()
        .filter(|c| !dedicated.contains(c))
        .map(|&concurrency| Candidate {
            concurrency,
            bands: bands(concurrency, regions, ultra_low),
            elected: elected.contains(&concurrency),
        })
        .collect();
    candidates.sort_by_key(|c| c.elected);
    let owners = assign(&candidates);
    let missing: Vec<&str> =
        Region::MANDATORY.into_iter().filter(|b| !owners.iter().any(|(band, _)| band == b)).map(Region::name).collect();
    if !missing.is_empty() {
        let message = format!("no accuracy run at a point in {}: run the accuracy data set at one", missing.join(", "));
        found.error(RULE, &curve.path, message);
    }
    let extra: Vec<String> = candidates
        .iter()
        .enumerate()
        .filter(|(i, c)| !c.elected && !owners.iter().any(|(_, owner)| owner == i))
        .map(|(_, c)| format!("r{}", c.concurrency))
        .collect();
    if !extra.is_empty() {
        found.error(
            RULE,
            &curve.path,
            format!("accuracy runs beyond one for each band, at {}: remove them", extra.join(", ")),
        );
    }
    for c in dedicated.iter().chain(&elected).filter(|c| !with_runs.contains(c)) {
        found.error(RULE, &curve.path, format!("the offline point r{c} has no accuracy run: it needs one"));
    }
}

/// The bands a concurrency could stand for: every point up to 32 also for the lowest.
fn bands(concurrency: i128, regions: &Regions, ultra_low: u64) -> Vec<Region> {
    let Ok(c) = u64::try_from(concurrency) else { return Vec::new() };
    let low = (1..=ultra_low).contains(&c).then_some(Region::LowLatency);
    let own = regions.place(c).filter(|r| !matches!(r, Region::LowLatency | Region::Margin));
    low.into_iter().chain(own).collect()
}

/// A largest assignment of candidates to bands (augmenting paths, in order).
fn assign(candidates: &[Candidate]) -> Vec<(Region, usize)> {
    let mut owners: Vec<(Region, usize)> = Vec::new();
    for i in 0..candidates.len() {
        augment(candidates, i, &mut Vec::new(), &mut owners);
    }
    owners
}

fn augment(candidates: &[Candidate], i: usize, tried: &mut Vec<Region>, owners: &mut Vec<(Region, usize)>) -> bool {
    for &band in &candidates[i].bands {
        if tried.contains(&band) {
            continue;
        }
        tried.push(band);
        match owners.iter().position(|(b, _)| *b == band) {
            None => {
                owners.push((band, i));
                return true;
            }
            Some(at) => {
                let owner = owners[at].1;
                if augment(candidates, owner, tried, owners) {
                    if let Some(entry) = owners.iter_mut().find(|(b, _)| *b == band) {
                        entry.1 = i;
                    }
                    return true;
                }
            }
        }
    }
    false
}
