use serde::{Deserialize, Serialize};

/// A replica's name among the router's, chosen by the driver. A replica that comes back as another process should get a
/// new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EndpointId(pub u32);

/// What discovery says of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `namespace/pod` or any name people know it by.
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// Kubernetes labels, or those of the discovery file.
    pub labels: Vec<(String, String)>,
}

/// The label that says what a replica is for.
pub const ROLE_LABEL: &str = "llm-d.ai/role";

impl Endpoint {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The port of its address.
    pub fn port(&self) -> Option<u16> {
        self.address.rsplit_once(':')?.1.parse().ok()
    }
}

/// A part of serving that a replica may be there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Computing multimodal embeddings.
    Encode,
    /// Computing prompts.
    Prefill,
    /// Generating.
    Decode,
}

/// The roles of one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    bits: u8,
}

impl Roles {
    /// From the value of [`ROLE_LABEL`]; without one a replica decodes (and so answers whole requests).
    pub(crate) fn of(label: Option<&str>) -> Roles {
        let Some(label) = label else { return Roles { bits: Role::Decode.bit() } };
        let named = |part: &str| match part {
            "encode" => Role::Encode.bit(),
            "prefill" => Role::Prefill.bit(),
            "decode" => Role::Decode.bit(),
            "both" => Role::Prefill.bit() | Role::Decode.bit(),
            _ => 0,
        };
        Roles { bits: label.split('-').map(named).fold(0, |a, b| a | b) }
    }

    pub(crate) fn has(self, role: Role) -> bool {
        self.bits & role.bit() != 0
    }
}

impl Role {
    fn bit(self) -> u8 {
        match self {
            Role::Encode => 1,
            Role::Prefill => 2,
            Role::Decode => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_the_label() {
        let has = |label, role| Roles::of(label).has(role);
        assert!(has(None, Role::Decode) && !has(None, Role::Prefill) && !has(None, Role::Encode));
        assert!(has(Some("both"), Role::Prefill) && has(Some("both"), Role::Decode));
        assert!(has(Some("encode-prefill"), Role::Encode) && !has(Some("encode-prefill"), Role::Decode));
        assert!(!has(Some("database"), Role::Decode));
    }
}
