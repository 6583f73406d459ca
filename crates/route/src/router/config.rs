use crate::config::Policy;
use crate::quota::Limits;
use crate::rewrite::Rewrite;
use tailbound_clock::Seed;

/// What a router is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// How it picks and queues.
    pub policy: Policy,
    /// What ties and draws come from.
    pub seed: Seed,
    /// Names that stand for other models, the oldest resource first.
    pub rewrites: Vec<Rewrite>,
    /// Limits of tenants, by name.
    pub limits: Vec<(String, Limits)>,
    /// Limits of each tenant without limits of its own.
    pub other_limits: Option<Limits>,
    /// How many decisions are kept for [`crate::Router::explain`].
    pub explain: usize,
    /// How often a request that failed before it was answered is sent elsewhere.
    pub retries: usize,
}

impl Config {
    /// That policy, and nothing else.
    pub fn new(policy: Policy, seed: Seed) -> Config {
        Config { policy, seed, rewrites: Vec::new(), limits: Vec::new(), other_limits: None, explain: 1024, retries: 3 }
    }
}
