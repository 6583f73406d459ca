//! Samples in the Prometheus text format.

use std::fmt::Write;

use super::exposition::{Page, Rank};
use super::histogram::Histogram;

/// A counter of one replica.
pub(super) type Count = fn(&Rank<'_>) -> u64;

impl Page<'_> {
    pub(super) fn zero_counters(&self, out: &mut String, names: &[(&str, &str)]) {
        for (name, help) in names {
            self.counter(out, name, help, |_| 0);
        }
    }

    /// A counter, and when it was created.
    pub(super) fn counter(&self, out: &mut String, name: &str, help: &str, value: Count) {
        self.each(out, &format!("{name}_total"), help, "counter", |r| value(r) as f64);
        self.created_gauge(out, name, help);
    }

    pub(super) fn created_gauge(&self, out: &mut String, name: &str, help: &str) {
        self.each(out, &format!("{name}_created"), help, "gauge", |_| self.created);
    }

    /// One sample per replica.
    pub(super) fn each(&self, out: &mut String, name: &str, help: &str, kind: &str, value: impl Fn(&Rank<'_>) -> f64) {
        head(out, &format!("vllm:{name}"), help, kind);
        let model = escape(self.model);
        for (i, rank) in self.ranks.iter().enumerate() {
            let _ = writeln!(out, "vllm:{name}{{engine=\"{i}\",model_name=\"{model}\"}} {:?}", value(rank));
        }
    }

    /// Counters with one more label, and when each was created.
    pub(super) fn counters(&self, out: &mut String, name: &str, help: &str, label: &str, values: &[(&str, Count)]) {
        let labels: Vec<&str> = values.iter().map(|v| v.0).collect();
        self.labelled(out, &format!("{name}_total"), help, "counter", label, &labels, |r, i| (values[i].1)(r) as f64);
        self.labelled(out, &format!("{name}_created"), help, "gauge", label, &labels, |_, _| self.created);
    }

    /// One sample per replica and value of `label`; labels are in alphabetical order, as vLLM's client library puts them.
    #[expect(clippy::too_many_arguments, reason = "a family of samples has that many parts")]
    pub(super) fn labelled(
        &self,
        out: &mut String,
        name: &str,
        help: &str,
        kind: &str,
        label: &str,
        values: &[&str],
        read: impl Fn(&Rank<'_>, usize) -> f64,
    ) {
        head(out, &format!("vllm:{name}"), help, kind);
        let model = escape(self.model);
        for (i, rank) in self.ranks.iter().enumerate() {
            for (which, value) in values.iter().enumerate() {
                let mut labels =
                    [("engine", i.to_string()), ("model_name", model.clone()), (label, (*value).to_owned())];
                labels.sort_by_key(|l| l.0);
                let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{v}\"")).collect();
                let _ = writeln!(out, "vllm:{name}{{{}}} {:?}", labels.join(","), read(rank, which));
            }
        }
    }

    pub(super) fn histogram(&self, out: &mut String, name: &str, rank: usize, h: &Histogram) {
        let model = escape(self.model);
        let mut cumulative = 0;
        for (bound, count) in h.bounds.iter().zip(&h.counts) {
            cumulative += count;
            let _ = writeln!(
                out,
                "vllm:{name}_bucket{{engine=\"{rank}\",le=\"{bound:?}\",model_name=\"{model}\"}} {:?}",
                cumulative as f64
            );
        }
        let total = h.total as f64;
        let _ = writeln!(out, "vllm:{name}_bucket{{engine=\"{rank}\",le=\"+Inf\",model_name=\"{model}\"}} {total:?}");
        let _ = writeln!(out, "vllm:{name}_count{{engine=\"{rank}\",model_name=\"{model}\"}} {total:?}");
        let _ = writeln!(out, "vllm:{name}_sum{{engine=\"{rank}\",model_name=\"{model}\"}} {:?}", h.sum);
    }
}

pub(super) fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A label's value, escaped as the format wants it.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
