//! From runs to a comparison with everything its reader has to know.

use super::args::CompareArgs;
use super::measured::Measured;
use super::side::Named;
use crate::bench::serve::preset::Preset;
use tailbound_clock::Seed;
use tailbound_report::compare::{Compared, Gate, Side, SideRun};
use tailbound_stats::compare::{self as stats, Agreement, Claim, Comparison, Design, Measure, Pairing};

/// Compares.
pub fn compared(args: &CompareArgs, sides: &[Named], preset: Option<Preset>, runs: Vec<Vec<Measured>>) -> Compared {
    let design = design(args, pairing(&runs));
    let judged: Vec<stats::Side<'_>> = sides.iter().zip(&runs).map(|(side, runs)| of_runs(side, runs)).collect();
    let comparison = stats::compare(&judged, &design);
    let loads: Vec<String> = runs.iter().map(|runs| stats::load(&runs[0].facts)).collect();
    let same = loads.iter().all(|load| *load == loads[0]);
    let workload = preset.map_or(args.data.dataset_name.as_str(), |p| p.terms().name);
    let saved = runs[0][0].order.is_none();
    let agreements = (1..runs.len()).map(|other| agreement(args, &runs, other)).collect();
    Compared {
        workload: if saved { "saved runs".to_owned() } else { format!("workload {workload}") },
        load: if same { loads[0].clone() } else { String::new() },
        notes: notes(sides, &runs, &loads, &comparison),
        sides: sides.iter().zip(&runs).map(side).collect(),
        design,
        comparison,
        agreements,
        gate: args.how.tolerance.map(|tolerance| Gate { tolerance, proof: args.how.prove }),
    }
}

fn design(args: &CompareArgs, pairing: Pairing) -> Design {
    let how = &args.how;
    Design {
        alpha: how.alpha,
        margin: how.margin,
        share_margin: how.share_margin,
        replicates: how.replicates as usize,
        seed: Seed(args.load.seed),
        ..Design::new(how.primary, pairing)
    }
}

fn of_runs<'a>(side: &'a Named, runs: &'a [Measured]) -> stats::Side<'a> {
    let of = |run: &'a Measured| stats::Run { rows: &run.rows, facts: &run.facts, valid: run.reasons.is_empty() };
    stats::Side { name: &side.name, runs: runs.iter().map(of).collect() }
}

/// The same requests in every round; else rounds, if they were made by this command; else nothing.
fn pairing(runs: &[Vec<Measured>]) -> Pairing {
    let rounds = runs[0].len();
    if runs.iter().any(|side| side.len() != rounds) {
        return Pairing::None;
    }
    let same = |round: usize| {
        let first = runs[0][round].requests.as_ref();
        first.is_some() && runs.iter().all(|side| side[round].requests.as_ref() == first)
    };
    if (0..rounds).all(same) {
        return Pairing::Requests;
    }
    if runs[0][0].order.is_some() { Pairing::Rounds } else { Pairing::None }
}

fn side((named, runs): (&Named, &Vec<Measured>)) -> Side {
    let told = |run: &Measured| SideRun {
        order: run.order,
        folder: run.folder.as_ref().map(|folder| folder.display().to_string()),
        requests: run.rows.len(),
        completed: run.rows.iter().filter(|row| row.ok()).count(),
        reasons: run.reasons.clone(),
    };
    Side { name: named.name.clone(), source: named.source.clone(), runs: runs.iter().map(told).collect() }
}

/// Of texts that were kept: asked for here, or found in saved runs.
fn agreement(args: &CompareArgs, runs: &[Vec<Measured>], other: usize) -> Option<Agreement> {
    if runs[0].len() != runs[other].len() {
        return None;
    }
    let rounds = runs[0].iter().zip(&runs[other]).map(|(a, b)| (a.rows.as_slice(), b.rows.as_slice()));
    let agreement = stats::agreement(rounds);
    (args.how.agreement || agreement.pairs > 0).then_some(agreement)
}

fn notes(sides: &[Named], runs: &[Vec<Measured>], loads: &[String], comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let each = |of: &dyn Fn(usize) -> String| {
        let told: Vec<String> = sides.iter().enumerate().map(|(i, side)| format!("{} {}", side.name, of(i))).collect();
        told.join(", ")
    };
    if loads.iter().any(|load| *load != loads[0]) {
        notes.push(format!("the sides were under different loads: {}", each(&|i| loads[i].clone())));
    }
    let model = |i: usize| runs[i][0].model.clone();
    if (1..runs.len()).any(|i| model(i) != model(0)) {
        notes.push(format!("the sides serve different models: {}", each(&model)));
    }
    if !comparison.invalid.is_empty() {
        notes.push("nothing is claimed while a run is INVALID; mend what is named above and measure again".to_owned());
    }
    let warm = |run: &Measured| run.temperature != Some(0.0) && run.order.is_some();
    let texts = runs.iter().flatten().flat_map(|run| &run.rows).any(|row| row.text.is_some());
    if texts && runs.iter().flatten().any(warm) {
        notes.push("answers were not sampled at temperature 0: that they differ says nothing".to_owned());
    }
    for contrast in comparison.contrasts.iter().filter(|c| c.primary().claim == Claim::TooFew) {
        let (what, side) = (contrast.primary().measure, &sides[contrast.side].name);
        let needed = match what {
            Measure::Latency(_, stats::Stat::Percentile(p)) => stats::requests_for(p),
            _ => None,
        };
        let needed = needed.map_or("more requests".to_owned(), |n| format!("at least {n} answered requests a side"));
        notes.push(format!("{what} of {side} can't be compared: it takes {needed}; or choose another --primary"));
    }
    notes
}
