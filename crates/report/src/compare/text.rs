use super::record::{Contrast, Finding, Record, SideRecord};
use super::words::{agreed, apart, claim, gate, label, rests_on, shown, span};
use crate::text::{Colour, paragraph};
use std::fmt::Write as _;

pub(super) fn block(record: &Record, colour: Colour) -> String {
    let mut out = String::new();
    let load = if record.load.is_empty() { "" } else { ", " };
    let _ = writeln!(out, "{}{load}{}", record.workload, record.load);
    record.sides.iter().for_each(|s| side(&mut out, s));
    for one in &record.contrasts {
        out.push('\n');
        contrast(&mut out, record, one, colour);
    }
    out.push('\n');
    for note in &record.notes {
        paragraph(&mut out, "note: ", "      ", note);
    }
    if let Some(sentence) = gate(record) {
        paragraph(&mut out, "gate ", "     ", &sentence);
    }
    out
}

fn side(out: &mut String, side: &SideRecord) {
    let requests: usize = side.runs.iter().map(|r| r.requests).sum();
    let runs = if side.runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", side.runs.len()) };
    let source = if side.source == side.name { String::new() } else { format!("{}, ", side.source) };
    let _ = writeln!(out, "  {}: {source}{runs}, {requests} requests", side.name);
    for run in side.runs.iter().filter(|run| !run.valid) {
        let begin = format!("    INVALID round {}: ", run.round);
        paragraph(out, &begin, "      ", &run.reasons.join("; "));
    }
}

fn contrast(out: &mut String, record: &Record, contrast: &Contrast, colour: Colour) {
    paragraph(out, "", "", &(contrast.sentence.clone() + "."));
    if let Some(apart) = apart(contrast) {
        paragraph(out, "", "", &apart);
    }
    out.push('\n');
    table(out, contrast, colour);
    paragraph(out, "", "  ", &format!("* primary; {}", rests_on(record, contrast)));
    if let Some(agreement) = &contrast.agreement {
        paragraph(out, "answers: ", "  ", &agreed(agreement));
    }
}

fn table(out: &mut String, contrast: &Contrast, colour: Colour) {
    let short = |name: &str| name.chars().take(12).collect::<String>();
    let (a, b) = (short(&contrast.against), short(&contrast.side));
    let _ = writeln!(out, "  {:<26}{a:>13}{b:>13}   {:<25}claim", "", "change");
    for finding in &contrast.findings {
        if finding.a.is_none() && finding.b.is_none() {
            continue; // neither side has such a thing, as goodput without objectives
        }
        let mark = if finding.primary { '*' } else { ' ' };
        let value = |v: Option<f64>| shown(finding, v).unwrap_or_else(|| "-".into());
        let (a, b) = (value(finding.a), value(finding.b));
        let change = span(finding).unwrap_or_else(|| "-".into());
        let _ =
            writeln!(out, "{mark} {:<26}{a:>13}{b:>13}   {change:<25}{}", label(finding), coloured(finding, colour));
    }
}

fn coloured(finding: &Finding, colour: Colour) -> String {
    let word = claim(finding);
    let code = match (colour, finding.better) {
        (Colour::Off, _) | (_, None) => return word.to_owned(),
        (Colour::On, Some(true)) => 32,
        (Colour::On, Some(false)) => 31,
    };
    format!("\x1b[{code}m{word}\x1b[0m")
}
