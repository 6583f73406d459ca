//! Who waits, whose turn it is, and when nobody may go.

mod band;
mod ceiling;
mod queue;
mod saturation;

pub(crate) use band::{BandConfig, Fairness, Ordering};
pub(crate) use ceiling::UsageLimit;
pub use queue::Waiting;
pub(crate) use queue::{FlowConfig, Place, Queue};
pub(crate) use saturation::Detector;
