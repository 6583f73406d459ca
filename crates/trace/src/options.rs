use crate::detect::Format;
use serde::{Deserialize, Serialize};

/// How to read a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format, where it should not be told from the content.
    pub format: Option<Format>,
    /// What to do with the source's own failed requests.
    pub failures: Failures,
    /// Tokens per prefix block, where neither the format nor the rows should say.
    pub block_tokens: Option<u32>,
    /// Which columns or fields hold what ([`Format::Custom`]).
    pub columns: Option<Columns>,
    /// Keep only rows of these models (empty: all).
    pub models: Vec<String>,
    /// Keep only rows of these classes, such as BurstGPT's `API log` (empty: all).
    pub classes: Vec<String>,
    /// Replace bytes that are not UTF-8 instead of refusing the file.
    pub lossy: bool,
}

/// What to do with requests that failed in the source (BurstGPT: no response tokens).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failures {
    /// Drop and count them.
    #[default]
    Drop,
    /// Keep them, with `ok` false.
    Keep,
}

/// Names of the columns (CSV) or top-level fields (JSON lines) of a custom trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    /// Arrival.
    pub time: Option<String>,
    /// The arrival's unit.
    pub unit: Unit,
    /// Prompt tokens.
    pub input: Option<String>,
    /// Output tokens.
    pub output: Option<String>,
    /// Conversation.
    pub session: Option<String>,
    /// Tenant, user or application.
    pub client: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Class of request.
    pub class: Option<String>,
    /// The prompt as text.
    pub text: Option<String>,
}

/// How a custom trace writes times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Decimal seconds.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// Decimal milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Decimal microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanos,
    /// `2023-11-16 18:15:46.68` and its kin; UTC unless a zone stands behind.
    #[serde(rename = "date")]
    Date,
}

impl Unit {
    /// Reads a time of this unit to nanoseconds.
    pub(crate) fn read(self, text: &[u8]) -> Result<i64, crate::account::Drop> {
        use crate::account::Drop;
        let shift = match self {
            Unit::Seconds => 9,
            Unit::Millis => 6,
            Unit::Micros => 3,
            Unit::Nanos => 0,
            Unit::Date => return crate::stamp::date(text),
        };
        crate::num::scaled(text, shift).map_err(|why| if why == Drop::NotANumber { Drop::BadTime } else { why })
    }
}
