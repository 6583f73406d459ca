//! What became of the rows of a replayed trace.

use super::figures::{own, title};
use crate::{Run, TraceAccount};

pub(super) fn block(out: &mut String, run: &Run<'_>) {
    let Some(account) = &run.extras.trace else { return };
    title(out, "Trace", '-');
    for (name, value) in lines(account) {
        own(out, &format!("{name}:"), Some(value));
    }
    let n = &run.summary.requests;
    let sent = n.planned - n.never_sent;
    own(out, "  of these, sent:", Some(format!("{sent}  ({} never sent)", n.never_sent)));
}

/// Name and value of every line.
pub(super) fn lines(a: &TraceAccount) -> Vec<(String, String)> {
    let mut lines = vec![("Replayed from".to_owned(), format!("{} ({})", a.source, a.format))];
    let speed = a.speed.map(|speed| ("Times the trace's own speed".to_owned(), format!("{speed}")));
    let sessions = a.sessions.map(|sessions| ("Sessions".to_owned(), sessions.to_string()));
    lines.extend(speed.into_iter().chain(sessions));
    lines.push(("Rows read".to_owned(), a.rows_read.to_string()));
    let mut left = |name: &str, count: u64, more: String| {
        if count > 0 {
            lines.push((format!("  {name}"), format!("{count}{more}")));
        }
    };
    for (why, count, first) in &a.dropped {
        left(&format!("dropped, {}", why.replace('_', " ")), *count, format!("  (first: row {first})"));
    }
    left("outside --window", a.outside_window, String::new());
    left("of sessions not sampled", a.not_sampled, String::new());
    left("beyond --num-prompts", a.beyond_count, String::new());
    left("beyond --duration", a.beyond_duration, String::new());
    left("repeated to reach --num-prompts", a.repeated, String::new());
    lines.push(("Rows planned".to_owned(), a.rows_planned.to_string()));
    lines
}
