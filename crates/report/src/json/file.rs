use super::{Detail, write};
use crate::{Description, Run};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use tailbound_stats::RunFacts;

/// The name vLLM would give the result: `{label or backend}-{rate}qps[-concurrency{N}]-{model's last part}-{date}.json`, or for ramps
/// `{label}-ramp-up-{law}-{start}qps-{end}qps…`.
pub fn file_name(description: &Description, facts: &RunFacts) -> String {
    let label = description.label.as_deref().filter(|l| !l.is_empty()).unwrap_or(&description.backend);
    let model = description.model_id.rsplit('/').next().unwrap_or(&description.model_id);
    let cap = facts.max_concurrency.map_or(String::new(), |n| format!("-concurrency{n}"));
    let load = match facts.ramp {
        Some(ramp) => format!("ramp-up-{}-{}qps-{}qps", ramp.law.name(), ramp.start_rps, ramp.end_rps),
        None => format!("{}qps", python_float(facts.request_rate.unwrap_or(f64::INFINITY))),
    };
    format!("{label}-{load}{cap}-{model}-{}.json", description.date)
}

/// As Python prints a float: `20.0`, `0.5`, `inf`.
fn python_float(v: f64) -> String {
    if v.is_infinite() { "inf".to_owned() } else { format!("{v:?}") }
}

/// What to do with a result file that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Write over it.
    Replace,
    /// Add a line to it, as vLLM's `--append-result` does.
    Append,
}

/// Why a result could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The folder could not be made.
    #[error("failed to make the folder {path}: {source}")]
    Folder {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file could not be opened.
    #[error("failed to open {path} for writing: {source}")]
    Open {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It could not be written to its end.
    #[error("failed to write {path}: {source}")]
    Write {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes the result to `path`, making its folder if need be.
pub fn save(run: &Run<'_>, detail: Detail, path: &Path, mode: Mode) -> Result<(), SaveError> {
    let shown = || path.display().to_string();
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|source| SaveError::Folder { path: folder.display().to_string(), source })?;
    }
    let failed = |source| SaveError::Write { path: shown(), source };
    let append = mode == Mode::Append;
    // A file that is replaced is replaced whole or not at all. What is no plain file (a link, /dev/stdout) is written to as it is.
    let plain = path.symlink_metadata().map_or(true, |m| m.is_file());
    let part = (!append && plain).then(|| path.with_added_extension("part"));
    let target = part.as_deref().unwrap_or(path);
    let file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(target);
    let file = file.map_err(|source| SaveError::Open { path: shown(), source })?;
    let filled = append && file.metadata().map_err(failed)?.len() > 0;
    let written = fill(run, detail, filled, file).map_err(failed);
    let Some(part) = part else { return written };
    let moved = written.and_then(|()| std::fs::rename(&part, path).map_err(failed));
    if moved.is_err() {
        // The reason is told already.
        let _ = std::fs::remove_file(&part);
    }
    moved
}

fn fill(run: &Run<'_>, detail: Detail, filled: bool, file: File) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    if filled {
        out.write_all(b"\n")?;
    }
    write(run, detail, &mut out)?;
    out.flush()
}
