//! The page of a search: the answer first, then what it rests on.

use super::{Found, ProbeFound, ended};
use crate::page::figure::{Attainment, Curve, attainment, lines};
use crate::page::{
    Axis, Block, Card, Column, Mark, Page, Plot, Point, Section, Series, Strip, Table, Tone, brief, count, interval,
    percent,
};
use tailbound_stats::capacity::{Reason, Unit};

pub(super) fn page(found: &Found) -> Page {
    let section = |id: &str, heading: &str, blocks| Section { id: id.into(), heading: heading.into(), blocks };
    let load: Vec<Block> = drop_of_goodput(found).map(Block::Beware).into_iter().chain(plots(found)).collect();
    Page {
        title: found.model.clone(),
        kind: if found.virtual_profile.is_some() { "capacity, SIMULATED".into() } else { "capacity, MEASURED".into() },
        lead: found.sentence.clone(),
        verdict: Some(strip(found)),
        cards: cards(found),
        sections: vec![
            section("load", "Over load", load),
            section("probes", "Probes", vec![Block::Table(probes(found))]),
            section("asked", "What was asked", vec![Block::Table(asked(found))]),
        ],
        absent: vec![
            "Single requests: each probe is a run; `tailbound report DIR/probe-NNN --html FILE` is its page.".into(),
        ],
        footer: format!("tailbound {} · search {}", env!("CARGO_PKG_VERSION"), found.hash),
        ..Page::default()
    }
}

fn strip(found: &Found) -> Strip {
    let asked = found.answer.expected.is_some();
    let (tone, word, sentence) = match (found.borne(), asked) {
        (Some(true), true) => (Tone::Good, "YES", "The load asked about is borne."),
        (Some(false), true) => (Tone::Missed, "NO", "The load asked about is not borne."),
        (None, true) => (Tone::Void, "UNDECIDED", "What was measured does not tell."),
        (Some(true), false) if found.answer.reason == Reason::Converged => {
            (Tone::Good, "FOUND", "The interval is as narrow as was asked for.")
        }
        (Some(true), false) => {
            (Tone::Good, "FOUND", "The search ended with its budget; the interval is as wide as it is.")
        }
        (Some(false), false) => (Tone::Missed, "INFEASIBLE", "No load meets the objectives."),
        (None, false) => (Tone::Void, "NOT PROVED", "The answer is a bound, or there is none: see the reasons."),
    };
    let reasons = match (found.answer.reason, found.borne()) {
        (Reason::ClientLimited, _) => vec![(
            "This client could not deliver the load at which the system would show its limit.".to_owned(),
            "more cores for the client, or more clients".to_owned(),
        )],
        (_, None) => {
            vec![("The requests of the search are spent.".to_owned(), "a larger --budget goes on with it".to_owned())]
        }
        _ => Vec::new(),
    };
    let invalid = found.probes.iter().filter(|p| !p.valid).map(|p| {
        let why = p.invalid.as_deref().unwrap_or("no reason was kept");
        let load = brief(p.probe.load);
        (
            format!("Probe {} at {load} {} is INVALID and does not count: {why}.", p.probe.number, found.unit()),
            String::new(),
        )
    });
    let mut cautions: Vec<(String, String)> = invalid.collect();
    cautions.extend(drop_of_goodput(found).map(|words| (words, "see Over load".to_owned())));
    if let Some(profile) = &found.virtual_profile {
        cautions.push((format!("Modelled by {profile} in virtual time: no server was measured."), String::new()));
    }
    Strip { tone, word: word.into(), sentence: sentence.into(), reasons, cautions }
}

