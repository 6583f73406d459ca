//! A list of latencies as LoadGen summarises it.

/// The percentiles LoadGen prints.
pub const GRID: [f64; 6] = [0.50, 0.90, 0.95, 0.97, 0.99, 0.999];

/// Minimum, maximum, mean and percentiles of a list, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Smallest.
    pub min: i64,
    /// Largest.
    pub max: i64,
    /// Mean, truncated; see [`Spread::of`] for negative sums.
    pub mean: i64,
    /// At [`GRID`].
    pub grid: [i64; 6],
    /// At the scenario's own percentile; `None` if only the grid is known.
    pub target: Option<i64>,
}

impl Spread {
    /// Of a sorted list that is not empty. Percentiles are order statistics, `sorted[trunc(n q)]`, never interpolated.
    ///
    /// The mean of a negative sum is LoadGen's: the sum read as unsigned, then divided.
    pub fn of(sorted: &[i64], percentile: f64) -> Spread {
        let sum = sorted.iter().fold(0i64, |a, &b| a.wrapping_add(b));
        Spread {
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            mean: (sum as u64 / sorted.len() as u64) as i64,
            grid: GRID.map(|q| at(sorted, q)),
            target: Some(at(sorted, percentile)),
        }
    }
}

/// `sorted[trunc(n q)]`.
pub fn at(sorted: &[i64], q: f64) -> i64 {
    let rank = (sorted.len() as f64 * q) as usize;
    sorted[rank.min(sorted.len() - 1)]
}
