//! Words that a comparison's text and page share.

use super::record::{Agreement, Contrast, Estimate, Finding, Record};
use tailbound_stats::compare::{Measure, number};

/// A metric's name as a label: `Mean TTFT`, `Output tokens`.
pub(super) fn label(finding: &Finding) -> String {
    let words = finding.metric.parse::<Measure>().map_or_else(|_| finding.metric.clone(), Measure::words);
    let short = words
        .replace("share of completed requests", "completed")
        .replace("throughput in ", "")
        .replace("end-to-end latency", "E2E");
    capital(&short)
}

/// A value with its unit.
pub(super) fn shown(finding: &Finding, value: Option<f64>) -> Option<String> {
    let value = value?;
    Some(match finding.unit.as_str() {
        "share" => format!("{} %", number(value * 100.0)),
        "1/s" => format!("{} /s", number(value)),
        unit => format!("{} {unit}", number(value)),
    })
}

/// The change from the first side to this one, in the unit beside it: percent of the first's value, or for shares points.
pub(super) fn change(finding: &Finding) -> Option<(Estimate, &'static str)> {
    let percent: fn(f64) -> f64 = |ratio| (ratio - 1.0) * 100.0;
    let points: fn(f64) -> f64 = |difference| difference * 100.0;
    let (of, scale, unit) = match finding.unit.as_str() {
        "share" => (finding.difference?, points, "points"),
        _ => (finding.ratio?, percent, "%"),
    };
    Some((Estimate { value: of.value.map(scale), low: of.low.map(scale), high: of.high.map(scale) }, unit))
}

/// `-24 … -18 %`, `+0.1 … +2 points`.
pub(super) fn span(finding: &Finding) -> Option<String> {
    let (change, unit) = change(finding)?;
    let signed = |v: Option<f64>, nowhere: &str| match v.map(number) {
        None => nowhere.to_owned(),
        Some(text) if text == "0" || text.starts_with('-') => text,
        Some(text) => format!("+{text}"),
    };
    Some(format!("{} … {} {unit}", signed(change.low, "-∞"), signed(change.high, "+∞")))
}

/// What may be said of a finding.
pub(super) fn claim(finding: &Finding) -> &'static str {
    match (finding.claim.as_str(), finding.better) {
        ("lower", Some(true)) => "lower, better",
        ("lower", _) => "lower, worse",
        ("higher", Some(true)) => "higher, better",
        ("higher", _) => "higher, worse",
        ("same", _) => "same within the margin",
        ("open", _) => "can't be told",
        ("too_few", _) => "too few requests",
        ("missing", _) => "missing",
        _ => "none: INVALID run",
    }
}

/// What the intervals rest on.
pub(super) fn rests_on(record: &Record, contrast: &Contrast) -> String {
    let pairs = match contrast.pairing.as_str() {
        "requests" => "requests are paired",
        "rounds" => "rounds are paired, requests are not",
        _ => "nothing is paired",
    };
    let runs = match contrast.knows_runs {
        true => format!("{} rounds", contrast.rounds),
        false => "fewer than 3 rounds: what differs from run to run is not in the intervals".to_owned(),
    };
    let level = number((1.0 - record.design.alpha) * 100.0);
    format!("{level} % intervals; {runs}; {pairs}; the other metrics are claimed by Holm's adjustment")
}

/// `passed: …`, `FAILED: …`; `None` without a gate, or while a run is INVALID.
pub(super) fn gate(record: &Record) -> Option<String> {
    let gate = record.gate?;
    let limit = number(gate.tolerance * 100.0);
    let what = record.design.primary.parse::<Measure>().map_or_else(|_| record.design.primary.clone(), Measure::words);
    Some(match (gate.passes?, gate.proof) {
        (true, true) => format!("passed: {what} is shown not to be more than {limit} % worse"),
        (true, false) => format!("passed: {what} is not shown to be more than {limit} % worse"),
        (false, true) => format!("FAILED: {what} may be more than {limit} % worse"),
        (false, false) => format!("FAILED: {what} is more than {limit} % worse"),
    })
}

/// How the answers agree.
pub(super) fn agreed(agreement: &Agreement) -> String {
    let Some((share, (low, high))) = agreement.share.zip(agreement.interval) else {
        return "no pair of texts to compare".to_owned();
    };
    let percent = |v: f64| number(v * 100.0);
    let mut out = format!(
        "{} of {} are the same to the last byte ({} %; interval {}–{} %)",
        agreement.identical,
        agreement.pairs,
        percent(share),
        percent(low),
        percent(high)
    );
    if let Some((first, shared)) = agreement.first_divergence_chars.median.zip(agreement.shared_beginning.median) {
        out += &format!(
            "; the others part after {} characters in the median, {} % of the shorter text",
            number(first),
            percent(shared)
        );
    }
    if agreement.unread > 0 {
        out += &format!("; {} have no text on a side", agreement.unread);
    }
    out
}

/// That a side has more throughput and less goodput than the first, if both are claimed.
pub(super) fn apart(contrast: &Contrast) -> Option<String> {
    let claimed = |metric: &str, claim: &str| {
        contrast.findings.iter().find(|f| f.metric == metric && f.claim == claim).and_then(span)
    };
    let more = claimed("output_tokens_per_s", "higher").or_else(|| claimed("requests_per_s", "higher"))?;
    let less = claimed("goodput_per_s", "lower")?;
    Some(format!(
        "Throughput rose while goodput fell: against {}, {} has {more} throughput and {less} goodput.",
        contrast.against, contrast.side
    ))
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
