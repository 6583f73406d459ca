//! Phases: which executor, and whether its keys are those it has.

use super::{Amount, Wrong, wrong};
use crate::units;
use serde::Deserialize;
use tailbound_clock::Dur;
use tailbound_workload::{Arrivals, Executor, PhaseStage as Stage, WhenFull};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseTable {
    pub name: Option<String>,
    executor: String,
    pub class: Option<String>,
    pub start: Option<Amount>,
    clients: Option<u32>,
    start_clients: Option<u32>,
    iterations: Option<u32>,
    duration: Option<Amount>,
    max_duration: Option<Amount>,
    rate: Option<Amount>,
    start_rate: Option<Amount>,
    stages: Option<Vec<StageTable>>,
    poisson: Option<bool>,
    max_clients: Option<u32>,
    when_full: Option<WhenFull>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct StageTable {
    duration: Amount,
    target: Amount,
}

/// How long k6 lets iterations go on, if nothing says otherwise.
const MAX_DURATION: Dur = Dur::from_secs(600);

pub(super) fn duration(phase: &str, key: &str, amount: &Amount) -> Result<Dur, Wrong> {
    units::duration(&amount.text()).map_err(|e| wrong(format!("phase `{phase}`: {key}: {e}")))
}

pub(super) fn executor(name: &str, table: &PhaseTable) -> Result<Executor, Wrong> {
    let missing = |key: &str| wrong(format!("phase `{name}`: {} needs `{key}`", table.executor));
    let rate = |key: &str, amount: &Amount| {
        units::rate(&amount.text()).map_err(|e| wrong(format!("phase `{name}`: {key}: {e}")))
    };
    let stages = |rates: bool| -> Result<Vec<Stage>, Wrong> {
        let stages = table.stages.as_ref().ok_or_else(|| missing("stages"))?;
        let one = |stage: &StageTable| {
            let target = match (rates, &stage.target) {
                (true, target) => rate("target", target)?,
                (false, Amount::Number(n)) => *n,
                (false, Amount::Text(text)) => {
                    return Err(wrong(format!("phase `{name}`: target: `{text}` is no number of clients")));
                }
            };
            Ok(Stage { duration: duration(name, "duration", &stage.duration)?, target })
        };
        stages.iter().map(one).collect()
    };
    let lasting =
        || table.duration.as_ref().ok_or_else(|| missing("duration")).and_then(|d| duration(name, "duration", d));
    let at_most = || table.max_duration.as_ref().map_or(Ok(MAX_DURATION), |d| duration(name, "max_duration", d));
    let arrivals = Arrivals {
        poisson: table.poisson.unwrap_or(false),
        max_clients: table.max_clients,
        when_full: table.when_full.unwrap_or_default(),
    };
    let (executor, keys): (Executor, &[&str]) = match table.executor.as_str() {
        "shared-iterations" => {
            let (clients, max_duration) = (table.clients.unwrap_or(1), at_most()?);
            let iterations = table.iterations.unwrap_or(clients);
            (
                Executor::SharedIterations { clients, iterations, max_duration },
                &["clients", "iterations", "max_duration"],
            )
        }
        "per-client-iterations" | "per-vu-iterations" => {
            let (clients, iterations) = (table.clients.unwrap_or(1), table.iterations.unwrap_or(1));
            let max_duration = at_most()?;
            (
                Executor::PerClientIterations { clients, iterations, max_duration },
                &["clients", "iterations", "max_duration"],
            )
        }
        "constant-clients" | "constant-vus" => {
            let clients = table.clients.unwrap_or(1);
            (Executor::ConstantClients { clients, duration: lasting()? }, &["clients", "duration"])
        }
        "ramping-clients" | "ramping-vus" => {
            let start = table.start_clients.unwrap_or(1);
            (Executor::RampingClients { start, stages: stages(false)? }, &["start_clients", "stages"])
        }
        "constant-arrival-rate" => {
            let rate = rate("rate", table.rate.as_ref().ok_or_else(|| missing("rate"))?)?;
            let executor = Executor::ConstantArrivalRate { rate, duration: lasting()?, arrivals };
            (executor, &["rate", "duration", "poisson", "max_clients", "when_full"])
        }
        "ramping-arrival-rate" => {
            let start = table.start_rate.as_ref().map_or(Ok(0.0), |r| rate("start_rate", r))?;
            let executor = Executor::RampingArrivalRate { start, stages: stages(true)?, arrivals };
            (executor, &["start_rate", "stages", "poisson", "max_clients", "when_full"])
        }
        other => {
            let hint = "one of shared-iterations, per-client-iterations, constant-clients, ramping-clients, constant-arrival-rate, ramping-arrival-rate";
            return Err((format!("phase `{name}`: executor: `{other}` is none"), hint.into()));
        }
    };
    let given = [
        ("clients", table.clients.is_some()),
        ("start_clients", table.start_clients.is_some()),
        ("iterations", table.iterations.is_some()),
        ("duration", table.duration.is_some()),
        ("max_duration", table.max_duration.is_some()),
        ("rate", table.rate.is_some()),
        ("start_rate", table.start_rate.is_some()),
        ("stages", table.stages.is_some()),
        ("poisson", table.poisson.is_some()),
        ("max_clients", table.max_clients.is_some()),
        ("when_full", table.when_full.is_some()),
    ];
    match given.iter().find(|(key, there)| *there && !keys.contains(key)) {
        Some((key, _)) => {
            let why = format!("phase `{name}`: {} has no `{key}`", table.executor);
            Err((why, format!("it has {}", keys.join(", "))))
        }
        None => Ok(executor),
    }
}
