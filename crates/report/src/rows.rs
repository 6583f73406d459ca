//! The requests of a run as flat records, for other programs: lines of JSON, or CSV. Times are whole nanoseconds; missing is null (nothing in CSV), never 0.

use crate::{Run, ordered};
use serde_json::{Map, Value};
use std::io::{self, Write};
use tailbound_clock::Dur;
use tailbound_record::{End, Moment, Row};
use tailbound_stats::{RunFacts, met, output_tokens, tpot_ns};

/// What a column's values are; any may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, signed.
    Int,
    /// A whole number, not negative.
    Count,
    /// True or false.
    Flag,
    /// Text.
    Text,
}

/// A column: its name, what its values are, and where they come from.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    value: fn(&Row, &RunFacts) -> Value,
}

const fn column(name: &'static str, kind: Kind, value: fn(&Row, &RunFacts) -> Value) -> Column {
    Column { name, kind, value }
}

/// A moment's column: ns since the run's start, less than 0 for what came before it.
macro_rules! moment {
    ($name:literal, $moment:ident) => {
        column($name, Kind::Int, |row, facts| row.at.get(Moment::$moment).map(|t| t.minus(facts.start)).into())
    };
}

fn ns(dur: Option<Dur>) -> Value {
    dur.map(Dur::ns).into()
}

/// Every column, in order. `docs/pages.md` says what they are.
pub const COLUMNS: [Column; 41] = [
    column("id", Kind::Count, |r, _| r.id.into()),
    column("class", Kind::Count, |r, _| r.class.into()),
    column("worker", Kind::Count, |r, _| r.worker.into()),
    column("outcome", Kind::Text, |r, facts| outcome(r, facts).into()),
    column("good", Kind::Flag, |r, facts| met(r, facts).filter(|_| !facts.objectives.is_empty()).into()),
    column("status", Kind::Count, |r, _| Some(r.net.status).filter(|s| *s > 0).into()),
    column("error", Kind::Text, |r, _| failure(r, |_, _, detail| detail.to_owned())),
    column("blame", Kind::Text, |r, _| failure(r, |_, blame, _| blame.to_owned())),
    column("phase", Kind::Text, |r, _| failure(r, |phase, _, _| phase.to_owned())),
    moment!("scheduled_ns", Scheduled),
    moment!("released_ns", Released),
    moment!("connect_start_ns", ConnectStart),
    moment!("connected_ns", Connected),
    moment!("tls_done_ns", TlsDone),
    moment!("write_start_ns", WriteStart),
    moment!("written_ns", Written),
    moment!("headers_ns", Headers),
    moment!("first_byte_ns", FirstByte),
    moment!("first_event_ns", FirstEvent),
    moment!("first_token_ns", FirstToken),
    moment!("first_visible_ns", FirstVisible),
    moment!("last_token_ns", LastToken),
    moment!("finish_ns", Finish),
    moment!("usage_ns", Usage),
    moment!("stream_end_ns", StreamEnd),
    column("ttft_ns", Kind::Count, |r, _| ns(r.ttft())),
    column("ttft_scheduled_ns", Kind::Count, |r, _| ns(r.ttft_scheduled())),
    column("tpot_ns", Kind::Count, |r, _| tpot_ns(r).map(|v| v.round() as u64).into()),
    column("e2e_ns", Kind::Count, |r, _| ns(r.e2e())),
    column("e2e_scheduled_ns", Kind::Count, |r, _| ns(r.e2e_scheduled())),
    column("prompt_tokens", Kind::Count, |r, _| r.prompt_tokens().into()),
    column("cached_tokens", Kind::Count, |r, _| r.tokens.cached_server.into()),
    column("output_tokens", Kind::Count, |r, _| r.ok().then(|| output_tokens(r).0).into()),
    column("reasoning_tokens", Kind::Count, |r, _| r.tokens.reasoning_server.into()),
    column("events", Kind::Count, |r, _| r.chunks.len().into()),
    column("reads", Kind::Count, |r, _| r.net.reads.into()),
    column("body_bytes", Kind::Count, |r, _| r.net.body_bytes.into()),
    column("reused", Kind::Flag, |r, _| r.net.reused.into()),
    column("retries", Kind::Count, |r, _| r.net.retries.into()),
    column("stamps", Kind::Text, |r, _| format!("{:?}", r.stamps).to_lowercase().into()),
    column("text", Kind::Text, |r, _| r.text.as_deref().into()),
];

/// How a request ended, in a word or two.
pub(crate) fn outcome(row: &Row, facts: &RunFacts) -> String {
    match &row.end {
        End::Done(_) if facts.objectives.is_empty() => "completed".into(),
        End::Done(_) if met(row, facts) == Some(true) => "good".into(),
        End::Done(_) => "objective missed".into(),
        End::Failed { cause, .. } => format!("failed: {}", cause.name()),
        End::Cancelled(_) => "cancelled".into(),
        End::NeverSent(_) => "never sent".into(),
    }
}

/// Phase, blame and words of a failure.
fn failure(row: &Row, pick: fn(&str, &str, &str) -> String) -> Value {
    match &row.end {
        End::Failed { phase, blame, detail, .. } => {
            let name = |what: String| what.to_lowercase();
            pick(&name(format!("{phase:?}")), &name(format!("{blame:?}")), detail).into()
        }
        _ => Value::Null,
    }
}

/// A line of JSON for each request, by number.
pub fn jsonl(run: &Run<'_>, to: &mut impl Write) -> io::Result<()> {
    for row in ordered(run.rows) {
        let cells = COLUMNS.iter().map(|c| (c.name.to_owned(), (c.value)(row, run.facts)));
        serde_json::to_writer(&mut *to, &Value::Object(cells.collect::<Map<String, Value>>()))?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

/// CSV with a line of names: RFC 4180, but for the ends of lines, which are plain.
pub fn csv(run: &Run<'_>, to: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|c| c.name).collect();
    writeln!(to, "{}", names.join(","))?;
    for row in ordered(run.rows) {
        let cells: Vec<String> = COLUMNS.iter().map(|c| cell(&(c.value)(row, run.facts))).collect();
        writeln!(to, "{}", cells.join(","))?;
    }
    Ok(())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n', '\r']) || text.is_empty() => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
