//! Maximum-likelihood fits of gap distributions.

use serde::Serialize;

/// Shape and scale of a fitted distribution; the scale has the data's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// k: under 1 means burstier than Poisson.
    pub shape: f64,
    /// θ (Gamma: mean = kθ) or λ (Weibull).
    pub scale: f64,
}

/// Gamma by maximum likelihood: Newton on log k − ψ(k) = log(mean) − mean(log), from Minka's closed-form start.
pub(crate) fn gamma(n: f64, sum: f64, log_sum: f64) -> Option<Fit> {
    let mean = sum / n;
    let s = libm::log(mean) - log_sum / n;
    if !s.is_finite() || s <= 0.0 {
        return None;
    }
    let mut k = (3.0 - s + libm::sqrt((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s);
    for _ in 0..100 {
        let step = (libm::log(k) - digamma(k) - s) / (1.0 / k - trigamma(k));
        let next = k - step;
        let next = if next > 0.0 { next } else { k / 2.0 };
        let moved = (next - k).abs();
        k = next;
        if moved <= 1e-14 * k {
            break;
        }
    }
    Some(Fit { shape: k, scale: mean / k })
}

/// Weibull by maximum likelihood: Newton on Σxᵏ log x / Σxᵏ − 1/k = mean(log x), over the logarithms of the data.
pub(crate) fn weibull(logs: &[f64]) -> Option<Fit> {
    let n = logs.len() as f64;
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = logs.iter().sum::<f64>() / n;
    let spread = libm::sqrt(logs.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>() / n);
    if !top.is_finite() || spread <= 0.0 {
        return None;
    }
    // For a Weibull the standard deviation of the logarithms is π/(k√6).
    let mut k = 1.282_549_830_161_864 / spread;
    let mut scale_sum = n;
    for _ in 0..100 {
        let (mut s0, mut s1, mut s2) = (0.0, 0.0, 0.0);
        for l in logs {
            let y = l - top;
            let w = libm::exp(k * y);
            s0 += w;
            s1 += w * y;
            s2 += w * y * y;
        }
        scale_sum = s0;
        let ratio = s1 / s0;
        let f = ratio - 1.0 / k - (mean - top);
        let slope = s2 / s0 - ratio * ratio + 1.0 / (k * k);
        let next = k - f / slope;
        let next = if next > 0.0 { next } else { k / 2.0 };
        let moved = (next - k).abs();
        k = next;
        if moved <= 1e-12 * k {
            break;
        }
    }
    Some(Fit { shape: k, scale: libm::exp(top + libm::log(scale_sum / n) / k) })
}

/// ψ(x) for x > 0: recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.18).
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below -= 1.0 / x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r * (1.0 / 132.0)))));
    below + libm::log(x) - 0.5 / x - series
}

/// ψ′(x) for x > 0, as [`digamma`] (Abramowitz and Stegun 6.4.12).
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = r * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * (5.0 / 66.0)))));
    below + 1.0 / x + 0.5 * r + series / x
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    #[test]
    fn polygammas_at_known_points() {
        // ψ(1) = −γ, ψ(1/2) = −γ − 2 ln 2, ψ′(1) = π²/6, ψ′(1/2) = π²/2.
        let gamma = 0.577_215_664_901_532_9;
        let pi2 = std::f64::consts::PI * std::f64::consts::PI;
        assert!((digamma(1.0) + gamma).abs() < 1e-13);
        assert!((digamma(0.5) + gamma + 2.0 * std::f64::consts::LN_2).abs() < 1e-13);
        assert!((trigamma(1.0) - pi2 / 6.0).abs() < 1e-13);
        assert!((trigamma(0.5) - pi2 / 2.0).abs() < 1e-13);
    }

    #[test]
    fn fits_find_what_was_drawn() {
        let mut rng = Seed(4).stream("fits");
        for shape in [0.25, 0.9, 3.0] {
            let xs: Vec<f64> = (0..100_000).map(|_| 7.0 * rng.gamma(shape)).collect();
            let fit = gamma(xs.len() as f64, xs.iter().sum(), xs.iter().map(|&x| libm::log(x)).sum()).unwrap();
            assert!((fit.shape / shape - 1.0).abs() < 0.02 && (fit.scale / 7.0 - 1.0).abs() < 0.03, "{shape} {fit:?}");
            let logs: Vec<f64> = (0..100_000).map(|_| libm::log(5.0) + libm::log(rng.exponential()) / shape).collect();
            let fit = weibull(&logs).unwrap();
            assert!((fit.shape / shape - 1.0).abs() < 0.02 && (fit.scale / 5.0 - 1.0).abs() < 0.03, "{shape} {fit:?}");
        }
    }
}
