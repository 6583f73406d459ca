//! GuideLLM's traces (`trace_synthetic` and `mooncake`), as its 0.8 reads them.

use super::decimal;
use crate::collect::Trace;
use crate::error::Error;
use crate::hash::FixedMap;
use crate::row::Row;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Line<'a> {
    timestamp: Box<RawValue>,
    input_length: u32,
    output_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_ids: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
}

/// What a whole file has to agree on.
pub(super) struct GuideLlm {
    /// Tokens per block, if any row has blocks: then all must.
    block: Option<u32>,
    /// Block ids in order of appearance: GuideLLM takes 31 bits.
    ids: FixedMap<u64, u32>,
}

impl GuideLlm {
    pub(super) fn new(trace: &Trace) -> GuideLlm {
        let has_blocks = trace.rows.iter().any(|r| r.blocks().is_some());
        GuideLlm { block: trace.block_tokens.filter(|_| has_blocks), ids: FixedMap::default() }
    }

    pub(super) fn line(&mut self, trace: &Trace, i: usize, row: &Row) -> Result<Vec<u8>, Error> {
        let lacks = |what: &str| super::lacks(i, "GuideLLM's trace", what);
        let (Some(at), Some(input_length)) = (row.at, row.input) else {
            return Err(lacks(if row.at.is_none() { "time" } else { "prompt length" }));
        };
        let output_length = row.output.ok_or_else(|| lacks("output length"))?;
        let hash_ids = match (self.block, row.blocks()) {
            (None, _) => None,
            (Some(_), None) => return Err(lacks("list of blocks, as other rows have,")),
            (Some(block), Some(ids)) => {
                let (has, needs) = (ids.len() as u64, u64::from(input_length).div_ceil(u64::from(block)));
                if has != needs {
                    return Err(Error::Asked(format!(
                        "failed to write row {}: GuideLLM wants {needs} blocks of {block} tokens for a prompt of {input_length}, \
                         and the row has {has}",
                        i + 1
                    )));
                }
                Some(ids.iter().map(|id| self.number(*id)).collect())
            }
        };
        let line = Line {
            timestamp: decimal(at, 9),
            input_length,
            output_length,
            hash_ids,
            duration: row.took.map(|d| decimal(i64::try_from(d.ns()).unwrap_or(i64::MAX), 9)),
            conversation_id: row.session.map(|n| trace.names.text(n)),
        };
        super::json(i, &line)
    }

    fn number(&mut self, id: u64) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(id).or_insert(next)
    }
}
