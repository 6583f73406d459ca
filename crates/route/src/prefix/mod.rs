//! Who has which beginning of a prompt.

mod approx;
mod burst;
mod chain;
mod holders;
mod index;
mod matches;
mod precise;

pub(crate) use approx::{Approx, ApproxConfig};
pub(crate) use burst::{Burst, BurstConfig};
pub(crate) use chain::media_chain;
pub(crate) use index::Index;
pub(crate) use matches::Matches;
pub(crate) use precise::{Next, Precise, PreciseConfig, TierWeights};

pub use chain::{HashInput, Hashing, hash_chain};
pub use precise::{KvHealth, KvPool, KvState};
