//! Runs scenario files, every point of their sweeps, and prints what each class of traffic got.
//!
//! `cargo run --release -p tailbound-sim --example scenario -- scenarios/chat-first.toml`
#![allow(clippy::print_stdout)]

use std::path::Path;
use tailbound_os::usage::thread_cpu;
use tailbound_record::Row;
use tailbound_sim::{Scenario, Sweep, run};

fn main() {
    for file in std::env::args().skip(1) {
        let sweep = Sweep::open(Path::new(&file)).expect("a sound scenario");
        println!("{file}: {}", sweep.parameters.join(", "));
        for point in &sweep.points {
            tell(&point.values.join(" | "), &point.scenario);
        }
    }
}

fn tell(name: &str, scenario: &Scenario) {
    let start = thread_cpu();
    let outcome = match run(scenario) {
        Ok(outcome) => outcome,
        Err(e) => return println!("{name}: {e}"),
    };
    let cpu = (thread_cpu().ns() - start.ns()) as f64 * 1e-9;
    let f = &outcome.figures;
    let rate = outcome.rows.len() as f64 / cpu;
    println!(
        "{name}: hits {:.1} %, in tiers {:.1} %, adapters loaded {}, waiting {:.1}, CPU {cpu:.2} s, {rate:.0} requests/CPU-s",
        100.0 * f.hit_ratio,
        100.0 * f.tier_hit_ratio,
        f.lora_loads,
        f.mean_waiting
    );
    for (class, name) in f.classes.iter().enumerate() {
        let rows: Vec<&Row> = outcome.rows.iter().filter(|r| r.class as usize == class).collect();
        let ok = rows.iter().filter(|r| r.ok()).count();
        let ttft = sorted(rows.iter().filter_map(|r| r.ttft_scheduled()).map(|d| d.ms()));
        let tpots = sorted(rows.iter().filter_map(|r| tpot(r)));
        let objective = scenario.traffic[class].objective.unwrap_or_default();
        let kept = |r: &&&Row| {
            r.ok()
                && objective.ttft_ms.is_none_or(|most| r.ttft_scheduled().is_some_and(|d| d.ms() <= most))
                && objective.tpot_ms.is_none_or(|most| tpot(r).is_none_or(|ms| ms <= most))
        };
        let attained = 100.0 * rows.iter().filter(kept).count() as f64 / rows.len().max(1) as f64;
        println!(
            "  {name:<14} {:>6} asked {ok:>6} ok  TTFT ms p50 {:>8.1} p90 {:>8.1} p99 {:>8.1}  TPOT p50 {:>6.2} p99 {:>6.2}  attained {attained:>5.1} %",
            rows.len(),
            at(&ttft, 0.5),
            at(&ttft, 0.9),
            at(&ttft, 0.99),
            at(&tpots, 0.5),
            at(&tpots, 0.99)
        );
    }
}

fn tpot(row: &Row) -> Option<f64> {
    let gaps = row.output_tokens().checked_sub(1).filter(|n| *n > 0)?;
    Some((row.e2e()?.ms() - row.ttft()?.ms()) / f64::from(gaps))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all
}

fn at(sorted: &[f64], p: f64) -> f64 {
    sorted.get(((sorted.len() as f64 - 1.0) * p) as usize).copied().unwrap_or(f64::NAN)
}
