//! Reads a detail log back.

use super::detail::Entry;

/// Why a detail log could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    /// A line that is not a log line.
    #[error("line {line} of the detail log is not a log line: {what} (the line begins {start:?})")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is missing.
        what: &'static str,
        /// How it begins.
        start: String,
    },
    /// No line at all.
    #[error("the detail log is empty: was the run interrupted before it wrote anything?")]
    Empty,
    /// A key that must be there is not.
    #[error("the detail log has no {key:?}: the run was cut short, or the file is not a LoadGen detail log")]
    Missing {
        /// Which.
        key: String,
    },
    /// A value of the wrong kind.
    #[error("the detail log's {key:?} is {value}: expected {expected}")]
    Value {
        /// Which key.
        key: String,
        /// What it says.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// The lines of a log. Values are taken as they stand, so LoadGen's unescaped texts and `inf` are read too.
///
/// # Errors
/// The first line that is none, or a log without any.
pub fn parse(text: &str) -> Result<Vec<Entry>, BadLog> {
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        entries.push(entry(line).map_err(|what| BadLog::Line {
            line: at + 1,
            what,
            start: line.chars().take(60).collect(),
        })?);
    }
    if entries.is_empty() {
        return Err(BadLog::Empty);
    }
    Ok(entries)
}

fn entry(line: &str) -> Result<Entry, &'static str> {
    let rest =
        line.trim_end().strip_prefix(":::MLLOG {\"key\": \"").ok_or("it must begin with ':::MLLOG {\"key\": \"'")?;
    let (key, rest) = rest.split_once("\", \"value\": ").ok_or("it has no \"value\"")?;
    // From the right: an unescaped text may hold anything.
    let at = rest.rfind(", \"time_ms\": ").ok_or("it has no \"time_ms\"")?;
    let (value, rest) = rest.split_at(at);
    let (time, meta) =
        rest[", \"time_ms\": ".len()..].split_once(", \"namespace\": ").ok_or("it has no \"namespace\"")?;
    if !meta.ends_with("}}") {
        return Err("it is cut off before its end");
    }
    let millis: f64 = time.parse().map_err(|_| "its \"time_ms\" is not a number")?;
    let flag = |name: &str| meta.contains(&format!("\"{name}\": true"));
    Ok(Entry {
        key: key.to_owned(),
        value: value.to_owned(),
        at_ns: (millis * 1e6 + 0.5) as u64,
        error: flag("is_error"),
        warning: flag("is_warning"),
    })
}

/// A log to ask.
#[derive(Clone, Debug)]
pub struct Log {
    entries: Vec<Entry>,
}

impl Log {
    /// See [`parse`].
    ///
    /// # Errors
    /// As there.
    pub fn parse(text: &str) -> Result<Log, BadLog> {
        Ok(Log { entries: parse(text)? })
    }

    /// Its lines.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The raw value of the first line with that key, as the submission checker reads it.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|e| e.key == key).map(|e| e.value.as_str())
    }

    /// A text.
    ///
    /// # Errors
    /// Without the key, or if it isn't a text.
    pub fn text(&self, key: &str) -> Result<String, BadLog> {
        let raw = self.need(key)?;
        let inside = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'));
        inside
            .map(|t| serde_json::from_str::<String>(raw).unwrap_or_else(|_| t.to_owned()))
            .ok_or_else(|| self.bad(key, raw, "a text in quotes"))
    }

    /// A number of any kind a stream extracts.
    ///
    /// # Errors
    /// Without the key, or if it isn't one.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, BadLog> {
        let raw = self.need(key)?;
        raw.trim_start_matches(if raw == "-nan" { "-" } else { "" })
            .parse()
            .map_err(|_| self.bad(key, raw, "a number of the kind LoadGen writes there"))
    }

    /// A number that older or other logs may lack.
    ///
    /// # Errors
    /// If it is there and isn't one.
    pub fn number_or<T: std::str::FromStr>(&self, key: &str, otherwise: T) -> Result<T, BadLog> {
        if self.get(key).is_none() { Ok(otherwise) } else { self.number(key) }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Without the key, or if it is neither.
    pub fn flag(&self, key: &str) -> Result<bool, BadLog> {
        let raw = self.need(key)?;
        raw.parse().map_err(|_| self.bad(key, raw, "true or false"))
    }

    fn need(&self, key: &str) -> Result<&str, BadLog> {
        self.get(key).ok_or_else(|| BadLog::Missing { key: key.to_owned() })
    }

    fn bad(&self, key: &str, raw: &str, expected: &'static str) -> BadLog {
        BadLog::Value { key: key.to_owned(), value: raw.chars().take(80).collect(), expected }
    }
}
