//! A point in virtual time: the load and the engine model, each woken when it asks to be. No clock, no sockets: the same plan gives the
//! same rows, hours of them in seconds.

use super::replica::{Replica, Wanted};
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::journal::Journal;
use crate::bench::serve::live::{Ending, Names, Watch};
use crate::bench::serve::passes::Passes;
use crate::failure::{Failure, Outcome};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tailbound_clock::Time;
use tailbound_record::{Row, Why};
use tailbound_workload::{IntentId, Load, LoadEffect, LoadEvent, Plan, Stage};

/// Which prompt each request sends, and of which class that is.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Another order than the plan's.
    pub passes: Option<&'a Passes>,
    /// The class of each prompt; empty: all are one.
    pub classes: &'a [u16],
}

struct World<'a> {
    plan: &'a Plan,
    load: Load,
    replica: Replica,
    order: Order<'a>,
    /// Handed over and not yet due: when, which, and when it was scheduled.
    due: BinaryHeap<Reverse<(Time, IntentId, Time)>>,
    effects: Vec<LoadEffect>,
    answered: Vec<Row>,
    ended: Vec<Row>,
    finished: bool,
}

/// Runs a plan to its end, or until `watch` has seen enough; every row is kept as a live run's would be.
pub fn run(
    args: &ServeArgs,
    plan: &Arc<Plan>,
    replica: Replica,
    order: Order<'_>,
    names: &Names,
    watch: Watch<'_>,
) -> Outcome<(Vec<Row>, Ending)> {
    let mut world = World {
        plan,
        load: Load::new(plan.clone()),
        replica,
        order,
        due: BinaryHeap::new(),
        effects: Vec::new(),
        answered: Vec::new(),
        ended: Vec::new(),
        finished: false,
    };
    let mut journal = Journal::open(args, names)?;
    let mut rows = Vec::with_capacity(plan.requests() as usize);
    let mut now = Time::ZERO;
    let mut stopped = false;
    world.tell(now, LoadEvent::Wake);
    while !world.finished {
        now = now
            .max(world.next().ok_or_else(|| Failure::new("the load waits for what the engine model will never give"))?);
        world.step(now);
        let mut enough = false;
        for row in world.ended.drain(..) {
            let measured = plan.intent(IntentId(row.id as u32)).stage == Stage::Measured;
            enough |= measured && !stopped && !watch(&row);
            journal.row(&row)?;
            rows.push(row);
        }
        if enough && !world.finished {
            stopped = true;
            world.tell(now, LoadEvent::Stop(Why::Rule));
        }
    }
    let ending = Ending::in_virtual_time(world.load.origin());
    journal.close(&ending)?;
    rows.sort_unstable_by_key(|row| row.id);
    Ok((rows, ending))
}

impl World<'_> {
    fn next(&self) -> Option<Time> {
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        [due, self.replica.next_wake(), self.load.next_wake()].into_iter().flatten().min()
    }

    /// What comes out at a moment is known before what arrives at it.
    fn step(&mut self, now: Time) {
        if self.replica.next_wake().is_some_and(|at| at <= now) {
            let mut answered = std::mem::take(&mut self.answered);
            self.replica.step(now, &mut answered);
            answered.drain(..).for_each(|row| self.end(now, row));
            self.answered = answered;
        }
        if self.load.next_wake().is_some_and(|at| at <= now) {
            self.tell(now, LoadEvent::Wake);
        }
        while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            if let Some(Reverse((at, id, scheduled))) = self.due.pop() {
                self.submit(now, at, id, scheduled);
            }
        }
    }

    fn tell(&mut self, now: Time, event: LoadEvent) {
        self.load.on(now, event, &mut self.effects);
        for effect in self.effects.drain(..) {
            match effect {
                LoadEffect::Send { id, scheduled, due } => self.due.push(Reverse((due, id, scheduled))),
                LoadEffect::Finished => self.finished = true,
            }
        }
    }

    fn submit(&mut self, now: Time, due: Time, id: IntentId, scheduled: Time) {
        let Order { passes, classes } = self.order;
        let item = passes.map_or_else(|| self.plan.intent(id).item as usize, |passes| passes.item(id.0));
        let salted = passes.is_some_and(|passes| passes.salt.is_some());
        let class = if classes.is_empty() { 0 } else { classes[item % classes.len()] };
        let salt = salted.then(|| id.0.wrapping_mul(0x9e37_79b9));
        let rejected = self.replica.submit(now, Wanted { id: u64::from(id.0), scheduled, due, item, salt, class });
        if let Some(row) = rejected {
            self.end(now, row);
        }
    }

    fn end(&mut self, now: Time, row: Row) {
        let answer_tokens = row.tokens.output_server.unwrap_or(0);
        let event = LoadEvent::Ended { id: IntentId(row.id as u32), ok: row.ok(), answer_tokens };
        self.ended.push(row);
        self.tell(now, event);
    }
}
