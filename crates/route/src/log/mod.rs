//! A router's log: what happened, when, and what it did. Fed to a router made from the same head, it gives the same decisions; fed to
//! one of another policy, it says what that one would have done.
//!
//! One JSON object a line: the [`Head`], then an [`Entry`] for every call of [`Router::on`].

mod event;
mod replay;

pub use event::{Asked, Happened, Heard};
pub use replay::{Replay, replay};

use crate::{Config, Effect, EndpointId, Limits, PickerConfig, Policy, RequestId, Rewrite, Router};
use serde::{Deserialize, Serialize};
use tailbound_clock::{Seed, Time};

/// What the router was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of this format: 1.
    pub tailbound_router_log: u32,
    /// The `EndpointPickerConfig`, as YAML.
    pub policy: String,
    /// What ties and draws come from.
    pub seed: u64,
    /// How often a failed request is sent elsewhere.
    pub retries: usize,
    /// Names that stand for other models.
    pub rewrites: Vec<Rewrite>,
    /// Limits of tenants.
    pub limits: Vec<(String, Limits)>,
    /// Limits of each other tenant.
    pub other_limits: Option<Limits>,
}

/// The version of the format.
pub const VERSION: u32 = 1;

impl Head {
    /// What a configuration was made from; `policy` is the YAML of its policy.
    pub fn new(policy: &str, config: &Config) -> Head {
        Head {
            tailbound_router_log: VERSION,
            policy: policy.to_owned(),
            seed: config.seed.0,
            retries: config.retries,
            rewrites: config.rewrites.clone(),
            limits: config.limits.clone(),
            other_limits: config.other_limits,
        }
    }

    /// The configuration again; with another policy, if one is given.
    ///
    /// # Errors
    /// What is wrong with the policy.
    pub fn config(&self, policy: Option<&str>) -> Result<Config, crate::Complaint> {
        let policy = Policy::new(&PickerConfig::from_yaml(policy.unwrap_or(&self.policy))?)?;
        let config = Config::new(policy, Seed(self.seed));
        Ok(Config {
            rewrites: self.rewrites.clone(),
            limits: self.limits.clone(),
            other_limits: self.other_limits,
            retries: self.retries,
            ..config
        })
    }
}

/// One call of [`Router::on`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// When, in nanoseconds of the router's clock.
    pub at: u64,
    /// What happened.
    pub event: Happened,
    /// What the router did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<Did>,
}

impl Entry {
    /// Calls the router, and notes all of it. What the router wants is appended to `out`.
    pub fn of_call(router: &mut Router, now: Time, event: crate::Event<'_>, out: &mut Vec<Effect>) -> Entry {
        let before = out.len();
        let happened = Happened::of(&event);
        router.on(now, event, out);
        Entry { at: now.ns(), event: happened, did: out[before..].iter().map(Did::of).collect() }
    }
}

/// An [`Effect`], as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Did {
    /// Sent a request.
    Dispatch {
        /// Which.
        request: RequestId,
        /// Where; the best first.
        to: Vec<EndpointId>,
        /// Who computes the prompt first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<EndpointId>,
        /// Who computes media first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encode: Option<EndpointId>,
        /// What it is called now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Refused it.
    Refuse {
        /// Which.
        request: RequestId,
        /// Why, as its client is told.
        why: String,
    },
    /// Broke off a request.
    Evict(RequestId),
    /// Asked for KV events again, from that number on.
    ReplayKv(EndpointId, u64),
}

impl Did {
    fn of(effect: &Effect) -> Did {
        match effect {
            Effect::Dispatch(d) => Did::Dispatch {
                request: d.request,
                to: d.to.to_vec(),
                prefill: d.prefill,
                encode: d.encode,
                model: d.model.as_deref().map(str::to_owned),
            },
            Effect::Refuse(request, why) => Did::Refuse { request: *request, why: why.to_string() },
            Effect::Evict(request) => Did::Evict(*request),
            Effect::ReplayKv(endpoint, from) => Did::ReplayKv(*endpoint, *from),
        }
    }
}
