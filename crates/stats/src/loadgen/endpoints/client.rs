//! The choices of the reference client: CPython's random streams, sample orders, percentiles.

use crate::loadgen::early_stopping::estimate_rank;
use crate::loadgen::rng::Mt19937;

/// CPython's `random.Random`.
#[derive(Clone, Debug)]
pub struct PyRandom {
    rng: Mt19937,
}

impl PyRandom {
    /// `random.Random(seed)` for a seed that is not negative.
    pub fn new(seed: u64) -> PyRandom {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let key: &[u32] = if high == 0 { &[low] } else { &[low, high] };
        PyRandom { rng: Mt19937::from_key(key) }
    }

    /// `random()`, 53 bits in `[0, 1)`.
    pub fn random(&mut self) -> f64 {
        let a = f64::from(self.rng.u32() >> 5);
        let b = f64::from(self.rng.u32() >> 6);
        (a * 67_108_864.0 + b) / 9_007_199_254_740_992.0
    }

    /// `expovariate(rate)`.
    pub fn expovariate(&mut self, rate: f64) -> f64 {
        -libm::log(1.0 - self.random()) / rate
    }

    /// `_randbelow(n)`: as many bits as `n` has, until they are under it. `n` must not be zero.
    pub fn below(&mut self, n: u32) -> u32 {
        debug_assert!(n > 0);
        loop {
            let bits = self.rng.u32() >> n.leading_zeros();
            if bits < n {
                return bits;
            }
        }
    }

    /// `shuffle`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// Poisson gaps in ns at `qps`: at least 1 each, for ever.
pub fn poisson_gaps(seed: u64, qps: f64) -> impl Iterator<Item = u64> {
    let mut random = PyRandom::new(seed);
    std::iter::from_fn(move || Some((random.expovariate(qps / 1e9) as u64).max(1)))
}

/// Sample indices without replacement: pass after pass over the data set, each a shuffle of the last.
pub fn order_without_replacement(seed: u64, samples: u32) -> impl Iterator<Item = u32> {
    let mut random = PyRandom::new(seed);
    let mut pass: Vec<u32> = (0..samples).collect();
    let mut at = pass.len();
    std::iter::from_fn(move || {
        if pass.is_empty() {
            return None;
        }
        if at == pass.len() {
            random.shuffle(&mut pass);
            at = 0;
        }
        at += 1;
        Some(pass[at - 1])
    })
}

/// Sample indices with replacement, for ever.
pub fn order_with_replacement(seed: u64, samples: u32) -> impl Iterator<Item = u32> {
    let mut random = PyRandom::new(seed);
    std::iter::from_fn(move || (samples > 0).then(|| random.below(samples)))
}

/// The percentiles of `result_summary.json`.
pub const GRID: [f64; 8] = [50.0, 75.0, 80.0, 90.0, 95.0, 97.0, 99.0, 99.9];

/// `sorted[⌊p/100 · (n − 1)⌋]`, numpy's method "lower"; `None` of nothing.
pub fn percentile(sorted: &[i64], p: f64) -> Option<i64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((p / 100.0 * last as f64) as usize).copied()
}

/// The early-stopping estimate of a percentile: the order statistic that confidence 0.99 allows, `None` with too few
/// values.
pub fn early_stopping_estimate(sorted: &[i64], p: f64) -> Option<i64> {
    let n = sorted.len() as u64;
    let rank = estimate_rank(n, p / 100.0)?;
    sorted.get((n - rank) as usize).copied()
}
