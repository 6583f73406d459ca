//! The search's folder: the settings it was begun with, and one folder for each probe, which is a run's.

use super::args::CapacityArgs;
use crate::bench::curve::folder::finished;
use crate::bundle;
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::{Path, PathBuf};
use tailbound_stats::capacity::{End, Probe, Spec};

/// The settings' file.
pub const SETTINGS: &str = "capacity.json";

/// What a search was begun with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The command.
    pub argv: Vec<String>,
    /// The hash of everything that decides what is sent and how it is judged.
    pub hash: String,
    /// The model, as reports name it.
    pub model: String,
    /// etalon's profile of the prefill, if it was measured: a, b and c of a + b·n + c·n² seconds.
    pub prefill: Option<[f64; 3]>,
}

/// What is kept of a probe beside its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// As it was asked for.
    pub probe: Probe,
    /// How it ended.
    pub end: End,
    /// Why it doesn't count, if it doesn't.
    pub invalid: Option<String>,
}

/// The hash of a search.
pub fn hash(args: &CapacityArgs, spec: &Spec, model: &str) -> Outcome<String> {
    let file = args.data.dataset_path.as_deref().map(bundle::file_digest).transpose()?;
    // A larger budget or a finer precision goes on with the same search.
    let what = json!({
        "requirements": spec.requirements,
        "asked": format!("{:?}", args.asked),
        "unit": spec.unit,
        "first": spec.first,
        "probe_requests": spec.probe_requests,
        "expect": spec.expect,
        "burstiness": args.search.burstiness,
        "seed": args.search.seed,
        "salted": !args.search.no_salt,
        "virtual": args.search.virtual_time.then_some(&args.search.profile),
        "model": model,
        "backend": args.target.backend,
        "endpoint": args.target.endpoint,
        "data": format!("{:?}", args.data),
        "data_file": file,
        "payload": format!("{:?}", args.payload),
    });
    Ok(bundle::digest(what.to_string().as_bytes()))
}

impl Settings {
    /// Those of a folder; `None` if it holds no search yet.
    pub fn read(folder: &Path) -> Outcome<Option<Settings>> {
        let path = folder.join(SETTINGS);
        let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(e.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                if folder.is_dir() && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
                    return Err(Failure::usage(format!("--output-dir {}: it holds something else", folder.display()))
                        .hint("name a folder that is empty, or not there yet"));
                }
                Ok(None)
            }
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// Writes them into a folder, which is made if need be.
    pub fn write(&self, folder: &Path) -> Outcome<()> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))?;
        let json = serde_json::to_string_pretty(self).map_err(Failure::new)?;
        bundle::write(&folder.join(SETTINGS), format!("{json}\n").as_bytes())
    }
}

/// A probe's folder.
pub fn of(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("probe-{number:03}"))
}

/// What is kept of a probe that has been run to its end.
pub fn kept(folder: &Path) -> Outcome<Option<Kept>> {
    if !finished(folder) {
        return Ok(None);
    }
    let path = folder.join(bundle::POINT);
    let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
    let bytes = std::fs::read(&path).map_err(|e| failed(e.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(e.to_string()))
}
