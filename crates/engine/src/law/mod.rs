//! Step-time laws: how long a replica takes for a batch.

mod aic;
mod hardware;
mod layers;
mod table;

pub use aic::{Aic, Shared};
pub use hardware::{Gpu, H100_VLLM, LLAMA_3_1_70B, Model, QWEN3_32B};
pub use layers::{Layers, LayersError};
pub use table::{Curve, Grid, Table};

use std::sync::Arc;
use tailbound_clock::Dur;

/// What a step computes: all a law may look at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Sequences that decode.
    pub decodes: u32,
    /// Tokens they put in: one each, and their drafts.
    pub decode_tokens: u32,
    /// Sum of their contexts in tokens.
    pub decode_context: u64,
    /// Of the contexts, tokens in blocks that another sequence holds too, the first to hold each apart.
    pub shared: u64,
    /// Prompts of which a chunk is computed.
    pub prefills: u32,
    /// New prompt tokens.
    pub prefill_tokens: u32,
    /// Σ n·(n/2 + prefix) over the chunks: token pairs that attention looks at.
    pub prefill_attention: f64,
}

/// How long a step takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// A fixed time per step and per new prompt token: for tests.
    Constant {
        /// Every step.
        step: Dur,
        /// Every new prompt token.
        per_prefill_token: Dur,
    },
    /// The closed form fitted to measured kernels.
    Aic(Aic),
    /// Measured layers, interpolated.
    Table(Arc<Table>),
}

impl Law {
    /// How long this batch takes; never zero, so that time passes.
    pub fn duration(&self, batch: &Batch) -> Dur {
        let dur = match self {
            Law::Constant { step, per_prefill_token } => *step + *per_prefill_token * u64::from(batch.prefill_tokens),
            Law::Aic(law) => Dur::from_ms_f64(law.ms(batch)),
            Law::Table(law) => Dur::from_ms_f64(law.ms(batch)),
        };
        dur.max(Dur::from_ns(1))
    }

    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        match self {
            Law::Constant { .. } => Ok(()),
            Law::Aic(law) => law.validate(),
            Law::Table(law) => law.validate(),
        }
    }
}
