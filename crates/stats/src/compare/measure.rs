//! What is compared: the headline figures of a run, and the samples they are made of.

use super::series::Series;
use crate::goodput;
use crate::request::weighted;
use crate::{RunFacts, tpot_ns};
use std::fmt;
use tailbound_record::{Moment, Row};

/// Windows a run is cut into for its rates.
const WINDOWS: usize = 64;

/// A latency as headlines use it: from the scheduled arrival in an open loop, else from the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latency {
    /// To the first token.
    Ttft,
    /// Per output token after the first event.
    Tpot,
    /// Between output events.
    Itl,
    /// To the last token.
    E2e,
}

/// Which figure of a latency's distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stat {
    /// The arithmetic mean.
    Mean,
    /// A percentile, 0–100, by linear interpolation.
    Percentile(f64),
}

/// One figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Of completed requests, ns.
    Latency(Latency, Stat),
    /// Completed requests per second.
    RequestsPerS,
    /// Output tokens of completed requests per second.
    OutputTokensPerS,
    /// Requests per second that met all their objectives.
    GoodputPerS,
    /// Share of judged requests that met all their objectives.
    Attainment,
    /// Share of requests, those excused left out, that were answered whole.
    Completed,
}

/// How two values of a measure are set against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By their ratio: latencies and rates.
    Ratio,
    /// By their difference: shares, which may be 0 or 1.
    Difference,
}

impl Measure {
    /// The headline figures, in the order of a report.
    pub fn headlines() -> Vec<Measure> {
        let stats = [Stat::Mean, Stat::Percentile(50.0), Stat::Percentile(99.0)];
        let latencies = [Latency::Ttft, Latency::Tpot, Latency::Itl, Latency::E2e];
        let latencies = latencies.into_iter().flat_map(|l| stats.map(|s| Measure::Latency(l, s)));
        let rates = [Measure::RequestsPerS, Measure::OutputTokensPerS, Measure::GoodputPerS];
        latencies.chain(rates).chain([Measure::Attainment, Measure::Completed]).collect()
    }

    /// Ratio or difference.
    pub fn scale(self) -> Scale {
        match self {
            Measure::Attainment | Measure::Completed => Scale::Difference,
            _ => Scale::Ratio,
        }
    }

    /// Whether less of it is better.
    pub fn lower_is_better(self) -> bool {
        matches!(self, Measure::Latency(..))
    }

    /// Of which latency it is.
    pub(crate) fn latency(self) -> Option<Latency> {
        match self {
            Measure::Latency(latency, _) => Some(latency),
            _ => None,
        }
    }

    /// Which figure of a latency it is.
    pub(crate) fn stat(self) -> Option<Stat> {
        match self {
            Measure::Latency(_, stat) => Some(stat),
            _ => None,
        }
    }

    /// What it is called in a sentence.
    pub fn words(self) -> String {
        match self {
            Measure::Latency(latency, stat) => format!("{} {}", stat, latency.words()),
            Measure::RequestsPerS => "throughput in requests".to_owned(),
            Measure::OutputTokensPerS => "throughput in output tokens".to_owned(),
            Measure::GoodputPerS => "goodput".to_owned(),
            Measure::Attainment => "attainment".to_owned(),
            Measure::Completed => "share of completed requests".to_owned(),
        }
    }

    /// A run's samples of it, by request or by window of time. `None` where the run has no such figure.
    pub(crate) fn series(self, rows: &[&Row], facts: &RunFacts) -> Option<Series> {
        match self {
            Measure::Latency(latency, _) => Some(latencies(latency, rows, facts)),
            Measure::RequestsPerS => rates(rows, facts, |row, add| add(row.at.get(Moment::LastToken), 1)),
            Measure::OutputTokensPerS => {
                rates(rows, facts, |row, add| weighted(row).for_each(|(chunk, tokens)| add(Some(chunk.at), tokens)))
            }
            Measure::GoodputPerS if facts.objectives.is_empty() => None,
            Measure::GoodputPerS => rates(rows, facts, |row, add| {
                if goodput::verdict(row, facts) == Some(true) {
                    add(row.at.get(Moment::LastToken), 1);
                }
            }),
            Measure::Attainment if facts.objectives.is_empty() => None,
            Measure::Attainment => Some(shares(rows, |row| goodput::verdict(row, facts))),
            Measure::Completed => Some(shares(rows, |row| (!goodput::excused(row)).then(|| row.ok()))),
        }
    }
}

