use serde::Serialize;
use std::collections::BTreeMap;

/// How often each whole number occurred: exact percentiles and moments of any number of values in the space of their range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
    n: u64,
}

/// Values under this are counted in a vector.
const SMALL: u64 = 1 << 20;

/// A distribution. Percentiles are of type 7 (linear between order statistics, numpy's default).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct LengthFigures {
    /// How many values.
    pub n: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Standard deviation, divisor n.
    pub std_pop: f64,
    /// Standard deviation, divisor n - 1; none for one value.
    pub std_sample: Option<f64>,
    /// Values equal to zero.
    pub zeros: u64,
    pub p1: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    #[serde(rename = "p99.9")]
    pub p999: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        self.n += 1;
        if value >= SMALL {
            *self.large.entry(value).or_default() += 1;
            return;
        }
        let i = value as usize;
        if i >= self.small.len() {
            self.small.resize((i + 1).next_power_of_two(), 0);
        }
        self.small[i] += 1;
    }

    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    /// The values that occurred and how often, ascending.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let small = self.small.iter().enumerate().map(|(v, &n)| (v as u64, n)).filter(|&(_, n)| n > 0);
        small.chain(self.large.iter().map(|(&v, &n)| (v, n)))
    }

    pub(crate) fn merged(&self, other: &Histogram) -> Histogram {
        let mut all = self.clone();
        for (value, n) in other.values() {
            all.add(value);
            all.n += n - 1;
            match value {
                SMALL.. => *all.large.entry(value).or_default() += n - 1,
                _ => all.small[value as usize] += n - 1,
            }
        }
        all
    }

    pub(crate) fn sum(&self) -> u128 {
        self.values().map(|(v, n)| u128::from(v) * u128::from(n)).sum()
    }

    /// Sum of squared deviations from the mean, from exact integer sums.
    fn squares(&self) -> f64 {
        let n = u128::from(self.n);
        let sum = self.sum();
        let sq: u128 = self.values().map(|(v, k)| u128::from(v) * u128::from(v) * u128::from(k)).sum();
        (n * sq - sum * sum) as f64 / self.n as f64
    }

    pub(crate) fn figures(&self) -> Option<LengthFigures> {
        if self.n == 0 {
            return None;
        }
        let (n, sum, squares) = (self.n as f64, self.sum() as f64, self.squares());
        let quantiles = self.quantiles(&PERCENTS);
        Some(LengthFigures {
            n: self.n,
            sum,
            min: self.values().next().map_or(0.0, |(v, _)| v as f64),
            max: self.values().last().map_or(0.0, |(v, _)| v as f64),
            mean: sum / n,
            std_pop: libm::sqrt(squares / n),
            std_sample: (self.n > 1).then(|| libm::sqrt(squares / (n - 1.0))),
            zeros: self.values().next().filter(|&(v, _)| v == 0).map_or(0, |(_, k)| k),
            p1: quantiles[0],
            p5: quantiles[1],
            p25: quantiles[2],
            p50: quantiles[3],
            p75: quantiles[4],
            p90: quantiles[5],
            p95: quantiles[6],
            p99: quantiles[7],
            p999: quantiles[8],
        })
    }

    fn quantiles(&self, percents: &[f64; 9]) -> [f64; 9] {
        percents.map(|percent| {
            let (rank, t) = position(percent, self.n);
            let low = self.order(rank);
            if t == 0.0 { low } else { lerp(low, self.order(rank + 1), t) }
        })
    }

    /// The value of that rank, from 0.
    fn order(&self, rank: u64) -> f64 {
        let mut upto = 0;
        for (v, n) in self.values() {
            upto += n;
            if rank < upto {
                return v as f64;
            }
        }
        0.0
    }
}

pub(crate) const PERCENTS: [f64; 9] = [1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// Rank and weight of the type-7 percentile among n values.
fn position(percent: f64, n: u64) -> (u64, f64) {
    let h = percent / 100.0 * (n - 1) as f64;
    let rank = libm::floor(h);
    (rank as u64, h - rank)
}

fn lerp(low: f64, high: f64, t: f64) -> f64 {
    low + (high - low) * t
}

/// Type-7 percentile of ascending values; `None` of none.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let (rank, t) = position(percent, (sorted.len() as u64).max(1));
    let low = *sorted.get(rank as usize)?;
    Some(sorted.get(rank as usize + 1).map_or(low, |&high| lerp(low, high, t)))
}

