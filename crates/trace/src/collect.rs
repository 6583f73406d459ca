use crate::account::Accounting;
use crate::detect::Format;
use crate::error::Error;
use crate::parents;
use crate::reader::Reader;
use crate::row::{Clock, Names, Row};

/// A whole trace in memory: rows in order of arrival (equal times keep the file's order; rows without a time come last),
/// times counted from the earliest.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The rows.
    pub rows: Vec<Row>,
    /// The strings behind the rows' names.
    pub names: Names,
    /// What was taken off every [`Row::at`]: the earliest arrival on the file's own clock.
    pub origin_ns: i64,
    /// What the file's clock counted from.
    pub clock: Clock,
    /// Tokens per prefix block, in traces with blocks.
    pub block_tokens: Option<u32>,
    /// What became of every row.
    pub accounting: Accounting,
    /// Where the rows came from; `None` for generated ones.
    pub format: Option<Format>,
}

impl Trace {
    /// Reads a trace to its end.
    pub fn collect(mut reader: Reader) -> Result<Trace, Error> {
        let rows = reader.by_ref().collect::<Result<Vec<Row>, Error>>()?;
        let mut trace = Trace {
            rows,
            origin_ns: 0,
            clock: reader.clock(),
            block_tokens: reader.block_tokens(),
            accounting: reader.accounting().clone(),
            format: Some(reader.format()),
            names: reader.into_names(),
        };
        if trace.format == Some(Format::Bailian) {
            parents::join(&mut trace.rows, &trace.names);
        }
        trace.settle();
        Ok(trace)
    }

    /// A trace of rows made here; `names` are theirs.
    pub fn of_rows(rows: Vec<Row>, names: Names, block_tokens: Option<u32>) -> Trace {
        let n = rows.len() as u64;
        let accounting = Accounting { records: n, rows_read: n, rows_emitted: n, ..Accounting::default() };
        let clock = if rows.iter().any(|r| r.at.is_some()) { Clock::Offset } else { Clock::None };
        let mut trace = Trace { rows, names, origin_ns: 0, clock, block_tokens, accounting, format: None };
        trace.settle();
        trace
    }

    /// Restores the order and the origin after times have been changed.
    pub(crate) fn settle(&mut self) {
        let order = |row: &Row| (row.at.is_none(), row.at);
        if !self.rows.is_sorted_by_key(order) {
            self.rows.sort_by_key(order);
        }
        let Some(first) = self.rows.first().and_then(|r| r.at) else { return };
        self.rows.iter_mut().filter_map(|r| r.at.as_mut()).for_each(|at| *at -= first);
        self.origin_ns += first;
    }

    /// Arrival times, ascending, in nanoseconds since the first.
    pub fn times(&self) -> Vec<i64> {
        self.rows.iter().filter_map(|r| r.at).collect()
    }

    /// Last arrival minus first, in nanoseconds.
    pub fn span_ns(&self) -> i64 {
        self.rows.iter().rev().find_map(|r| r.at).unwrap_or(0)
    }
}
