//! A comparison as people and programs read it.

mod page;
mod record;
mod text;
mod words;

use crate::page::{Attachment, Page};
pub use record::Record;

use serde::{Deserialize, Serialize};
use tailbound_stats::compare::{Agreement, Comparison, Design, Regression};

/// One comparison with everything its reader has to know.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was asked: the preset or the data set.
    pub workload: String,
    /// How the load was, as `stats::compare::load` says it; empty if sides differ in it.
    pub load: String,
    /// The sides, the one all others are compared with first.
    pub sides: Vec<Side>,
    /// How they were compared.
    pub design: Design,
    /// What that came to.
    pub comparison: Comparison,
    /// The answers of each other side against the first's; `None` where texts weren't kept.
    pub agreements: Vec<Option<Agreement>>,
    /// What is to be held against it, in sentences.
    pub notes: Vec<String>,
    /// The gate, if there was one.
    pub gate: Option<Gate>,
}

/// One system.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Where it is or what it is: a URL, a command, a profile, a folder.
    pub source: String,
    /// Its runs by round.
    pub runs: Vec<SideRun>,
}

/// One run of a side.
#[derive(Clone, Debug)]
pub struct SideRun {
    /// Its place in the order of measuring, from 1; `None` if it was made before.
    pub order: Option<usize>,
    /// Its folder, if it was kept in one.
    pub folder: Option<String>,
    /// Requests planned.
    pub requests: usize,
    /// Requests answered whole.
    pub completed: usize,
    /// Why it is INVALID; empty for one that counts.
    pub reasons: Vec<String>,
}

/// A limit to how much worse the primary figure may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// As a share; for shares, points / 100.
    pub tolerance: f64,
    /// Whether a regression must be excluded, rather than only not shown.
    pub proof: bool,
}

impl Gate {
    /// Whether what was found passes.
    pub fn passes(&self, found: Regression) -> bool {
        match found {
            Regression::Shown => false,
            Regression::Excluded => true,
            Regression::Possible | Regression::Unknown => !self.proof,
        }
    }
}

impl Compared {
    /// Whether every other side passes the gate; `None` without one, or if a run is INVALID.
    pub fn passes(&self) -> Option<bool> {
        let gate = self.gate.filter(|_| self.comparison.invalid.is_empty())?;
        let found = |c: &tailbound_stats::compare::Contrast| c.primary().regression(gate.tolerance);
        Some(self.comparison.contrasts.iter().all(|c| gate.passes(found(c))))
    }

    /// The sentence of the i-th other side.
    pub fn sentence(&self, i: usize) -> String {
        let contrast = &self.comparison.contrasts[i];
        contrast.sentence(&self.sides[0].name, &self.sides[contrast.side].name, &self.load, &self.design)
    }

    /// As its file has it.
    pub fn record(&self) -> Record {
        Record::of(self)
    }
}

impl Record {
    /// For people.
    pub fn text(&self, colour: crate::text::Colour) -> String {
        text::block(self, colour)
    }
}

/// Comparisons of the same sides, one for each workload: the file, `docs/compare.md` says what each key is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Raised when a key changes its meaning.
    pub format: u32,
    /// The comparisons.
    pub comparisons: Vec<Record>,
}

/// The format of [`File`].
pub const FORMAT: u32 = 1;

impl File {
    /// Of these.
    pub fn new(comparisons: Vec<Record>) -> File {
        File { format: FORMAT, comparisons }
    }

    /// One JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers can be written") + "\n"
    }

    /// For people.
    pub fn text(&self, colour: crate::text::Colour) -> String {
        self.comparisons.iter().map(|c| c.text(colour)).collect::<Vec<_>>().join("\n")
    }

    /// The page.
    pub fn page(&self) -> Page {
        let mut page = page::page(&self.comparisons);
        page.attachments.push(Attachment::json("result", "comparison.json", self.json()));
        page
    }

    /// Whether a run of any is INVALID, and whether a gate failed.
    pub fn failings(&self) -> (bool, bool) {
        let gate = |r: &Record| r.gate.is_some_and(|g| g.passes == Some(false));
        (self.comparisons.iter().any(|r| !r.valid), self.comparisons.iter().any(gate))
    }
}
