//! A trace as a load: when its rows are due, and which follows which.

use crate::{Name, Row, Trace};
use std::collections::HashMap;
use tailbound_clock::Dur;
use tailbound_workload::Turn;

impl Trace {
    /// Arrivals from the first one on. Rows without a time of their own stand with the last that has one: they follow others.
    pub fn schedule(&self) -> Vec<Dur> {
        let mut last = Dur::ZERO;
        let one = |row: &Row| {
            last = row.at.map_or(last, |at| Dur(at.max(0).unsigned_abs()));
            last
        };
        self.rows.iter().map(one).collect()
    }

    /// For each row, the one it follows: its parent, or the one before it in its session. `timed`: at the trace's own times, rather
    /// than `think` after the answer, where the trace doesn't state the wait.
    ///
    /// # Errors
    /// The number (from 1) of a row that begins a session and has no time, if it needs one.
    pub fn turns(&self, timed: bool, think: Dur) -> Result<Vec<Option<Turn>>, usize> {
        let mut last: HashMap<Name, u32> = HashMap::new();
        let mut by_id: HashMap<Name, u32> = HashMap::new();
        let mut turns = Vec::with_capacity(self.rows.len());
        for (i, row) in self.rows.iter().enumerate() {
            let more = row.more.as_deref();
            let parent = more.and_then(|more| more.parent).and_then(|parent| by_id.get(&parent).copied());
            let before = parent.or_else(|| row.session.and_then(|session| last.get(&session).copied()));
            let stated = more.and_then(|more| more.think);
            if before.is_none() && timed && row.at.is_none() {
                return Err(i + 1);
            }
            turns.push(before.map(|after| Turn {
                after,
                wait: stated.unwrap_or(think),
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
        Ok(turns)
    }
}
