//! Loads made of phases, each with one of k6's six executors.
//!
//! The shapes are k6's (v2), with these differences, each on purpose: a request under way is never cut off (k6 interrupts it after
//! `gracefulStop`; here the run's own time limits do); arrivals may be Poisson; and an arrival that finds no free client waits unless
//! the phase says that it is dropped, and then it is counted.

mod law;
mod running;

pub(crate) use running::{Next, Running};

use crate::IntentId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use tailbound_clock::{Dur, Seed};

/// A part of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it begins, from the schedule's start.
    pub start: Dur,
    /// How its requests come about.
    pub executor: Executor,
}

/// How requests come about: k6's executors, with clients for its virtual users and a request for an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// So many requests, shared by the clients: whoever is free takes the next.
    SharedIterations {
        /// How many clients.
        clients: u32,
        /// How many requests all of them send together.
        iterations: u32,
        /// None begins later than this after the phase's start.
        max_duration: Dur,
    },
    /// So many requests for each client.
    PerClientIterations {
        /// How many clients.
        clients: u32,
        /// How many requests each sends.
        iterations: u32,
        /// None begins later than this after the phase's start.
        max_duration: Dur,
    },
    /// Clients that send one request after another for a time.
    ConstantClients {
        /// How many.
        clients: u32,
        /// How long.
        duration: Dur,
    },
    /// The same, with a number of clients that changes linearly over each stage.
    RampingClients {
        /// How many at the start.
        start: u32,
        /// Where the number goes.
        stages: Vec<Stage>,
    },
    /// Requests at a rate, whatever the server does.
    ConstantArrivalRate {
        /// Requests per second.
        rate: f64,
        /// How long.
        duration: Dur,
        /// What is known of the arrivals beside their rate.
        arrivals: Arrivals,
    },
    /// The same at a rate that changes linearly over each stage.
    RampingArrivalRate {
        /// Requests per second at the start.
        start: f64,
        /// Where the rate goes.
        stages: Vec<Stage>,
        /// What is known of the arrivals beside their rate.
        arrivals: Arrivals,
    },
}

/// A stretch of time over which a number goes linearly to its target; at once if it takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it takes.
    pub duration: Dur,
    /// Clients, or requests per second.
    pub target: f64,
}

/// Arrivals beside their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Whether they are a Poisson process; else each comes when its turn by the rate has come, as k6's do.
    pub poisson: bool,
    /// At most so many of the phase's requests in flight; `None`: as many as there are.
    pub max_clients: Option<u32>,
    /// What becomes of an arrival when they are.
    pub when_full: WhenFull,
}

/// What becomes of an arrival that finds no free client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// It waits, and its latency counts from its arrival.
    #[default]
    Queue,
    /// It is never sent, and counted (k6's `dropped_iterations`).
    Drop,
}

/// What is wrong with a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseError {
    /// Which one.
    pub phase: String,
    /// Which key.
    pub key: &'static str,
    /// What is wrong, as a lower-case fragment.
    pub problem: String,
}

impl fmt::Display for PhaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase `{}`: {}: {}", self.phase, self.key, self.problem)
    }
}

impl std::error::Error for PhaseError {}

/// Ids set aside for a phase whose number of requests depends on the server: more than anybody sends.
const OPEN_ENDED: u32 = 1 << 22;
/// A load of phases holds its arrivals in memory.
const MOST: u32 = 100_000_000;
/// Clients of a phase: each has a place in memory.
const MOST_CLIENTS: u32 = 1_000_000;

/// Checked phases, with their arrivals drawn and their ids set apart.
#[derive(Clone, Debug)]
pub struct Phases {
    pub(crate) all: Vec<Planned>,
    pub(crate) requests: u32,
    pub(crate) endless: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub phase: Phase,
    /// Its requests' ids are `first..first + most`.
    pub first: u32,
    pub most: u32,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Nanoseconds from the schedule's start, in order.
    Open { offsets: Arc<[u64]>, arrivals: Arrivals },
    /// Clients by number: when each step of their count begins, and how many there are from then on; the last step has none.
    Closed { steps: Arc<[(u64, u32)]>, clients: u32, pool: Pool },
}

