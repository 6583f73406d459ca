//! Trend, spread and level-shift statistics of a short series.

/// Mann–Kendall's test, plain and corrected for autocorrelation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannKendall {
    /// Concordant minus discordant pairs.
    pub s: i64,
    /// Its variance with ties.
    pub variance: f64,
    /// Two-sided probability.
    pub p: f64,
    /// The variance corrected by Hamed and Rao (1998), on ordinal ranks and without detrending.
    pub hamed_rao_variance: f64,
    /// Two-sided probability with that variance.
    pub hamed_rao_p: f64,
}

/// Mann–Kendall over a series; `None` under two values.
pub fn mann_kendall(series: &[f64]) -> Option<MannKendall> {
    if series.len() < 2 {
        return None;
    }
    let mut s = 0i64;
    for (i, a) in series.iter().enumerate() {
        for b in &series[i + 1..] {
            s += i64::from(b > a) - i64::from(b < a);
        }
    }
    let n = series.len() as f64;
    let pairs = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = tie_groups(series).into_iter().map(|t| pairs(t as f64)).sum();
    let variance = (pairs(n) - ties) / 18.0;
    let hamed_rao_variance = variance * autocorrelation_correction(series);
    Some(MannKendall {
        s,
        variance,
        p: two_sided(s, variance),
        hamed_rao_variance,
        hamed_rao_p: two_sided(s, hamed_rao_variance),
    })
}

fn two_sided(s: i64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    // Continuity: one step toward zero.
    let z = (s - s.signum()) as f64 / libm::sqrt(variance);
    libm::erfc(z.abs() / std::f64::consts::SQRT_2)
}

fn sorted(series: &[f64]) -> Vec<f64> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn tie_groups(series: &[f64]) -> Vec<usize> {
    sorted(series).chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// How much autocorrelation of the ranks widens the variance.
fn autocorrelation_correction(series: &[f64]) -> f64 {
    let n = series.len();
    if n < 3 {
        return 1.0;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| series[a].total_cmp(&series[b])); // stable: ties by position
    let mut ranks = vec![0.0; n];
    for (rank, &at) in order.iter().enumerate() {
        ranks[at] = rank as f64 + 1.0;
    }
    let mean = (n as f64 + 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|r| (r - mean) * (r - mean)).sum();
    let significant = 1.96 / libm::sqrt(n as f64);
    let mut sum = 0.0;
    for k in 1..n {
        let acf = ranks.iter().zip(&ranks[k..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / total;
        if acf.abs() > significant {
            let left = (n - k) as f64;
            sum += left * (left - 1.0) * (left - 2.0) * acf;
        }
    }
    let n = n as f64;
    let correction = 1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum;
    if correction > 0.0 { correction } else { 1.0 }
}

/// The middle value, or the mean of the two.
pub fn median(series: &[f64]) -> Option<f64> {
    let sorted = sorted(series);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// How far a straight line through the series climbs from its first to its last value, as a share of the median.
pub fn relative_drift(series: &[f64]) -> Option<f64> {
    let n = series.len() as f64;
    let median = median(series).filter(|&m| m != 0.0 && series.len() > 1)?;
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, series.iter().sum::<f64>() / n);
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, y) in series.iter().enumerate() {
        let x = i as f64 - x_mean;
        xy += x * (y - y_mean);
        xx += x * x;
    }
    Some(xy / xx * (n - 1.0) / median)
}

/// Standard deviation of the population over the mean.
pub fn variation(series: &[f64]) -> Option<f64> {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    if series.is_empty() || mean == 0.0 {
        return None;
    }
    let variance = series.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    Some(libm::sqrt(variance) / mean)
}

/// Pettitt's test for one change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pettitt {
    /// How many values come before the change.
    pub change: usize,
    /// The statistic.
    pub k: f64,
    /// Approximate probability.
    pub p: f64,
}

/// Pettitt over a series; `None` under two values.
pub fn pettitt(series: &[f64]) -> Option<Pettitt> {
    let n = series.len();
    if n < 2 {
        return None;
    }
    let (mut best, mut change) = (-1.0, 0);
    for t in 1..n {
        let (before, after) = series.split_at(t);
        let u: i64 = before.iter().flat_map(|a| after.iter().map(move |b| i64::from(a > b) - i64::from(a < b))).sum();
        let k = (u as f64).abs();
        if k > best {
            (best, change) = (k, t);
        }
    }
    let n = n as f64;
    let p = 2.0 * libm::exp(-6.0 * best * best / (n * n * n + n * n));
    Some(Pettitt { change, k: best, p: p.min(1.0) })
}