fn cards(found: &Found) -> Vec<Card> {
    let a = &found.answer;
    let card = |label: &str, value: String, detail: String| Card { label: label.into(), value, detail, void: false };
    let sure = |low: Option<f64>, high: Option<f64>| match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}, {} sure", brief(low), brief(high), percent(a.confidence)),
        (Some(low), None) => format!("at least {}", brief(low)),
        _ => "no interval".into(),
    };
    let mut cards = Vec::new();
    if let Some(expected) = &a.expected {
        cards.push(card(
            "Asked about",
            format!("{} {}", brief(expected.load), found.unit()),
            format!("borne with a confidence of {}", percent(expected.confidence)),
        ));
    }
    if let Some(capacity) = a.capacity {
        cards.push(card("Capacity", format!("{} {}", brief(capacity), found.unit()), sure(a.low, a.high)));
    }
    let each = &found.per_accelerator;
    if let (Some(capacity), Some(n)) = (each.capacity, found.accelerators) {
        let detail = format!("{}; {n} accelerators", sure(each.low, each.high));
        cards.push(card("For each accelerator", brief(capacity), detail));
    }
    if let Some(certified) = a.certified {
        cards.push(card(
            "Certified",
            format!("{} {}", brief(certified), found.unit()),
            "early stopping passed, no backlog".into(),
        ));
    }
    let invalid = found.probes.iter().filter(|p| !p.valid).count();
    let detail = if invalid == 0 { "all count".into() } else { format!("{invalid} INVALID") };
    cards.push(card("Probes", count(u64::from(a.probes)), detail));
    cards.push(card("Requests", count(a.requests), "of all probes together".into()));
    cards
}

/// A load axis that suits a search: it doubles and halves.
fn load_axis(found: &Found) -> Axis {
    Axis::log(match found.answer.unit {
        Unit::Rate => "offered requests/s",
        Unit::Concurrency => "requests in flight",
    })
}

fn plots(found: &Found) -> Vec<Block> {
    let binding = found.answer.binding.unwrap_or(0);
    let mut order: Vec<usize> = (0..found.requirements.len()).collect();
    order.sort_by_key(|k| *k != binding);
    let mut plots: Vec<Plot> = order.iter().map(|k| attained(found, *k, *k == binding)).collect();
    plots.extend(good(found, binding));
    plots.into_iter().map(Block::Plot).collect()
}

/// Attainment of one requirement by each probe; the fit is of the one that binds.
fn attained(found: &Found, k: usize, binds: bool) -> Plot {
    let requirement = &found.requirements[k];
    let point = |p: &ProbeFound| {
        let of = p.by_requirement.get(k)?;
        let point = Point::within(p.probe.load, of.attainment?, of.low.zip(of.high));
        Some(point.named(format!("probe {}", p.probe.number)).counting_unless(!p.valid))
    };
    let mut probes: Vec<Point> = found.probes.iter().filter_map(point).collect();
    probes.sort_by(|a, b| a.x.total_cmp(&b.x));
    let fitted = if binds { found.curve.as_slice() } else { &[] };
    let shown = Attainment {
        probes,
        fitted: fitted.iter().map(|b| Point::within(b.load, b.attainment, Some((b.low, b.high)))).collect(),
        required: requirement.share,
        capacity: found.answer.low.zip(found.answer.high).filter(|_| binds),
    };
    let finding = match (binds, found.answer.capacity) {
        (true, Some(capacity)) => format!(
            "The fitted share crosses {} at {} {} ({}).",
            percent(requirement.share),
            brief(capacity),
            found.unit(),
            found.answer.low.zip(found.answer.high).map_or("no interval".into(), |range| interval(Some(range), ""))
        ),
        _ => format!("{} is asked for.", percent(requirement.share)),
    };
    let mut plot = attainment(&finding, load_axis(found), &shown);
    if found.requirements.len() > 1 {
        plot.title = format!("Attainment over load: {}", requirement.name);
    }
    plot
}

/// Good requests a second of each valid probe: arrivals that met the binding requirement.
fn good_rates(found: &Found, k: usize) -> Vec<(f64, f64)> {
    let rate = |p: &ProbeFound| Some((p.probe.load, p.probe.load * p.by_requirement.get(k)?.attainment?));
    let mut rates: Vec<(f64, f64)> = found.probes.iter().filter(|p| p.valid).filter_map(rate).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    rates
}

