//! What people and programs read of a run: the text report, the JSON result, explanations.
//!
//! The first block of the text and the first keys of the JSON are those of `vllm bench serve` 0.33, in its order and with its
//! definitions, so that whatever reads them today goes on reading them. Tailbound's own follow. Nothing here measures or
//! computes; it only lays out what [`tailbound_stats`] found.

pub mod capacity;
pub mod compare;
pub mod explain;
pub mod json;
pub mod page;
pub mod rows;
mod run;
mod run_page;
pub mod text;

pub use explain::explain;
pub use run::{
    Description, Diffusion, Extras, Grouping, ParseMetricError, Probes, RateChange, Run, Selected, Selection,
    ServerTimes, SpecDecode, ThresholdOutcome, TraceAccount, ordered,
};
pub use run_page::{About, run_page};
