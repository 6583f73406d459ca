//! Intervals for percentiles and for shares.

use libm::{exp, lgamma, log, sqrt};

/// Above this many values the binomial tails are taken from the normal curve; the ranks then differ by one at most.
const EXACT_UP_TO: usize = 20_000;

/// Ranks (from 1) of two order statistics that cover the `q`-quantile (0–1) of `n` independent values with at least `confidence`,
/// each tail holding at most half of the rest. `None` if no such pair exists.
///
/// The number of values below the true quantile is Binomial(n, q); see e.g. Hahn and Meeker, *Statistical Intervals*, 5.2.
pub(crate) fn order_ranks(n: usize, q: f64, confidence: f64) -> Option<(usize, usize)> {
    if n == 0 || !(q > 0.0 && q < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    if n > EXACT_UP_TO {
        return normal_ranks(n, q, tail);
    }
    // Walk the binomial's mass up from 0: `low` is the last rank with P(count < low) ≤ tail, `high` the first with
    // P(count ≥ high) ≤ tail.
    let ln_q = log(q);
    let ln_p = log(1.0 - q);
    let ln_n = lgamma(n as f64 + 1.0);
    let mass = |k: usize| {
        let (k, m) = (k as f64, (n - k) as f64);
        exp(ln_n - lgamma(k + 1.0) - lgamma(m + 1.0) + k * ln_q + m * ln_p)
    };
    let mut below = 0.0;
    let mut low = 0;
    for k in 0..n {
        below += mass(k);
        if below > tail {
            break;
        }
        low = k + 1;
    }
    let mut above = 0.0;
    let mut high = n + 1;
    for k in (1..=n).rev() {
        above += mass(k);
        if above > tail {
            break;
        }
        high = k;
    }
    (low >= 1 && high <= n).then_some((low, high))
}

fn normal_ranks(n: usize, q: f64, tail: f64) -> Option<(usize, usize)> {
    let z = normal_quantile(1.0 - tail);
    let centre = n as f64 * q;
    let reach = z * sqrt(n as f64 * q * (1.0 - q));
    let low = (centre - reach - 0.5).floor();
    let high = (centre + reach + 1.5).ceil();
    (low >= 1.0 && high <= n as f64).then_some((low as usize, high as usize))
}

/// Wilson's interval for a share: `hits` of `n`, at the given confidence. `None` of nothing.
pub fn wilson(hits: usize, n: usize, confidence: f64) -> Option<(f64, f64)> {
    if n == 0 {
        return None;
    }
    let z = normal_quantile(0.5 + confidence / 2.0);
    let (n, share) = (n as f64, hits as f64 / n as f64);
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let reach = z / scale * sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
    // At either end the interval reaches it exactly; rounding must not say otherwise.
    let low = if hits == 0 { 0.0 } else { (centre - reach).max(0.0) };
    let high = if share == 1.0 { 1.0 } else { (centre + reach).min(1.0) };
    Some((low, high))
}

/// The standard normal's quantile, by bisection on its distribution function: exact to a few ulps and called a few times a run.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    bisect(-40.0, 40.0, |x| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2) < p)
}

fn bisect(mut low: f64, mut high: f64, too_low: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if too_low(mid) { low = mid } else { high = mid }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_quantile_is_the_tables() {
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    }

    #[test]
    fn ranks_for_a_median_are_the_sign_test_table() {
        // The classical table of the sign test's 95 % interval: n = 10 → (2, 9), n = 20 → (6, 15), n = 6 → (1, 6).
        assert_eq!(order_ranks(10, 0.5, 0.95), Some((2, 9)));
        assert_eq!(order_ranks(20, 0.5, 0.95), Some((6, 15)));
        assert_eq!(order_ranks(6, 0.5, 0.95), Some((1, 6)));
        assert_eq!(order_ranks(5, 0.5, 0.95), None);
    }

    #[test]
    fn large_samples_meet_the_exact_ranks() {
        let n = EXACT_UP_TO;
        for q in [0.5, 0.9, 0.99, 0.999] {
            let (a, b) = order_ranks(n, q, 0.95).expect("large enough");
            let (c, d) = normal_ranks(n, q, 0.025).expect("large enough");
            assert!(a.abs_diff(c) <= 3 && b.abs_diff(d) <= 3, "{q}: {a} {b} {c} {d}");
        }
    }

    #[test]
    fn wilson_is_the_textbook_value() {
        // 8 of 10 at 95 %: 0.4902 … 0.9433 (Newcombe 1998's method 3).
        let (low, high) = wilson(8, 10, 0.95).expect("ten values");
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4, "{low} {high}");
    }
}
