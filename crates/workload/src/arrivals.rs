use crate::Normalize;
use serde::{Deserialize, Serialize};
use tailbound_clock::{Dur, Rng, Seed};

/// When requests arrive. Rates are requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Law {
    /// All at the start.
    AtOnce,
    /// Gaps of exactly 1/rate; the first arrival is one gap after the start.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Exponential gaps of mean 1/rate.
    Poisson {
        /// Requests per second.
        rate: f64,
    },
    /// Gamma gaps of mean 1/rate and the given shape.
    Gamma {
        /// Requests per second.
        rate: f64,
        /// The shape: 1/CV² of the gaps.
        burstiness: f64,
    },
    /// The rate goes from `start` to `end` over the requests (not over time): request i of n has rate r(i/(n−1)).
    Ramp {
        /// The curve.
        strategy: Ramp,
        /// Requests per second at the first request.
        start: f64,
        /// Requests per second at the last.
        end: f64,
        /// The shape of the gaps' gamma distribution; `None`: exactly 1/r.
        burstiness: Option<f64>,
    },
    /// Explicit times.
    Schedule,
    /// Each phase's own ([`crate::Phase`]).
    Phases,
}

/// The curve of a ramp, p running from 0 to 1 over the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ramp {
    /// start + (end − start)·p
    Linear,
    /// start·(end/start)^p
    Exponential,
}

impl Law {
    /// Mean requests per second if it is one figure; infinite otherwise.
    pub(crate) fn mean_rate(&self) -> f64 {
        match *self {
            Law::Constant { rate } | Law::Poisson { rate } | Law::Gamma { rate, .. } => rate,
            Law::AtOnce | Law::Ramp { .. } | Law::Schedule | Law::Phases => f64::INFINITY,
        }
    }

    /// The rate that governs the gap before request `index` of `total`.
    pub(crate) fn rate_at(&self, index: u32, total: u32) -> f64 {
        let Law::Ramp { strategy, start, end, .. } = *self else { return self.mean_rate() };
        // A linear ramp from 0 would put its first request at infinity: it begins with its second step.
        let index = if start == 0.0 { index.max(1) } else { index };
        let p = f64::from(index) / f64::from(total.saturating_sub(1).max(1));
        match strategy {
            Ramp::Linear => start + (end - start) * p,
            Ramp::Exponential => start * libm::pow(end / start, p),
        }
    }
}

/// Arrivals in nanoseconds from the start, in order: `limit` of them, or those up to `duration`.
pub(crate) fn draw(law: &Law, limit: Option<u32>, duration: Option<Dur>, normalize: Normalize, seed: Seed) -> Vec<u64> {
    let until = duration.map_or(f64::INFINITY, Dur::secs);
    if let Law::Constant { rate } = *law {
        // Not a running sum: the millionth arrival is as exact as the first.
        let arrivals = (1..=limit.unwrap_or(u32::MAX)).map(|k| f64::from(k) / rate);
        return arrivals.take_while(|&at| at < until).map(|at| Dur::from_secs_f64(at).ns()).collect();
    }
    let mut rng = seed.stream("arrivals");
    let mut at = 0.0;
    let mut arrivals = Vec::with_capacity(limit.unwrap_or(0) as usize);
    for index in 0..limit.unwrap_or(u32::MAX) {
        at += gap(law, law.rate_at(index, limit.unwrap_or(u32::MAX)), &mut rng);
        if normalize == Normalize::None && at >= until {
            break;
        }
        arrivals.push(at);
    }
    if normalize == Normalize::Vllm && !matches!(law, Law::Ramp { .. }) {
        stretch(&mut arrivals, law.mean_rate());
    }
    arrivals.into_iter().map(|at| Dur::from_secs_f64(at).ns()).collect()
}

/// One gap in seconds.
fn gap(law: &Law, rate: f64, rng: &mut Rng) -> f64 {
    match *law {
        Law::Poisson { .. } => rng.exponential() / rate,
        Law::Gamma { burstiness, .. } => rng.gamma(burstiness) / (rate * burstiness),
        Law::Ramp { burstiness: Some(1.0), .. } => rng.exponential() / rate,
        Law::Ramp { burstiness: Some(shape), .. } => rng.gamma(shape) / (rate * shape),
        Law::Ramp { burstiness: None, .. } | Law::Constant { .. } => 1.0 / rate,
        Law::AtOnce | Law::Schedule | Law::Phases => 0.0,
    }
}

/// Multiplies all arrivals so that the last is exactly n/rate (vLLM does this to every schedule without a ramp).
fn stretch(arrivals: &mut [f64], rate: f64) {
    let target = arrivals.len() as f64 / rate;
    let Some(&last) = arrivals.last() else { return };
    if last <= 0.0 {
        return;
    }
    let factor = target / last;
    for at in arrivals.iter_mut() {
        *at = (*at * factor).min(target);
    }
    if let Some(last) = arrivals.last_mut() {
        *last = target;
    }
}
