//! The HTML page of `workload describe --html`.

mod plots;
mod tables;

use tailbound_report::page::{Block, Card, Page, Section, brief, count};
use tailbound_trace::Description;
use tailbound_trace::describe::{ArrivalFigures, explain};

/// The page of a description.
pub fn page(d: &Description) -> String {
    let sections = [
        section("arrivals", "Arrivals", arrivals(d)),
        section("profile", "Day and week", plots::profile(d)),
        section("lengths", "Lengths", lengths(d)),
        section("groups", "Models, classes, clients", tables::groups(d)),
        section("sessions", "Sessions", tables::sessions(d)),
        section("prefix", "Prefix sharing", prefix(d)),
        section("rows", "Every row accounted for", tables::account(d)),
        section("definitions", "Definitions", vec![tables::definitions(explain())]),
    ];
    let page = Page {
        title: d.file.rsplit(['/', '\\']).next().unwrap_or(&d.file).to_owned(),
        kind: format!("workload, {}", d.format),
        lead: lead(d),
        verdict: None,
        cards: cards(d),
        sections: sections.into_iter().flatten().collect(),
        absent: absent(d),
        attachments: Vec::new(),
        footer: format!("tailbound workload describe {} · tailbound {}", d.file, env!("CARGO_PKG_VERSION")),
    };
    page.html()
}

fn section(id: &str, heading: &str, blocks: Vec<Block>) -> Option<Section> {
    (!blocks.is_empty()).then(|| Section { id: id.into(), heading: heading.into(), blocks })
}

fn lead(d: &Description) -> String {
    let mut lead = format!("{} requests", count(d.rows));
    if let Some(a) = &d.arrivals {
        lead += &format!(" over {}", span(a.span_s));
    }
    let dropped = d.accounting.rows_dropped();
    if dropped > 0 {
        lead += &format!("; {} more were read and left out", count(dropped));
    }
    lead += ".";
    if let Some((window, iod)) = d.arrivals.as_ref().and_then(dispersion) {
        let word = match iod {
            ..0.5 => "Arrivals are far more even than Poisson's",
            ..0.8 => "Arrivals are more even than Poisson's",
            ..1.25 => "Arrivals are about as uneven as Poisson's",
            ..3.0 => "Arrivals are burstier than Poisson's",
            _ => "Arrivals are much burstier than Poisson's",
        };
        lead += &format!(" {word}: the variance of their number in {window} is {} times the mean.", brief(iod));
    }
    if let Some(infinite) = d.prefix.as_ref().and_then(|p| p.prefix_cache.first()) {
        let ratio = brief(100.0 * infinite.block_hit_ratio);
        lead += &format!(" A prefix cache without a limit would hit {ratio}\u{202f}% of the prompt blocks.");
    }
    lead
}

/// The index of dispersion in the shortest window that holds a few arrivals; in fewer it is near 1 whatever they do.
fn dispersion(a: &ArrivalFigures) -> Option<(&'static str, f64)> {
    let windows = [("1 s", a.counts_1s), ("10 s", a.counts_10s), ("60 s", a.counts_60s)];
    let known = windows.into_iter().filter_map(|(word, c)| Some((word, c?.mean, c?.index_of_dispersion?)));
    let (mut best, mut last) = (None, None);
    for (word, mean, iod) in known {
        last = Some((word, iod));
        if best.is_none() && mean >= 5.0 {
            best = last;
        }
    }
    best.or(last)
}

fn cards(d: &Description) -> Vec<Card> {
    let mut cards = Vec::new();
    let mut card = |label: &str, value: String, detail: String| {
        cards.push(Card { label: label.into(), value, detail, void: false });
    };
    card("Requests", count(d.rows), format!("{} read", count(d.accounting.rows_read)));
    if let Some(a) = &d.arrivals {
        if let Some(rate) = a.mean_rate_nminus1_over_span {
            card("Mean rate", format!("{}\u{202f}/s", brief(rate)), format!("over {}", span(a.span_s)));
        }
        if let Some(cv) = a.iat.as_ref().and_then(|g| g.cv_pop) {
            card("Gap CV", brief(cv), "1 is Poisson".into());
        }
        if let Some((window, iod)) = dispersion(a) {
            card(&format!("Dispersion in {window}"), brief(iod), "variance over mean; 1 is Poisson".into());
        }
    }
    for (word, figures) in [("Input tokens", d.input_length), ("Output tokens", d.output_length)] {
        if let Some(x) = figures {
            card(word, brief(x.mean), format!("mean; p50 {}, p99 {}", brief(x.p50), brief(x.p99)));
        }
    }
    if let Some(s) = &d.sessions {
        let turns = s.turns.map_or("–".into(), |t| brief(t.mean));
        card("Sessions", count(s.count), format!("{turns} turns each"));
    }
    if let Some(infinite) = d.prefix.as_ref().and_then(|p| p.prefix_cache.first()) {
        card(
            "Prefix hits",
            format!("{}\u{202f}%", brief(100.0 * infinite.block_hit_ratio)),
            "of blocks, cache without limit".into(),
        );
    }
    cards
}

fn arrivals(d: &Description) -> Vec<Block> {
    let Some(a) = &d.arrivals else { return Vec::new() };
    let beware = a.artefacts.iter().map(|what| Block::Beware(what.clone()));
    beware.chain(plots::arrivals(d)).chain([tables::arrivals(a)]).collect()
}

fn lengths(d: &Description) -> Vec<Block> {
    let mut blocks: Vec<Block> = plots::lengths(d).into_iter().collect();
    blocks.extend(tables::lengths(d));
    if let Some(r) = d.spearman_in_out {
        blocks.push(Block::Note(format!("Rank correlation of input and output (Spearman): {}.", brief(r))));
    }
    blocks
}

fn prefix(d: &Description) -> Vec<Block> {
    let Some(p) = &d.prefix else { return Vec::new() };
    let mut blocks = Vec::new();
    if p.top_block_request_share >= 0.999 {
        let what = "every request holds the same block: the share of requests with a hit says nothing";
        blocks.push(Block::Beware(what.into()));
    }
    blocks.extend(plots::prefix(p));
    blocks.push(tables::caches(p));
    blocks
}

/// What the trace does not tell, in words.
fn absent(d: &Description) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |missing: bool, what: &str| {
        if missing {
            out.push(what.to_owned());
        }
    };
    say(d.arrivals.is_none(), "Arrivals: the trace has no times.");
    say(
        d.arrivals.is_some() && d.profile.is_none(),
        "Day and week: the times count from some moment, not from a midnight.",
    );
    let hours = d.profile.as_ref().map_or(0, |p| p.hour_of_day_counts.len());
    say(hours == 1, "Day and week: the trace lies within one hour.");
    say(
        d.profile.is_some() && d.periodicity.is_none(),
        "Daily and weekly cycles: the trace is shorter than three days.",
    );
    say(d.input_length.is_none() && d.output_length.is_none(), "Lengths in tokens: the trace has none.");
    say(d.sessions.is_none(), "Sessions: the trace names none.");
    say(d.prefix.is_none(), "Prefix sharing: the trace has no block ids; unknown is not the same as none.");
    out
}

/// A length of time for people.
fn span(seconds: f64) -> String {
    let (value, unit) = match seconds {
        172_800.0.. => (seconds / 86_400.0, "days"),
        7200.0.. => (seconds / 3600.0, "h"),
        120.0.. => (seconds / 60.0, "min"),
        _ => (seconds, "s"),
    };
    format!("{}\u{202f}{unit}", brief(value))
}
