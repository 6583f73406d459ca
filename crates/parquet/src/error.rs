use parquet::errors::ParquetError;

/// Why a Parquet file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not what its format demands, or uses what is not supported.
    #[error("not a usable Parquet file: {0}")]
    Format(#[from] ParquetError),
    /// A column whose values can't be passed on exactly.
    #[error("column {column:?}: {what}")]
    Column {
        /// The column.
        column: String,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A line to be written that doesn't fit the columns.
    #[error("row {row}: {what}")]
    Row {
        /// Which, from 1.
        row: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl From<Error> for std::io::Error {
    fn from(e: Error) -> std::io::Error {
        match e {
            Error::Io(e) => e,
            other => std::io::Error::new(std::io::ErrorKind::InvalidData, other),
        }
    }
}
