use serde::Serialize;
use std::collections::BTreeMap;

/// What became of every row: `rows_read = rows_emitted + sum of dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounting {
    /// Records in the file: lines of a table, items of an array, conversations.
    pub records: u64,
    /// Requests read. A record with several requests (a conversation) counts once for each; one without any counts once and is dropped.
    pub rows_read: u64,
    /// Requests handed on.
    pub rows_emitted: u64,
    /// Requests not handed on, by reason.
    pub dropped: BTreeMap<Drop, Seen>,
    /// Requests handed on, or parts of them left out, that deserve a remark.
    pub notices: BTreeMap<Notice, Seen>,
}

/// How often something was seen, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// How often.
    pub count: u64,
    /// The first record that had it, from 1 (a CSV header is not counted).
    pub first_row: u64,
}

/// Why a row was not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// No prompt tokens (a failed request in BurstGPT), when failures are dropped.
    ZeroInputTokens,
    /// No output tokens (a failed request in BurstGPT), when failures are dropped.
    FailedZeroOutput,
    /// A negative count or time.
    Negative,
    /// A count that isn't one, or is missing.
    NotANumber,
    /// A count beyond 2^32 - 1 or a time beyond 292 years.
    OutOfRange,
    /// A table row with too few cells.
    ShortRow,
    /// A time that isn't one, or is missing where the format needs it.
    BadTime,
    /// A line that is not JSON.
    NotJson,
    /// A record without a field its format needs.
    MissingField,
    /// A conversation without turns.
    NoTurns,
    /// A question nobody answered.
    NoAnswer,
    /// A prompt without text.
    EmptyPrompt,
    /// A message whose content is not text.
    NotText,
    /// A span or event that is not a request to a model.
    NotARequest,
    /// Filtered out: its model was not asked for.
    ModelNotKept,
    /// Filtered out: its class was not asked for.
    ClassNotKept,
}

/// What deserves a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The row is earlier than the one before it in the file.
    OutOfOrder,
    /// The recorded answer is empty.
    EmptyOutput,
    /// The number of block ids does not fit the prompt's length and the block size.
    HashLenMismatch,
    /// The row names itself as its parent; taken as the start of a session.
    SelfParent,
    /// The row's parent is not in the file before it; its name stands for the session.
    ParentNotSeen,
    /// The source's own total differs from the sum of its parts.
    TotalMismatch,
    /// An answer without a question before it was left out.
    LeadingAnswer,
    /// A last question without an answer was left out.
    TrailingQuestion,
    /// Turns given as JSON text within JSON were decoded.
    StringTurns,
    /// The arrival, computed as end minus duration, lies before the file's origin.
    NegativeStart,
    /// Bytes that are not UTF-8 were replaced, as asked.
    LossyText,
    /// The arrival was placed evenly within its minute: the file has only counts per minute.
    SpreadOverMinute,
}

impl Accounting {
    pub(crate) fn emit(&mut self) {
        self.rows_read += 1;
        self.rows_emitted += 1;
    }

    pub(crate) fn drop(&mut self, why: Drop) {
        let row = self.records;
        self.rows_read += 1;
        see(&mut self.dropped, why, row);
    }

    pub(crate) fn notice(&mut self, what: Notice) {
        let row = self.records;
        see(&mut self.notices, what, row);
    }

    /// Requests dropped, for whatever reason.
    pub fn rows_dropped(&self) -> u64 {
        self.dropped.values().map(|s| s.count).sum()
    }

    /// The invariant.
    pub fn adds_up(&self) -> bool {
        self.rows_read == self.rows_emitted + self.rows_dropped()
    }

    /// `reason: count (first at row n)`, joined with commas.
    pub fn reasons(&self) -> String {
        let one =
            |(why, seen): (&Drop, &Seen)| format!("{}: {} (first at row {})", why.word(), seen.count, seen.first_row);
        self.dropped.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// How often a remark was made.
    pub fn noticed(&self, what: Notice) -> u64 {
        self.notices.get(&what).map_or(0, |s| s.count)
    }
}

impl Drop {
    /// Its name in reports.
    pub fn word(self) -> String {
        snake(&format!("{self:?}"))
    }
}

impl Notice {
    /// Its name in reports.
    pub fn word(self) -> String {
        snake(&format!("{self:?}"))
    }
}

fn see<K: Ord>(map: &mut BTreeMap<K, Seen>, key: K, row: u64) {
    map.entry(key).and_modify(|s| s.count += 1).or_insert(Seen { count: 1, first_row: row });
}

fn snake(camel: &str) -> String {
    let mut out = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
