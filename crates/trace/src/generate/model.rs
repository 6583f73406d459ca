use crate::collect::Trace;
use crate::describe::Histogram;
use crate::error::Error;
use crate::generate::{Cascade, Copula, Pdf, SessionModel};
use crate::hash::FixedMap;
use crate::row::{Name, Names, Row};
use serde::{Deserialize, Serialize};
use tailbound_clock::Seed;

/// A workload learned from a trace: its clients, each with its own arrivals and lengths. One nameless client where the trace
/// names none. It reads and writes as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Length of the trace in seconds.
    pub span_s: f64,
    /// Its clients, busiest first.
    pub clients: Vec<ClientModel>,
}

/// One client's habits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientModel {
    /// Its name, if the trace named one.
    pub name: Option<String>,
    /// When it sends.
    pub arrivals: Cascade,
    /// What it sends, by time.
    pub lengths: Vec<LengthModel>,
    /// How its conversations go on; then `arrivals` and `lengths` are those of what begins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionModel>,
}

/// Lengths from some time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthModel {
    /// From this second of the trace.
    pub from_s: f64,
    /// Prompt tokens, where known.
    pub input: Option<Pdf>,
    /// Output tokens, where known.
    pub output: Option<Pdf>,
    /// Spearman's correlation of the two.
    pub spearman: f64,
}

/// What to generate from a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generate {
    /// Seconds; `None`: as long as the trace was.
    pub duration_s: Option<f64>,
    /// Factor on every rate.
    pub rate_scale: f64,
}

impl Default for Generate {
    fn default() -> Generate {
        Generate { duration_s: None, rate_scale: 1.0 }
    }
}

/// Clients with fewer requests than this are learned together: alone they have no law to speak of.
const FEW: usize = 20;
/// Lengths are learned per this many seconds, if there are enough of them.
const LENGTH_WINDOW: f64 = 6.0 * 3600.0;
const ENOUGH_LENGTHS: usize = 200;

/// Learns a model from a trace with times. Failed requests are learned like others: they arrived.
pub fn fit(trace: &Trace) -> Result<Model, Error> {
    let span_ns = trace.span_ns();
    let timed: Vec<&Row> = trace.rows.iter().filter(|r| r.at.is_some()).collect();
    if timed.len() < 2 || span_ns <= 0 {
        return Err(Error::Asked("failed to fit: a model needs arrivals at two different times or more".into()));
    }
    let mut by_client: FixedMap<Option<Name>, Vec<&Row>> = FixedMap::default();
    for row in timed {
        by_client.entry(row.client).or_default().push(row);
    }
    let mut groups: Vec<(Option<Name>, Vec<&Row>)> = by_client.into_iter().collect();
    groups.sort_by_key(|(name, rows)| (std::cmp::Reverse(rows.len()), *name));
    merge_small(&mut groups);
    let client = |(name, rows): &(Option<Name>, Vec<&Row>)| {
        let (starts, sessions) = SessionModel::fit(rows);
        let times: Vec<i64> = starts.iter().filter_map(|r| r.at).collect();
        ClientModel {
            name: name.map(|n| trace.names.text(n).to_owned()),
            arrivals: Cascade::fit(&times, span_ns),
            lengths: lengths(&starts),
            sessions,
        }
    };
    Ok(Model { span_s: span_ns as f64 / 1e9, clients: groups.iter().map(client).collect() })
}

/// Small clients become one nameless client.
fn merge_small<'a>(groups: &mut Vec<(Option<Name>, Vec<&'a Row>)>) {
    let first_small = groups.iter().position(|(_, rows)| rows.len() < FEW).unwrap_or(groups.len());
    if groups.len() - first_small < 2 {
        return;
    }
    let mut rows: Vec<&'a Row> = groups.drain(first_small..).flat_map(|(_, rows)| rows).collect();
    rows.sort_by_key(|r| r.at);
    groups.push((None, rows));
}

fn lengths(rows: &[&Row]) -> Vec<LengthModel> {
    let window = |row: &Row| (row.at.unwrap_or(0) as f64 / 1e9 / LENGTH_WINDOW) as u64;
    let mut out: Vec<LengthModel> = Vec::new();
    for group in rows.chunk_by(|a, b| window(a) == window(b)) {
        if group.len() >= ENOUGH_LENGTHS {
            out.push(length_model(group, window(group[0]) as f64 * LENGTH_WINDOW));
        }
    }
    if out.is_empty() {
        out.push(length_model(rows, 0.0));
    }
    out
}

fn length_model(rows: &[&Row], from_s: f64) -> LengthModel {
    let pdf = |field: fn(&Row) -> Option<u32>| {
        let mut histogram = Histogram::default();
        rows.iter().filter_map(|r| field(r)).for_each(|n| histogram.add(n.into()));
        Pdf::new(histogram.values().map(|(value, n)| (value as f64, n as f64)).collect())
    };
    let pairs: Vec<[u32; 2]> = rows.iter().filter_map(|r| Some([r.input?, r.output?])).collect();
    let spearman = crate::describe::spearman_of(&pairs).unwrap_or(0.0);
    LengthModel { from_s, input: pdf(|r| r.input), output: pdf(|r| r.output), spearman }
}

/// Draws a workload from a model. Counts are as random as the arrivals make them; clients do not depend on each other.
pub fn generate(model: &Model, ask: &Generate, seed: Seed) -> Result<Trace, Error> {
    let duration = ask.duration_s.unwrap_or(model.span_s);
    let usable = duration > 0.0 && duration < 1e9 && ask.rate_scale > 0.0 && ask.rate_scale.is_finite();
    if !usable {
        let what = "failed to generate: the duration and the rate's factor must be above zero";
        return Err(Error::Asked(what.into()));
    }
    let mut names = Names::default();
    let mut rows = Vec::new();
    for (i, client) in model.clients.iter().enumerate() {
        let name = client.name.as_deref().map(|n| names.intern(n));
        let mut arrivals = seed.numbered("fit.arrivals", i as u64);
        let mut lengths = seed.numbered("fit.lengths", i as u64);
        let mut talk = seed.numbered("fit.sessions", i as u64);
        let end = (duration * 1e9) as i64;
        let copulas = client.lengths.iter().map(|l| Copula::new(l.spearman)).collect::<Result<Vec<_>, _>>()?;
        for at in client.arrivals.draw(model.span_s, duration, ask.rate_scale, &mut arrivals) {
            let of_trace = (at as f64 / 1e9) % model.span_s;
            let k = client.lengths.iter().rposition(|l| l.from_s <= of_trace).unwrap_or(0);
            let (Some(law), Some(copula)) = (client.lengths.get(k), copulas.get(k)) else { continue };
            let (u, v) = copula.pair(&mut lengths);
            let value = |pdf: &Option<Pdf>, u: f64| pdf.as_ref().map(|p| p.at(u) as u32);
            let (input, output) = (value(&law.input, u), value(&law.output, v));
            let mut row = Row { at: Some(at), client: name, input, output, ..Row::default() };
            if let Some(sessions) = &client.sessions {
                let label = format!("session-{i}-{}", rows.len());
                let later = sessions.draw(&mut row, end, &mut names, &label, &mut talk);
                rows.extend(later);
            }
            rows.push(row);
        }
    }
    Ok(Trace::of_rows(rows, names, None))
}
