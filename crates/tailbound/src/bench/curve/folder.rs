//! The curve's folder: the settings it was begun with, and one folder for each point.

use super::args::CurveArgs;
use crate::bundle::{self, MANIFEST};
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tailbound_stats::loadgen::endpoints::plan::{Offline, PlannedPoint};

/// The settings' file.
pub const SETTINGS: &str = "curve.json";

/// What a curve was begun with; going on with it goes by these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The command.
    pub argv: Vec<String>,
    /// The hash of the plan.
    pub hash: String,
    /// The model, as reports name it.
    pub model: String,
    /// Samples of the data set.
    pub dataset_samples: u64,
    /// The time a request takes by the concurrency, `[base, each]`, s, if it was given or measured beforehand.
    pub request_s: Option<[f64; 2]>,
    /// The profile of the engine model, if that was measured in virtual time instead of a server.
    #[serde(default)]
    pub virtual_profile: Option<String>,
}

impl Settings {
    /// Those of a folder; `None` if it holds no curve yet.
    pub fn read(folder: &Path) -> Outcome<Option<Settings>> {
        let path = folder.join(SETTINGS);
        let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(e.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// As the manifest's digest goes by them.
    pub fn bytes(folder: &Path) -> Outcome<Vec<u8>> {
        let path = folder.join(SETTINGS);
        std::fs::read(&path).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))
    }

    /// Writes them into a folder, which is made if need be.
    pub fn write(&self, folder: &Path) -> Outcome<()> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("failed to make the folder {}: {e}", folder.display())))?;
        let json = serde_json::to_string_pretty(self).map_err(Failure::new)?;
        bundle::write(&folder.join(SETTINGS), format!("{json}\n").as_bytes())
    }

    /// The command, parsed again.
    pub fn args(&self) -> Outcome<CurveArgs> {
        use crate::cli::{BenchCommand, Cli, Command, normalized};
        use clap::Parser;
        let cli = Cli::try_parse_from(normalized(self.argv.iter().map(Into::into)));
        let Ok(Command::Bench(bench)) = cli.map(|c| c.command) else {
            return Err(Failure::new("failed to understand the curve's own command"));
        };
        match bench.command {
            BenchCommand::Curve(args) => Ok(*args),
            _ => Err(Failure::new("the folder does not hold a curve")),
        }
    }
}

/// A point's folder by its name.
pub fn name(point: &PlannedPoint) -> String {
    match point.offline {
        Offline::Dedicated => "offline".to_owned(),
        Offline::None | Offline::Elected => format!("r{}", point.concurrency),
    }
}

/// A point's folder.
pub fn of(folder: &Path, point: &PlannedPoint) -> PathBuf {
    folder.join(name(point))
}

/// Whether a point has been measured to its end.
pub fn finished(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}

/// Makes room for a point to be measured again: what an interrupted run left is removed, and nothing else is.
pub fn clear(folder: &Path) -> Outcome<()> {
    for file in [crate::bench::serve::journal::FILE, bundle::RESULT, bundle::POINT] {
        match std::fs::remove_file(folder.join(file)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("failed to remove {}: {e}", folder.join(file).display())));
            }
            _ => {}
        }
    }
    Ok(())
}
