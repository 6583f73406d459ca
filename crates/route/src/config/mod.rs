//! `EndpointPickerConfig`: as written ([`PickerConfig`]), and as meant ([`Policy`]).

mod flow_part;
mod params;
mod part;
mod parts;
mod policy;
mod producer;
mod quantity;
mod rating;
mod spec;

pub use policy::Policy;
pub(crate) use policy::{Admitter, ProducerConfig};
pub use spec::{
    BandSpec, DataLayerSpec, FlowControlSpec, PickerConfig, PluginSpec, ProfileSpec, Reference, SourceSpec,
};

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Complaint {
    place: String,
    what: String,
}

impl Complaint {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Complaint {
        Complaint { place: place.into(), what: what.into() }
    }
}

impl PickerConfig {
    /// Reads YAML (or JSON, which is YAML).
    pub fn from_yaml(text: &str) -> Result<PickerConfig, Complaint> {
        serde_saphyr::from_str(text).map_err(|e| Complaint::new("endpoint picker config", one_line(&e.to_string())))
    }
}

/// The first line of an error that draws pictures.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("unreadable").to_owned()
}
