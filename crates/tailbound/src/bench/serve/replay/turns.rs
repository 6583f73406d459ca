//! Which row of a trace follows which, and when.

use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::trace_args::History;
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use tailbound_clock::{Dur, Seed};
use tailbound_trace::{Body, Name, Row, Trace};
use tailbound_workload::Sessions;

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

/// What follows what; `None` if nothing does.
pub fn sessions(trace: &Trace, timed: bool, args: &ServeArgs) -> Outcome<Option<Sessions>> {
    let turns = trace.turns(timed, args.trace.think_time).map_err(|row| {
        Failure::new(format!("row {row} of the trace begins a session and has no time"))
            .hint("--no-self-timed with a --request-rate sends sessions by a law")
    })?;
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