/// Mean and population variance.
pub(crate) fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    Some((mean, squares / n))
}

/// The figures of real values, which it sorts.
pub(crate) fn figures_of(mut values: Vec<f64>) -> Option<LengthFigures> {
    values.sort_unstable_by(f64::total_cmp);
    let (mean, var) = moments(&values)?;
    let n = values.len() as f64;
    let p = |percent| percentile(&values, percent).unwrap_or_default();
    Some(LengthFigures {
        n: values.len() as u64,
        sum: values.iter().sum(),
        min: values[0],
        max: values[values.len() - 1],
        mean,
        std_pop: libm::sqrt(var),
        std_sample: (values.len() > 1).then(|| libm::sqrt(var * n / (n - 1.0))),
        zeros: values.iter().filter(|&&v| v == 0.0).count() as u64,
        p1: p(1.0),
        p5: p(5.0),
        p25: p(25.0),
        p50: p(50.0),
        p75: p(75.0),
        p90: p(90.0),
        p95: p(95.0),
        p99: p(99.0),
        p999: p(99.9),
    })
}

/// Spearman's rank correlation with average ranks, of pairs whose two distributions are known. `None` if either is constant.
pub(crate) fn spearman(pairs: &[[u32; 2]], xs: &Histogram, ys: &Histogram) -> Option<f64> {
    let (rank_x, rank_y) = (Ranks::of(xs), Ranks::of(ys));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let covariance: f64 = pairs.iter().map(|&[x, y]| (rank_x.get(x) - mean) * (rank_y.get(y) - mean)).sum();
    let product = rank_x.squares(xs, mean) * rank_y.squares(ys, mean);
    (product > 0.0).then(|| covariance / libm::sqrt(product))
}

struct Ranks {
    small: Vec<f64>,
    large: BTreeMap<u64, f64>,
}

impl Ranks {
    /// Average rank (from 1) of every value that occurred.
    fn of(values: &Histogram) -> Ranks {
        let mut ranks = Ranks { small: vec![0.0; values.small.len()], large: BTreeMap::new() };
        let mut before = 0;
        for (value, n) in values.values() {
            let rank = before as f64 + (n as f64 + 1.0) / 2.0;
            before += n;
            if value < SMALL {
                ranks.small[value as usize] = rank;
            } else {
                ranks.large.insert(value, rank);
            }
        }
        ranks
    }

    fn get(&self, value: u32) -> f64 {
        match self.small.get(value as usize) {
            Some(&rank) => rank,
            None => self.large.get(&u64::from(value)).copied().unwrap_or_default(),
        }
    }

    fn squares(&self, values: &Histogram, mean: f64) -> f64 {
        values.values().map(|(v, n)| (self.get(v as u32) - mean) * (self.get(v as u32) - mean) * n as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_and_a_sample_agree() {
        let values = [0, 3, 3, 7, 1_500_000, 12, 0, 9, 4, 4, 4];
        let mut histogram = Histogram::default();
        values.iter().for_each(|&v| histogram.add(v));
        let (a, b) = (histogram.figures().unwrap(), figures_of(values.iter().map(|&v| v as f64).collect()).unwrap());
        assert_eq!(serde_json::to_value(a).unwrap().as_object().unwrap().len(), 17);
        for (x, y) in
            [(a.mean, b.mean), (a.std_pop, b.std_pop), (a.p25, b.p25), (a.p90, b.p90), (a.p999, b.p999), (a.p1, b.p1)]
        {
            assert!((x - y).abs() <= 1e-12 * y.abs(), "{x} {y}");
        }
        assert_eq!((a.zeros, a.max, a.n), (2, 1_500_000.0, 11));
    }

    #[test]
    fn ranks_are_averaged_over_ties() {
        // scipy.stats.spearmanr([1,2,2,3], [5,5,6,7]).statistic
        let pairs = [[1, 5], [2, 5], [2, 6], [3, 7]];
        let (mut x, mut y) = (Histogram::default(), Histogram::default());
        pairs.iter().for_each(|&[a, b]| {
            x.add(a.into());
            y.add(b.into());
        });
        let r = spearman(&pairs, &x, &y).unwrap();
        assert!((r - 0.833_333_333_333_333_3).abs() < 1e-12, "{r}");
    }
}
