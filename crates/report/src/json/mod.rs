//! The result for programs: every key of vLLM 0.33's result in its order and types, then Tailbound's own under `tailbound`.

mod file;
mod own;
mod rust_client;
mod servers;
mod vllm;

use crate::Run;
use std::io::Write;

pub use file::{Mode, SaveError, file_name, save};

/// Whether the result holds an entry per request (`--save-detailed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Sums and distributions; of single requests only the latencies and queue times that vLLM always keeps.
    #[default]
    Totals,
    /// Input and output lengths, start times, TTFTs, gaps, texts and errors of every request too.
    PerRequest,
}

/// The result as one line of JSON, without a newline. It is valid by RFC 8259: what is infinite is the string `"inf"`.
pub fn vllm_result(run: &Run<'_>, detail: Detail) -> String {
    let mut out = Vec::with_capacity(64 + run.rows.len() * 48);
    write(run, detail, &mut out).expect("a Vec takes every write, and all keys are strings");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The same, written to `out`.
pub fn write(run: &Run<'_>, detail: Detail, out: impl Write) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, &vllm::VllmResult { run, detail })
}

/// A number, or `"inf"`, or null for what is missing.
pub(crate) struct Num(pub Option<f64>);

impl serde::Serialize for Num {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(v) if v.is_finite() => s.serialize_f64(v),
            Some(v) if v.is_infinite() => s.serialize_str(if v > 0.0 { "inf" } else { "-inf" }),
            _ => s.serialize_none(),
        }
    }
}
