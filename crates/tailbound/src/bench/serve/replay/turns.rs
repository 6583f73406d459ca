//! Which row of a trace follows which, and when.

use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::trace_args::History;
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use tailbound_clock::{Dur, Seed};
use tailbound_trace::{Body, Name, Row, Trace};
use tailbound_workload::{Sessions, Turn};

/// Where a trace tells how long the turn before took, the wait between the two was somebody thinking: it is kept as such, and does
/// not shrink when the trace is replayed faster.
pub fn note_waits(trace: &mut Trace) {
    let mut last: HashMap<Name, (i64, Dur)> = HashMap::new();
    for row in &mut trace.rows {
        let (Some(session), Some(at)) = (row.session, row.at) else { continue };
        let took = row.took;
        if let Some(&(before, lasted)) = last.get(&session)
            && row.more.as_ref().is_none_or(|more| more.think.is_none())
        {
            let wait = at.saturating_sub(before).saturating_sub_unsigned(lasted.ns());
            row.more_mut().think = Some(Dur(wait.max(0).unsigned_abs()));
        }
        match took {
            Some(took) => last.insert(session, (at, took)),
            None => last.remove(&session),
        };
    }
}

/// Arrivals from the first one on. Rows without a time of their own stand with the last that has one: they follow others.
pub fn schedule(trace: &Trace) -> Vec<Dur> {
    let mut last = Dur::ZERO;
    let one = |row: &Row| {
        last = row.at.map_or(last, |at| Dur(at.max(0).unsigned_abs()));
        last
    };
    trace.rows.iter().map(one).collect()
}

/// What follows what; `None` if nothing does.
pub fn sessions(trace: &Trace, timed: bool, args: &ServeArgs) -> Outcome<Option<Sessions>> {
    let mut last: HashMap<Name, u32> = HashMap::new();
    let mut by_id: HashMap<Name, u32> = HashMap::new();
    let mut turns = Vec::with_capacity(trace.rows.len());
    for (i, row) in trace.rows.iter().enumerate() {
        let more = row.more.as_deref();
        let parent = more.and_then(|more| more.parent).and_then(|parent| by_id.get(&parent).copied());
        let before = parent.or_else(|| row.session.and_then(|session| last.get(&session).copied()));
        let stated = more.and_then(|more| more.think);
        if before.is_none() && timed && row.at.is_none() {
            let hint = "--no-self-timed with a --request-rate sends sessions by a law";
            return Err(Failure::new(format!("row {} of the trace begins a session and has no time", i + 1)).hint(hint));
        }
        turns.push(before.map(|after| Turn {
            after,
            wait: stated.unwrap_or(args.trace.think_time),
            // A wait that is known places the turn after the answer it waited for; without one, only the trace's time does.
            earliest: row.at.filter(|_| timed && stated.is_none()).map(|at| Dur(at.max(0).unsigned_abs())),
        }));
        if let Some(session) = row.session {
            last.insert(session, i as u32);
        }
        if let Some(id) = more.and_then(|more| more.id) {
            by_id.insert(id, i as u32);
        }
    }
    if turns.iter().all(Option::is_none) {
        return Ok(None);
    }
    let end_with_failure = args.trace.history == History::Server && trace.rows.iter().any(carries_on);
    Ok(Some(Sessions { turns, end_with_failure }))
}

/// Whether a row only says what its conversation adds.
pub fn carries_on(row: &Row) -> bool {
    row.more.as_ref().is_some_and(|more| matches!(more.body, Body::Added(_)))
}

/// Puts whole sessions into random order. Rows without a session stand for themselves.
pub fn shuffle_sessions(trace: &mut Trace, seed: Seed) {
    let mut places: HashMap<Name, usize> = HashMap::new();
    let mut sessions: Vec<Vec<Row>> = Vec::new();
    for row in trace.rows.drain(..) {
        let next = sessions.len();
        let place = row.session.map_or(next, |session| *places.entry(session).or_insert(next));
        if place == next {
            sessions.push(Vec::new());
        }
        sessions[place].push(row);
    }
    seed.stream("session order").shuffle(&mut sessions);
    trace.rows = sessions.into_iter().flatten().collect();
}
