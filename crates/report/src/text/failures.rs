use super::wrap;
use crate::{Run, ordered};
use std::fmt::Write;
use tailbound_record::{Blame, End, Phase};

/// How many vLLM lists.
const LISTED: usize = 10;

pub(super) fn block(run: &Run<'_>) -> String {
    if run.summary.requests.failed == 0 {
        return String::new();
    }
    let mut out = format!("Failed requests during benchmark run detected (capping to {LISTED}):\n");
    let details = ordered(run.rows).into_iter().filter_map(|row| match &row.end {
        End::Failed { cause, detail, .. } if detail.is_empty() => Some(cause.to_string()),
        End::Failed { detail, .. } => Some(detail.to_string()),
        _ => None,
    });
    for (i, detail) in details.take(LISTED).enumerate() {
        let _ = writeln!(out, "Error {i}: {}", first_line(&detail));
    }
    out.push_str("Failures by cause:\n");
    for group in &run.summary.failures {
        let lead = format!("{:>7} x ", group.count);
        let (id, sample) = &group.sample;
        let mut text = format!("{}, {}; {}", group.cause, during(group.phase), side(group.blame));
        if !sample.is_empty() {
            let _ = write!(text, "; e.g. request {id}: {}", first_line(sample));
        }
        wrap::paragraph(&mut out, &lead, "          ", &text);
    }
    out
}

/// One line of at most 200 characters: a server may answer with a page.
fn first_line(detail: &str) -> String {
    let line = detail.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    let mut cut: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if cut.len() < line.len() {
        cut.push_str(" ...");
    }
    cut
}

fn during(phase: Phase) -> &'static str {
    match phase {
        Phase::Resolve => "resolving the name",
        Phase::Connect => "connecting",
        Phase::Tls => "in the TLS handshake",
        Phase::Write => "writing the request",
        Phase::Headers => "waiting for the response",
        Phase::FirstToken => "waiting for the first token",
        Phase::Stream => "in mid-stream",
    }
}

fn side(blame: Blame) -> &'static str {
    match blame {
        Blame::Server => "the server's side",
        Blame::Network => "the network's side",
        Blame::Client => "this machine's side",
    }
}
