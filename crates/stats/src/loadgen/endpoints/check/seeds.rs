//! Seed sets: published, rotated, and the same for a whole curve.

use super::doc::{at, text, whole};
use super::point::Point;
use super::{Findings, curve::Curve};

/// A published seed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedSet {
    /// Its name.
    pub id: &'static str,
    /// Of the scheduler.
    pub scheduler: u64,
    /// Of the sample order.
    pub sample_index: u64,
    /// Of the model.
    pub model: u64,
    /// The cohorts it may be used for: the one it was published for and the next three.
    pub cohorts: [&'static str; 4],
}

/// The sets published so far.
pub const PUBLISHED: [SeedSet; 1] = [SeedSet {
    id: "A",
    scheduler: 10_487_924_139_932_647_040,
    sample_index: 586_478_644_936_801_402,
    model: 9_315_206_023_656_308_754,
    cohorts: ["2026-10-C1", "2026-11-C0", "2026-11-C1", "2026-12-C0"],
}];

/// Checks the seeds of a curve's points.
pub(super) fn check(curve: &Curve<'_>, points: &[Point], found: &mut Findings) {
    let mut named: Vec<&str> = points.iter().filter_map(|p| text(&p.doc, "seed_set")).collect();
    named.sort_unstable();
    named.dedup();
    if named.len() > 1 {
        let message = format!("the points bind different seed sets ({}): a curve has one", named.join(", "));
        found.error("seed-set-consistency", &curve.path, message);
    }
    let set_of = |p: &Point| PUBLISHED.iter().find(|s| Some(s.id) == text(&p.doc, "seed_set"));
    for p in points {
        if let (Some(id), None) = (text(&p.doc, "seed_set"), set_of(p)) {
            let known: Vec<&str> = PUBLISHED.iter().map(|s| s.id).collect();
            let message = format!("seed_set {id:?} is not published: use {}", known.join(" or "));
            found.error("seed-set-membership", &p.path, message);
        }
    }
    for p in points {
        let Some(set) = set_of(p) else { continue };
        runtime(p, set, found);
        if let Some(cohort) = text(&p.doc, "target_cohort").filter(|c| !set.cohorts.contains(c)) {
            let message = format!(
                "seed set {} is for the cohorts {}, not {cohort}: use a set published for it",
                set.id,
                set.cohorts.join(", ")
            );
            found.error("seed-set-adoption", &p.path, message);
        }
    }
}

fn runtime(p: &Point, set: &SeedSet, found: &mut Findings) {
    const RULE: &str = "seed-runtime-match";
    let used = |name: &str| whole(&p.doc, &format!("runtime_settings.runtime.{name}"));
    // v0.7 spelled two of them differently.
    let scheduler = used("scheduler_rng_seed").or_else(|| used("scheduler_random_seed"));
    let sample_index = used("sample_index_rng_seed").or_else(|| used("dataloader_random_seed"));
    let wrong: Vec<String> = [
        ("scheduler_rng_seed", scheduler, set.scheduler),
        ("sample_index_rng_seed", sample_index, set.sample_index),
        ("model_seed", used("model_seed"), set.model),
    ]
    .into_iter()
    .filter(|(_, have, want)| *have != Some(i128::from(*want)))
    .map(|(name, have, want)| {
        format!("{name} is {}, {want} in the set", have.map_or("absent".into(), |v| v.to_string()))
    })
    .collect();
    if !wrong.is_empty() {
        found.error(RULE, &p.path, format!("the run did not use seed set {}: {}", set.id, wrong.join("; ")));
    }
    let old = ["scheduler_random_seed", "dataloader_random_seed"];
    if old.iter().any(|n| at(&p.doc, &format!("runtime_settings.runtime.{n}")).is_some())
        && used("model_seed").is_none()
    {
        found.warning(
            RULE,
            &p.path,
            "the seeds have their v0.7 names: use scheduler_rng_seed, sample_index_rng_seed and model_seed",
        );
    }
}
