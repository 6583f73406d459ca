use crate::describe::arrivals::seconds;
use crate::describe::lengths::{Histogram, LengthFigures, figures_of};
use crate::row::{Name, Row};
use serde::Serialize;

/// Conversations. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct SessionFigures {
    pub count: u64,
    pub rows_with_session: u64,
    pub rows_without: u64,
    /// Requests per session.
    pub turns: Option<LengthFigures>,
    pub single_turn: u64,
    /// Submission to last token, of all rows that tell.
    pub elapsed_s: Option<LengthFigures>,
    pub zero_elapsed: u64,
    /// Next arrival minus (arrival + elapsed), of successive requests of a session that tell how long they took; or the wait the
    /// file states.
    pub think_time_s: Option<LengthFigures>,
    /// Successive requests that overlap; left out of the think times.
    pub negative_think: u64,
    /// Next arrival minus arrival.
    pub turn_gap_s: Option<LengthFigures>,
}

#[derive(Default)]
pub(crate) struct Sessions {
    events: Vec<Event>,
    stated: Vec<f64>,
    took: Vec<f64>,
    without: u64,
}

struct Event {
    session: Name,
    at: Option<i64>,
    took: Option<u64>,
}

impl Sessions {
    pub(crate) fn row(&mut self, row: &Row) {
        if let Some(took) = row.took {
            self.took.push(took.ns() as f64 / 1e9);
        }
        if let Some(think) = row.more.as_ref().and_then(|m| m.think) {
            self.stated.push(think.secs());
        }
        match row.session {
            Some(session) => self.events.push(Event { session, at: row.at, took: row.took.map(|d| d.ns()) }),
            None => self.without += 1,
        }
    }

    pub(crate) fn figures(mut self) -> Option<SessionFigures> {
        if self.events.is_empty() {
            return None;
        }
        let rows_with_session = self.events.len() as u64;
        // Stable: rows at one time keep the order of the file.
        self.events.sort_by_key(|e| (e.session, e.at));
        let mut figures = SessionFigures {
            count: 0,
            rows_with_session,
            rows_without: self.without,
            turns: None,
            single_turn: 0,
            elapsed_s: None,
            zero_elapsed: self.took.iter().filter(|&&t| t == 0.0).count() as u64,
            think_time_s: None,
            negative_think: 0,
            turn_gap_s: None,
        };
        let (mut turns, mut think, mut gaps) = (Histogram::default(), self.stated, Vec::new());
        for session in self.events.chunk_by(|a, b| a.session == b.session) {
            figures.count += 1;
            figures.single_turn += u64::from(session.len() == 1);
            turns.add(session.len() as u64);
            for pair in session.windows(2) {
                let (Some(a), Some(b)) = (pair[0].at, pair[1].at) else { continue };
                gaps.push(seconds(b - a));
                match pair[0].took.map(|took| b - a - took as i64) {
                    Some(ns @ 0..) => think.push(seconds(ns)),
                    Some(_) => figures.negative_think += 1,
                    None => {}
                }
            }
        }
        figures.turns = turns.figures();
        figures.elapsed_s = figures_of(self.took);
        figures.think_time_s = figures_of(think);
        figures.turn_gap_s = figures_of(gaps);
        Some(figures)
    }
}
