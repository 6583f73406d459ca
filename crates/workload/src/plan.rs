use crate::phases::Phases;
use crate::{IntentId, Law, Normalize, Sessions, Turn, check::ENDLESS};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use tailbound_clock::{Dur, Seed};

/// A checked load: what will be sent, and when. A value that can be printed, hashed and split.
///
/// Ids: the measured requests are `0..requests()`, in the order of their times; warm-ups follow, then probes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) law: Law,
    pub(crate) normalize: Normalize,
    pub(crate) requests: u32,
    /// How many were drawn, before those past the duration were left out. A ramp is spread over these.
    pub(crate) drawn: u32,
    pub(crate) endless: bool,
    /// Nanoseconds from the start; `None`: all zero.
    pub(crate) offsets: Option<Arc<[u64]>>,
    /// Which requests follow from which: as many as there are requests.
    pub(crate) sessions: Option<Arc<Sessions>>,
    /// The load as phases: everything about when requests leave is theirs.
    pub(crate) phases: Option<Arc<Phases>>,
    pub(crate) warmups: u32,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) duration: Option<Dur>,
    pub(crate) probe_rate: Option<f64>,
    pub(crate) seed: Seed,
    pub(crate) stride: Stride,
}

/// Which of the plan's requests (its sessions, if it has any) are ours: `first`, `first + step` …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stride {
    pub first: u32,
    pub step: u32,
}

impl Stride {
    pub(crate) const WHOLE: Stride = Stride { first: 0, step: 1 };
    /// Owns nothing.
    const NONE: Stride = Stride { first: u32::MAX, step: 1 };

    /// How many of `0..total` it owns.
    pub(crate) fn count(self, total: u32) -> u32 {
        total.saturating_sub(self.first).div_ceil(self.step)
    }

    /// Whether it owns that one.
    fn owns(self, index: u32) -> bool {
        index >= self.first && (index - self.first).is_multiple_of(self.step)
    }

    /// The `k`-th of them.
    pub(crate) fn nth(self, k: u32) -> u32 {
        self.first + k * self.step
    }
}

/// One planned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its id.
    pub id: IntentId,
    /// Whether it is measured.
    pub stage: Stage,
    /// Which prompt it sends, counted from 0. An endless plan goes on past the prompts there are: take it modulo their number.
    /// Warm-ups all send prompt 0; probes send a prompt of their own (0 here).
    pub item: u32,
    /// When it is due, from the start of the schedule. `None` for warm-ups, which go before it, and for turns that follow another, which
    /// are due when that one has ended.
    pub offset: Option<Dur>,
}

/// Which part of a run a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Before the schedule starts; left out of every figure.
    Warmup,
    /// The load itself.
    Measured,
    /// A tiny request beside the load, reported apart.
    Probe,
}

/// SHA-256 over everything that decides what is sent and when. Equal hashes: equal loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanHash(pub [u8; 32]);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A moment at which the whole requests per second of a ramp pass to a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RpsChange {
    /// The new value.
    pub rps: u32,
    /// From the start of the schedule.
    pub at: Dur,
}

impl Plan {
    /// How many measured requests the whole plan has (all shards together). Of an endless plan: more than anybody sends.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether only the duration ends it (a closed loop for so many seconds).
    pub fn endless(&self) -> bool {
        self.endless
    }

    /// How many prompts are worth preparing; `None` for an endless plan, which goes round what there is. Phases always say a number: a
    /// thousand for each whose requests depend on the server, and go round them.
    pub fn prompts_needed(&self) -> Option<u32> {
        if let Some(phases) = &self.phases {
            return Some((0..phases.all.len()).map(|phase| phases.planned(phase).unwrap_or(1000)).sum());
        }
        (!self.endless).then_some(self.requests)
    }

    /// The law of the arrivals.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// At most so many requests in flight, warm-ups included and probes not.
    pub fn max_concurrency(&self) -> Option<u32> {
        self.max_concurrency
    }

    /// Warm-up requests of the whole plan.
    pub fn warmups(&self) -> u32 {
        self.warmups
    }

    /// When sending stops, from the start of the schedule.
    pub fn duration(&self) -> Option<Dur> {
        self.duration
    }

    /// Probes per second.
    pub fn probe_rate(&self) -> Option<f64> {
        self.probe_rate
    }

    /// The phases of a load that has them.
    pub fn phases(&self) -> Option<&Phases> {
        self.phases.as_deref()
    }

    /// The last arrival, from the start of the schedule; of phases, when the last request may begin.
    pub fn span(&self) -> Dur {
        if let Some(phases) = &self.phases {
            return phases.ends();
        }
        self.offset(self.requests.saturating_sub(1))
    }

    /// When measured request `index` is due; of a turn that follows another, when the one before it in the plan is.
    pub(crate) fn offset(&self, index: u32) -> Dur {
        self.offsets.as_ref().and_then(|all| all.get(index as usize)).map_or(Dur::ZERO, |&ns| Dur(ns))
    }

