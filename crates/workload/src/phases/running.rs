//! Phases while they are carried out: what may go next.

use super::{Kind, Phases, Planned, Pool, WhenFull};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tailbound_clock::{Dur, Time};
use tailbound_record::Why;

/// The next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub id: u32,
    /// When it should go by the plan.
    pub scheduled: Time,
    /// When it may go: later, if it had to wait for a client.
    pub due: Time,
}

#[derive(Debug)]
pub(crate) struct Running {
    phases: Vec<State>,
}

#[derive(Debug)]
enum State {
    Open {
        /// The next arrival.
        next: usize,
        in_flight: u32,
        /// When the last client came free, from the start; zero before that.
        freed: Dur,
        dropped: Vec<u32>,
    },
    Closed {
        /// Clients that are free, and when each may begin, ns from the start.
        free: BinaryHeap<Reverse<(u64, u32)>>,
        /// What each client has sent.
        sent_by: Vec<u32>,
        /// Who sent each request.
        sender: Vec<u32>,
    },
}

impl Running {
    pub(crate) fn new(phases: &Phases) -> Running {
        let state = |planned: &Planned| match &planned.kind {
            Kind::Open { .. } => State::Open { next: 0, in_flight: 0, freed: Dur::ZERO, dropped: Vec::new() },
            Kind::Closed { steps, clients, .. } => State::Closed {
                free: (0..*clients).filter_map(|c| Some(Reverse((begins(steps, c, 0)?, c)))).collect(),
                sent_by: vec![0; *clients as usize],
                sender: Vec::new(),
            },
        };
        Running { phases: phases.all.iter().map(state).collect() }
    }

    /// The request that goes next; `None` if only an ended one can move things on.
    pub(crate) fn next(&self, plan: &Phases, origin: Time) -> Option<Next> {
        let of = |(planned, state): (&Planned, &State)| match (&planned.kind, state) {
            (Kind::Open { offsets, arrivals }, State::Open { next, in_flight, freed, .. }) => {
                let scheduled = origin + Dur(*offsets.get(*next)?);
                let full = arrivals.max_clients.is_some_and(|most| *in_flight >= most);
                let due = scheduled.max(origin + *freed);
                (!full).then_some(Next { id: planned.first + *next as u32, scheduled, due })
            }
            (Kind::Closed { pool, .. }, State::Closed { free, sender, .. }) => {
                let Reverse((at, _)) = free.peek()?;
                let at = origin + Dur(*at);
                let left = !matches!(pool, Pool::Shared(n) if sender.len() as u32 >= *n);
                // A phase that has used up its ids has sent more than anybody waits for.
                let numbered = (sender.len() as u32) < planned.most;
                (left && numbered).then_some(Next { id: planned.first + sender.len() as u32, scheduled: at, due: at })
            }
            _ => None,
        };
        plan.all.iter().zip(&self.phases).filter_map(of).min_by_key(|next| (next.due, next.id))
    }

    /// `id`, which [`Running::next`] named, has been handed over.
    pub(crate) fn sent(&mut self, plan: &Phases, id: u32) {
        let Some(phase) = plan.of(crate::IntentId(id)) else { return };
        match &mut self.phases[phase] {
            State::Open { next, in_flight, .. } => {
                *next += 1;
                *in_flight += 1;
            }
            State::Closed { free, sent_by, sender } => {
                if let Some(Reverse((_, client))) = free.pop() {
                    sent_by[client as usize] += 1;
                    sender.push(client);
                }
            }
        }
    }

    /// A request has ended: its client is free.
    pub(crate) fn ended(&mut self, plan: &Phases, origin: Time, now: Time, id: u32) {
        let Some(phase) = plan.of(crate::IntentId(id)) else { return };
        let planned = &plan.all[phase];
        match (&planned.kind, &mut self.phases[phase]) {
            (Kind::Open { offsets, arrivals }, State::Open { next, in_flight, freed, dropped }) => {
                if arrivals.when_full == WhenFull::Drop && arrivals.max_clients.is_some_and(|most| *in_flight >= most) {
                    // Those that came while every client was busy.
                    while offsets.get(*next).is_some_and(|&at| origin + Dur(at) < now) {
                        dropped.push(planned.first + *next as u32);
                        *next += 1;
                    }
                }
                if arrivals.max_clients.is_some_and(|most| *in_flight >= most) {
                    *freed = now.since(origin);
                }
                *in_flight = in_flight.saturating_sub(1);
            }
            (Kind::Closed { steps, pool, .. }, State::Closed { free, sent_by, sender }) => {
                let Some(&client) = sender.get((id - planned.first) as usize) else { return };
                let exhausted = matches!(pool, Pool::Each(n) if sent_by[client as usize] >= *n);
                if let Some(at) = begins(steps, client, now.since(origin).ns()).filter(|_| !exhausted) {
                    free.push(Reverse((at, client)));
                }
            }
            _ => {}
        }
    }

    /// What was planned and never handed over: the request, when it should have gone, and why it didn't.
    pub(crate) fn unsent(&self, plan: &Phases, stopped: Option<Why>) -> Vec<(u32, Option<Dur>, Why)> {
        let mut out = Vec::new();
        for (planned, state) in plan.all.iter().zip(&self.phases) {
            match (&planned.kind, state) {
                (Kind::Open { offsets, .. }, State::Open { next, dropped, .. }) => {
                    let at = |id: u32| offsets.get((id - planned.first) as usize).map(|&ns| Dur(ns));
                    out.extend(dropped.iter().map(|&id| (id, at(id), Why::Rule)));
                    let left = planned.first + *next as u32..planned.first + planned.most;
                    out.extend(left.map(|id| (id, at(id), stopped.unwrap_or(Why::Interrupted))));
                }
                (Kind::Closed { pool: Pool::Endless, .. }, _) => {}
                (Kind::Closed { .. }, State::Closed { sender, .. }) => {
                    let left = planned.first + sender.len() as u32..planned.first + planned.most;
                    out.extend(left.map(|id| (id, None, stopped.unwrap_or(Why::Duration))));
                }
                _ => {}
            }
        }
        out
    }
}

/// When a client that is free from `now` on may begin: as soon as the number of clients exceeds its own. `None`: never again.
fn begins(steps: &[(u64, u32)], client: u32, now: u64) -> Option<u64> {
    let current = steps.partition_point(|&(at, _)| at <= now).saturating_sub(1);
    steps[current..].iter().find(|&&(_, count)| count > client).map(|&(at, _)| at.max(now))
}