/// Good against offered: what more load brings.
fn good(found: &Found, k: usize) -> Option<Plot> {
    if found.answer.unit != Unit::Rate {
        return None;
    }
    let dot = |p: &ProbeFound| {
        let of = p.by_requirement.get(k)?;
        let scaled = |share: f64| share * p.probe.load;
        let interval = of.low.zip(of.high).map(|(low, high)| (scaled(low), scaled(high)));
        let point = Point::within(p.probe.load, scaled(of.attainment?), interval);
        Some(point.named(format!("probe {}", p.probe.number)).counting_unless(!p.valid))
    };
    let mut dots: Vec<Point> = found.probes.iter().filter_map(dot).collect();
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let (first, last) = (dots.first()?.x, dots.last()?.x);
    let offered = Curve { name: "offered".into(), points: [first, last].map(|x| Point::from((x, x))).to_vec() };
    let most = good_rates(found, k).into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let finding = format!(
        "At most {} good requests/s were seen, at {} offered. Where the dots leave the line, more load is not more served.",
        brief(most.1),
        brief(most.0)
    );
    // On linear axes both ways, so that what is offered is a straight line.
    let (x, y) = (Axis::linear("offered requests/s"), Axis::linear("requests/s"));
    let mut plot = lines("Good requests over offered ones", &finding, x, y, &[offered]);
    plot.series[0].colour = Some(2);
    plot.series.push(Series::new("good, by probe", Mark::Dots, dots).coloured(0));
    Some(plot)
}

/// That more load brought less, if it did: goodput at a higher load is under nine tenths of the best.
fn drop_of_goodput(found: &Found) -> Option<String> {
    let rates = good_rates(found, found.answer.binding.unwrap_or(0));
    let best = rates.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = rates.iter().filter(|r| r.0 >= 1.05 * best.0).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (found.answer.unit == Unit::Rate && worst.1 <= 0.9 * best.1).then(|| {
        format!(
            "More load brought less: good requests fell from {}/s at {} requests/s offered to {}/s at {}.",
            brief(best.1),
            brief(best.0),
            brief(worst.1),
            brief(worst.0)
        )
    })
}

fn probes(found: &Found) -> Table {
    let mut columns = vec![Column::Text("probe".into())];
    columns.extend([found.unit(), "requests", "judged"].map(|c| Column::Figure(c.into())));
    for requirement in &found.requirements {
        columns.push(Column::Figure(requirement.name.clone()));
        columns.push(Column::Figure("95 % interval".into()));
    }
    columns.push(Column::Figure("in flight".into()));
    columns.push(Column::Figure("kept up".into()));
    columns.push(Column::Text("ended".into()));
    let row = |p: &ProbeFound| {
        let judged = p.by_requirement.iter().map(|a| a.judged).max().unwrap_or(0);
        let mut cells = vec![p.probe.number.to_string(), brief(p.probe.load), count(p.requests), count(judged as u64)];
        for a in &p.by_requirement {
            cells.push(a.attainment.map_or("–".into(), percent));
            let scaled = a.low.zip(a.high).map(|(low, high)| (100.0 * low, 100.0 * high));
            cells.push(interval(scaled, "\u{202f}%"));
        }
        cells.push(brief(p.in_flight));
        cells.push(percent(p.kept_up));
        cells.push(match (&p.invalid, p.probe.certifies) {
            (Some(why), _) => format!("INVALID: {why}"),
            (None, true) => format!("{}; to certify", ended(p.end)),
            (None, false) => ended(p.end).to_owned(),
        });
        cells
    };
    Table {
        caption: "Every probe, in order".into(),
        columns,
        rows: found.probes.iter().map(row).collect(),
        invalid: (0..found.probes.len()).filter(|i| !found.probes[*i].valid).collect(),
    }
}

fn asked(found: &Found) -> Table {
    let binds = |k: usize| if found.answer.binding == Some(k) { "yes" } else { "" };
    let rows = found.requirements.iter().enumerate();
    Table {
        caption: "A load is borne if all of these hold".into(),
        columns: vec![
            Column::Text("what".into()),
            Column::Figure("of the requests".into()),
            Column::Text("binds".into()),
        ],
        rows: rows.map(|(k, r)| vec![r.name.clone(), percent(r.share), binds(k).into()]).collect(),
        invalid: Vec::new(),
    }
}
