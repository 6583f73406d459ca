//! One run: its log's records, its digests, its result.

use super::compare::differences;
use super::{Findings, short};
use crate::bench::serve::journal::{self, Examined};
use crate::bench::serve::judge::Judged;
use crate::bench::serve::{Again, again};
use crate::bundle::{self, Manifest};
use crate::failure::{Failure, Outcome};
use serde_json::Value;
use std::path::Path;
use tailbound_record::log::Record;

/// Holds a run's folder against its manifest. `inside` is its name from the folder the user gave.
pub fn verify(
    dir: &Path,
    inside: &str,
    manifest: &Manifest,
    saved: Option<&Path>,
    found: &mut Findings,
) -> Outcome<()> {
    let Some(again) = rows(dir, inside, manifest, found)? else { return Ok(()) };
    let text = Judged::new(&again.args, &again.ran)?.json(&again.args);
    published(dir, inside, bundle::RESULT, manifest, &text, found)?;
    if let Some(path) = saved {
        let detailed = read(path)?;
        compare(&path.display().to_string(), &detailed, &text, found)?;
    }
    Ok(())
}

/// Checks the log and makes the run again; `None` if too much of it is damaged for that, which is a mismatch by then.
pub fn rows(dir: &Path, inside: &str, manifest: &Manifest, found: &mut Findings) -> Outcome<Option<Again>> {
    let place = place(inside, journal::FILE);
    let log = journal::examine(dir)?;
    let damaged = records(&place, &log, found);
    let Some(kept) = &manifest.rows else {
        return Err(Failure::new(format!("failed to verify {}: its manifest has no rows", dir.display())));
    };
    if log.records.len() as u64 != kept.records {
        let what = format!("it has {} records, and had {} when it was published", log.records.len(), kept.records);
        found.mismatch(&place, what, Vec::new());
    } else if damaged == 0 {
        let now = bundle::file_digest(&dir.join(journal::FILE))?;
        if now != kept.sha256 {
            let what = format!(
                "its digest is {}… and was {}… when it was published: a row was rewritten, checksum and all",
                short(&now),
                short(&kept.sha256)
            );
            found.mismatch(&place, what, Vec::new());
        }
    }
    if bundle::digest(log.settings()) != manifest.settings {
        found.mismatch(&place, "the run's settings are not those it was published with", Vec::new());
    }
    let again = match log.kept().and_then(again) {
        Ok(again) => again,
        Err(e) if !found.mismatches.is_empty() => {
            found.notes.push(format!("no figure could be made again: {}", e.cause()));
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    found.rows += again.ran.rows.len();
    if again.ran.plan != manifest.plan {
        let what = format!("the plan is {}…, and the manifest says {}…", short(&again.ran.plan), short(&manifest.plan));
        found.mismatch(place, what, Vec::new());
    }
    Ok(Some(again))
}

/// Names every damaged record; how many there are.
fn records(place: &str, log: &Examined, found: &mut Findings) -> usize {
    let mut damaged = 0;
    let mut row = 0;
    for record in &log.records {
        let is_row = matches!(record.record, Some(Record::Row(_)) | None);
        row += usize::from(is_row);
        if record.sound {
            continue;
        }
        damaged += 1;
        let at = record.offset;
        let what = match &record.record {
            Some(Record::Row(r)) => {
                format!(
                    "row {row} (request {}, at byte {at}) does not match its checksum; the figures below take it as it stands",
                    r.id
                )
            }
            Some(Record::Note { name, .. }) => format!("the note `{name}` (at byte {at}) does not match its checksum"),
            None => format!("row {row} (at byte {at}) can't be read any more; the figures below do without it"),
        };
        found.mismatch(place, what, Vec::new());
    }
    damaged
}

/// Holds a published file against its digest and against what the rows give.
pub fn published(
    dir: &Path,
    inside: &str,
    name: &str,
    manifest: &Manifest,
    again: &str,
    found: &mut Findings,
) -> Outcome<()> {
    let place = place(inside, name);
    let path = dir.join(name);
    let text = read(&path)?;
    let before = found.mismatches.len();
    compare(&place, &text, again, found)?;
    if manifest.results.get(name) != Some(&bundle::digest(text.as_bytes())) && found.mismatches.len() == before {
        found.mismatch(place, "the file was changed since it was published, though no figure was", Vec::new());
    }
    Ok(())
}

fn compare(place: &str, published: &str, again: &str, found: &mut Findings) -> Outcome<()> {
    let parse = |what: &str, text: &str| -> Outcome<Value> {
        serde_json::from_str(text).map_err(|e| Failure::new(format!("failed to read {what}: {e}")))
    };
    let (differ, n) = differences(&parse(place, published)?, &parse("the result made again", again)?);
    found.figures += n;
    match differ.len() {
        0 => {}
        1 => found.mismatch(place, "a figure does not follow from the rows", differ),
        k => found.mismatch(place, format!("{k} of {n} figures do not follow from the rows"), differ),
    }
    Ok(())
}

fn place(inside: &str, name: &str) -> String {
    if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") }
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))
}
