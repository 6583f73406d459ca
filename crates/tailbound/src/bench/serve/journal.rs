//! `--run-dir`: everything a report is made from, written as it happens, so that any death loses nothing that had ended.

use super::args::ServeArgs;
use super::live::{Ending, Names};
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tailbound_record::log::{self, Damage, Reader, Record, Writer};
use tailbound_record::server::Scrape;
use tailbound_record::{Moment, Row};
use tailbound_trace as trace;

/// The log's name in a run's folder.
pub const FILE: &str = "events.log";
const NAMES: &str = "names";
const ENDING: &str = "ending";
const SERVER: &str = "server";

/// The log of a run being made; does nothing without `--run-dir`.
pub struct Journal {
    open: Option<(PathBuf, Writer<File>)>,
}

impl Journal {
    /// Makes the folder and begins the log. A folder that already holds a run is refused: nothing is ever written over.
    pub fn open(args: &ServeArgs, names: &Names) -> Outcome<Journal> {
        let Some(folder) = &args.report.run_dir else { return Ok(Journal { open: None }) };
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
        // Not buffered: a row is one small write, and what was written survives this process.
        let mut writer = Writer::new(file).map_err(failed)?;
        let json = serde_json::to_vec(names).map_err(|e| Failure::new(e.to_string()))?;
        writer.note(NAMES, &json).map_err(failed)?;
        Ok(Journal { open: Some((path, writer)) })
    }

    /// Adds a request that has ended.
    pub fn row(&mut self, row: &Row) -> Outcome<()> {
        self.with(|writer| writer.row(row))
    }

    /// Another hand for the same log, for a thread of its own: every record is one write, and writes through one open file don't mix.
    pub fn beside(&self) -> Outcome<Journal> {
        let Some((path, writer)) = &self.open else { return Ok(Journal { open: None }) };
        let file = writer.get_ref().try_clone();
        let file = file.map_err(|e| Failure::new(format!("failed to open {} once more: {e}", path.display())))?;
        Ok(Journal { open: Some((path.clone(), Writer::append(file))) })
    }

    /// Adds what a server said of itself.
    pub fn scrape(&mut self, scrape: &Scrape) -> Outcome<()> {
        let json = serde_json::to_vec(scrape).map_err(|e| Failure::new(e.to_string()))?;
        self.with(|writer| writer.note(SERVER, &json))
    }

    /// Adds what is known once the run is over.
    pub fn close(mut self, ending: &Ending) -> Outcome<()> {
        let json = serde_json::to_vec(ending).map_err(|e| Failure::new(e.to_string()))?;
        self.with(|writer| writer.note(ENDING, &json).and_then(|()| writer.flush()))
    }

    fn with(&mut self, write: impl FnOnce(&mut Writer<File>) -> std::io::Result<()>) -> Outcome<()> {
        let Some((path, writer)) = &mut self.open else { return Ok(()) };
        write(writer).map_err(|e| Failure::new(format!("failed to write {}: {e}", path.display())))
    }
}

/// What a run's folder holds.
pub struct Kept {
    /// Names, and the command.
    pub names: Names,
    /// All rows, warm-ups and probes too.
    pub rows: Vec<Row>,
    /// What servers said of themselves.
    pub scrapes: Vec<Scrape>,
    /// What was written at the run's end; `None` if it died before.
    pub ending: Option<Ending>,
    /// Whether the log's last record was torn or damaged.
    pub damage: Option<Damage>,
}

/// Reads a run's folder.
pub fn read(folder: &Path) -> Outcome<Kept> {
    let path = if folder.is_dir() { folder.join(FILE) } else { folder.to_owned() };
    let mut reader = Reader::new(open(&path)?).map_err(|e| failed(&path, e))?;
    let mut gathered = Gathered::default();
    for record in &mut reader {
        gathered.add(record.map_err(|e| failed(&path, e))?).map_err(|e| failed(&path, e))?;
    }
    gathered.kept(reader.damage()).map_err(|e| failed(&path, e))
}

/// Every record of a run's log, the damaged ones too.
pub struct Examined {
    /// In the order of the file.
    pub records: Vec<log::Examined>,
    path: PathBuf,
}

