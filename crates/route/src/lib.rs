//! Which replica: the endpoint table, prefix indexes, filters, scorers, pickers, flow control, latency prediction and splits,
//! as one machine. No clock, no I/O: the gateway and the simulation drive the same code.
//!
//! The driver tells [`Router::on`] what happened and does what the [`Effect`]s say. It calls again with [`Event::Wake`] at
//! [`Router::next_wake`]. What a request weighs on a replica is counted when it is dispatched, not when it answers, and is
//! taken back once, however it ends.
//!
//! Policies are `EndpointPickerConfig`s, as the published endpoint pickers read them ([`Policy::from_yaml`]); names,
//! parameters, formulas and default weights are theirs.
//!
//! # Deliberate differences from the published pickers
//!
//! - **Load is counted when a request is sent.** Between two scrapes the scorers of queue and KV use add what was sent since the last
//!   one; a picker that only reads scrapes sends every request of those 50 ms to the same replica.
//! - **Stale signals give way to our own counts.** Where a replica's metrics are older than the limit, what we have in flight there takes
//!   their place; where those of all replicas are, the pool counts as open. Upstream they count as saturated, and dispatch stops.
//! - **`metricsStalenessThreshold` is 5 s unless given**, where the published default is 200 ms, which one slow scrape exceeds.
//! - **Approximate matches are contiguous from block 0**, as an engine's cache can use them; the published index also counts blocks after
//!   a gap.

mod config;
mod disagg;
mod endpoint;
mod event;
mod explain;
mod flow;
mod load;
pub mod log;
mod names;
mod pick;
mod predict;
mod prefix;
mod quota;
mod request;
mod rewrite;
mod router;
mod signals;
mod table;

pub use config::{
    BandSpec, Complaint, DataLayerSpec, FlowControlSpec, PickerConfig, PluginSpec, Policy, ProfileSpec, Reference,
    SourceSpec,
};
pub use endpoint::{Endpoint, EndpointId, ROLE_LABEL, Role};
pub use event::{Complete, Dispatch, Effect, Event, KvMessage, MAX_TARGETS, Refusal, Targets, Usage};
pub use explain::{Decision, MAX_SCORES};
pub use flow::Waiting;
pub use load::Load;
pub use pick::Compare;
pub use predict::Accuracy;
pub use prefix::{HashInput, Hashing, KvHealth, KvPool, KvState, hash_chain};
pub use quota::Limits;
pub use request::{Arrival, DEFAULT_TENANT, Otherwise, Prompt, RequestId, Slo};
pub use rewrite::{ModelMatch, ModelName, Rewrite, RewriteRule, RewriteTarget};
pub use router::{Config, Router};
pub use signals::{Loras, Signals};
