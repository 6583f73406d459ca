//! Early stopping: how many queries a run needs before its percentile can be believed.
//!
//! With `t` queries over the bound, `h(t)` is the least number under it such that a system whose true under-latency rate
//! were only `p` would do this well with probability under `1 − c`: `P[Bin(h + t, 1 − p) ≤ t] < 1 − c`. A run passes when
//! its count is at least `h(t) + t`. LoadGen sums a hypergeometric series for the same probability; both give the same
//! integers. Confidence is 0.99 and the tolerance 0 in every official run.

/// The confidence of every official test.
pub const CONFIDENCE: f64 = 0.99;

/// The least number of queries under the bound that lets `over` queries over it pass, at `percentile` in `(0, 1)`.
pub fn under_needed(over: u64, percentile: f64) -> u64 {
    let passes = |under: u64| incomplete_beta(under as f64, over as f64 + 1.0, percentile) < 1.0 - CONFIDENCE;
    let mut high = 1u64;
    while !passes(high) {
        high *= 2;
        if high > 1 << 40 {
            return high; // a percentile of 1: no number of queries can show it
        }
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if passes(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The least number of queries in all, `h(t) + t`.
pub fn queries_needed(over: u64, percentile: f64) -> u64 {
    under_needed(over, percentile) + over
}

/// The largest number of over-latency queries with which `queries` queries pass; `None` if not even zero would.
pub fn over_allowed(queries: u64, percentile: f64) -> Option<u64> {
    if queries < queries_needed(0, percentile) {
        return None;
    }
    let (mut low, mut high) = (0, queries);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if queries >= queries_needed(middle, percentile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// The order statistic early stopping puts in the place of a percentile: `sorted[n − t]`, with `t` the most over-latency
/// queries `n` allows, at least one. `None` with too few values (the floor is [`queries_needed`]`(1, percentile)`).
pub fn estimate_rank(queries: u64, percentile: f64) -> Option<u64> {
    over_allowed(queries, percentile).filter(|&t| t >= 1)
}

/// The regularised incomplete beta function `I_x(a, b)`, by its continued fraction (Lentz's method).
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    let front = libm::exp(log_front);
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep_off_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep_off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    // It settles in the order of the square root of the larger parameter.
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep_off_zero(1.0 + even * d);
        c = keep_off_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep_off_zero(1.0 + odd * d);
        c = keep_off_zero(1.0 + odd / c);
        let step = d * c;
        value *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}
