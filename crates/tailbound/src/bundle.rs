//! A run's bundle: the manifest that ties a folder's rows to what was published from them. It is written last, so a folder that has one
//! is complete.

use crate::bench::serve::journal;
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

/// The manifest's name in a folder.
pub const MANIFEST: &str = "manifest.json";
/// What was published of a run.
pub const RESULT: &str = "result.json";
/// What was published of a point of a curve, beside [`RESULT`].
pub const POINT: &str = "point.json";
const FORMAT: u32 = 1;

/// What a folder holds, with the SHA-256 of each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Raised when a field changes its meaning.
    pub format: u32,
    /// What kind of folder it is.
    pub kind: Kind,
    /// Who measured.
    pub program: Program,
    /// The hash of the plan.
    pub plan: String,
    /// Digest of the settings: the command and what was found out before the run.
    pub settings: String,
    /// The rows; a curve has them in its points.
    pub rows: Option<Rows>,
    /// Digests of the published files.
    pub results: BTreeMap<String, String>,
    /// Digests of the manifests of a curve's points, by folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub points: BTreeMap<String, String>,
}

/// What kind of folder a manifest is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A run of `bench serve`.
    Run,
    /// A point of a curve.
    Point,
    /// A curve.
    Curve,
    /// A probe of a capacity search.
    Probe,
}

/// The program that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// Digest of its binary.
    pub sha256: String,
}

/// The rows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Their file.
    pub file: String,
    /// How many records it has, notes included.
    pub records: u64,
    /// Digest of the file.
    pub sha256: String,
}

/// Writes what was published of a run, and then the manifest.
pub fn seal(folder: &Path, kind: Kind, plan: String, results: &[(&str, String)]) -> Outcome<()> {
    let log = journal::examine(folder)?;
    let rows = Rows {
        file: journal::FILE.into(),
        records: log.records.len() as u64,
        sha256: file_digest(&folder.join(journal::FILE))?,
    };
    let manifest = Manifest {
        format: FORMAT,
        kind,
        program: Program::this()?,
        plan,
        settings: digest(log.settings()),
        rows: Some(rows),
        results: publish(folder, results)?,
        points: BTreeMap::new(),
    };
    manifest.write(folder)
}

/// Writes published files; their digests by name.
pub fn publish(folder: &Path, results: &[(&str, String)]) -> Outcome<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for (name, text) in results {
        write(&folder.join(name), text.as_bytes())?;
        digests.insert((*name).to_owned(), digest(text.as_bytes()));
    }
    Ok(digests)
}

impl Manifest {
    /// Of a curve: its settings, its table, and the manifests of its points.
    pub fn of_curve(
        plan: String,
        settings: &[u8],
        results: BTreeMap<String, String>,
        points: BTreeMap<String, String>,
    ) -> Outcome<Manifest> {
        Ok(Manifest {
            format: FORMAT,
            kind: Kind::Curve,
            program: Program::this()?,
            plan,
            settings: digest(settings),
            rows: None,
            results,
            points,
        })
    }

    /// Writes it into its folder.
    pub fn write(&self, folder: &Path) -> Outcome<()> {
        let json = serde_json::to_string_pretty(self).map_err(Failure::new)?;
        write(&folder.join(MANIFEST), format!("{json}\n").as_bytes())
    }

    /// Reads a folder's.
    pub fn read(folder: &Path) -> Outcome<Manifest> {
        let path = folder.join(MANIFEST);
        let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
        let text = std::fs::read(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound if folder.is_dir() => {
                failed("it is not there: the run did not come to its end".into())
                    .hint("see what there is of it: tailbound report DIR")
            }
            _ => failed(e.to_string()),
        })?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| failed(e.to_string()))?;
        match manifest.format {
            FORMAT => Ok(manifest),
            other => Err(failed(format!("it has format {other}, and this program knows {FORMAT}"))),
        }
    }
}

impl Program {
    /// This one.
    pub fn this() -> Outcome<Program> {
        static DIGEST: OnceLock<String> = OnceLock::new();
        let sha256 = match DIGEST.get() {
            Some(digest) => digest.clone(),
            None => {
                // The file that runs, even if another has taken its name since.
                let own = Path::new("/proc/self/exe");
                let digest = if own.exists() { file_digest(own) } else { file_digest(&executable()?) }?;
                DIGEST.get_or_init(|| digest).clone()
            }
        };
        Ok(Program { version: env!("CARGO_PKG_VERSION").into(), sha256 })
    }
}

fn executable() -> Outcome<std::path::PathBuf> {
    std::env::current_exe().map_err(|e| Failure::new(format!("failed to find this program's own file: {e}")))
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The same of a file.
pub fn file_digest(path: &Path) -> Outcome<String> {
    let failed = |e: io::Error| Failure::new(format!("failed to read {}: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let (mut hasher, mut buf) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buf).map_err(failed)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buf[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    let part = path.with_added_extension("part");
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&part); // the reason is told already
        Failure::new(format!("failed to write {}: {e}", path.display()))
    })
}