/// Reads a run's folder record by record, past what is damaged.
pub fn examine(folder: &Path) -> Outcome<Examined> {
    let path = folder.join(FILE);
    let records = log::examine(open(&path)?).map_err(|e| failed(&path, e))?;
    Ok(Examined { records, path })
}

impl Examined {
    /// The bytes of the settings' record.
    pub fn settings(&self) -> &[u8] {
        let settings = self.records.iter().find_map(|r| match &r.record {
            Some(Record::Note { name, bytes }) if name == NAMES => Some(bytes.as_slice()),
            _ => None,
        });
        settings.unwrap_or_default()
    }

    /// What a report can be made of: every record that makes sense, whether or not it matches its checksum.
    pub fn kept(self) -> Outcome<Kept> {
        let mut gathered = Gathered::default();
        for record in self.records.into_iter().filter_map(|r| r.record) {
            gathered.add(record).map_err(|e| failed(&self.path, e))?;
        }
        gathered.kept(None).map_err(|e| failed(&self.path, e))
    }
}

#[derive(Default)]
struct Gathered {
    names: Option<Names>,
    rows: Vec<Row>,
    scrapes: Vec<Scrape>,
    ending: Option<Ending>,
}

impl Gathered {
    fn add(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Row(row) => self.rows.push(*row),
            Record::Note { name, bytes } if name == NAMES => self.names = Some(parse(&bytes)?),
            Record::Note { name, bytes } if name == ENDING => self.ending = Some(parse(&bytes)?),
            Record::Note { name, bytes } if name == SERVER => self.scrapes.push(parse(&bytes)?),
            Record::Note { .. } => {}
        }
        Ok(())
    }

    fn kept(mut self, damage: Option<Damage>) -> Result<Kept, String> {
        let names = self.names.ok_or("the run's names are missing: it died before it began")?;
        self.rows.sort_unstable_by_key(|row: &Row| row.id);
        Ok(Kept { names, rows: self.rows, scrapes: self.scrapes, ending: self.ending, damage })
    }
}

fn open(path: &Path) -> Outcome<BufReader<File>> {
    let file = File::open(path).map_err(|e| failed(path, e).hint("a run's folder is what --run-dir named"))?;
    Ok(BufReader::new(file))
}

fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("failed to read {}: {why}", path.display()))
}

/// The requests of a kept run as a trace: when each should have been sent, how long prompt and answer were, its class.
pub fn as_trace(folder: &Path) -> Outcome<trace::Trace> {
    let kept = read(folder)?;
    let outline = kept.names.replay.clone().unwrap_or_default();
    let mut names = trace::Names::default();
    let mut dropped: HashMap<&'static str, u64> = HashMap::new();
    let mut rows = Vec::with_capacity(kept.rows.len());
    let measured = kept.rows.iter().filter(|row| (row.id as usize) < kept.names.num_prompts);
    for row in measured {
        let at = row.at.get(Moment::Scheduled).or_else(|| row.at.get(Moment::WriteStart));
        let (Some(at), Some(input)) = (at, row.prompt_tokens()) else {
            let why = if at.is_none() { "never due" } else { "of unknown prompt length" };
            *dropped.entry(why).or_default() += 1;
            continue;
        };
        // What was asked for says what the load was; what came says what the server made of it.
        let output = row.tokens.output_asked.or_else(|| row.ok().then(|| row.output_tokens()));
        let label = |labels: &super::replay::Labels| {
            let index = *labels.of.get(row.id as usize)?;
            labels.names.get(index as usize).cloned()
        };
        rows.push(trace::Row {
            at: Some(at.ns() as i64),
            input: Some(input),
            output,
            took: row.e2e(),
            ok: Some(row.ok()),
            class: label(&outline.classes).map(|name| names.intern(&name)),
            client: label(&outline.clients).map(|name| names.intern(&name)),
            ..trace::Row::default()
        });
    }
    for (why, count) in dropped {
        crate::output::note(&format!("{}: {count} requests {why} are left out", folder.display()));
    }
    if rows.is_empty() {
        return Err(Failure::new(format!("failed to read {}: no request in it can be replayed", folder.display())));
    }
    Ok(trace::Trace::of_rows(rows, names, None))
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| e.to_string())
}
