use crate::{binomial, sort};

/// A finished sample: every value, sorted, with its moments.
///
/// The unit is the owner's to state; durations are nanoseconds. Values are finite and not negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dist {
    sorted: Vec<f64>,
    mean: f64,
    std: f64,
}

impl Dist {
    /// Sorts `values` and takes their moments. Values that are negative or not finite are a caller's mistake.
    pub fn new(values: Vec<f64>) -> Dist {
        debug_assert!(values.iter().all(|v| v.is_finite() && v.is_sign_positive()));
        // Non-negative doubles sort as their bit patterns do.
        let mut bits: Vec<u64> = values.into_iter().map(f64::to_bits).collect();
        sort::ascending(&mut bits);
        Dist::from_sorted(bits.into_iter().map(f64::from_bits).collect())
    }

    fn from_sorted(sorted: Vec<f64>) -> Dist {
        if sorted.is_empty() {
            return Dist::default();
        }
        let n = sorted.len() as f64;
        let mean = sum(&sorted, |v| v) / n;
        let variance = sum(&sorted, |v| (v - mean) * (v - mean)) / n;
        Dist { sorted, mean, std: variance.sqrt() }
    }

    /// How many values.
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The values, ascending.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then_some(self.mean)
    }

    /// Standard deviation of the population (`ddof = 0`), as numpy's default.
    pub fn std(&self) -> Option<f64> {
        (!self.is_empty()).then_some(self.std)
    }

    /// Smallest value.
    pub fn min(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    /// Largest value.
    pub fn max(&self) -> Option<f64> {
        self.sorted.last().copied()
    }

    /// Sum of the values.
    pub fn total(&self) -> f64 {
        self.mean * self.n() as f64
    }

    /// The 50th percentile, interpolated.
    pub fn median(&self) -> Option<f64> {
        self.percentile(50.0)
    }

    /// The `p`-th percentile (0–100) by linear interpolation: Hyndman and Fan's type 7, numpy's default.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let last = self.sorted.len().checked_sub(1)?;
        let position = (p / 100.0).clamp(0.0, 1.0) * last as f64;
        let below = position.floor() as usize;
        let fraction = position - below as f64;
        let low = self.sorted[below];
        let high = self.sorted[(below + 1).min(last)];
        // numpy's own form, which is exact at both ends.
        let step = high - low;
        Some(if fraction < 0.5 { low + step * fraction } else { high - step * (1.0 - fraction) })
    }

    /// The `p`-th percentile by nearest rank: the smallest value that at least `p` % of the sample do not exceed. A value
    /// that was really measured, so the one that verdicts use.
    pub fn nearest_rank(&self, p: f64) -> Option<f64> {
        self.nearest_rank_with_failures(p, 0)
    }

    /// As [`Dist::nearest_rank`], over this sample and `failed` further requests that count as infinitely slow.
    pub fn nearest_rank_with_failures(&self, p: f64, failed: usize) -> Option<f64> {
        let n = self.n() + failed;
        let rank = nearest_rank(p, n)?;
        Some(self.sorted.get(rank - 1).copied().unwrap_or(f64::INFINITY))
    }

    /// An interval that covers the true `p`-th percentile with at least the given confidence (0.95), whatever the distribution:
    /// two order statistics whose ranks bound the binomial count of values below it. `None` if the sample is too small for one.
    /// Assumes independent values.
    pub fn interval(&self, p: f64, confidence: f64) -> Option<(f64, f64)> {
        let (low, high) = binomial::order_ranks(self.n(), p / 100.0, confidence)?;
        Some((self.sorted[low - 1], self.sorted[high - 1]))
    }

    /// Whether the sample is too small to say anything about its `p`-th percentile: no 95 % interval exists (under 368 values
    /// for p99, under 6 for the median).
    pub fn too_few_for(&self, p: f64) -> bool {
        binomial::order_ranks(self.n(), p / 100.0, 0.95).is_none()
    }

    /// The share of values not above `limit`.
    pub fn share_within(&self, limit: f64) -> Option<f64> {
        let within = self.sorted.partition_point(|v| *v <= limit);
        (!self.is_empty()).then(|| within as f64 / self.n() as f64)
    }
}

/// Rank from 1 of the nearest-rank percentile: ⌈p/100 · n⌉.
fn nearest_rank(p: f64, n: usize) -> Option<usize> {
    if n == 0 {
        return None;
    }
    // 99.9 / 100 · 1000 is 999.0000000000001 in doubles; a true rank is never that close above an integer.
    let exact = p / 100.0 * n as f64;
    let rank = (exact - exact * 1e-12).ceil() as usize;
    Some(rank.clamp(1, n))
}

/// Sum in blocks, so that a million terms lose no more than a few bits.
fn sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    values.chunks(256).map(|block| block.iter().map(|v| term(*v)).sum::<f64>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_or_take_a_rank() {
        let d = Dist::new(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(d.percentile(50.0), Some(2.5));
        assert_eq!(d.nearest_rank(50.0), Some(2.0));
        assert_eq!(d.nearest_rank(51.0), Some(3.0));
        assert_eq!(d.percentile(100.0), Some(4.0));
        assert_eq!(d.percentile(0.0), Some(1.0));
        assert_eq!(Dist::default().percentile(50.0), None);
    }

    #[test]
    fn a_rank_survives_rounding() {
        let d = Dist::new((1..=1000).map(f64::from).collect());
        assert_eq!(d.nearest_rank(99.9), Some(999.0));
        assert_eq!(d.nearest_rank(99.0), Some(990.0));
        assert_eq!(d.nearest_rank(0.1), Some(1.0));
    }

    #[test]
    fn failures_stand_above_everything_measured() {
        let d = Dist::new((1..=98).map(f64::from).collect());
        assert_eq!(d.nearest_rank_with_failures(98.0, 2), Some(98.0));
        assert_eq!(d.nearest_rank_with_failures(99.0, 2), Some(f64::INFINITY));
        assert_eq!(Dist::default().nearest_rank_with_failures(50.0, 3), Some(f64::INFINITY));
    }

    #[test]
    fn twenty_values_say_nothing_about_a_p99() {
        let small = Dist::new((0..20).map(f64::from).collect());
        assert!(small.too_few_for(99.0) && !small.too_few_for(50.0));
        assert!(Dist::new((0..367).map(f64::from).collect()).too_few_for(99.0));
        assert!(!Dist::new((0..368).map(f64::from).collect()).too_few_for(99.0));
    }
}
