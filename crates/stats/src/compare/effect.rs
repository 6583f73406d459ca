//! How far two sides are apart in one figure, and how sure that is.

use crate::binomial::normal_quantile;
use crate::student::two_sided;

/// A value and the interval it lies in with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: f(self.value), low: f(self.low), high: f(self.high) }
    }
}

/// What two ways of asking for the spread of an effect answered. The interval is the wider of theirs at either end:
/// within runs by the bootstrap of stretches, which knows the load's chances but not what differs from run to run;
/// between runs by the jackknife over rounds (or, with too few of them, over long parts of runs) with Student's t, which knows both but has
/// few of them to go by.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub value: f64,
    /// Bootstrap replicates, ascending.
    replicates: Vec<f64>,
    /// Segments resampled, less one.
    within_dof: f64,
    /// Standard error and degrees of freedom by the jackknife over rounds.
    between: Option<(f64, f64)>,
    /// Least standard error: shares of 0 and 1 have none of their own.
    floor: f64,
}

/// Beyond this many replicates in a tail its quantile is read off them; a longer way out is drawn on as a normal curve.
const TAIL: f64 = 20.0;
/// What p-values are told apart by.
const LEAST_P: f64 = 1e-6;
const MOST_P: f64 = 0.99;

impl Effect {
    pub fn new(
        value: f64,
        mut replicates: Vec<f64>,
        within_dof: f64,
        between: Option<(f64, f64)>,
        floor: f64,
    ) -> Effect {
        replicates.sort_unstable_by(f64::total_cmp);
        Effect { value, replicates, within_dof, between, floor }
    }

    /// The interval that misses the truth with probability `alpha` (0–1).
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let (low, high) = self.within(alpha);
        let least = self.floor * normal_quantile(1.0 - alpha / 2.0);
        let between = self.between.map_or(0.0, |(error, dof)| error * two_sided(alpha, dof)).max(least);
        (low.min(self.value - between), high.max(self.value + between))
    }

    /// The same by the bootstrap alone.
    pub fn within(&self, alpha: f64) -> (f64, f64) {
        let n = self.replicates.len();
        // No further out than the replicates tell.
        let told = alpha.max(2.0 * TAIL / n as f64).min(MOST_P);
        // Student's t for few segments, and out to `alpha` if that is further.
        let stretch = two_sided(alpha, self.within_dof) / normal_quantile(1.0 - told / 2.0);
        let at = |share: f64| quantile(&self.replicates, share);
        let below = (self.value - at(told / 2.0)).max(0.0) * stretch;
        let above = (at(1.0 - told / 2.0) - self.value).max(0.0) * stretch;
        (self.value - below, self.value + above)
    }

    /// The least `alpha` whose interval leaves out zero, to 1e-6.
    pub fn p_value(&self) -> f64 {
        let leaves_out_zero = |alpha: f64| {
            let (low, high) = self.interval(alpha);
            low > 0.0 || high < 0.0
        };
        if self.value == 0.0 || !leaves_out_zero(MOST_P) {
            return 1.0;
        }
        let (mut low, mut high) = (libm::log(LEAST_P), libm::log(MOST_P));
        if leaves_out_zero(LEAST_P) {
            return LEAST_P;
        }
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            if leaves_out_zero(libm::exp(middle)) { high = middle } else { low = middle }
        }
        libm::exp(high)
    }

    pub fn estimate(&self, alpha: f64) -> Estimate {
        let (low, high) = self.interval(alpha);
        Estimate { value: self.value, low, high }
    }
}

/// By linear interpolation, as numpy has it.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The standard error of a figure by leaving out one of `n` groups at a time: √((n − 1)/n · Σ(θ₋ₖ − mean θ₋)²).
pub(crate) fn jackknife(left_out: &[f64]) -> f64 {
    let n = left_out.len() as f64;
    let mean = left_out.iter().sum::<f64>() / n;
    let squares = left_out.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>();
    ((n - 1.0) / n * squares).sqrt()
}

/// Holm's step-down: p-values adjusted for being looked at together, in their own order. Claiming all that are at most α keeps the chance of
/// any false claim at α, however the figures depend on each other (Holm 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut so_far: f64 = 0.0;
    for (rank, i) in order.iter().enumerate() {
        so_far = so_far.max((p.len() - rank) as f64 * p[*i]).min(1.0);
        adjusted[*i] = so_far;
    }
    adjusted
}
