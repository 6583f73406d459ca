//! The points of a sweep, one a line.

use super::ran::Told;
use serde_json::{Value, json};
use tailbound_stats::Dist;

/// What is told of every point: its name, and the figure.
const COLUMNS: [&str; 9] =
    ["ok", "failed", "TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms", "TPOT p99 ms", "output tok/s", "good %", "cached %"];

/// A table that grows by a line a point.
pub struct Table {
    parameters: Vec<String>,
    lines: Vec<(Vec<String>, [Option<f64>; COLUMNS.len()])>,
}

impl Table {
    /// Of a sweep over these parameters.
    pub fn new(parameters: &[String]) -> Table {
        Table { parameters: parameters.to_vec(), lines: Vec::new() }
    }

    /// Adds a point.
    pub fn add(&mut self, values: &[String], told: &Told) {
        let s = &told.summary;
        let ms = |dist: &Dist, p: f64| dist.percentile(p).map(|ns| ns * 1e-6);
        let (ttft, tpot) = (&s.latency.ttft, &s.latency.tpot);
        let good = s.goodput.as_ref().and_then(|g| g.attainment).map(|share| 100.0 * share);
        let cached = told.figures.as_ref().map(|f| 100.0 * f.hit_ratio);
        let figures = [
            Some(s.requests.completed as f64),
            Some((s.requests.planned - s.requests.completed) as f64),
            ms(ttft, 50.0),
            ms(ttft, 99.0),
            ms(tpot, 50.0),
            ms(tpot, 99.0),
            s.throughput.output_tokens_per_s,
            good,
            cached,
        ];
        self.lines.push((values.to_vec(), figures));
    }

    /// For people.
    pub fn text(&self) -> String {
        let head = self.parameters.iter().map(String::as_str).chain(COLUMNS);
        let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
        for (values, figures) in &self.lines {
            let shown = figures.iter().enumerate().map(|(i, value)| match value {
                None => "-".to_owned(),
                Some(value) if i < 2 => format!("{value:.0}"),
                Some(value) => format!("{value:.1}"),
            });
            rows.push(values.iter().cloned().chain(shown).collect());
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let named = self.parameters.len();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, width))| match i < named {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        rows.iter().map(line).collect()
    }

    /// For programs: a list of objects.
    pub fn json(&self) -> String {
        let point = |(values, figures): &(Vec<String>, [Option<f64>; COLUMNS.len()])| {
            let values = self.parameters.iter().cloned().zip(values.iter().map(|v| json!(v)));
            let figures = COLUMNS.iter().map(|c| (*c).to_owned()).zip(figures.iter().map(|v| json!(v)));
            Value::Object(values.chain(figures).collect())
        };
        let all: Vec<Value> = self.lines.iter().map(point).collect();
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }
}
