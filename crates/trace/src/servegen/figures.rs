use super::{Pattern, Pool};
use crate::describe::{LengthFigures, figures_of, length_line, num};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// A pool in figures: sums of what its windows state, nothing drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct PoolFigures {
    pub clients: u64,
    pub windows: u64,
    pub window_s: u32,
    /// Sum of rate times window length.
    pub requests_expected: f64,
    /// All clients' rates per window.
    pub aggregate_rate: Option<LengthFigures>,
    pub peak_window_index: u64,
    /// Clients that send half of the requests, busiest first.
    pub clients_for_50pct: u64,
    pub clients_for_90pct: u64,
    pub top_client_share: f64,
    /// Client windows by law; `none` is idle.
    pub patterns: BTreeMap<&'static str, u64>,
    /// Recorded gap CV of the client windows that are not idle.
    pub client_window_cv: Option<LengthFigures>,
    pub fields: Vec<String>,
    /// Mean of each field over the expected requests.
    pub rate_weighted_mean: BTreeMap<String, f64>,
    /// Expected requests at times without a usable distribution.
    pub requests_without_length_distribution: f64,
    pub empty_pdfs: u64,
    pub active_clients_per_window: Option<LengthFigures>,
}

impl Pool {
    /// Describes the pool.
    pub fn figures(&self) -> PoolFigures {
        let windows = self.clients.first().map_or(0, |c| c.windows.len());
        let length = f64::from(self.window_s);
        let mut rates = vec![0.0; windows];
        let mut active = vec![0.0; windows];
        let mut patterns = BTreeMap::new();
        let mut cvs = Vec::new();
        let mut by_client = Vec::new();
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        let (mut covered, mut uncovered) = (0.0, 0.0);
        for client in &self.clients {
            let mut total = 0.0;
            for (i, window) in client.windows.iter().enumerate() {
                let word = match window.pattern {
                    Some(Pattern::Gamma(_)) => "Gamma",
                    Some(Pattern::Weibull(_)) => "Weibull",
                    None => "none",
                };
                *patterns.entry(word).or_default() += 1;
                let n = window.rate * length;
                rates[i] += window.rate;
                total += n;
                if window.pattern.is_none() {
                    continue;
                }
                active[i] += 1.0;
                cvs.push(window.cv);
                match client.lengths.at(window.t) {
                    None => uncovered += n,
                    Some(fields) => {
                        covered += n;
                        for (field, pdf) in fields {
                            *sums.entry(field.clone()).or_default() += n * pdf.mean();
                        }
                    }
                }
            }
            by_client.push(total);
        }
        by_client.sort_unstable_by(|a, b| b.total_cmp(a));
        let requests: f64 = by_client.iter().sum();
        let clients_for = |share: f64| {
            let mut sum = 0.0;
            let enough = |n: &f64| {
                sum += n;
                sum >= share * requests
            };
            by_client.iter().position(enough).map_or(0, |i| i as u64 + 1)
        };
        let mut fields: Vec<String> = self.clients.iter().flat_map(|c| c.lengths.fields.iter().cloned()).collect();
        fields.sort();
        fields.dedup();
        let peak = (0..windows).max_by(|&a, &b| rates[a].total_cmp(&rates[b]).then(b.cmp(&a)));
        PoolFigures {
            clients: self.clients.len() as u64,
            windows: windows as u64,
            window_s: self.window_s,
            requests_expected: requests,
            peak_window_index: peak.unwrap_or(0) as u64,
            clients_for_50pct: clients_for(0.5),
            clients_for_90pct: clients_for(0.9),
            top_client_share: by_client.first().map_or(0.0, |top| top / requests),
            patterns,
            client_window_cv: figures_of(cvs),
            fields,
            rate_weighted_mean: sums.into_iter().map(|(field, sum)| (field, sum / covered)).collect(),
            requests_without_length_distribution: uncovered,
            empty_pdfs: self.clients.iter().map(|c| c.lengths.empty_pdfs).sum(),
            active_clients_per_window: figures_of(active),
            aggregate_rate: figures_of(rates),
        }
    }
}

impl Display for PoolFigures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let hours = num(f64::from(self.window_s) * self.windows as f64 / 3600.0);
        writeln!(
            f,
            "clients        {}, over {} windows of {} s ({hours} h)",
            self.clients, self.windows, self.window_s
        )?;
        writeln!(f, "requests       {} expected", num(self.requests_expected))?;
        let (half, most) = (self.clients_for_50pct, self.clients_for_90pct);
        let top = num(100.0 * self.top_client_share);
        writeln!(f, "  by client    {half} send half of them, {most} send 90 %, the busiest {top} %")?;
        let laws: Vec<String> = self.patterns.iter().map(|(law, n)| format!("{law} {n}")).collect();
        writeln!(f, "  laws         {} (windows of clients; none is idle)", laws.join(", "))?;
        for (word, figures) in [
            ("rate (/s)", self.aggregate_rate),
            ("gap CV", self.client_window_cv),
            ("active clients", self.active_clients_per_window),
        ] {
            if let Some(figures) = figures {
                length_line(f, word, &figures)?;
            }
        }
        for (field, mean) in &self.rate_weighted_mean {
            writeln!(f, "{field:<14} mean {}", num(*mean))?;
        }
        if self.requests_without_length_distribution > 0.0 {
            let n = num(self.requests_without_length_distribution);
            writeln!(f, "  beware       {n} requests come at times without a distribution of lengths")?;
        }
        Ok(())
    }
}