/// How many requests closed loops send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    Shared(u32),
    Each(u32),
    Endless,
}

impl Phases {
    /// Checks the phases and draws their arrivals.
    ///
    /// # Errors
    /// The first key that makes no sense.
    pub fn plan(phases: &[Phase], seed: Seed) -> Result<Phases, PhaseError> {
        let nameless = |problem: &str| PhaseError { phase: String::new(), key: "phase", problem: problem.into() };
        if phases.is_empty() {
            return Err(nameless("there is none"));
        }
        let mut all = Vec::with_capacity(phases.len());
        let mut first = 0u32;
        let mut endless = false;
        for (number, phase) in phases.iter().enumerate() {
            let kind = kind(phase, seed, number)?;
            let most = kind.most();
            endless |= matches!(kind, Kind::Closed { pool: Pool::Endless, .. });
            all.push(Planned { phase: phase.clone(), first, most, kind });
            first = first
                .checked_add(most)
                .filter(|&n| n < crate::check::ENDLESS)
                .ok_or_else(|| nameless("together they have more requests than can be numbered; run them apart"))?;
        }
        if first == 0 {
            return Err(nameless("none of them sends a request"));
        }
        Ok(Phases { all, requests: first, endless })
    }

    /// Which phase a request belongs to.
    pub fn of(&self, id: IntentId) -> Option<usize> {
        let after = self.all.partition_point(|p| p.first <= id.0);
        self.all[..after].iter().rposition(|p| p.most > 0 && id.0 - p.first < p.most)
    }

    /// The phases' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|p| p.phase.name.as_str())
    }

    /// How many requests a phase sends; `None` where that depends on the server.
    pub fn planned(&self, phase: usize) -> Option<u32> {
        let planned = &self.all[phase];
        (!matches!(planned.kind, Kind::Closed { pool: Pool::Endless, .. })).then_some(planned.most)
    }

    /// When the last request may begin, from the schedule's start; without it, when all have been sent is the server's to say.
    pub fn ends(&self) -> Dur {
        let end = |p: &Planned| match &p.kind {
            Kind::Open { .. } => p.phase.start + p.phase.executor.duration(),
            Kind::Closed { steps, .. } => Dur(steps.last().map_or(0, |&(at, _)| at)),
        };
        self.all.iter().map(end).max().unwrap_or(Dur::ZERO)
    }

    /// When a request is due by the schedule; `None` for those of closed loops.
    pub(crate) fn offset(&self, id: u32) -> Option<Dur> {
        let planned = &self.all[self.of(IntentId(id))?];
        match &planned.kind {
            Kind::Open { offsets, .. } => offsets.get((id - planned.first) as usize).map(|&ns| Dur(ns)),
            Kind::Closed { .. } => None,
        }
    }
}

impl Kind {
    fn most(&self) -> u32 {
        match self {
            Kind::Open { offsets, .. } => offsets.len() as u32,
            Kind::Closed { pool: Pool::Shared(n), .. } => *n,
            Kind::Closed { pool: Pool::Each(n), clients, .. } => n * clients,
            Kind::Closed { pool: Pool::Endless, .. } => OPEN_ENDED,
        }
    }
}

impl Executor {
    /// How long requests may begin, from the phase's start.
    pub fn duration(&self) -> Dur {
        let sum = |stages: &[Stage]| Dur(stages.iter().map(|s| s.duration.ns()).sum());
        match self {
            Executor::SharedIterations { max_duration, .. } | Executor::PerClientIterations { max_duration, .. } => {
                *max_duration
            }
            Executor::ConstantClients { duration, .. } | Executor::ConstantArrivalRate { duration, .. } => *duration,
            Executor::RampingClients { stages, .. } | Executor::RampingArrivalRate { stages, .. } => sum(stages),
        }
    }

    /// Whether arrivals follow a schedule, whatever the server does.
    pub fn open_loop(&self) -> bool {
        matches!(self, Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. })
    }
}

