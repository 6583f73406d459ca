use crate::names::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use tailbound_clock::Rng;

/// `InferenceModelRewrite`'s `spec`: which model a name stands for, or several with weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rewrite {
    /// The pool it is for; not read here.
    #[serde(default)]
    pub pool_ref: Option<Value>,
    /// The first that fits counts.
    pub rules: Vec<RewriteRule>,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RewriteRule {
    /// Names it is for; none: all that no other rule names.
    #[serde(default)]
    pub matches: Vec<ModelMatch>,
    /// What they stand for.
    pub targets: Vec<RewriteTarget>,
}

/// A name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelMatch {
    /// The model in the request.
    pub model: ModelName,
}

/// A name, to be equal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelName {
    /// `Exact`.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// The name.
    pub value: String,
}

/// What a name stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RewriteTarget {
    /// The share, relative to the others'; without any weight all have the same.
    #[serde(default)]
    pub weight: Option<u32>,
    /// The model to serve.
    pub model_rewrite: String,
}

/// The rules of all resources, the oldest resource first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewrites {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    names: Vec<String>,
    targets: Vec<(u64, Arc<str>)>,
    total: u64,
}

impl Rewrites {
    pub(crate) fn new(resources: &[Rewrite]) -> Rewrites {
        Rewrites { rules: resources.iter().flat_map(|r| r.rules.iter().map(Rule::new)).collect() }
    }

    /// What `model` stands for, if for anything else. A session always gets the same, as long as the weights stay.
    pub(crate) fn target(&self, model: &str, session: Option<Key>, rng: &mut Rng) -> Option<Arc<str>> {
        let named = self.rules.iter().find(|r| r.names.iter().any(|n| n == model));
        let rule = named.or_else(|| self.rules.iter().find(|r| r.names.is_empty()))?;
        if rule.total == 0 {
            return None;
        }
        let mut draw = match session {
            // The high half of the product: as even as the key is.
            Some(Key(session)) => {
                let mixed = mix(session.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ Key::of(model).0);
                ((u128::from(mixed) * u128::from(rule.total)) >> 64) as u64
            }
            None => rng.below(rule.total),
        };
        for (weight, target) in &rule.targets {
            if draw < *weight {
                return Some(target.clone());
            }
            draw -= weight;
        }
        None
    }
}

impl Rule {
    /// Without any weight all targets have the same.
    fn new(rule: &RewriteRule) -> Rule {
        let even = rule.targets.iter().all(|t| t.weight.unwrap_or(0) == 0);
        let weight = |t: &RewriteTarget| if even { 1 } else { u64::from(t.weight.unwrap_or(0)) };
        let targets: Vec<_> = rule.targets.iter().map(|t| (weight(t), t.model_rewrite.as_str().into())).collect();
        let names = rule.matches.iter().map(|m| m.model.value.clone()).collect();
        Rule { names, total: targets.iter().map(|(w, _)| w).sum(), targets }
    }
}

fn mix(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