impl Latency {
    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Latency::Ttft => "ttft",
            Latency::Tpot => "tpot",
            Latency::Itl => "itl",
            Latency::E2e => "e2e",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Latency::Ttft => "TTFT",
            Latency::Tpot => "TPOT",
            Latency::Itl => "ITL",
            Latency::E2e => "end-to-end latency",
        }
    }
}

fn latencies(latency: Latency, rows: &[&Row], facts: &RunFacts) -> Series {
    let mut series = Series::default();
    for row in rows {
        if row.ok() {
            let open = facts.open_loop();
            let length = match latency {
                Latency::Ttft if open => row.ttft_scheduled(),
                Latency::Ttft => row.ttft(),
                Latency::E2e if open => row.e2e_scheduled(),
                Latency::E2e => row.e2e(),
                Latency::Tpot | Latency::Itl => None,
            };
            series.values.extend(length.map(|d| d.ns() as f64));
            match latency {
                Latency::Tpot => series.values.extend(tpot_ns(row)),
                Latency::Itl => series.values.extend(row.chunks.gaps().map(|gap| gap.ns() as f64)),
                Latency::Ttft | Latency::E2e => {}
            }
        }
        series.end_unit();
    }
    series
}

fn shares(rows: &[&Row], judge: impl Fn(&Row) -> Option<bool>) -> Series {
    let mut series = Series::default();
    for row in rows {
        series.values.extend(judge(row).map(|good| if good { 1.0 } else { 0.0 }));
        series.end_unit();
    }
    series
}

/// Each window's rate per second: windows of a run are equally long, so their mean is the run's rate.
fn rates(
    rows: &[&Row],
    facts: &RunFacts,
    count: impl Fn(&Row, &mut dyn FnMut(Option<tailbound_clock::Time>, u32)),
) -> Option<Series> {
    let length = facts.duration().ns();
    if length == 0 {
        return None;
    }
    let mut counts = [0.0; WINDOWS];
    for row in rows.iter().filter(|row| row.ok()) {
        count(row, &mut |at, n| {
            let Some(at) = at else { return };
            let window = u128::from(at.since(facts.start).ns()) * WINDOWS as u128 / u128::from(length);
            counts[(window as usize).min(WINDOWS - 1)] += f64::from(n);
        });
    }
    let mut series = Series::of_windows(length as f64 / 1e9 / WINDOWS as f64);
    for n in counts {
        series.values.push(n);
        series.end_unit();
    }
    Some(series)
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stat::Mean => f.write_str("mean"),
            Stat::Percentile(p) => write!(f, "p{p}"),
        }
    }
}

/// Its name in files and flags: `p99_ttft`, `mean_tpot`, `requests_per_s`, `attainment`.
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Latency(latency, stat) => write!(f, "{stat}_{}", latency.name()),
            Measure::RequestsPerS => f.write_str("requests_per_s"),
            Measure::OutputTokensPerS => f.write_str("output_tokens_per_s"),
            Measure::GoodputPerS => f.write_str("goodput_per_s"),
            Measure::Attainment => f.write_str("attainment"),
            Measure::Completed => f.write_str("completed"),
        }
    }
}

/// A name that no measure has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown metric `{0}`; known are mean_, median_ or pNN_ with ttft, tpot, itl or e2e (p99_ttft, mean_tpot), and \
     requests_per_s, output_tokens_per_s, goodput_per_s, attainment, completed"
)]
pub struct ParseMeasureError(pub String);

impl std::str::FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Measure, ParseMeasureError> {
        let unknown = || ParseMeasureError(text.to_owned());
        let plain = [Measure::RequestsPerS, Measure::OutputTokensPerS, Measure::GoodputPerS];
        let plain = plain.into_iter().chain([Measure::Attainment, Measure::Completed]);
        if let Some(measure) = plain.into_iter().find(|m| m.to_string() == text) {
            return Ok(measure);
        }
        let (stat, latency) = text.split_once('_').ok_or_else(unknown)?;
        let latency = match latency {
            "ttft" => Latency::Ttft,
            "tpot" => Latency::Tpot,
            "itl" => Latency::Itl,
            "e2e" | "e2el" => Latency::E2e,
            _ => return Err(unknown()),
        };
        let stat = match stat {
            "mean" => Stat::Mean,
            "median" => Stat::Percentile(50.0),
            _ => {
                let p: f64 = stat.strip_prefix('p').and_then(|p| p.parse().ok()).ok_or_else(unknown)?;
                Stat::Percentile(Some(p).filter(|p| *p > 0.0 && *p < 100.0).ok_or_else(unknown)?)
            }
        };
        Ok(Measure::Latency(latency, stat))
    }
}
