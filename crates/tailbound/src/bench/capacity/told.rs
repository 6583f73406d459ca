//! What was found, for people and for programs.

use super::folder::Settings;
use super::measure::Search;
use std::fmt::Write as _;
use tailbound_report::capacity::{About, Found, ended};
use tailbound_stats::capacity::{Answer, Probed, Reason, Unit};
use tailbound_stats::wilson;

/// What was found, as it is kept.
pub fn found(search: &Search<'_>, settings: &Settings, probes: &[Probed], answer: &Answer) -> Found {
    let about = About {
        sentence: &sentence(search, answer),
        model: &settings.model,
        virtual_profile: search.args.search.virtual_time.then_some(search.args.search.profile.as_str()),
        hash: &settings.hash,
        accelerators: search.args.search.accelerators,
    };
    Found::new(&about, &search.spec, probes, answer)
}

/// For people.
pub fn text(search: &Search<'_>, settings: &Settings, probes: &[Probed], answer: &Answer) -> String {
    let mut out = format!("model {}, search {}\n", settings.model, &settings.hash[..12]);
    if search.args.search.virtual_time {
        out += &format!("modelled by {} in virtual time: no server was measured\n", search.args.search.profile);
    }
    for (k, r) in search.spec.requirements.iter().enumerate() {
        let _ = writeln!(out, "{}{} in {}", if k == 0 { "asked: " } else { "       " }, r.name, percent(r.share));
    }
    let load = match search.spec.unit {
        Unit::Rate => "requests/s",
        Unit::Concurrency => "in flight",
    };
    let _ = writeln!(
        out,
        "\n{:>5} {:>10} {:>9} {:>8}  {:<20} {:>9}  ended",
        "probe", load, "requests", "judged", "attainment, 95 %", "in flight"
    );
    for probed in probes {
        out += &line(probed, search.spec.requirements.len());
    }
    let _ = write!(out, "\n{}\n", sentence(search, answer));
    out
}

fn line(probed: &Probed, requirements: usize) -> String {
    // Of several, the one that fared worst.
    let worst = (0..requirements).min_by(|&a, &b| {
        let of = |k| probed.attainment(k).unwrap_or(f64::MAX);
        of(a).total_cmp(&of(b))
    });
    let attained = worst.and_then(|k| {
        let (judged, met) = probed.counts_of(k);
        let (low, high) = wilson(met, judged, 0.95)?;
        Some(format!("{} ({}-{:.1})", percent(met as f64 / judged as f64), percent_figure(low), 100.0 * high))
    });
    let ended = match (&probed.invalid, probed.probe.certifies) {
        (Some(why), _) => format!("INVALID {why}"),
        (None, true) => format!("{}, to certify", ended(probed.end)),
        (None, false) => ended(probed.end).to_owned(),
    };
    format!(
        "{:>5} {:>10} {:>9} {:>8}  {:<20} {:>9.1}  {ended}\n",
        probed.probe.number,
        figure(probed.probe.load),
        probed.requests,
        probed.marks.len(),
        attained.unwrap_or_else(|| "-".into()),
        probed.in_flight,
    )
}

/// The answer in plain words.
pub fn sentence(search: &Search<'_>, answer: &Answer) -> String {
    let unit = match answer.unit {
        Unit::Rate => "requests/s",
        Unit::Concurrency => "requests in flight",
    };
    let sure = percent(answer.confidence);
    let load = |load: f64| format!("{} {unit}", figure(load));
    if let Some(expected) = &answer.expected {
        let said = match expected.borne {
            Some(true) => format!("Yes: the objectives hold at {}", load(expected.load)),
            Some(false) => format!("No: the objectives do not hold at {}", load(expected.load)),
            None => format!(
                "Undecided: {} requests don't tell whether the objectives hold at {}",
                answer.requests,
                load(expected.load)
            ),
        };
        let confidence = if expected.borne == Some(false) { 1.0 - expected.confidence } else { expected.confidence };
        return match expected.borne {
            Some(_) => format!("{said} ({} sure, by {} requests).", at_least(confidence), answer.requests),
            None => format!("{said}; more --budget would."),
        };
    }
    let interval = match (answer.low, answer.high) {
        (Some(low), Some(high)) => format!(" ({sure}: {} to {})", figure(low), figure(high)),
        _ => String::new(),
    };
    let each = each(search, answer).map_or(String::new(), |each| format!(", {} for each accelerator", figure(each)));
    let mut said = match (answer.reason, answer.capacity) {
        (Reason::Infeasible, _) => {
            "No load meets the objectives: they are missed even where requests hardly ever meet.".to_owned()
        }
        (Reason::ClientLimited, Some(least)) => format!(
            "The capacity is at least {}{each}: up to there the objectives hold, and above it this client could not deliver the load.",
            load(least)
        ),
        (Reason::ClientLimited, None) => {
            "This client could not deliver any load that tells something: see the INVALID probes.".to_owned()
        }
        (Reason::BudgetSpent, Some(least)) if answer.high.is_none() => format!(
            "The capacity is at least {}{each}: no higher load was missed within the budget of {} requests.",
            load(least),
            search.spec.budget
        ),
        (reason, Some(capacity)) => {
            let why = match reason {
                Reason::BudgetSpent => format!("the search ended with its budget of {} requests", search.spec.budget),
                _ => format!("the search ended when its interval was within {} of it", percent(search.spec.precision)),
            };
            format!("The capacity is {}{interval}{each}; {why}.", load(capacity))
        }
        (_, None) => format!("No capacity was found within {} requests; more --budget would.", search.spec.budget),
    };
    if let Some(k) = answer.binding.filter(|_| search.spec.requirements.len() > 1) {
        let _ = write!(said, " What binds is {}.", search.spec.requirements[k].name);
    }
    if search.spec.certify && answer.capacity.is_some() {
        said += &match answer.certified {
            Some(certified) => format!(" Certified: {}.", load(certified)),
            None => " No run passed early stopping: nothing is certified.".to_owned(),
        };
    }
    said
}

fn at_least(confidence: f64) -> String {
    if confidence > 0.999 { "over 99.9 %".into() } else { percent(confidence) }
}

fn each(search: &Search<'_>, answer: &Answer) -> Option<f64> {
    Some(answer.capacity? / search.args.search.accelerators? as f64)
}

fn percent(share: f64) -> String {
    format!("{} %", percent_figure(share))
}

/// Four digits, without zeros at the end.
fn percent_figure(share: f64) -> String {
    let text = format!("{:.1}", 100.0 * share);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Four digits.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1000.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}
