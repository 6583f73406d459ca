//! Our own checker of a submission folder, rule by rule, with messages that say how to mend.
//!
//! Rule names and severities are those of the official checker (endpoints-submission-cli 1.5.3); only errors and warnings
//! are reported. Not covered: the power computation of the Standardized division (the descriptor's presence is), the
//! drafter list of speculative decoding, and the agentic accuracy targets.

mod accuracy;
mod curve;
mod curve_accuracy;
mod doc;
mod folder;
mod point;
mod result;
mod seeds;
mod shape;
mod structure;
mod system;

use serde::Serialize;

pub use curve::MODELS;
pub use folder::Folder;
pub use seeds::{PUBLISHED, SeedSet};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The submission is rejected.
    Error,
    /// It is flagged.
    Warning,
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The official rule.
    pub rule: &'static str,
    /// What is wrong and how to mend it.
    pub message: String,
    /// The file or folder, from the submission folder on.
    pub path: String,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, rule: &'static str, path: &str, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Error, rule, message: message.into(), path: path.into() });
    }
    fn warning(&mut self, rule: &'static str, path: &str, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Warning, rule, message: message.into(), path: path.into() });
    }
}

/// Checks a submission: the folder that holds `results/`, or the organisation's folder around a single one.
pub fn check(folder: &Folder) -> Vec<Finding> {
    let mut found = Findings::default();
    structure::check(folder, &mut found);
    found.0
}

/// Whether no finding is an error.
pub fn passes(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.severity != Severity::Error)
}
