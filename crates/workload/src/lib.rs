//! From `Spec` (parsed) to `Plan` (validated, hashed, shardable) to `Load` (the machine that releases intents).

mod load;

pub use load::{IntentId, LoadEffect, LoadEvent};
