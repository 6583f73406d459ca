//! A workload composed of a pool's clients.

use super::{Client, Pattern, Pool};
use crate::collect::Trace;
use crate::error::Error;
use crate::generate::{Copula, Gaps, Pdf, Piece, renewal};
use crate::row::{Media, MediaKind, Names, Row};
use std::collections::BTreeMap;
use tailbound_clock::{Rng, Seed};

/// What to compose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compose {
    /// From this second of the pool's time …
    pub from_s: u32,
    /// … to this one.
    pub to_s: u32,
    /// Total requests per second, in every window; `None` leaves the pool's own rates.
    pub rate: Option<f64>,
    /// Spearman's rank correlation between input and output tokens within a client, −1 to 1. 0: independent.
    pub rank_correlation: f64,
}

/// What a composition must give on average.
#[derive(Clone, Debug, PartialEq)]
pub struct Analytic {
    /// Windows of the clients with requests, their idle ones included.
    pub windows: u64,
    /// Clients with requests.
    pub active_clients: u64,
    /// Requests.
    pub requests: f64,
    /// Mean of each field over the requests.
    pub means: BTreeMap<String, f64>,
}

/// The pieces of constant rate and law of one client.
fn pieces(pool: &Pool, client: &Client, ask: &Compose, totals: &[f64]) -> Vec<Piece> {
    let mut out = Vec::new();
    for (window, total) in client.windows.iter().zip(totals) {
        let from = window.t.max(ask.from_s);
        let to = (window.t + pool.window_s).min(ask.to_s);
        if from >= to {
            continue;
        }
        let scale = match ask.rate {
            Some(rate) if *total > 0.0 => rate / total,
            _ => 1.0,
        };
        let gaps = match window.pattern {
            Some(Pattern::Gamma(shape)) => Gaps::Gamma(shape),
            Some(Pattern::Weibull(shape)) => Gaps::Weibull(shape),
            None => Gaps::Gamma(1.0),
        };
        let start = f64::from(from - ask.from_s);
        out.push(Piece::even(start, f64::from(to - ask.from_s), scale * window.active_rate(), gaps));
    }
    out
}

/// All clients' rates, window by window.
fn totals(pool: &Pool) -> Vec<f64> {
    let n = pool.clients.first().map_or(0, |c| c.windows.len());
    (0..n).map(|i| pool.clients.iter().map(|c| c.windows[i].active_rate()).sum()).collect()
}

/// Expected numbers of a composition.
pub fn analytic(pool: &Pool, ask: &Compose) -> Analytic {
    let totals = totals(pool);
    let mut out = Analytic { windows: 0, active_clients: 0, requests: 0.0, means: BTreeMap::new() };
    for client in &pool.clients {
        let pieces = pieces(pool, client, ask, &totals);
        if pieces.iter().all(|p| p.rate <= 0.0) {
            continue;
        }
        out.active_clients += 1;
        out.windows += pieces.len() as u64;
        for piece in pieces.iter().filter(|p| p.rate > 0.0) {
            let n = piece.expected();
            out.requests += n;
            for (field, pdf) in client.lengths.at(ask.from_s + piece.start as u32).into_iter().flatten() {
                *out.means.entry(field.clone()).or_default() += n * pdf.mean();
            }
        }
    }
    let requests = out.requests;
    out.means.values_mut().for_each(|sum| *sum /= requests);
    out
}

/// Composes a workload: each client's arrivals are a stationary renewal process in its own operational time (rate × time), so that
/// a gap that crosses into another window goes on at that window's rate; each request's fields are drawn from the client's
/// distributions at that time.
pub fn compose(pool: &Pool, ask: &Compose, seed: Seed) -> Result<Trace, Error> {
    if ask.from_s >= ask.to_s {
        return Err(Error::Asked(format!("nothing lies between {} s and {} s", ask.from_s, ask.to_s)));
    }
    let copula = Copula::new(ask.rank_correlation)?;
    let totals = totals(pool);
    let mut names = Names::default();
    let mut rows = Vec::new();
    for client in &pool.clients {
        let name = names.intern(&format!("client-{}", client.id));
        let pieces = pieces(pool, client, ask, &totals);
        let mut arrivals = seed.numbered("servegen.arrivals", u64::from(client.id));
        let mut lengths = seed.numbered("servegen.lengths", u64::from(client.id));
        for at in renewal(&pieces, &mut arrivals) {
            let mut row = Row { at: Some((at * 1e9) as i64), client: Some(name), ..Row::default() };
            if let Some(fields) = client.lengths.at(ask.from_s + at as u32) {
                draw(&mut row, fields, &copula, &mut lengths);
            }
            rows.push(row);
        }
    }
    let last = (ask.to_s - ask.from_s) as i64;
    debug_assert!(rows.iter().all(|r| r.at.is_some_and(|at| at < last * 1_000_000_000)));
    Ok(Trace::of_rows(rows, names, None))
}

fn draw(row: &mut Row, fields: &BTreeMap<String, Pdf>, copula: &Copula, rng: &mut Rng) {
    let (u_in, u_out) = copula.pair(rng);
    let whole = |x: f64| x.clamp(0.0, f64::from(u32::MAX)) as u32;
    let input = fields.get("input_tokens").or_else(|| fields.get("text_tokens"));
    row.input = input.map(|pdf| whole(pdf.at(u_in)));
    row.output = fields.get("output_tokens").map(|pdf| whole(pdf.at(u_out)));
    if let (Some(ratio), Some(output)) = (fields.get("reason_ratio"), row.output) {
        let ratio = ratio.at(rng.unit()).clamp(0.0, 1.0);
        row.more_mut().reasoning = Some(whole(libm::round(ratio * f64::from(output))));
    }
    for (kind, count, tokens) in [
        (MediaKind::Image, "image_count", "image_tokens"),
        (MediaKind::Audio, "audio_count", "audio_tokens"),
        (MediaKind::Video, "video_count", "video_tokens"),
    ] {
        let Some(count) = fields.get(count) else { continue };
        for _ in 0..whole(count.at(rng.unit())) {
            let tokens = fields.get(tokens).map(|pdf| whole(pdf.at(rng.unit())));
            row.more_mut().media.push(Media { kind, tokens });
        }
    }
}
