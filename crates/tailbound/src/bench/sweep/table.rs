//! What a sweep came to, for people.

use super::results::{RunData, figure, invalid};
use std::fmt::Write as _;

/// A line for each combination: means over its runs, and how far they lie apart.
#[derive(Debug, Default)]
pub struct Table {
    lines: Vec<[String; 8]>,
    invalid: Vec<String>,
}

const HEAD: [[&str; 8]; 2] = [
    ["", "", "requests", "output", "TTFT", "TPOT", "E2EL", ""],
    ["combination", "runs", "/s", "tokens/s", "median ms", "median ms", "median ms", "verdict"],
];

impl Table {
    /// Adds a combination's runs.
    pub fn add(&mut self, name: &str, runs: &[RunData]) {
        let wrong: Vec<(usize, String)> =
            runs.iter().enumerate().filter_map(|(i, run)| Some((i, invalid(run)?))).collect();
        let verdict = match (runs.len(), wrong.len()) {
            (0, _) => "FAILED".into(),
            (_, 0) => "VALID".into(),
            (n, bad) if n == bad => "INVALID".into(),
            (n, bad) => format!("{bad} of {n} INVALID"),
        };
        let of = |key: &str| spread(runs, key);
        self.invalid.extend(wrong.iter().map(|(i, why)| format!("{name} run {i} is INVALID: {why}")));
        self.lines.push([
            name.to_owned(),
            runs.len().to_string(),
            of("request_throughput"),
            of("output_throughput"),
            of("median_ttft_ms"),
            of("median_tpot_ms"),
            of("median_e2el_ms"),
            verdict,
        ]);
    }

    /// As text.
    pub fn text(&self, colour: bool) -> String {
        let rows: Vec<Vec<&str>> = HEAD
            .iter()
            .map(|row| row.to_vec())
            .chain(self.lines.iter().map(|row| row.iter().map(String::as_str).collect()))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..8).map(width).collect();
        let mut out = String::new();
        for row in &rows {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for column in 1..7 {
                let _ = write!(line, "  {:>1$}", row[column], widths[column]);
            }
            let verdict = match row[7] {
                bad if colour && (bad.contains("INVALID") || bad == "FAILED") => format!("\x1b[31m{bad}\x1b[0m"),
                verdict => verdict.to_owned(),
            };
            out += format!("{line}  {verdict}").trim_end();
            out.push('\n');
        }
        out += "Figures are means over the runs, ± half of the distance between the lowest and the highest.\n";
        for line in &self.invalid {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

/// `mean ±half the range`; `-` if a run doesn't have it.
fn spread(runs: &[RunData], key: &str) -> String {
    let values: Option<Vec<f64>> = runs.iter().map(|run| figure(run, key)).collect();
    let Some(values) = values.filter(|v| !v.is_empty()) else { return "-".into() };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
    if values.len() == 1 { short(mean) } else { format!("{} ±{}", short(mean), short((high - low) / 2.0)) }
}

/// Three digits or more, as far as there are any.
pub fn short(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 || a == 0.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 1.0 => format!("{v:.2}"),
        _ => format!("{v:.3}"),
    }
}
