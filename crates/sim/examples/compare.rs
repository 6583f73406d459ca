//! How often `stats::compare` claims what isn't so, and finds what is: the emulated engine against itself, and against one that decodes
//! 5 % slower, 200 seeded comparisons each in virtual time.
//!
//! `cargo run --release -p tailbound-sim --example compare [COMPARISONS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench driver")]

#[path = "../tests/it/one_engine.rs"]
mod one_engine;
#[path = "../tests/it/trial.rs"]
mod trial;

use one_engine::Case;
use tailbound_stats::compare::Measure;
use trial::{Setting, Trial};

fn main() {
    let n: u64 = std::env::args().nth(1).map_or(200, |n| n.parse().unwrap());
    println!("{n} comparisons a line; 1,000 requests a side; claims at 5 %; columns: claimed as the primary metric");
    println!("secondary: comparisons in which any of the other metrics was claimed, after Holm\n");
    let names = [
        "mean_ttft",
        "p50_ttft",
        "p99_ttft",
        "mean_tpot",
        "p99_tpot",
        "p99_itl",
        "mean_e2e",
        "p99_e2e",
        "output_tokens_per_s",
    ];
    print!("{:64}", "");
    names.iter().for_each(|name| print!("{:>11}", name.replace("output_tokens_per_s", "tokens/s")));
    println!("{:>11}", "secondary");
    // All of these are looked at in every comparison, and judged together as secondary ones.
    let secondary: Vec<Measure> = names.iter().map(|name| name.parse().unwrap()).collect();
    for (slower, rates) in [(1.0, &[8.0, 24.0][..]), (1.05, &[8.0])] {
        println!("{}", if slower == 1.0 { "the engine against itself" } else { "against one that decodes 5 % slower" });
        for rate in rates.iter().copied() {
            for setting in Setting::ALL {
                let case = Case { rate, ..Case::default() };
                let trials: Vec<Trial> =
                    (0..n).map(|seed| trial::trial(setting, case, slower, seed, secondary.clone())).collect();
                print!("  {:62}", format!("{rate:>2} requests/s, {}", setting.words()));
                for name in names {
                    print!("{:>11}", trials.iter().filter(|t| t.claims(name)).count());
                }
                println!("{:>11}", trials.iter().filter(|t| t.any_secondary).count());
            }
        }
    }
}
