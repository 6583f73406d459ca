use crate::replica::adapter_name;
use crate::scenario::{Leaving, Otherwise, ScenarioError, Traffic};
use tailbound_clock::Dur;
use tailbound_route::{self as route, DEFAULT_TENANT, Slo};

/// What all requests of a class have in common.
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) adapters: Vec<String>,
    pub(crate) priority: i32,
    pub(crate) tenants: Vec<String>,
    pub(crate) slo: Slo,
    pub(crate) otherwise: route::Otherwise,
    pub(crate) patience: Option<Dur>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) affinity: bool,
}

impl Class {
    pub(super) fn new(t: &Traffic, number: usize) -> Result<Class, ScenarioError> {
        let name = if t.name.is_empty() { format!("class-{number}") } else { t.name.clone() };
        let wrong = |what: &str| ScenarioError::value(format!("traffic.{name}.{what}"));
        let ms = |key: &str, value: Option<f64>| match value {
            Some(ms) if !(ms > 0.0 && ms < 1e12) => Err(wrong(&format!("{key} must be above 0"))),
            ms => Ok(ms.map(Dur::from_ms_f64)),
        };
        if let Some(l) = &t.leaving
            && !((0.0..=1.0).contains(&l.share) && (0.0..1e12).contains(&l.after_ms))
        {
            return Err(wrong("leaving: share must be 0 to 1, and after_ms not below 0"));
        }
        if t.adapters > u32::from(u16::MAX) || t.tenants.is_some_and(|n| n == 0 || n > 1_000_000) {
            return Err(wrong("adapters must be 0 to 65535, and tenants 1 to 1000000"));
        }
        let objective = t.objective.unwrap_or_default();
        let tenant = t.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
        let slo = Slo {
            ttft: ms("objective.ttft_ms", objective.ttft_ms)?,
            tpot: ms("objective.tpot_ms", objective.tpot_ms)?,
        };
        Ok(Class {
            model: t.model.clone().unwrap_or_else(|| "model".to_owned()),
            adapters: (0..t.adapters).map(adapter_name).collect(),
            priority: t.priority,
            tenants: match t.tenants {
                None => vec![tenant.to_owned()],
                Some(n) => (0..n).map(|k| format!("{tenant}-{k}")).collect(),
            },
            slo,
            otherwise: match objective.otherwise {
                Otherwise::Refuse => route::Otherwise::Refuse,
                Otherwise::Wait => route::Otherwise::Wait,
                Otherwise::Downgrade => route::Otherwise::Downgrade,
            },
            patience: ms("patience_ms", t.patience_ms)?,
            leaving: t.leaving,
            affinity: t.affinity,
            name,
        })
    }

    /// Whose a request is.
    pub(crate) fn tenant(&self, number: u64) -> &str {
        &self.tenants[(number % self.tenants.len() as u64) as usize]
    }
}
