//! How the program fails: one cause, what it was doing, what to do about it, and the exit code.

use std::fmt;

/// Exit codes, as in `tailbound help exit-codes`.
pub mod exit {
    /// Could not run.
    pub const COULD_NOT_RUN: u8 = 1;
    /// Wrong usage.
    pub const USAGE: u8 = 2;
    /// The run is INVALID: its numbers don't describe the server.
    pub const INVALID: u8 = 3;
    /// Valid, but an objective was missed.
    pub const OBJECTIVE_MISSED: u8 = 99;
    /// Interrupted by Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// Terminated.
    pub const TERMINATED: u8 = 143;
}

/// An error as people read it: `error: CAUSE`, `while: …`, `hint: …`, each at most once.
#[derive(Debug)]
pub struct Failure {
    cause: String,
    during: Option<String>,
    hint: Option<String>,
    /// The process's exit code.
    pub exit: u8,
}

impl Failure {
    /// Could not run (exit code 1).
    pub fn new(cause: impl fmt::Display) -> Failure {
        Failure { cause: cause.to_string(), during: None, hint: None, exit: exit::COULD_NOT_RUN }
    }

    /// Wrong usage (exit code 2); the message names the flag.
    pub fn usage(cause: impl fmt::Display) -> Failure {
        Failure { exit: exit::USAGE, ..Failure::new(cause) }
    }

    /// What went wrong, without the rest.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// What was being done: a fragment that fits after "while".
    pub fn during(mut self, what: impl fmt::Display) -> Failure {
        self.during.get_or_insert(what.to_string());
        self
    }

    /// What the reader can do.
    pub fn hint(mut self, what: impl fmt::Display) -> Failure {
        self.hint.get_or_insert(what.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.cause)?;
        if let Some(during) = &self.during {
            write!(f, "\n  while: {during}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// `Ok`, or a failure to show.
pub type Outcome<T> = Result<T, Failure>;
