//! Parquet files: read as lines of JSON, written from our own rows.

use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use tailbound_parquet::{Column, Kind, Sink, is_parquet, lines};
use tailbound_trace::{Output, Trace, write};

/// Our own rows' fields, in the order of their lines.
const COLUMNS: [Column; 24] = [
    column("arrival_ns", Kind::Int),
    column("input_tokens", Kind::Count),
    column("output_tokens", Kind::Count),
    column("reasoning_tokens", Kind::Count),
    column("session", Kind::Text),
    column("turn", Kind::Count),
    column("id", Kind::Text),
    column("parent", Kind::Text),
    column("think_ns", Kind::Count),
    column("prefix_blocks", Kind::Counts),
    column("block_tokens", Kind::Count),
    column("model", Kind::Text),
    column("class", Kind::Text),
    column("client", Kind::Text),
    column("priority", Kind::Int),
    column("media", Kind::Json),
    column("source_e2e_ns", Kind::Count),
    column("source_ok", Kind::Flag),
    column("text", Kind::Text),
    column("messages", Kind::Json),
    column("added", Kind::Json),
    column("payload", Kind::Json),
    column("answer", Kind::Text),
    column("tools", Kind::Text),
];

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

/// The rows of a Parquet file as lines of JSON; `None` if it is another kind of file.
pub fn open(path: &Path) -> Outcome<Option<impl Read + Send + 'static>> {
    // What can't be opened, or wound back, is the reader's to complain about.
    let Ok(mut file) = File::open(path) else { return Ok(None) };
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Ok(None);
    }
    let mut head = [0; 4];
    if file.read_exact(&mut head).is_err() || !is_parquet(&head) || file.rewind().is_err() {
        return Ok(None);
    }
    let rows = lines(file).map_err(|e| Failure::new(format!("failed to read {}: {e}", path.display())))?;
    Ok(Some(rows))
}

/// Writes every row of a trace.
pub fn write_rows(trace: &Trace, path: &Path, to: &mut (impl Write + Send)) -> Outcome<()> {
    let failed = |e: tailbound_parquet::Error| Failure::new(format!("failed to write {}: {e}", path.display()));
    let mut sink = Sink::new(to, &COLUMNS).map_err(failed)?;
    write(trace, Output::Canonical, &mut sink).map_err(super::unwritable(path))?;
    sink.finish().map_err(failed)?;
    Ok(())
}
