use serde::Deserialize;
use serde_json::Value;

/// `EndpointPickerConfig` as it is written: parsed, nothing checked. [`super::Policy`] is what it means.
///
/// Both published generations: the saturation detector stands at the top or under `flowControl`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PickerConfig {
    /// `llm-d.ai/v1alpha1`, `llm-d.ai/v1` or `inference.networking.x-k8s.io/v1alpha1`.
    pub api_version: String,
    /// `EndpointPickerConfig`.
    pub kind: String,
    /// Ignored.
    pub metadata: Option<Value>,
    /// Names of features to turn on; `flowControl` is one.
    pub feature_gates: Vec<String>,
    /// The plugins there are, by name.
    pub plugins: Vec<PluginSpec>,
    /// Which of them make up which profile.
    pub scheduling_profiles: Vec<ProfileSpec>,
    /// What says that the pool is full.
    pub saturation_detector: Option<Reference>,
    /// How signals are fetched: the driver's business.
    pub data_layer: Option<DataLayerSpec>,
    /// The queue.
    pub flow_control: Option<FlowControlSpec>,
    /// How bodies are read: the driver's business.
    pub parser: Option<Value>,
}

/// One plugin.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginSpec {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What others call it; its type, if not given.
    #[serde(default)]
    pub name: Option<String>,
    /// Its parameters.
    #[serde(default)]
    pub parameters: Option<Value>,
}

impl PluginSpec {
    /// What others call it.
    pub fn name(&self) -> &str {
        self.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(&self.kind)
    }
}

/// One profile: a list of filters, scorers with weights, and a picker.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileSpec {
    /// `default`, or what a profile handler looks for (`decode`, `prefill`, `encode`).
    pub name: String,
    /// Its plugins, in order.
    #[serde(default)]
    pub plugins: Vec<Reference>,
}

/// A plugin by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// Whose name.
    pub plugin_ref: String,
    /// What a scorer counts; 1 if not given.
    #[serde(default)]
    pub weight: Option<f64>,
}

/// `dataLayer`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DataLayerSpec {
    /// Whether sources nobody names are added.
    pub inject_defaults: Option<bool>,
    /// Where signals come from.
    pub sources: Vec<SourceSpec>,
    /// Where replicas are learnt of.
    pub discovery: Option<Value>,
}

/// One source of signals.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourceSpec {
    /// Which.
    pub plugin_ref: String,
    /// Who reads it.
    #[serde(default)]
    pub extractors: Vec<Reference>,
}

/// `flowControl`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FlowControlSpec {
    /// Most bytes queued in all: a number or a quantity such as `1Gi`.
    pub max_bytes: Option<Value>,
    /// Most requests queued in all.
    pub max_requests: Option<Value>,
    /// Longest wait, as `60s`.
    #[serde(rename = "defaultRequestTTL")]
    pub default_request_ttl: Option<String>,
    /// For priorities without a band of their own.
    pub default_priority_band: Option<BandSpec>,
    /// Priorities.
    pub priority_bands: Vec<BandSpec>,
    /// How much of the pool each priority may fill.
    pub usage_limit_policy_plugin_ref: Option<String>,
    /// What says that the pool is full.
    pub saturation_detector: Option<Reference>,
}

/// One priority's queue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BandSpec {
    /// Which priority.
    pub priority: Option<i32>,
    /// For people.
    pub priority_name: Option<String>,
    /// Most bytes queued.
    pub max_bytes: Option<Value>,
    /// Most requests queued.
    pub max_requests: Option<Value>,
    /// Whose turn it is among its tenants.
    pub fairness_policy_ref: Option<String>,
    /// Whose turn it is among one tenant's requests.
    pub ordering_policy_ref: Option<String>,
}
