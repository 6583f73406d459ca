//! A run's samples in order, and how long what happens in it is felt.

/// One run's samples of one measure: units in order (requests by number, or windows of time), each with any number of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub values: Vec<f64>,
    /// Where each unit's values end.
    ends: Vec<usize>,
    /// For rates: how many seconds a unit stands for; otherwise each value stands for itself.
    seconds: Option<f64>,
}

impl Series {
    /// For counts in windows of so many seconds.
    pub fn of_windows(seconds: f64) -> Series {
        Series { seconds: Some(seconds), ..Series::default() }
    }

    pub fn end_unit(&mut self) {
        self.ends.push(self.values.len());
    }

    pub fn units(&self) -> usize {
        self.ends.len()
    }

    pub fn unit(&self, i: usize) -> &[f64] {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.values[from..self.ends[i]]
    }

    /// What a value counts in the denominator of the mean.
    pub fn weight(&self) -> f64 {
        self.seconds.unwrap_or(1.0)
    }
}

/// The block length at which the circular block bootstrap of the series' mean is best: Politis and White (2004) with the correction of
/// Patton, Politis and White (2009), as the `arch` package for Python has it. At least 1, at most ⌈min(3√n, n/3)⌉.
pub fn block_length(series: &[f64]) -> f64 {
    let n = series.len();
    if n < 8 {
        return 1.0;
    }
    let length = n as f64;
    let mean = series.iter().sum::<f64>() / length;
    let centred: Vec<f64> = series.iter().map(|v| v - mean).collect();
    let product = |lag: usize| centred[lag..].iter().zip(&centred).map(|(late, early)| late * early).sum::<f64>();
    if product(0) <= 0.0 {
        return 1.0;
    }
    let in_a_row = (libm::log10(length) as usize).max(5);
    let furthest = (length.sqrt().ceil() as usize + in_a_row).min(n - 2);
    let bound = 2.0 * (libm::log10(length) / length).sqrt();
    let window = quiet_from(&centred, furthest, in_a_row, bound).map_or(furthest, |lag| (2 * lag).min(furthest));

    let (mut spectrum, mut slope) = (product(0) / length, 0.0);
    for lag in 1..=window {
        let t = lag as f64 / window as f64;
        let flat_top = if t <= 0.5 { 1.0 } else { 2.0 * (1.0 - t) };
        let covariance = product(lag) / length;
        spectrum += 2.0 * flat_top * covariance;
        slope += 2.0 * flat_top * lag as f64 * covariance;
    }
    let most = (3.0 * length.sqrt()).min(length / 3.0).ceil();
    let d = 4.0 / 3.0 * spectrum * spectrum;
    if d <= 0.0 {
        return most;
    }
    libm::cbrt(2.0 * slope * slope / d * length).clamp(1.0, most)
}

/// The first lag of so many in a row whose correlations all stay within `bound`.
fn quiet_from(centred: &[f64], furthest: usize, in_a_row: usize, bound: f64) -> Option<usize> {
    let squares = |part: &[f64]| part.iter().map(|v| v * v).sum::<f64>();
    let quiet = |lag: usize| {
        let product = centred[lag..].iter().zip(centred).map(|(late, early)| late * early).sum::<f64>();
        let (late, early) = (&centred[lag + 1..], &centred[..centred.len() - lag - 1]);
        product.abs() / (squares(late) * squares(early)).sqrt() < bound
    };
    let mut run = 0;
    for lag in 1..furthest {
        run = if quiet(lag) { run + 1 } else { 0 };
        if run == in_a_row {
            return Some(lag + 1 - in_a_row);
        }
    }
    None
}
