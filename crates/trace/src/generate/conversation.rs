use crate::generate::Pdf;
use crate::hash::FixedMap;
use crate::row::{Name, Names, Row};
use serde::{Deserialize, Serialize};
use tailbound_clock::{Dur, Rng};

/// How a client's conversations go on, learned from a trace with sessions. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionModel {
    /// The share of arrivals that begin a session; the others are lone requests.
    pub share: f64,
    /// Turns of a session.
    pub turns: Pdf,
    /// From a turn's arrival to the next one's.
    pub gap_s: Pdf,
    /// From an answer's end to the next turn, where the trace tells.
    pub think_s: Option<Pdf>,
    /// Prompt tokens a turn adds to everything said before.
    pub added: Option<Pdf>,
    /// The share of later turns whose prompt is no continuation but shorter than what was said before …
    pub fresh: f64,
    /// … and their prompt tokens.
    pub fresh_input: Option<Pdf>,
    /// Output tokens of later turns.
    pub output: Option<Pdf>,
}

/// Real values are kept by so many quantiles.
const QUANTILES: usize = 400;

impl SessionModel {
    /// Splits a client's rows (in order of arrival) into those that begin something and what follows from them. `None`, and all
    /// rows as beginnings, if no session has a second turn.
    pub(super) fn fit<'a>(rows: &[&'a Row]) -> (Vec<&'a Row>, Option<SessionModel>) {
        let mut latest: FixedMap<Name, (&Row, u32)> = FixedMap::default();
        let (mut starts, mut later) = (Vec::new(), Later::default());
        for &row in rows {
            let Some(session) = row.session else {
                starts.push(row);
                continue;
            };
            match latest.get_mut(&session) {
                None => {
                    latest.insert(session, (row, 1));
                    starts.push(row);
                }
                Some((before, turns)) => {
                    later.turn(before, row);
                    (*before, *turns) = (row, *turns + 1);
                }
            }
        }
        let turns = latest.values().map(|(_, turns)| (f64::from(*turns), 1.0)).collect();
        let (Some(gap_s), Some(turns)) = (quantiles(later.gaps), Pdf::new(turns)) else { return (rows.to_vec(), None) };
        let continued = later.added.len() + later.fresh.len();
        let counted = |values: Vec<f64>| Pdf::new(values.into_iter().map(|v| (v, 1.0)).collect());
        let model = SessionModel {
            share: latest.len() as f64 / starts.len() as f64,
            turns,
            gap_s,
            think_s: quantiles(later.thinks),
            fresh: if continued > 0 { later.fresh.len() as f64 / continued as f64 } else { 0.0 },
            added: counted(later.added),
            fresh_input: counted(later.fresh),
            output: counted(later.outputs),
        };
        (starts, Some(model))
    }

    /// The turns that follow from a first request, before `end` nanoseconds.
    pub(super) fn draw(&self, first: &mut Row, end: i64, names: &mut Names, label: &str, rng: &mut Rng) -> Vec<Row> {
        let mut rows = Vec::new();
        if rng.unit() >= self.share {
            return rows;
        }
        let turns = self.turns.at(rng.unit()) as u32;
        let session = Some(names.intern(label));
        first.session = session;
        first.more_mut().turn = Some(1);
        let mut said = first.input.zip(first.output).map(|(i, o)| u64::from(i) + u64::from(o));
        let mut at = first.at.unwrap_or(0);
        for turn in 2..=turns {
            let u = rng.unit();
            at += (self.gap_s.at(u) * 1e9) as i64;
            let is_fresh = rng.unit() < self.fresh;
            let tokens = |pdf: &Option<Pdf>, rng: &mut Rng| pdf.as_ref().map(|p| p.at(rng.unit()) as u32);
            let input = match (is_fresh, said) {
                (false, Some(said)) => {
                    tokens(&self.added, rng).map(|n| said.saturating_add(n.into()).min(u32::MAX.into()) as u32)
                }
                _ => tokens(&self.fresh_input, rng),
            };
            let output = tokens(&self.output, rng);
            if at >= end {
                break;
            }
            let mut row = Row { at: Some(at), input, output, session, client: first.client, ..Row::default() };
            // The same rank as the gap's: who comes late has thought long.
            let think = self.think_s.as_ref().map(|pdf| Dur((pdf.at(u) * 1e9) as u64));
            let more = row.more_mut();
            (more.turn, more.think) = (Some(turn), think);
            said = input.zip(output).map(|(i, o)| u64::from(i) + u64::from(o));
            rows.push(row);
        }
        rows
    }
}

/// What later turns are like.
#[derive(Default)]
struct Later {
    gaps: Vec<f64>,
    thinks: Vec<f64>,
    added: Vec<f64>,
    fresh: Vec<f64>,
    outputs: Vec<f64>,
}

impl Later {
    fn turn(&mut self, before: &Row, row: &Row) {
        if let (Some(a), Some(b)) = (before.at, row.at) {
            let gap = (b - a) as f64 / 1e9;
            self.gaps.push(gap);
            let stated = row.more.as_ref().and_then(|m| m.think).map(Dur::secs);
            let think = stated.or_else(|| Some(gap - before.took?.secs()));
            self.thinks.extend(think.filter(|s| *s >= 0.0));
        }
        if let (Some(input), Some(output), Some(now)) = (before.input, before.output, row.input) {
            let grown = f64::from(now) - f64::from(input) - f64::from(output);
            if grown >= 0.0 { self.added.push(grown) } else { self.fresh.push(now.into()) }
        }
        self.outputs.extend(row.output.map(f64::from));
    }
}

/// The distribution by its quantiles, each the middle of an equal share.
fn quantiles(mut values: Vec<f64>) -> Option<Pdf> {
    values.sort_unstable_by(f64::total_cmp);
    if values.len() > QUANTILES {
        let middle = |i: usize| values[(2 * i + 1) * values.len() / (2 * QUANTILES)];
        values = (0..QUANTILES).map(middle).collect();
    }
    Pdf::new(values.into_iter().map(|v| (v, 1.0)).collect())
}
