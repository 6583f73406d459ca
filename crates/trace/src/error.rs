use std::fmt;

/// Why a trace could not be read. Rows that are merely unusable are counted in [`crate::Accounting`] instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("failed to read {file}: {source}")]
    Io {
        /// The file as the caller named it.
        file: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The whole file is not what was asked for.
    #[error("failed to read {file}: {what}")]
    File {
        /// The file as the caller named it.
        file: String,
        /// What is wrong with it and what to do.
        what: Refusal,
    },
    /// One row makes the rest unreadable.
    #[error("failed to read {file}: row {row}: {what}")]
    Row {
        /// The file as the caller named it.
        file: String,
        /// Which record, from 1 (a CSV header is not counted).
        row: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A request that cannot be satisfied: a transform or a model with impossible parameters.
    #[error("{0}")]
    Asked(String),
}

/// What is wrong with a file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The file has no bytes at all, or none but blanks.
    Empty,
    /// Rows were read, but not one was usable.
    NoneUsable {
        /// How many were read.
        rows: u64,
        /// `reason: count (first at row n)`, joined.
        reasons: String,
    },
    /// A Git LFS pointer was checked out in place of the data.
    LfsPointer {
        /// The size of the real file, as the pointer states it.
        bytes: Option<u64>,
    },
    /// A web page: usually a failed download.
    Html,
    /// The bytes are not UTF-8.
    NotUtf8 {
        /// Offset of the first bad byte (after decompression).
        byte: u64,
    },
    /// Neither the columns nor the fields belong to a known format.
    Unknown {
        /// What was seen in their place.
        seen: String,
    },
    /// A format was asked for that needs columns or fields the file lacks.
    Lacks {
        /// The format.
        format: &'static str,
        /// The missing names.
        missing: String,
        /// The names that are there.
        seen: String,
    },
    /// The content fits two readings.
    Ambiguous(String),
    /// A kind of file that is known but cannot be read as requests.
    NotRequests(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Empty => f.write_str("no requests: the file is empty"),
            Refusal::NoneUsable { rows: 0, .. } => f.write_str("no requests: a header but no rows"),
            Refusal::NoneUsable { rows, reasons } => write!(f, "no requests: 0 of {rows} rows usable ({reasons})"),
            Refusal::LfsPointer { bytes } => {
                f.write_str("a Git LFS pointer, not data; fetch it with `git lfs pull`")?;
                bytes.map_or(Ok(()), |b| write!(f, " ({b} bytes)"))
            }
            Refusal::Html => f.write_str("not CSV/JSON but an HTML page (a failed download?)"),
            Refusal::NotUtf8 { byte } => {
                write!(f, "not UTF-8: bad byte at offset {byte}; convert it, or ask for a lossy reading")
            }
            Refusal::Unknown { seen } => {
                write!(f, "no known format; seen: {seen}; name the format, or map the columns")
            }
            Refusal::Lacks { format, missing, seen } => {
                write!(f, "not {format}: no {missing}; seen: {seen}")
            }
            Refusal::Ambiguous(what) => f.write_str(what),
            Refusal::NotRequests(what) => write!(f, "no requests in it: {what}"),
        }
    }
}
