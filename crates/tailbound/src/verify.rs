//! `tailbound verify DIR`: every published figure made again from the rows, and what doesn't match.

mod compare;
mod curve;
mod run;

use crate::bench::serve::args::Format;
use crate::bundle::{Kind, Manifest, Program};
use crate::failure::{Outcome, exit};
use crate::output;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check that what was published follows from the rows.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// A run's folder (`bench serve --run-dir`), a curve's (`bench curve --output-dir`), or one point of it
    dir: PathBuf,
    /// A result file saved elsewhere (`bench serve --save-result`), to be held against the run too
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Something that doesn't match.
#[derive(Clone, Debug, Serialize)]
pub struct Mismatch {
    /// Where: a file, from the folder on.
    pub place: String,
    /// What.
    pub what: String,
    /// The figures concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<compare::Difference>,
}

/// What was looked at.
#[derive(Debug, Default)]
pub struct Findings {
    mismatches: Vec<Mismatch>,
    notes: Vec<String>,
    /// Figures that were made again.
    figures: usize,
    rows: usize,
}

impl Findings {
    fn mismatch(&mut self, place: impl Into<String>, what: impl Into<String>, figures: Vec<compare::Difference>) {
        self.mismatches.push(Mismatch { place: place.into(), what: what.into(), figures });
    }
}

/// Runs the command.
pub fn run(args: &VerifyArgs) -> Outcome<u8> {
    let manifest = Manifest::read(&args.dir)?;
    let mut found = Findings::default();
    measured_by(&manifest, &mut found)?;
    match manifest.kind {
        Kind::Run | Kind::Probe => run::verify(&args.dir, "", &manifest, args.result.as_deref(), &mut found)?,
        Kind::Point => curve::verify_one(&args.dir, &manifest, &mut found)?,
        Kind::Curve => curve::verify(&args.dir, &manifest, &mut found)?,
    }
    output::print(&match args.format {
        Format::Text => text(&args.dir, &manifest, &found),
        Format::Json => format!(
            "{:#}\n",
            json!({
                "verified": found.mismatches.is_empty(),
                "figures": found.figures,
                "rows": found.rows,
                "mismatches": found.mismatches,
                "notes": found.notes,
            })
        ),
    })?;
    Ok(if found.mismatches.is_empty() { 0 } else { exit::COULD_NOT_RUN })
}

/// Another binary is no fault, but the reader should know.
fn measured_by(manifest: &Manifest, found: &mut Findings) -> Outcome<()> {
    let this = Program::this()?;
    if this.sha256 != manifest.program.sha256 {
        found.notes.push(format!(
            "measured by another binary (tailbound {}, {}…); this is {} ({}…)",
            manifest.program.version,
            short(&manifest.program.sha256),
            this.version,
            short(&this.sha256)
        ));
    }
    Ok(())
}

/// The beginning of a digest.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// No more figures are named in text: whatever changes one row changes many.
const MOST: usize = 12;

fn text(dir: &Path, manifest: &Manifest, found: &Findings) -> String {
    let kind = match manifest.kind {
        Kind::Run => "run",
        Kind::Probe => "probe",
        Kind::Point => "point",
        Kind::Curve => "curve",
    };
    let mut out = format!("{}: a {kind} of tailbound {}\n", dir.display(), manifest.program.version);
    for m in &found.mismatches {
        out += &format!("mismatch  {}: {}\n", m.place, m.what);
        for d in m.figures.iter().take(MOST) {
            out += &format!("          {}: published {}, by the rows {}\n", d.figure, d.published, d.by_the_rows);
        }
        if m.figures.len() > MOST {
            out += &format!("          and {} more (--format json has them all)\n", m.figures.len() - MOST);
        }
    }
    out += &found.notes.iter().map(|n| format!("note: {n}\n")).collect::<String>();
    out += &match found.mismatches.len() {
        0 => format!("verified: {} figures from {} rows\n", found.figures, found.rows),
        1 => "NOT verified: 1 mismatch\n".to_owned(),
        n => format!("NOT verified: {n} mismatches\n"),
    };
    out
}
