//! One replica as a model: continuous batching, paged KV with prefix cache, step-time laws, counters. No clock, no I/O.
//!
//! The machine follows vLLM's V1 scheduler: a step takes one token from every running sequence and fills what is left of
//! its token budget with chunks of prompts; blocks of the KV cache are given out as sequences grow, and when none is left
//! the last-come (or least important) sequence loses its own and is computed again later. How long a step takes comes
//! from a [`Law`].
//!
//! The driver owns time. It hands events to [`Engine::on`] and calls again with [`Event::Wake`] at
//! [`Engine::next_wake`]; due wakes are delivered before anything later. Slices the engine lends
//! ([`Engine::emitted`], [`Engine::finished`], [`Engine::kv`]) are valid until the next `on`.

mod adapters;
mod blocks;
mod check;
mod complete;
mod config;
mod counters;
mod engine;
mod event;
pub mod fit;
mod late;
mod law;
mod loading;
mod lookup;
mod profile;
mod quiet;
mod schedule;
mod sequence;
mod startup;
mod tail;
mod tier;
mod waiting;

pub use adapters::Lora;
pub use config::{Config, ConfigError, KvEvents, Policy, Speculation, Transfer};
pub use counters::{Counters, MAX_DRAFT_TOKENS};
pub use engine::Engine;
pub use event::{Effect, Emit, Event, Finish, Finished, SeqId, Step, Submit, WhyRejected};
pub use law::{
    Aic, Batch, Curve, Gpu, Grid, H100_VLLM, LLAMA_3_1_70B, Law, Layers, LayersError, Model, QWEN3_32B, Shared, Table,
};
pub use profile::{PROFILES, Profile, Source};
pub use quiet::Quiet;
pub use sequence::invented_token;
pub use startup::Startup;
pub use tier::{Medium, Tier};
