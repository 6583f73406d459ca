use super::{Compared, Side};
use crate::text::{Colour, paragraph};
use std::fmt::Write as _;
use tailbound_stats::compare::{Agreement, Claim, Contrast, Finding, Pairing, Scale, number, value};

pub(super) fn block(compared: &Compared, colour: Colour) -> String {
    let mut out = String::new();
    let load = if compared.load.is_empty() { "" } else { ", " };
    let _ = writeln!(out, "{}{load}{}", compared.workload, compared.load);
    compared.sides.iter().for_each(|s| side(&mut out, s));
    for i in 0..compared.comparison.contrasts.len() {
        out.push('\n');
        contrast(&mut out, compared, i, colour);
    }
    out.push('\n');
    for note in &compared.notes {
        paragraph(&mut out, "note: ", "      ", note);
    }
    if let (Some(gate), Some(passes)) = (compared.gate, compared.passes()) {
        let limit = number(gate.tolerance * 100.0);
        let what = compared.design.primary.words();
        let sentence = match (passes, gate.proof) {
            (true, true) => format!("passed: {what} is shown not to be more than {limit} % worse"),
            (true, false) => format!("passed: {what} is not shown to be more than {limit} % worse"),
            (false, true) => format!("FAILED: {what} may be more than {limit} % worse"),
            (false, false) => format!("FAILED: {what} is more than {limit} % worse"),
        };
        paragraph(&mut out, "gate ", "     ", &sentence);
    }
    out
}

fn side(out: &mut String, side: &Side) {
    let requests: usize = side.runs.iter().map(|r| r.requests).sum();
    let runs = if side.runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", side.runs.len()) };
    let source = if side.source == side.name { String::new() } else { format!("{}, ", side.source) };
    let _ = writeln!(out, "  {}: {source}{runs}, {requests} requests", side.name);
    for (round, run) in side.runs.iter().enumerate().filter(|(_, run)| !run.reasons.is_empty()) {
        let begin = format!("    INVALID round {}: ", round + 1);
        paragraph(out, &begin, "      ", &run.reasons.join("; "));
    }
}

fn contrast(out: &mut String, compared: &Compared, i: usize, colour: Colour) {
    let contrast = &compared.comparison.contrasts[i];
    paragraph(out, "", "", &(compared.sentence(i) + "."));
    out.push('\n');
    table(out, compared, contrast, colour);
    let pairs = match contrast.pairing {
        Pairing::Requests => "requests are paired",
        Pairing::Rounds => "rounds are paired, requests are not",
        Pairing::None => "nothing is paired",
    };
    let runs = match contrast.knows_runs() {
        true => format!("{} rounds", contrast.rounds),
        false => "fewer than 3 rounds: what differs from run to run is not in the intervals".to_owned(),
    };
    let level = number((1.0 - compared.design.alpha) * 100.0);
    let about =
        format!("* primary; {level} % intervals; {runs}; {pairs}; the other metrics are claimed by Holm's adjustment");
    paragraph(out, "", "  ", &about);
    if let Some(agreement) = compared.agreements.get(i).and_then(Option::as_ref) {
        paragraph(out, "answers: ", "  ", &agreed(agreement));
    }
}

fn table(out: &mut String, compared: &Compared, contrast: &Contrast, colour: Colour) {
    let short = |name: &str| name.chars().take(12).collect::<String>();
    let (a, b) = (short(&compared.sides[0].name), short(&compared.sides[contrast.side].name));
    let _ = writeln!(out, "  {:<26}{a:>13}{b:>13}   {:<25}claim", "", "change");
    for (rank, finding) in contrast.findings.iter().enumerate() {
        if finding.a.is_none() && finding.b.is_none() {
            continue; // neither side has such a thing, as goodput without objectives
        }
        let mark = if rank == 0 { '*' } else { ' ' };
        let shown = |v: Option<f64>| v.map_or("-".to_owned(), |v| value(finding.measure, v));
        let name = capital(
            &finding
                .measure
                .words()
                .replace("share of completed requests", "completed")
                .replace("throughput in ", "")
                .replace("end-to-end latency", "E2E"),
        );
        let (a, b) = (shown(finding.a), shown(finding.b));
        let _ = writeln!(out, "{mark} {name:<26}{a:>13}{b:>13}   {:<25}{}", change(finding), claim(finding, colour));
    }
}

/// `-24 … -18 %`, `+0.1 … +2 points`.
fn change(finding: &Finding) -> String {
    let (low, high, unit) = match (finding.measure.scale(), finding.ratio, finding.difference) {
        (Scale::Ratio, Some(r), _) => ((r.low - 1.0) * 100.0, (r.high - 1.0) * 100.0, "%"),
        (Scale::Difference, _, Some(d)) => (d.low * 100.0, d.high * 100.0, "points"),
        _ => return "-".to_owned(),
    };
    let signed = |v: f64| match number(v) {
        text if text == "0" || text.starts_with('-') => text,
        text => format!("+{text}"),
    };
    format!("{} … {} {unit}", signed(low), signed(high))
}

fn claim(finding: &Finding, colour: Colour) -> String {
    let word = match (finding.claim, finding.better()) {
        (Claim::Lower, Some(true)) => "lower, better",
        (Claim::Lower, _) => "lower, worse",
        (Claim::Higher, Some(true)) => "higher, better",
        (Claim::Higher, _) => "higher, worse",
        (Claim::Same, _) => "same within the margin",
        (Claim::Open, _) => "can't be told",
        (Claim::TooFew, _) => "too few requests",
        (Claim::Missing, _) => "missing",
        (Claim::Withheld, _) => "none: INVALID run",
    };
    let code = match (colour, finding.better()) {
        (Colour::Off, _) | (_, None) => return word.to_owned(),
        (Colour::On, Some(true)) => 32,
        (Colour::On, Some(false)) => 31,
    };
    format!("\x1b[{code}m{word}\x1b[0m")
}

fn agreed(agreement: &Agreement) -> String {
    let Some((share, (low, high))) = agreement.share().zip(agreement.interval()) else {
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
    if let Some((first, shared)) = agreement.first_divergence.median().zip(agreement.shared_beginning.median()) {
        let _ = write!(
            out,
            "; the others part after {} characters in the median, {} % of the shorter text",
            number(first),
            percent(shared)
        );
    }
    if agreement.unread > 0 {
        let _ = write!(out, "; {} have no text on a side", agreement.unread);
    }
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
