//! What goes wrong, and comes right again.

use super::{START, World};
use crate::scenario::{Fault, Scenario, ScenarioError, What};
use tailbound_clock::{Dur, Time};
use tailbound_route::{EndpointId, Event};

/// One change of one replica.
pub(super) struct Change {
    pub(super) at: Time,
    replica: u32,
    what: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Dies,
    /// Discovery no longer sees it.
    Left,
    /// A new process runs.
    Lives,
    /// A replica that wasn't there from the start.
    Comes,
    /// Discovery sees it.
    Joins,
    /// A new process in place of the old.
    Restarts,
    /// Its steps take so many times as long.
    Pace(f64),
    Metrics(bool),
    Events(bool),
}

impl Change {
    /// The replica, if this is its beginning.
    pub(super) fn begins_late(&self) -> Option<u32> {
        matches!(self.what, Kind::Comes).then_some(self.replica)
    }
}

/// All changes a scenario asks for.
pub(super) fn changes(scenario: &Scenario) -> Result<Vec<Change>, ScenarioError> {
    let mut all = Vec::new();
    let mut number = 0;
    for group in &scenario.engines {
        for _ in 0..group.count {
            if group.from_s > 0.0 {
                let at = START + Dur::from_secs_f64(group.from_s);
                all.push(Change { at, replica: number, what: Kind::Comes });
                all.push(Change { at, replica: number, what: Kind::Joins });
            }
            number += 1;
        }
    }
    for fault in &scenario.faults {
        for replica in fault.strikes(scenario)? {
            for (at_s, what) in fault_changes(fault) {
                all.push(Change { at: START + Dur::from_secs_f64(at_s), replica, what });
            }
        }
    }
    Ok(all)
}

/// Each fault's changes, with their times in seconds.
fn fault_changes(fault: &Fault) -> Vec<(f64, Kind)> {
    let end = fault.for_s.map(|s| fault.at_s + s);
    let noticed = fault.at_s + fault.noticed_after_s;
    let pair = |worse, better| {
        let again = end.map(|at| (at, better));
        [Some((fault.at_s, worse)), again].into_iter().flatten().collect()
    };
    match fault.what {
        // What comes back before anybody noticed never left.
        What::Death => {
            let missed = end.is_none_or(|end| noticed < end);
            let left = missed.then_some((noticed, Kind::Left));
            let back = end.map(|end| (end, Kind::Lives));
            let seen = end.filter(|_| missed).map(|end| (end, Kind::Joins));
            [Some((fault.at_s, Kind::Dies)), left, back, seen].into_iter().flatten().collect()
        }
        What::Restart => vec![(fault.at_s, Kind::Restarts)],
        What::Stall => pair(Kind::Pace(f64::INFINITY), Kind::Pace(1.0)),
        What::Slow => pair(Kind::Pace(fault.factor), Kind::Pace(1.0)),
        What::NoMetrics => pair(Kind::Metrics(false), Kind::Metrics(true)),
        What::NoEvents => pair(Kind::Events(false), Kind::Events(true)),
    }
}

impl World<'_, '_> {
    pub(super) fn change(&mut self, index: usize) {
        let Change { replica: number, what, .. } = self.changes[index];
        self.catch_up(number);
        if matches!(what, Kind::Dies | Kind::Restarts) {
            self.write_all_down(number);
        }
        let replica = &mut self.replicas[number as usize];
        match what {
            Kind::Dies => {
                replica.alive = false;
                self.lose_all(number);
            }
            Kind::Left => self.tell(Event::Left(EndpointId(number))),
            // Two deaths at a time: the first to end has brought it back already.
            Kind::Lives if replica.alive => {}
            Kind::Lives => {
                replica.begin_anew();
                replica.alive = true;
            }
            Kind::Comes => replica.alive = true,
            Kind::Joins => self.join(number),
            Kind::Restarts => {
                replica.begin_anew();
                self.lose_all(number);
            }
            Kind::Pace(factor) => {
                replica.slow_down(self.now, factor);
                self.schedule(number);
            }
            Kind::Metrics(answered) => replica.metrics = answered,
            Kind::Events(arrive) => replica.events = arrive,
        }
    }

    fn lose_all(&mut self, replica: u32) {
        for number in self.flights.of_replica(replica) {
            self.lost(number);
        }
    }
}
