use super::figures::{RULE, ms, own, percent, rate, title};
use super::{Colour, groups, plain, servers, trace, wrap};
use crate::Run;
use crate::run::percentile_word;
use std::fmt::Write;
use tailbound_stats::{Dist, ObjectiveMetric, Reason, TokenSource};

pub(super) fn block(run: &Run<'_>, colour: Colour) -> String {
    let mut out = String::new();
    title(&mut out, " Tailbound ", '=');
    verdict(&mut out, run, colour);
    objectives(&mut out, run, colour);
    fluidity(&mut out, run);
    load(&mut out, run);
    trace::block(&mut out, run);
    tokens(&mut out, run);
    table(&mut out, run);
    groups::blocks(&mut out, run);
    steady(&mut out, run);
    servers::block(&mut out, run);
    conditions(&mut out, run);
    let plain = plain::sentences(run);
    if !plain.is_empty() {
        title(&mut out, "In plain words", '-');
        for sentence in plain {
            wrap::paragraph(&mut out, "", "", &sentence);
        }
    }
    out.push_str(&"=".repeat(RULE));
    out.push('\n');
    out
}

fn paint(colour: Colour, good: bool, word: &str) -> String {
    match (colour, good) {
        (Colour::Off, _) => word.to_owned(),
        (Colour::On, true) => format!("\x1b[1;32m{word}\x1b[0m"),
        (Colour::On, false) => format!("\x1b[1;31m{word}\x1b[0m"),
    }
}

fn verdict(out: &mut String, run: &Run<'_>, colour: Colour) {
    let v = run.verdict;
    own(out, "Verdict:", Some(paint(colour, v.valid(), v.word())));
    for reason in &v.reasons {
        because(out, "  - ", reason);
    }
    for caution in &v.cautions {
        because(out, "  caution: ", caution);
    }
}

fn because(out: &mut String, lead: &str, reason: &Reason) {
    wrap::paragraph(out, lead, "    ", &format!("{} [{}]", reason.sentence, reason.code.name()));
    wrap::paragraph(out, "    mend: ", "      ", &reason.mend);
}

/// etalon's figures, where deadlines were given.
fn fluidity(out: &mut String, run: &Run<'_>) {
    let Some(f) = &run.summary.fluidity else { return };
    let missed = format!("{}  ({} of {})", percent(f.level.miss_rate()), f.level.missed, f.level.deadlines);
    own(out, "Token deadlines missed:", Some(missed));
    let index = |d: &Dist| Some(format!("{:.3}  (p1 {:.3})", d.mean()?, d.percentile(1.0)?));
    own(out, "Fluidity-index (code):", index(&f.index));
    own(out, "Fluidity-index (docs):", index(&f.index_by_tokens));
    own(out, "Fluid token rate (tok/s):", f.rates.map(|r| format!("{:.1}", r.fluid)));
}

fn objectives(out: &mut String, run: &Run<'_>, colour: Colour) {
    let Some(g) = &run.summary.goodput else { return };
    let word = paint(colour, g.met(), if g.met() { "MET" } else { "MISSED" });
    let by_all = format!("{word}  {} of {} good, {} needed", g.good, g.judged, percent(g.required_share));
    own(out, "Objectives:", Some(by_all));
    let share = g.attainment.map(|share| match g.interval {
        Some((low, high)) => format!("{}  (95 %: {:.1} to {:.1})", percent(share), low * 100.0, high * 100.0),
        None => percent(share),
    });
    own(out, "Attainment:", share);
    for m in &g.by_metric {
        let name = metric_name(m.metric, run);
        let limit = m.limit_ms.map_or("its class's limit".to_owned(), |l| format!("{l} ms"));
        let label = format!("  {name} <= {limit}:");
        let mut value = m.share().map_or("n/a".to_owned(), percent);
        if m.vacuous > 0 {
            let _ = write!(value, "  ({} had none to measure)", m.vacuous);
        }
        match m.missed_by_ms() {
            Some(over) if over.is_infinite() => value.push_str("  (failures alone miss it)"),
            Some(over) => value += &format!("  (over by {} ms)", ms(over * 1e6)),
            None => {}
        }
        own(out, &label, Some(value));
    }
    // Where classes have names, they have a table of their own.
    if g.by_class.len() > 1 && run.extras.groups.is_empty() {
        for (class, judged, good) in &g.by_class {
            own(out, &format!("  class {class}, good:"), Some(format!("{good} of {judged}")));
        }
    }
    own(out, "Good requests (req/s):", Some(rate(g.requests_per_s)));
    own(out, "Good tokens (tok/s):", Some(rate(g.tokens_per_s)));
}

