//! Verdict, objectives, the figures to see first, and what was run.

use super::{Told, ms};
use crate::Run;
use crate::explain::Entry;
use crate::page::{Block, Card, Column, Strip, Table, Tone, brief, count, interval, percent};
use crate::text::metric_name;
use tailbound_stats::{Dist, Reason, wilson};

/// Milliseconds of nanoseconds, with the unit.
pub(super) fn in_ms(ns: f64) -> String {
    if ns.is_infinite() { "∞".into() } else { format!("{}\u{202f}ms", brief(ms(ns))) }
}

pub(super) fn title(run: &Run<'_>) -> String {
    run.description.label.clone().unwrap_or_else(|| run.description.model_id.clone())
}

pub(super) fn lead(run: &Run<'_>) -> String {
    let n = &run.summary.requests;
    let mut lead = format!("{} requests planned, {} completed", count(n.planned as u64), count(n.completed as u64));
    for (word, k) in [("failed", n.failed), ("cancelled", n.cancelled), ("never sent", n.never_sent)] {
        if k > 0 {
            lead += &format!(", {} {word}", count(k as u64));
        }
    }
    lead + &format!(", in {}\u{202f}s. {}", brief(run.summary.duration.secs()), crate::text::plain_words(run).join(" "))
}

/// The verdict in one look.
pub(super) fn strip(told: &Told<'_>) -> Strip {
    let run = told.run;
    let pairs =
        |reasons: &[Reason]| reasons.iter().map(|r| (sentence_of(&r.sentence), r.mend.clone())).collect::<Vec<_>>();
    let met = run.summary.goodput.as_ref().map(|g| g.met());
    let (tone, word, sentence) = match (run.verdict.valid(), met) {
        (false, _) => (
            Tone::Void,
            "INVALID",
            "The figures describe the client, or another load than the one asked for: none of them is to be quoted.",
        ),
        (true, Some(false)) => (Tone::Missed, "OBJECTIVE MISSED", "The run counts, and the objectives were not met."),
        (true, Some(true)) => (Tone::Good, "VALID", "The run counts, and the objectives were met."),
        (true, None) => (
            Tone::Good,
            "VALID",
            "The run counts. No objectives were given, so nothing says whether it was good enough.",
        ),
    };
    let mut cautions = pairs(&run.verdict.cautions);
    cautions.extend(apart(told).map(|words| (words, "see Over time".to_owned())));
    cautions.extend(told.about.notes.iter().map(|note| (sentence_of(note), String::new())));
    Strip { tone, word: word.into(), sentence: sentence.into(), reasons: pairs(&run.verdict.reasons), cautions }
}

