//! Who has which beginning of a prompt.

mod approx;
mod burst;
mod chain;
mod find;
mod follow;
mod health;
mod holders;
mod index;
mod matches;
mod order;
mod precise;
mod xxh;

pub(crate) use approx::{Approx, ApproxConfig};
pub(crate) use burst::{Burst, BurstConfig};
pub(crate) use chain::media_chain;
pub(crate) use follow::Next;
pub(crate) use index::Index;
pub(crate) use matches::Matches;
pub(crate) use precise::{Precise, PreciseConfig, TierWeights};

pub use chain::{HashInput, Hashing, hash_chain};
pub use health::{KvHealth, KvPool, KvState};
