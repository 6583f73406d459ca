//! A simulation's folder: the log of its rows, with what a report is made from beside them.

use crate::bench::serve::journal::FILE;
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use tailbound_os::clock::{self, WallAnchor};
use tailbound_record::Row;
use tailbound_record::log::{Reader, Record, Writer};
use tailbound_sim::{Engines, Figures, Objective, Scenario};

const ABOUT: &str = "simulation";
const FIGURES: &str = "simulated";

/// What is known before anything happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    /// The replicas.
    pub fleet: String,
    /// What the scenario says it tries.
    pub about: String,
    /// What `--goodput` said.
    pub goodput: Vec<String>,
    /// Each class's objectives by the scenario, as `--goodput` writes them.
    pub by_class: Vec<Vec<String>>,
    /// When it was made, ns since 1970.
    pub made_unix_ns: u64,
}

impl About {
    /// Of a scenario about to run.
    pub fn new(scenario: &Scenario, goodput: &[String]) -> About {
        let group = |e: &Engines| format!("{} × {}", e.count, e.profile.as_deref().unwrap_or("engine"));
        About {
            fleet: scenario.engines.iter().map(group).collect::<Vec<_>>().join(" + "),
            about: scenario.about.clone(),
            goodput: goodput.to_vec(),
            by_class: scenario.traffic.iter().map(|t| objectives(t.objective.as_ref())).collect(),
            made_unix_ns: WallAnchor::take().unix_ns(clock::now()),
        }
    }
}

fn objectives(of: Option<&Objective>) -> Vec<String> {
    let Some(of) = of else { return Vec::new() };
    let pairs = [("ttft", of.ttft_ms), ("tpot", of.tpot_ms)];
    pairs.into_iter().filter_map(|(name, ms)| Some(format!("{name}:{}", ms?))).collect()
}

/// What a folder holds, or would.
pub struct Kept {
    /// What was known before.
    pub about: About,
    /// By number.
    pub rows: Vec<Row>,
    /// What it came to; `None` if it died.
    pub figures: Option<Figures>,
}

/// The log of a simulation being made; does nothing without a folder.
pub struct Journal {
    open: Option<(PathBuf, Writer<BufWriter<File>>)>,
}

impl Journal {
    /// Makes the folder and begins the log. One that holds a run is refused.
    pub fn open(folder: Option<&Path>, about: &About) -> Outcome<Journal> {
        let Some(folder) = folder else { return Ok(Journal { open: None }) };
        let path = folder.join(FILE);
        let failed = |e: std::io::Error| Failure::new(format!("failed to write {}: {e}", path.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = File::options().write(true).create_new(true).open(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::usage(format!("--run-dir {}: it already holds a run", folder.display()))
                    .hint("name another folder, or see what is in it: tailbound report DIR")
            }
            _ => failed(e),
        })?;
        let mut writer = Writer::new(BufWriter::new(file)).map_err(failed)?;
        let json = serde_json::to_vec(about).map_err(|e| Failure::new(e.to_string()))?;
        writer.note(ABOUT, &json).map_err(failed)?;
        Ok(Journal { open: Some((path, writer)) })
    }

    /// Adds a request that has ended.
    pub fn row(&mut self, row: &Row) -> Outcome<()> {
        self.with(|writer| writer.row(row))
    }

    /// Adds what it came to.
    pub fn close(mut self, figures: &Figures) -> Outcome<()> {
        let json = serde_json::to_vec(figures).map_err(|e| Failure::new(e.to_string()))?;
        self.with(|writer| writer.note(FIGURES, &json).and_then(|()| writer.flush()))
    }

    fn with(&mut self, write: impl FnOnce(&mut Writer<BufWriter<File>>) -> std::io::Result<()>) -> Outcome<()> {
        let Some((path, writer)) = &mut self.open else { return Ok(()) };
        write(writer).map_err(|e| Failure::new(format!("failed to write {}: {e}", path.display())))
    }
}

/// Reads a folder; `None` if it holds something else than a simulation.
pub fn read(folder: &Path) -> Outcome<Option<Kept>> {
    let path = if folder.is_dir() { folder.join(FILE) } else { folder.to_owned() };
    let Ok(file) = File::open(&path) else { return Ok(None) };
    let Ok(reader) = Reader::new(BufReader::new(file)) else { return Ok(None) };
    let failed = |e: &dyn std::fmt::Display| Failure::new(format!("failed to read {}: {e}", path.display()));
    let (mut about, mut rows, mut figures) = (None, Vec::new(), None);
    for record in reader {
        match record.map_err(|e| failed(&e))? {
            Record::Note { name, bytes } if name == ABOUT => {
                about = Some(serde_json::from_slice(&bytes).map_err(|e| failed(&e))?);
            }
            Record::Note { name, bytes } if name == FIGURES => {
                figures = Some(serde_json::from_slice(&bytes).map_err(|e| failed(&e))?);
            }
            // What comes before it is some other run's.
            _ if about.is_none() => return Ok(None),
            Record::Row(row) => rows.push(*row),
            Record::Note { .. } => {}
        }
    }
    rows.sort_unstable_by_key(|row: &Row| row.id);
    Ok(about.map(|about| Kept { about, rows, figures }))
}
