use crate::endpoint::Endpoint;

/// How near two replicas are, by their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Apart,
    Region,
    Zone,
    Rack,
    Host,
}

const HOST: &[&str] = &["kubernetes.io/hostname", "llm-d.ai/topology-host"];
const RACK: &[&str] = &["topology.kubernetes.io/rack", "llm-d.ai/topology-rack"];
const ZONE: &[&str] = &["topology.kubernetes.io/zone"];
const REGION: &[&str] = &["topology.kubernetes.io/region"];

impl Level {
    /// The tightest level they share; what isn't labelled is shared with nobody.
    pub(crate) fn between(a: &Endpoint, b: &Endpoint) -> Level {
        let levels = [(Level::Host, HOST), (Level::Rack, RACK), (Level::Zone, ZONE), (Level::Region, REGION)];
        let shared = levels.into_iter().find(|(_, labels)| {
            labels.iter().any(|l| a.label(l).is_some_and(|v| !v.is_empty() && b.label(l) == Some(v)))
        });
        shared.map_or(Level::Apart, |(level, _)| level)
    }

    /// The published curve, after the bandwidth of what lies between.
    pub(crate) fn score(self) -> f64 {
        match self {
            Level::Host => 1.0,
            Level::Rack => 0.2,
            Level::Zone => 0.05,
            Level::Region => 0.02,
            Level::Apart => 0.0,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Level> {
        Some(match name {
            "host" => Level::Host,
            "rack" => Level::Rack,
            "zone" => Level::Zone,
            "region" => Level::Region,
            _ => return None,
        })
    }
}
