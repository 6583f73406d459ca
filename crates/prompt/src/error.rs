use std::fmt;
use std::path::PathBuf;
use tailbound_token::TokenError;

/// Why there are no prompts. Reads as a fragment after "failed to".
#[derive(Debug)]
pub enum PromptError {
    /// Something about a file.
    File {
        /// The file, as the user named it.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong.
        problem: String,
        /// What to do; may be empty.
        hint: String,
        /// Whether the file isn't there at all.
        missing: bool,
    },
    /// A flag whose value can't work.
    Flag {
        /// As typed on the command line.
        flag: &'static str,
        /// What is wrong, the value included.
        problem: String,
        /// What to do; may be empty.
        hint: String,
    },
    /// The tokenizer failed.
    Token(TokenError),
    /// The server's tokenizer failed.
    Server(String),
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// An entry of a JSON array, from 1.
    Entry(u64),
    /// A byte, from 0.
    Byte(u64),
}

impl PromptError {
    /// Whether it is that a file doesn't exist (so that the caller can say where to get it).
    pub fn is_missing_file(&self) -> bool {
        matches!(self, PromptError::File { missing: true, .. })
    }

    pub(crate) fn flag(flag: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> PromptError {
        PromptError::Flag { flag, problem: problem.into(), hint: hint.into() }
    }

    /// The same with something to do.
    pub(crate) fn hint(mut self, text: impl Into<String>) -> PromptError {
        if let PromptError::File { hint, .. } | PromptError::Flag { hint, .. } = &mut self {
            *hint = text.into();
        }
        self
    }
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = match self {
            PromptError::File { path, place, problem, hint, .. } => {
                write!(f, "read {}{place}: {problem}", path.display())?;
                hint
            }
            PromptError::Flag { flag, problem, hint } => {
                write!(f, "use {flag}: {problem}")?;
                hint
            }
            PromptError::Token(error) => return error.fmt(f),
            PromptError::Server(message) => return write!(f, "count tokens with the server's tokenizer: {message}"),
        };
        match hint.is_empty() {
            true => Ok(()),
            false => write!(f, "; {hint}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(n) => write!(f, ", line {n}"),
            Place::Entry(n) => write!(f, ", entry {n}"),
            Place::Byte(n) => write!(f, ", byte {n}"),
        }
    }
}

impl std::error::Error for PromptError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PromptError::Token(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TokenError> for PromptError {
    fn from(error: TokenError) -> PromptError {
        PromptError::Token(error)
    }
}
