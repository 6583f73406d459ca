use super::{Did, Entry, Happened};
use crate::{Effect, EndpointId, RequestId, Router};
use std::collections::{BTreeMap, HashMap};
use tailbound_clock::Time;

/// A log told to a router again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Requests that arrived.
    pub requests: usize,
    /// Calls of the router.
    pub entries: usize,
    /// Calls whose effects were others than in the log.
    pub differing: usize,
    /// The first of those: its number from 1, what the log says, and what came out.
    pub first: Option<(usize, Vec<Did>, Vec<Did>)>,
    /// Requests whose last decision was another than in the log.
    pub moved: usize,
    /// Requests by where they were sent last, in the log and now.
    pub share: BTreeMap<EndpointId, (usize, usize)>,
    /// Requests refused, in the log and now.
    pub refused: (usize, usize),
}

/// Where a request ended up: on a replica, or refused.
type Ends = HashMap<RequestId, Option<EndpointId>>;

/// Tells a router what a log says, and compares what it does.
///
/// What the log says of answers came of the decisions in the log: a router of another policy hears of first tokens as if its own
/// choice had been as fast.
pub fn replay(router: &mut Router, entries: impl Iterator<Item = Entry>) -> Replay {
    let mut out: Vec<Effect> = Vec::new();
    let mut replay = Replay::default();
    let (mut was, mut is) = (Ends::new(), Ends::new());
    for entry in entries {
        replay.entries += 1;
        replay.requests += usize::from(matches!(entry.event, Happened::Arrived(_)));
        entry.event.lend(|event| router.on(Time(entry.at), event, &mut out));
        let did: Vec<Did> = out.drain(..).map(|effect| Did::of(&effect)).collect();
        note(&mut was, &entry.did);
        note(&mut is, &did);
        if did != entry.did {
            replay.differing += 1;
            if replay.first.is_none() {
                replay.first = Some((replay.entries, entry.did, did));
            }
        }
    }
    replay.moved = was.iter().filter(|(id, end)| is.get(id) != Some(end)).count();
    let mut count = |ends: &Ends, pick: fn(&mut (usize, usize)) -> &mut usize| {
        for end in ends.values() {
            match end {
                Some(endpoint) => *pick(replay.share.entry(*endpoint).or_default()) += 1,
                None => *pick(&mut replay.refused) += 1,
            }
        }
    };
    count(&was, |pair| &mut pair.0);
    count(&is, |pair| &mut pair.1);
    replay
}

fn note(ends: &mut Ends, did: &[Did]) {
    for one in did {
        match one {
            Did::Dispatch { request, to, .. } => drop(ends.insert(*request, to.first().copied())),
            Did::Refuse { request, .. } => drop(ends.insert(*request, None)),
            Did::Evict(_) | Did::ReplayKv(..) => {}
        }
    }
}
