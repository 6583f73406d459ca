//! A curve: each of its points, and its table.

use super::{Findings, run, short};
use crate::bench::curve::folder::{self, Settings};
use crate::bench::curve::measure;
use crate::bench::curve::table::{Row, Table};
use crate::bench::serve::Again;
use crate::bench::serve::judge::Judged;
use crate::bundle::{self, Kind, Manifest};
use crate::failure::{Failure, Outcome};
use std::path::Path;
use tailbound_stats::loadgen::endpoints::plan::PlannedPoint;
use tailbound_stats::loadgen::endpoints::point::Point;

/// Holds a curve's folder against its manifest.
pub fn verify(dir: &Path, manifest: &Manifest, found: &mut Findings) -> Outcome<()> {
    let (_, settings, plan) = measure::read(dir)?;
    if bundle::digest(&Settings::bytes(dir)?) != manifest.settings {
        found.mismatch(folder::SETTINGS, "the settings are not those the curve was published with", Vec::new());
    }
    let mut rows = Vec::new();
    for planned in &plan.points {
        let name = folder::name(planned);
        let of = folder::of(dir, planned);
        let own = Manifest::read(&of)?;
        let now = bundle::file_digest(&of.join(bundle::MANIFEST))?;
        if manifest.points.get(&name) != Some(&now) {
            let was = manifest.points.get(&name).map_or("none", |d| short(d));
            let what = format!("its digest is {}…, and the curve was published with {was}…", short(&now));
            found.mismatch(format!("{name}/{}", bundle::MANIFEST), what, Vec::new());
        }
        let Some(point) = verify_point(&of, &name, &own, planned, &settings, found)? else { continue };
        rows.push(Row::new(name, point));
    }
    if rows.len() < plan.points.len() {
        return Ok(()); // told by then
    }
    let table = Table::new(&settings, rows);
    run::published(dir, "", bundle::RESULT, manifest, &table.json(), found)
}

/// One point, by itself: its curve is the folder around it.
pub fn verify_one(dir: &Path, manifest: &Manifest, found: &mut Findings) -> Outcome<()> {
    let failed = |why: String| Failure::new(format!("failed to verify {}: {why}", dir.display()));
    let own = dir.canonicalize().map_err(|e| failed(e.to_string()))?;
    let (Some(around), Some(name)) = (own.parent(), own.file_name().and_then(|n| n.to_str())) else {
        return Err(failed("it is a point without a curve around it".into()));
    };
    let (_, settings, plan) = measure::read(around)?;
    let planned = plan.points.iter().find(|p| folder::name(p) == name);
    let planned = planned.ok_or_else(|| failed(format!("the curve around it has no point {name}")))?;
    verify_point(dir, "", manifest, planned, &settings, found).map(|_| ())
}

fn verify_point(
    dir: &Path,
    inside: &str,
    manifest: &Manifest,
    planned: &PlannedPoint,
    settings: &Settings,
    found: &mut Findings,
) -> Outcome<Option<Point>> {
    if manifest.kind != Kind::Point {
        return Err(Failure::new(format!("failed to verify {}: its manifest is not a point's", dir.display())));
    }
    let Some(Again { args, ran, started_at_ms }) = run::rows(dir, inside, manifest, found)? else { return Ok(None) };
    let judged = Judged::new(&args, &ran)?;
    let point = measure::judge(planned, settings, &judged, &ran, started_at_ms);
    run::published(dir, inside, bundle::RESULT, manifest, &judged.json(&args), found)?;
    run::published(dir, inside, bundle::POINT, manifest, &measure::point_json(&point)?, found)?;
    Ok(Some(point))
}