fn kind(phase: &Phase, seed: Seed, number: usize) -> Result<Kind, PhaseError> {
    let wrong = |key: &'static str, problem: String| PhaseError { phase: phase.name.clone(), key, problem };
    let some = |key: &'static str, n: u32, most: u32| match n {
        0 => Err(wrong(key, "must be at least 1".into())),
        n if n > most => Err(wrong(key, format!("must be at most {most}"))),
        n => Ok(n),
    };
    let lasting = |key: &'static str, duration: Dur| match duration {
        Dur::ZERO => Err(wrong(key, "must be longer than 0".into())),
        d => Ok(d),
    };
    let staged = |stages: &[Stage], whole: bool| {
        let out = stages.iter().find(|s| {
            !s.target.is_finite()
                || s.target < 0.0
                || (whole && (s.target.fract() != 0.0 || s.target > f64::from(MOST_CLIENTS)))
        });
        match out {
            Some(stage) if whole => Err(wrong("stages", format!("{} is no number of clients", stage.target))),
            Some(stage) => Err(wrong("stages", format!("{} is no rate", stage.target))),
            None if stages.is_empty() => Err(wrong("stages", "there is none".into())),
            None => Ok(()),
        }
    };
    let start = phase.start;
    let steady = |clients: u32, duration: Dur| -> Arc<[(u64, u32)]> {
        [(start.ns(), clients), ((start + duration).ns(), 0)].into()
    };
    let drawn = |from: f64, stages: &[Stage], arrivals: Arrivals, at_once: bool| -> Result<Kind, PhaseError> {
        if arrivals.max_clients == Some(0) {
            return Err(wrong("max_clients", "must be at least 1".into()));
        }
        let expected = law::area(from, stages);
        if expected > f64::from(MOST) {
            return Err(wrong("rate", format!("{expected:.0} requests are more than a plan holds ({MOST})")));
        }
        let mut rng = seed.stream(&format!("phase {number}"));
        let offsets = law::arrivals(from, stages, arrivals.poisson.then_some(&mut rng), at_once);
        let offsets: Arc<[u64]> = offsets.into_iter().map(|at| at + start.ns()).collect();
        Ok(Kind::Open { offsets, arrivals })
    };
    match &phase.executor {
        Executor::SharedIterations { clients, iterations, max_duration } => {
            let clients = some("clients", *clients, MOST_CLIENTS)?;
            let iterations = some("iterations", *iterations, MOST)?;
            if iterations < clients {
                return Err(wrong("iterations", format!("{iterations} for {clients} clients leave some without any")));
            }
            let steps = steady(clients, lasting("max_duration", *max_duration)?);
            Ok(Kind::Closed { steps, clients, pool: Pool::Shared(iterations) })
        }
        Executor::PerClientIterations { clients, iterations, max_duration } => {
            let clients = some("clients", *clients, MOST_CLIENTS)?;
            let iterations = some("iterations", *iterations, MOST / clients)?;
            let steps = steady(clients, lasting("max_duration", *max_duration)?);
            Ok(Kind::Closed { steps, clients, pool: Pool::Each(iterations) })
        }
        Executor::ConstantClients { clients, duration } => {
            let clients = some("clients", *clients, MOST_CLIENTS)?;
            let steps = steady(clients, lasting("duration", *duration)?);
            Ok(Kind::Closed { steps, clients, pool: Pool::Endless })
        }
        Executor::RampingClients { start: from, stages } => {
            staged(stages, true)?;
            let steps = law::client_steps(*from, stages);
            let clients = steps.iter().map(|&(_, n)| n).max().unwrap_or(0);
            some("start_clients", clients, MOST_CLIENTS)?;
            let steps = steps.into_iter().map(|(at, n)| (at + start.ns(), n)).collect();
            Ok(Kind::Closed { steps, clients, pool: Pool::Endless })
        }
        Executor::ConstantArrivalRate { rate, duration, arrivals } => {
            if !rate.is_finite() || *rate <= 0.0 {
                return Err(wrong("rate", format!("{rate} is not a number of requests per second")));
            }
            let stage = Stage { duration: lasting("duration", *duration)?, target: *rate };
            drawn(*rate, &[stage], *arrivals, true)
        }
        Executor::RampingArrivalRate { start: from, stages, arrivals } => {
            if !from.is_finite() || *from < 0.0 {
                return Err(wrong("start_rate", format!("{from} is not a number of requests per second")));
            }
            staged(stages, false)?;
            drawn(*from, stages, *arrivals, false)
        }
    }
}
