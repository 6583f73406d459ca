//! The requests of a plan with sessions while it is carried out: which may go next, and which never will.

use crate::Plan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tailbound_clock::{Dur, Time};

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Turns {
    /// Our requests, in the order of the plan.
    own: Vec<u32>,
    /// How many of them lie behind the next session's beginning.
    passed: usize,
    /// For each request, the first of those that follow it, and the next of those that follow the same one.
    first: Vec<u32>,
    sibling: Vec<u32>,
    /// Whose turn has come: when they are due, and which.
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    fates: Vec<Fate>,
    /// How many of ours may still be sent.
    left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not sent.
    Open,
    Sent,
    /// A turn before it failed.
    Broken,
}

impl Turns {
    /// `None` for a plan without sessions.
    pub(crate) fn of(plan: &Plan) -> Option<Turns> {
        let sessions = plan.sessions.as_ref()?;
        let n = plan.requests() as usize;
        let (mut first, mut sibling) = (vec![NONE; n], vec![NONE; n]);
        for i in (0..n).rev() {
            let Some(turn) = sessions.turns[i] else { continue };
            let parent = turn.after as usize;
            sibling[i] = std::mem::replace(&mut first[parent], i as u32);
        }
        let own = plan.own();
        let left = own.len() as u32;
        Some(Turns { own, passed: 0, first, sibling, ready: BinaryHeap::new(), fates: vec![Fate::Open; n], left })
    }

    /// Whether nothing of ours is left to be sent.
    pub(crate) fn done(&self) -> bool {
        self.left == 0
    }

    /// The request that may go next, and when it should.
    pub(crate) fn next(&self, plan: &Plan, origin: Time) -> Option<(u32, Time)> {
        let begins = self.own.get(self.passed).map(|&id| (id, origin + plan.offset(id)));
        let follows = self.ready.peek().map(|Reverse((at, id))| (*id, *at));
        match (begins, follows) {
            (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// `id`, which [`Turns::next`] named, has been sent.
    pub(crate) fn sent(&mut self, plan: &Plan, id: u32) {
        self.fates[id as usize] = Fate::Sent;
        self.left -= 1;
        if self.ready.peek().is_some_and(|Reverse((_, first))| *first == id) {
            self.ready.pop();
            return;
        }
        self.passed += 1;
        self.pass_followers(plan);
    }

    /// Moves on to the next request that begins a session.
    pub(crate) fn pass_followers(&mut self, plan: &Plan) {
        while self.own.get(self.passed).is_some_and(|&id| plan.turn(id).is_some()) {
            self.passed += 1;
        }
    }

    /// `id` has ended: the turn of those that follow has come, or never will.
    pub(crate) fn ended(&mut self, plan: &Plan, origin: Time, now: Time, id: u32, ok: bool) {
        if !ok && plan.ends_sessions_with_failure() {
            return self.break_after(id);
        }
        let mut next = self.first[id as usize];
        while next != NONE {
            if let Some(turn) = plan.turn(next) {
                let earliest = turn.earliest.map_or(Time::ZERO, |at: Dur| origin + at);
                self.ready.push(Reverse(((now + turn.wait).max(earliest), next)));
            }
            next = self.sibling[next as usize];
        }
    }

    fn break_after(&mut self, id: u32) {
        let mut open = vec![self.first[id as usize]];
        while let Some(id) = open.pop() {
            if id == NONE {
                continue;
            }
            self.fates[id as usize] = Fate::Broken;
            self.left -= 1;
            open.extend([self.first[id as usize], self.sibling[id as usize]]);
        }
    }

    /// What was never sent: the request, whether its session broke, and when it was due, if its turn had come.
    pub(crate) fn unsent(&self, plan: &Plan, origin: Option<Time>) -> Vec<(u32, Fate, Option<Time>)> {
        let mut ready: Vec<(u32, Time)> = self.ready.iter().map(|Reverse((at, id))| (*id, *at)).collect();
        ready.sort_unstable();
        let due = |id: u32| match plan.turn(id) {
            None => origin.map(|origin| origin + plan.offset(id)),
            Some(_) => ready.binary_search_by_key(&id, |r| r.0).ok().map(|i| ready[i].1),
        };
        let fate = |id: u32| self.fates[id as usize];
        self.own.iter().filter(|&&id| fate(id) != Fate::Sent).map(|&id| (id, fate(id), due(id))).collect()
    }
}
