//! Parquet files as JSON lines, and JSON lines as Parquet files.
//!
//! Everything else reads and writes lines of JSON; this crate alone knows Parquet, so that its dependency stays here. Nothing of
//! a file is held but a row group's worth.

mod error;
mod read;
mod write;

pub use error::Error;
pub use read::{Lines, lines};
pub use write::{Column, Kind, Sink};

/// Whether a file that begins like this is Parquet.
pub fn is_parquet(head: &[u8]) -> bool {
    head.starts_with(b"PAR1")
}