/// With a capital, and a full stop.
fn sentence_of(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

/// That throughput rose while goodput fell, if it did.
pub(super) fn apart(told: &Told<'_>) -> Option<String> {
    let d = told.over_time.drift.filter(|d| d.apart)?;
    let pair = |(a, b): (f64, f64)| format!("{} to {}", brief(a), brief(b));
    Some(format!(
        "Throughput rose while goodput fell: from the first third of the load to the last, output went from {} tokens/s and completions from \
         {}/s, but good requests from {}/s.",
        pair(d.output_tokens_per_s),
        pair(d.completed_per_s),
        pair(d.good_per_s)
    ))
}

pub(super) fn cards(run: &Run<'_>) -> Vec<Card> {
    let (s, void) = (run.summary, !run.verdict.valid());
    let mut cards = Vec::new();
    let mut card = |label: &str, value: String, detail: String| {
        let detail = if void { format!("INVALID · {detail}") } else { detail };
        cards.push(Card { label: label.into(), value, detail, void });
    };
    if let Some(g) = &s.goodput {
        let share = g.attainment.map_or("–".into(), percent);
        let range = g.interval.map(|(low, high)| (100.0 * low, 100.0 * high));
        card(
            "Goodput",
            format!("{}\u{202f}req/s", brief(g.requests_per_s)),
            format!("{share} good, {}", interval(range, "\u{202f}%")),
        );
    }
    let rate = |r: Option<f64>| r.map_or("–".into(), brief);
    let asked = if run.facts.open_loop() { s.throughput.scheduled_per_s } else { None };
    let sent = format!("{} → {}", rate(s.throughput.sent_per_s), rate(s.throughput.requests_per_s));
    match asked {
        Some(asked) => card(
            "Asked → sent → completed",
            format!("{} → {sent}", brief(asked)),
            "req/s; the last with the drain".into(),
        ),
        None => card("Sent → completed", sent, "req/s; the last with the drain".into()),
    }
    let mut latency = |label: &str, dist: &Dist| {
        if let Some(p99) = dist.nearest_rank(99.0) {
            let range = dist.interval(99.0, 0.95).map(|(a, b)| (ms(a), ms(b)));
            let range = if range.is_some() { interval(range, "\u{202f}ms") } else { "too few for an interval".into() };
            card(label, in_ms(p99), format!("{range}; p50 {}", dist.median().map_or("–".into(), in_ms)));
        }
    };
    latency("TTFT p99", s.headline_ttft(run.facts));
    latency("TPOT p99", &s.latency.tpot);
    if let Some(tokens) = s.throughput.output_tokens_per_s {
        let users = s.latency.interactivity.median().map_or(String::new(), |v| format!("{} for each user", brief(v)));
        card("Output", format!("{}\u{202f}tok/s", brief(tokens)), users);
    }
    let share = if s.requests.planned > 0 { s.requests.failed as f64 / s.requests.planned as f64 } else { 0.0 };
    card(
        "Failed",
        count(s.requests.failed as u64),
        format!("{} of {}", percent(share), count(s.requests.planned as u64)),
    );
    cards
}

pub(super) fn objectives(told: &Told<'_>, absent: &mut Vec<String>) -> Vec<Block> {
    let run = told.run;
    let Some(g) = &run.summary.goodput else {
        absent.push("Objectives: none were given (--goodput ttft:300 tpot:40).".into());
        return Vec::new();
    };
    let word = |met: bool| if met { "met" } else { "missed" };
    let share_of = |n: usize, of: usize| wilson(n, of, 0.95).map(|(low, high)| (100.0 * low, 100.0 * high));
    let mut rows = vec![vec![
        "all of them".into(),
        format!("{} of requests", percent(g.required_share)),
        g.attainment.map_or("–".into(), percent),
        interval(g.interval.map(|(low, high)| (100.0 * low, 100.0 * high)), "\u{202f}%"),
        String::new(),
        count(g.judged as u64),
        word(g.met()).into(),
    ]];
    for m in &g.by_metric {
        let within = m.share();
        rows.push(vec![
            metric_name(m.metric, run).into(),
            m.limit_ms.map_or("its class's limit".into(), |l| format!("≤ {}\u{202f}ms", brief(l))),
            within.map_or("–".into(), percent),
            interval(share_of(m.within, m.judged), "\u{202f}%"),
            m.at_required_ns.map_or("–".into(), in_ms),
            count(m.judged as u64),
            word(within.is_some_and(|share| share >= g.required_share)).into(),
        ]);
    }
    let columns = ["objective", "rule", "kept by", "95 % interval", "", "requests", ""];
    let mut columns: Vec<Column> = columns.iter().map(|c| Column::Figure((*c).into())).collect();
    columns[0] = Column::Text("objective".into());
    columns[1] = Column::Text("rule".into());
    columns[4] = Column::Figure(format!("value at {}", percent(g.required_share)));
    columns[6] = Column::Text("result".into());
    let invalid = if run.verdict.valid() { Vec::new() } else { (0..rows.len()).collect() };
    let caption = "What requests were held to".into();
    vec![Block::Table(Table { caption, columns, rows, invalid })]
}

pub(super) fn what(told: &Told<'_>) -> Vec<Block> {
    let (run, about) = (told.run, told.about);
    let d = run.description;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("target", about.target.to_owned());
    row("backend", d.backend.clone());
    row("model", d.model_id.clone());
    row("tokenizer", d.tokenizer_id.clone().unwrap_or_else(|| "none: counts are the server's".into()));
    row("arrivals", arrivals(run));
    row("cap", run.facts.max_concurrency.map_or("none".into(), |cap| format!("{cap} in flight")));
    about.seed.iter().for_each(|seed| row("seed", seed.to_string()));
    if !about.plan.is_empty() {
        row("plan", about.plan.to_owned());
    }
    row("receive times", format!("taken by: {}", run.summary.stamps.name()));
    row("ended", d.date.clone());
    for (key, value) in &d.metadata {
        row(key, value.clone());
    }
    if let Some(trace) = &run.extras.trace {
        row(
            "trace",
            format!(
                "{} ({}), {} rows read, {} planned",
                trace.source, trace.format, trace.rows_read, trace.rows_planned
            ),
        );
    }
    let columns = vec![Column::Text(String::from("what")), Column::Text(String::from("as it was"))];
    vec![
        Block::Table(Table { caption: "The run".into(), columns, rows, ..Table::default() }),
        Block::Command(about.command.to_owned()),
    ]
}

fn arrivals(run: &Run<'_>) -> String {
    let f = run.facts;
    match (f.request_rate, f.ramp, f.self_timed) {
        (_, _, true) => "at the data's own times".into(),
        (_, Some(ramp), _) => {
            format!("{} ramp from {} to {} req/s", ramp.law.name(), brief(ramp.start_rps), brief(ramp.end_rps))
        }
        (Some(rate), ..) if f.burstiness.is_infinite() => format!("{} req/s, constant gaps", brief(rate)),
        (Some(rate), ..) if f.burstiness == 1.0 => format!("{} req/s, Poisson", brief(rate)),
        (Some(rate), ..) => format!("{} req/s, gamma of shape {}", brief(rate), brief(f.burstiness)),
        _ if f.max_concurrency.is_some() => "each as soon as there is a place (closed loop)".into(),
        _ => "all at once".into(),
    }
}

pub(super) fn definitions(entries: &[Entry]) -> Block {
    let row = |e: &Entry| vec![e.label.to_owned(), e.keys.join(", "), e.text.to_owned()];
    let columns = ["figure", "key", "definition"].map(|c| Column::Text(c.into())).to_vec();
    let rows = entries.iter().map(row).collect();
    Block::Folded(Table { caption: "How figures are defined".into(), columns, rows, ..Table::default() })
}
