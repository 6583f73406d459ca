//! A comparison in sentences, without full stops.

use super::{Claim, Contrast, Design, Estimate, Finding, Measure, Scale};
use crate::RunFacts;

impl Finding {
    /// What may be said of this figure, of sides called `a` and `b`.
    pub fn sentence(&self, a: &str, b: &str, design: &Design) -> String {
        let what = self.measure.words();
        match self.claim {
            Claim::Lower | Claim::Higher => format!("{b}'s {what} is {} than {a}'s", self.apart()),
            Claim::Same => format!("{b}'s {what} is {a}'s within {}", self.margin(design)),
            Claim::Open => format!("whether {what} differs can't be told: {b}'s is {}", self.spread()),
            Claim::TooFew => format!("too few requests to compare {what}"),
            Claim::Missing => format!("{what} can't be compared: a side has none"),
            Claim::Withheld => format!("nothing is claimed about {what}: a run is INVALID"),
        }
    }

    /// `18–24 % lower`, `2.1–2.4 times as high`, `1.2–3 points higher`.
    fn apart(&self) -> String {
        match (self.measure.scale(), self.ratio, self.difference) {
            (Scale::Ratio, Some(r), _) if r.high > 2.0 && r.value > 1.0 => {
                format!("{} times higher", range(r.low, r.high))
            }
            (Scale::Ratio, Some(r), _) if r.value < 1.0 => {
                format!("{} % lower", range((1.0 - r.high) * 100.0, (1.0 - r.low) * 100.0))
            }
            (Scale::Ratio, Some(r), _) => {
                format!("{} % higher", range((r.low - 1.0) * 100.0, (r.high - 1.0) * 100.0))
            }
            (Scale::Difference, _, Some(d)) if d.value < 0.0 => {
                format!("{} points lower", range(-d.high * 100.0, -d.low * 100.0))
            }
            (Scale::Difference, _, Some(d)) => format!("{} points higher", range(d.low * 100.0, d.high * 100.0)),
            _ => "different".to_owned(),
        }
    }

    /// `between 12 % lower and 3 % higher`.
    fn spread(&self) -> String {
        let (low, high, unit) = match (self.measure.scale(), self.ratio, self.difference) {
            (Scale::Ratio, Some(r), _) => ((r.low - 1.0) * 100.0, (r.high - 1.0) * 100.0, "%"),
            (Scale::Difference, _, Some(d)) => (d.low * 100.0, d.high * 100.0, "points"),
            _ => return "not known".to_owned(),
        };
        let side = |v: f64| {
            let word = if v < 0.0 { "lower" } else { "higher" };
            format!("{} {unit} {word}", number(v.abs()))
        };
        let but = if low > 0.0 || high < 0.0 { ", which is not enough with so many figures looked at" } else { "" };
        format!("between {} and {}{but}", side(low), side(high))
    }

    fn margin(&self, design: &Design) -> String {
        match self.measure.scale() {
            Scale::Ratio => format!("{} %", number(design.margin * 100.0)),
            Scale::Difference => format!("{} points", number(design.share_margin * 100.0)),
        }
    }
}

impl Contrast {
    /// The whole in one sentence: the primary figure, then what else differs, what doesn't, and what can't be told. `load` is how the load was, as
    /// [`load`] says it; it may be empty.
    pub fn sentence(&self, a: &str, b: &str, load: &str, design: &Design) -> String {
        let primary = self.primary();
        let at = if load.is_empty() { String::new() } else { format!(" {load}") };
        let mut parts = vec![match primary.claim {
            Claim::Lower | Claim::Higher => {
                format!("{b}'s {} is {}{at} than {a}'s", primary.measure.words(), primary.apart())
            }
            _ => primary.sentence(a, b, design) + &at,
        }];
        if primary.claim == Claim::Withheld {
            return parts.remove(0);
        }
        let others = || self.findings.iter().skip(1);
        parts.extend(self.other_differences());
        let named = |claim: Claim| {
            let names: Vec<String> = others().filter(|f| f.claim == claim).map(|f| f.measure.words()).collect();
            (!names.is_empty()).then(|| (and(&names), names.len()))
        };
        if let Some((names, n)) = named(Claim::Same) {
            parts.push(format!("{names} {} not differ", if n == 1 { "does" } else { "do" }));
        }
        if let Some((names, n)) = named(Claim::Open) {
            parts.push(format!("whether {names} {} can't be told", if n == 1 { "differs" } else { "differ" }));
        }
        let runs = if self.knows_runs() { "" } else { "between these runs, " };
        format!("{runs}{}", parts.join("; "))
    }

    /// The other figures that differ; those of one latency that go the same way are said together, with a range that holds all of theirs.
    fn other_differences(&self) -> Vec<String> {
        let mut left: Vec<&Finding> = self.findings.iter().skip(1).filter(|f| f.better().is_some()).collect();
        let mut told = Vec::new();
        while !left.is_empty() {
            let first = left.remove(0);
            let kin = |f: &&Finding| {
                f.claim == first.claim && f.measure.latency().is_some_and(|l| Some(l) == first.measure.latency())
            };
            let (mut together, rest): (Vec<&Finding>, Vec<&Finding>) = left.into_iter().partition(kin);
            left = rest;
            together.insert(0, first);
            let (Some(latency), true) = (first.measure.latency(), together.len() > 1) else {
                told.push(format!("{} is {}", first.measure.words(), first.apart()));
                continue;
            };
            let stats: Vec<String> = together.iter().filter_map(|f| f.measure.stat()).map(|s| s.to_string()).collect();
            let ratios = together.iter().filter_map(|f| f.ratio);
            let whole =
                ratios.reduce(|a, b| Estimate { value: a.value, low: a.low.min(b.low), high: a.high.max(b.high) });
            let whole = Finding { ratio: whole, ..first.clone() };
            told.push(format!("{} ({}) is {}", latency.words(), stats.join(", "), whole.apart()));
        }
        told
    }
}

/// How the load was: `at 8 requests/s`, `at concurrency 16`, `with all requests at once`.
pub fn load(facts: &RunFacts) -> String {
    match (facts.request_rate, facts.max_concurrency) {
        (Some(rate), _) => format!("at {} requests/s", number(rate)),
        (None, _) if facts.self_timed => "on the trace's own schedule".to_owned(),
        (None, _) if facts.ramp.is_some() => "over the ramp".to_owned(),
        (None, Some(cap)) => format!("at concurrency {cap}"),
        (None, None) => "with all requests at once".to_owned(),
    }
}

/// A measure's value with its unit.
pub fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Latency(..) => format!("{} ms", number(value * 1e-6)),
        Measure::Attainment | Measure::Completed => format!("{} %", number(value * 100.0)),
        _ => format!("{} /s", number(value)),
    }
}

fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn range(low: f64, high: f64) -> String {
    let (low, high) = (number(low), number(high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// With as many decimals as make three digits, at most three; none that are zero.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    if text == "-0" { "0".to_owned() } else { text }
}
