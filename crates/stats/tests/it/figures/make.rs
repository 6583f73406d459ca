//! Rows by hand, in milliseconds.

use tailbound_clock::Time;
use tailbound_record::{Blame, Cause, End, Finish, Moment, Phase, Row, Why};
use tailbound_stats::{RunFacts, Summary, summarize};

pub const MS: u64 = 1_000_000;

/// A request scheduled, released and written at `write` ms, whose events of so many tokens came at those ms, each in its own read.
pub fn row(id: u64, write: u64, events: &[(u64, u16)]) -> Row {
    let mut row = Row::new(id);
    for moment in [Moment::Scheduled, Moment::Released, Moment::WriteStart, Moment::Written] {
        row.at.set(moment, at(write));
    }
    for (read, (ms, tokens)) in events.iter().enumerate() {
        row.chunks.push(at(*ms), read as u32, *tokens, true);
        row.at.set_first(Moment::FirstToken, at(*ms));
        row.at.set_first(Moment::FirstVisible, at(*ms));
        row.at.set(Moment::LastToken, at(*ms));
        row.at.set(Moment::StreamEnd, at(*ms));
    }
    row.tokens.output_server = Some(events.iter().map(|e| u32::from(e.1)).sum());
    row.tokens.prompt_server = Some(10);
    row.end = End::Done(Finish::Length);
    row
}

pub fn scheduled(mut row: Row, scheduled: u64, released: u64) -> Row {
    row.at.set(Moment::Scheduled, at(scheduled));
    row.at.set(Moment::Released, at(released));
    row
}

pub fn failed(id: u64, write: u64, end: u64, cause: Cause) -> Row {
    let mut row = row(id, write, &[]);
    row.tokens.output_server = None;
    row.at.set(Moment::StreamEnd, at(end));
    row.end = End::Failed { phase: Phase::Headers, blame: Blame::Server, cause, detail: "no luck".into() };
    row
}

pub fn never_sent(id: u64, scheduled: u64) -> Row {
    let mut row = Row::new(id);
    row.at.set(Moment::Scheduled, at(scheduled));
    row.end = End::NeverSent(Why::Duration);
    row
}

pub fn facts(end: u64) -> RunFacts {
    RunFacts::new(Time::ZERO, at(end))
}

pub fn summary(rows: &[Row], end: u64) -> Summary {
    summarize(rows, &facts(end))
}

pub fn at(ms: u64) -> Time {
    Time(ms * MS)
}

pub fn ms(ns: Option<f64>) -> Option<f64> {
    ns.map(|ns| (ns * 1e-6 * 1e6).round() / 1e6)
}