pub(crate) fn metric_name(metric: ObjectiveMetric, run: &Run<'_>) -> &'static str {
    match (metric, run.facts.open_loop()) {
        (ObjectiveMetric::Ttft, true) => "TTFT from arrival",
        (ObjectiveMetric::Ttft, false) => "TTFT",
        (ObjectiveMetric::Tpot, _) => "TPOT",
        (ObjectiveMetric::E2el, true) => "E2E from arrival",
        (ObjectiveMetric::E2el, false) => "E2E",
    }
}

fn load(out: &mut String, run: &Run<'_>) {
    let (s, n) = (run.summary, &run.summary.requests);
    title(out, "Load", '-');
    let mut left = format!("{}", n.planned);
    if n.cancelled + n.never_sent > 0 {
        let _ = write!(left, "  ({} cancelled, {} never sent)", n.cancelled, n.never_sent);
    }
    own(out, "Requests planned:", Some(left));
    if run.facts.open_loop() {
        own(out, "Arrivals scheduled (req/s):", s.throughput.scheduled_per_s.map(rate));
    }
    own(out, "Requests sent (req/s):", s.throughput.sent_per_s.map(rate));
    let late = s.latency.lateness.nearest_rank(99.0).zip(s.latency.lateness.max());
    own(out, "Sends late, p99 / max (ms):", late.map(|(p99, max)| format!("{} / {}", ms(p99), ms(max))));
    let c = &s.concurrency;
    let mean = c.mean.map_or(String::new(), |mean| format!(" / {mean:.1}"));
    own(out, "In flight, peak / mean:", Some(format!("{}{mean}", c.peak)));
    if let Some(at_cap) = c.at_cap {
        own(out, "Time at the cap:", Some(percent(at_cap)));
    }
    if s.retries > 0 {
        own(out, "Sent again on stale connections:", Some(s.retries.to_string()));
    }
}

fn tokens(out: &mut String, run: &Run<'_>) {
    let (t, rates) = (&run.summary.tokens, &run.summary.throughput);
    title(out, "Tokens", '-');
    own(out, "Input token throughput (tok/s):", rates.input_tokens_per_s.map(rate));
    own(out, "Peak output, any second (tok/s):", rates.peak_output_tokens_per_s.map(rate));
    own(out, "Tokens per event:", t.per_event().map(rate));
    if let (Some(cached), Some(input)) = (t.cached, t.input.filter(|n| *n > 0)) {
        own(out, "Input from the prefix cache:", Some(percent(cached as f64 / input as f64)));
    }
    if let Some(reasoning) = t.reasoning.filter(|n| *n > 0 && t.output > 0) {
        own(out, "Output that is reasoning:", Some(percent(reasoning as f64 / t.output as f64)));
    }
    let source = t.output_source().map(|source| match source {
        TokenSource::Server => "server usage",
        TokenSource::Tokenizer => "tokenizer here",
        TokenSource::Events => "events (nobody counted)",
    });
    own(out, "Output tokens counted by:", source.map(str::to_owned));
}

/// One row per latency, in ms: p50, p90, p99, max and the sample's size; with misses as infinite where there were any.
fn table(out: &mut String, run: &Run<'_>) {
    let (s, l) = (run.summary, &run.summary.latency);
    let open = run.facts.open_loop();
    let misses = s.misses();
    if s.requests.completed == 0 {
        return;
    }
    title(out, "Latency (ms)", '-');
    let adjusted = if misses > 0 { "p99+miss" } else { "" };
    let _ = writeln!(
        out,
        "{}",
        format!("{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}", "", "p50", "p90", "p99", "max", "n", adjusted).trim_end()
    );
    let with_misses = |d: &Dist| if misses > 0 { d.nearest_rank_with_failures(99.0, misses).map(ms) } else { None };
    let mut row = |label: &str, d: &Dist, per_request: bool| {
        if d.is_empty() {
            return;
        }
        let at = |p: f64| d.nearest_rank(p).map_or("n/a".to_owned(), ms);
        let max = d.max().map_or("n/a".to_owned(), ms);
        let tail = with_misses(d).filter(|_| per_request).unwrap_or_default();
        let line = format!("{label:<22}{:>9}{:>9}{:>9}{max:>9}{:>9}{tail:>10}", at(50.0), at(90.0), at(99.0), d.n());
        let _ = writeln!(out, "{}", line.trim_end());
    };
    if open {
        row("TTFT from arrival", &l.ttft_scheduled, true);
    }
    row("TTFT from write", &l.ttft, true);
    if l.ttfo != l.ttft {
        row("First visible token", &l.ttfo, true);
    }
    row("TPOT", &l.tpot, false);
    row("Inter-token (ITL)", &l.itl, false);
    if l.itl != l.icl {
        row("Inter-event (ICL)", &l.icl, false);
    }
    if let Some(clean) = &s.coalesced.clean_gaps {
        row("ICL, own read only", clean, false);
    }
    if open {
        row("E2E from arrival", &l.e2e_scheduled, true);
    }
    row("E2E from write", &l.e2e, true);
    row("Stream end", &l.stream_end, false);
    row("Connect", &l.connect, false);
    if run.facts.max_concurrency.is_some() && open {
        row("Client queue", &l.client_queue, false);
    }
    intervals(out, run);
}

fn intervals(out: &mut String, run: &Run<'_>) {
    let name = if run.facts.open_loop() { "TTFT from arrival" } else { "TTFT from write" };
    let ttft = run.summary.headline_ttft(run.facts);
    for p in std::iter::once(50.0).chain(run.selection.percentiles.iter().copied().filter(|p| *p != 50.0)) {
        let label = format!("P{} {name}, 95 % interval:", percentile_word(p));
        let interval = ttft.interval(p, 0.95).map(|(low, high)| format!("{} to {}", ms(low), ms(high)));
        own(out, &label, Some(interval.unwrap_or_else(|| format!("too few samples ({})", ttft.n()))));
    }
}

fn steady(out: &mut String, run: &Run<'_>) {
    let Some(w) = &run.summary.steady else { return };
    title(out, "Steady State", '-');
    let from = w.from.since(run.facts.start).secs();
    let until = w.until.since(run.facts.start).secs();
    let short = if w.short { "  (short)" } else { "" };
    own(out, "Window (s):", Some(format!("{from:.2} to {until:.2}{short}")));
    own(out, "Mean in flight:", Some(format!("{:.1}", w.concurrency)));
    own(out, "Requests (req/s):", Some(rate(w.requests_per_s)));
    let output = match w.output_interval {
        Some((low, high)) => format!("{:.2}  (95 %: {low:.0} to {high:.0})", w.output_tokens_per_s),
        None => rate(w.output_tokens_per_s),
    };
    own(out, "Output tokens (tok/s):", Some(output));
    let p99 = |d: &Dist| d.nearest_rank(50.0).zip(d.nearest_rank(99.0)).map(|(a, b)| format!("{} / {}", ms(a), ms(b)));
    own(out, "TTFT from write, p50 / p99 (ms):", p99(&w.ttft));
    own(out, "TPOT, p50 / p99 (ms):", p99(&w.tpot));
}

fn conditions(out: &mut String, run: &Run<'_>) {
    title(out, "How It Was Measured", '-');
    if let Some(protocol) = run.description.protocol {
        own(out, "Protocol:", Some(protocol.to_owned()));
    }
    own(out, "Receive times taken by:", Some(run.summary.stamps.name().to_owned()));
    own(out, "Events sharing a read:", run.summary.coalesced.share().map(percent));
    let start = if run.facts.open_loop() { "scheduled arrival" } else { "request written" };
    own(out, "Headline latencies start at:", Some(start.to_owned()));
}
