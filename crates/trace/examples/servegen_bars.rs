//! How composed ServeGen workloads compare with the pool's own sums and with upstream's draws.
//!
//!     servegen_bars DATA SEEDS
//!
//! DATA is the folder with `servegen_generated_expected.json` and `servegen/data`. For each of its compositions: the pooled means
//! of SEEDS runs, the standard error a mean of 20 runs has, and gap CV and dispersion beside upstream's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement: it prints, and stops when something is missing"
)]

use serde_json::Value;
use std::path::Path;
use tailbound_clock::Seed;
use tailbound_trace::Row;
use tailbound_trace::describe::burstiness;
use tailbound_trace::servegen::{Compose, Pool, analytic, compose};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (data, seeds) = (Path::new(&args[1]), args[2].parse::<u64>().unwrap());
    let expected: Value =
        serde_json::from_slice(&std::fs::read(data.join("servegen_generated_expected.json")).unwrap()).unwrap();
    for (key, want) in expected["files"].as_object().unwrap() {
        let parts: Vec<&str> = key.split(['@', '-']).collect();
        let n = parts.len();
        let pool = Pool::open(data.join("servegen/data").join(key.split('@').next().unwrap())).unwrap();
        let ask = Compose {
            from_s: parts[n - 3].parse().unwrap(),
            to_s: parts[n - 2].parse().unwrap(),
            rate: Some(parts[n - 1].trim_end_matches("rps").parse().unwrap()),
            rank_correlation: 0.0,
        };
        let sums = analytic(&pool, &ask);
        let runs: Vec<Figures> = (0..seeds).map(|s| Figures::of(&compose(&pool, &ask, Seed(s)).unwrap())).collect();
        println!("{key}, {seeds} seeds");
        let requests: Vec<f64> = runs.iter().map(|r| r.rows).collect();
        let (mean, sd) = moments(&requests);
        println!("  requests   {mean:.0} (sd of a run {:.2} %) of {:.0} expected", 100.0 * sd / mean, sums.requests);
        let input = sums.means.get("input_tokens").or_else(|| sums.means.get("text_tokens")).unwrap();
        for (word, exact, sum) in [("input", *input, 0), ("output", sums.means["output_tokens"], 1)] {
            lengths(word, exact, &runs, |r| r.tokens[sum]);
        }
        for (k, word) in ["gap_cv_pop", "iod_1s", "iod_10s"].into_iter().enumerate() {
            let (mean, sd) = moments(&runs.iter().map(|r| r.bursts[k]).collect::<Vec<_>>());
            let theirs = |part: &str| want["upstream_20_seeds"][word][part].as_f64().unwrap();
            let error = ((sd * sd / seeds as f64) + theirs("sd") * theirs("sd") / 20.0).sqrt();
            println!(
                "  {word:<10} {mean:.3} (sd {sd:.3}); upstream {:.3} (sd {:.3}); difference {:+.3} ± {error:.3}",
                theirs("mean"),
                theirs("sd"),
                mean - theirs("mean")
            );
        }
    }
}

/// One run: requests, sums of input and output tokens, gap CV and dispersion at 1 and 10 s.
struct Figures {
    rows: f64,
    tokens: [f64; 2],
    bursts: [f64; 3],
}

impl Figures {
    fn of(trace: &tailbound_trace::Trace) -> Figures {
        let sum = |field: fn(&Row) -> Option<u32>| trace.rows.iter().filter_map(field).map(f64::from).sum::<f64>();
        let b = burstiness(&trace.times());
        Figures {
            rows: trace.rows.len() as f64,
            tokens: [sum(|r| r.input), sum(|r| r.output)],
            bursts: [b.gap_cv.unwrap(), b.dispersion[0].unwrap(), b.dispersion[1].unwrap()],
        }
    }
}

/// The pooled mean, and how far the pooled means of 20 runs lie from the exact one.
fn lengths(word: &str, exact: f64, runs: &[Figures], tokens: impl Fn(&Figures) -> f64) {
    let pooled = |runs: &[Figures]| runs.iter().map(&tokens).sum::<f64>() / runs.iter().map(|r| r.rows).sum::<f64>();
    let off = |mean: f64| 100.0 * (mean / exact - 1.0);
    let batches: Vec<f64> = runs.chunks_exact(20).map(|batch| off(pooled(batch))).collect();
    let beyond = batches.iter().filter(|x| x.abs() > 1.0).count();
    let (_, sd) = moments(&batches);
    println!(
        "  {word:<10} {:+.2} % off {exact:.2}; batches of 20: {} of {} beyond 1 %, sd {sd:.2} %",
        off(pooled(runs)),
        beyond,
        batches.len()
    );
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt())
}
