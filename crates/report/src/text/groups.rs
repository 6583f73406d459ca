//! The requests by class and by client.

use super::figures::{ms, percent, title};
use crate::{Grouping, Run};
use std::fmt::Write;
use tailbound_stats::{Dist, Group};

/// More are in the JSON.
const LISTED: usize = 12;
const NAME: usize = 22;

pub(super) fn blocks(out: &mut String, run: &Run<'_>) {
    run.extras.groups.iter().filter(|by| by.groups.len() > 1).for_each(|by| block(out, by));
}

fn block(out: &mut String, by: &Grouping) {
    title(out, &format!("By {} (ms)", by.by), '-');
    let _ = writeln!(
        out,
        "{:<NAME$}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}",
        "", "planned", "done", "TTFT p50", "TTFT p99", "TPOT p50", "good"
    );
    let mut groups: Vec<&(String, Group)> = by.groups.iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.requests.planned));
    for (name, group) in groups.iter().take(LISTED) {
        let at = |d: &Dist, p: f64| d.nearest_rank(p).map_or("-".to_owned(), ms);
        let good = match group.judged {
            0 => "-".to_owned(),
            judged => percent(group.good as f64 / judged as f64),
        };
        let _ = writeln!(
            out,
            "{:<NAME$}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}",
            short(name),
            group.requests.planned,
            group.requests.completed,
            at(&group.ttft, 50.0),
            at(&group.ttft, 99.0),
            at(&group.tpot, 50.0),
            good
        );
    }
    if groups.len() > LISTED {
        let _ = writeln!(out, "and {} more, which are in the JSON", groups.len() - LISTED);
    }
}

/// Names may be long hashes: their beginning has to do.
fn short(name: &str) -> String {
    match name.chars().count() {
        ..NAME => name.to_owned(),
        _ => name.chars().take(NAME - 3).chain("..".chars()).collect(),
    }
}
