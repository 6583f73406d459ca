//! A curve as a whole: how many points, which offline, which regions covered.

use super::Findings;
use super::curve::{Curve, Points};
use super::point::Point;
use crate::loadgen::endpoints::regions::{Region, Regions, ULTRA_LOW_MAX};

/// Checks what only all points together can show.
pub(super) fn check(
    curve: &Curve<'_>,
    points: &Points,
    regions: Option<&Regions>,
    overridden: bool,
    c_max: Option<i128>,
    count: usize,
    found: &mut Findings,
) {
    let mut patterns: Vec<&str> = points.read.iter().filter(|p| !p.dedicated()).map(Point::load_pattern).collect();
    patterns.sort_unstable();
    patterns.dedup();
    if patterns.len() > 1 {
        let message = format!("the points' load patterns differ ({}): a curve is one benchmark", patterns.join(", "));
        found.error("benchmark-type-consistency", &curve.path, message);
    }
    let agentic = patterns == ["agentic_inference"];
    let dedicated = points.read.iter().any(Point::dedicated);
    let least = if dedicated && !agentic { 8 } else { 7 };
    if count < least {
        found.error(
            "point-count",
            &curve.path,
            format!("{count} points are fewer than the {least} a curve needs: measure more"),
        );
    }
    if count > 32 {
        found.error(
            "point-cap",
            &curve.path,
            format!("{count} points are more than the 32 a curve may have: leave some out"),
        );
    }
    offline(curve, points, agentic, c_max, found);
    coverage(curve, points, regions, overridden, found);
    let mut datasets = points.datasets.clone();
    datasets.sort();
    datasets.dedup();
    if datasets.len() > 1 {
        found.error(
            "config-consistency-dataset",
            &curve.path,
            format!("the points use different data sets: {}", datasets.join(", ")),
        );
    }
}

fn offline(curve: &Curve<'_>, points: &Points, agentic: bool, c_max: Option<i128>, found: &mut Findings) {
    const RULE: &str = "offline-point-present";
    let declared: Vec<&Point> =
        points.read.iter().filter(|p| matches!(p.offline(), Some("dedicated" | "elected"))).collect();
    match (declared.as_slice(), agentic) {
        ([], true) => {}
        (_, true) => {
            found.error(RULE, &curve.path, "an agentic benchmark has no offline point: remove the declaration")
        }
        ([], false) => found.error(
            RULE,
            &curve.path,
            "no point is declared offline: elect the one of maximum concurrency, or run a dedicated one",
        ),
        ([only], false) if only.offline() == Some("elected") => {
            if let Some(c_max) = c_max.filter(|&c| c != only.concurrency) {
                let message = format!(
                    "the elected offline point has concurrency {}, it must be the maximum, {c_max}",
                    only.concurrency
                );
                found.error(RULE, &curve.path, message);
            }
        }
        ([_], false) => {}
        (several, false) => {
            found.error(RULE, &curve.path, format!("{} points are declared offline: keep one", several.len()))
        }
    }
    let Some((own, c_max)) = declared.iter().find(|p| p.dedicated()).zip(c_max) else { return };
    let rate = |c: i128| points.results.iter().find(|r| r.0 == c).map(|r| r.1);
    if points.results.is_empty() {
        return;
    }
    if own.concurrency < c_max {
        let message =
            format!("the offline point holds {} samples, fewer than the maximum concurrency {c_max}", own.concurrency);
        found.warning("offline-ordering", &curve.path, message);
    }
    if let (Some(offline), Some(at_max)) = (rate(own.concurrency), rate(c_max))
        && offline < 0.98 * at_max
    {
        let message =
            format!("offline gives {offline:.1} tokens/s, less than 98 % of the {at_max:.1} at maximum concurrency");
        found.warning("offline-ordering", &curve.path, message);
    }
}

fn coverage(curve: &Curve<'_>, points: &Points, regions: Option<&Regions>, overridden: bool, found: &mut Findings) {
    let present = points.present();
    let ultra_low = regions.filter(|_| overridden).map_or(ULTRA_LOW_MAX, |r| r.low_latency[1]);
    if !present.iter().any(|(_, c)| (1..=i128::from(ultra_low)).contains(c)) {
        let message = format!("no point lies in the Ultra Low region (1 to {ultra_low}): measure one");
        found.error("ultra-low-concurrency-coverage", &curve.path, message);
    }
    let Some(regions) = regions else { return };
    for (rule, region) in [
        ("low-concurrency-coverage", Region::LowConcurrency),
        ("med-concurrency-coverage", Region::MedConcurrency),
        ("high-concurrency-coverage", Region::HighConcurrency),
    ] {
        let [low, high] = regions.range(region);
        if !present.iter().any(|(_, c)| u64::try_from(*c).is_ok_and(|c| regions.place(c) == Some(region))) {
            found.error(
                rule,
                &curve.path,
                format!("no point lies in {} ({low} to {high}): measure one", region.name()),
            );
        }
    }
}