    /// What `id` is.
    pub fn intent(&self, id: IntentId) -> Intent {
        let index = id.0;
        if index < self.requests {
            let offset = match &self.phases {
                Some(phases) => phases.offset(index),
                None => self.turn(index).is_none().then(|| self.offset(index)),
            };
            return Intent { id, stage: Stage::Measured, item: index, offset };
        }
        if index < self.first_probe() {
            return Intent { id, stage: Stage::Warmup, item: 0, offset: None };
        }
        let offset = self.probe_rate.map(|rate| Dur::from_secs_f64(f64::from(index - self.first_probe()) / rate));
        Intent { id, stage: Stage::Probe, item: 0, offset }
    }

    /// The measured requests of this plan or shard, in the order of their times.
    pub fn measured(&self) -> impl Iterator<Item = Intent> + '_ {
        self.own().into_iter().map(|index| self.intent(IntentId(index)))
    }

    /// The requests of this shard: whole sessions.
    pub(crate) fn own(&self) -> Vec<u32> {
        let Some(sessions) = &self.sessions else {
            return (0..self.stride.count(self.requests)).map(|k| self.stride.nth(k)).collect();
        };
        let numbers = sessions.numbers();
        (0..self.requests).filter(|&i| self.stride.owns(numbers[i as usize])).collect()
    }

    /// What measured request `index` follows.
    pub fn turn(&self, index: u32) -> Option<Turn> {
        self.sessions.as_ref()?.turns[index as usize]
    }

    /// How many sessions the whole plan has; `None` if requests don't follow one another.
    pub fn sessions(&self) -> Option<u32> {
        self.sessions.as_ref().map(|sessions| sessions.begun(self.requests as usize) as u32)
    }

    /// Whether anything is ours.
    pub(crate) fn own_any(&self) -> bool {
        self.stride.count(self.requests) > 0
    }

    pub(crate) fn ends_sessions_with_failure(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.end_with_failure)
    }

    pub(crate) fn first_probe(&self) -> u32 {
        self.requests + self.warmups
    }

    /// Part `index` of `count`: every `count`-th request (or session) with its own id and time, and its share of the cap. The parts
    /// together are the whole, exactly once. With a cap below `count`, the last parts are empty. Probes belong to part 0.
    /// An index out of range gives an empty part. A plan of phases is not split: part 0 is the whole.
    #[must_use]
    pub fn shard(&self, index: u32, count: u32) -> Plan {
        let mut part = self.clone();
        let count = if self.phases.is_some() { 1 } else { count };
        let parts = self.max_concurrency.map_or(count, |cap| count.min(cap)).max(1);
        if index > 0 {
            part.probe_rate = None;
        }
        if index >= parts {
            part.stride = Stride::NONE;
            return part;
        }
        part.stride = match self.stride.first.checked_add(index.saturating_mul(self.stride.step)) {
            Some(first) => Stride { first, step: self.stride.step.saturating_mul(parts) },
            None => Stride::NONE,
        };
        part.max_concurrency = self.max_concurrency.map(|cap| cap / parts + u32::from(index < cap % parts));
        part
    }

    /// The hash of everything that decides what is sent and when.
    pub fn hash(&self) -> PlanHash {
        let mut hasher = Sha256::new();
        hasher.update(b"tailbound plan 1\n");
        // Debug of f64 prints the shortest text that reads back the same, so equal text means equal numbers.
        hasher.update(format!(
            "{:?}|{:?}|{}|{}|{}|{:?}|{:?}|{:?}|{}|{:?}\n",
            self.law,
            self.normalize,
            self.requests,
            self.endless,
            self.warmups,
            self.max_concurrency,
            self.duration,
            self.probe_rate,
            self.seed.0,
            self.stride
        ));
        for offset in self.offsets.iter().flat_map(|all| all.iter()) {
            hasher.update(offset.to_le_bytes());
        }
        if let Some(sessions) = &self.sessions {
            hasher.update(format!("{sessions:?}"));
        }
        if let Some(phases) = &self.phases {
            hasher.update(format!("{:?}", phases.all));
        }
        PlanHash(hasher.finalize().into())
    }

    /// When a ramp's whole requests per second change, as vLLM's `rps_change_events`: the start value at 0, then each whole value
    /// once it is reached. Empty without a ramp.
    pub fn rps_changes(&self) -> Vec<RpsChange> {
        let Law::Ramp { start, .. } = self.law else { return Vec::new() };
        let mut last = start as u32;
        let mut changes = vec![RpsChange { rps: last, at: Dur::ZERO }];
        for index in 0..self.requests {
            let now = self.law.rate_at(index, self.drawn) as u32;
            changes.extend((last + 1..=now).map(|rps| RpsChange { rps, at: self.offset(index) }));
            last = last.max(now);
        }
        changes
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Plan", 12)?;
        out.serialize_field("hash", &self.hash().to_string())?;
        out.serialize_field("requests", &(self.requests != ENDLESS).then_some(self.requests))?;
        out.serialize_field("sessions", &self.sessions())?;
        out.serialize_field("arrivals", &self.law)?;
        out.serialize_field("normalize", &self.normalize)?;
        out.serialize_field("first_arrival_s", &self.offset(0).secs())?;
        out.serialize_field("last_arrival_s", &self.span().secs())?;
        out.serialize_field("max_concurrency", &self.max_concurrency)?;
        out.serialize_field("warmups", &self.warmups)?;
        out.serialize_field("duration_s", &self.duration.map(Dur::secs))?;
        out.serialize_field("probe_rate", &self.probe_rate)?;
        out.serialize_field("seed", &self.seed.0)?;
        out.end()
    }
}
