/// A linear model learnt one sample at a time: recursive least squares with forgetting, weighted so that the relative error is
/// what counts. The same samples give the same model on every machine.
#[derive(Debug)]
pub(super) struct Learner<const N: usize> {
    weights: [f64; N],
    /// Inverse of the weighted covariance.
    inverse: [[f64; N]; N],
    samples: u64,
    error: Option<f64>,
}

/// What is remembered of a sample after one more: half after some 1,400.
const FORGET: f64 = 0.9995;
/// How unsure the start is, in squared units of a weight.
const UNSURE: f64 = 1e6;
/// Weights count relative errors down to this many milliseconds.
const FLOOR_MS: f64 = 1.0;

impl<const N: usize> Learner<N> {
    pub(super) fn new() -> Learner<N> {
        let mut inverse = [[0.0; N]; N];
        for (i, row) in inverse.iter_mut().enumerate() {
            row[i] = UNSURE;
        }
        Learner { weights: [0.0; N], inverse, samples: 0, error: None }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn error(&self) -> Option<f64> {
        self.error
    }

    /// Never negative.
    pub(super) fn predict(&self, x: &[f64; N]) -> f64 {
        dot(&self.weights, x).max(0.0)
    }

    /// Takes in that `x` gave `y`, and returns what would have been predicted. `own` is the factor that prediction would
    /// have had, for the error.
    pub(super) fn learn(&mut self, x: &[f64; N], y: f64, own: f64) -> f64 {
        let before = self.predict(x);
        if self.samples > 0 && y > 0.0 {
            let off = (before * own - y).abs() / y;
            let rate = 1.0 / (self.samples as f64).min(1000.0);
            let error = self.error.unwrap_or(off);
            self.error = Some(error + rate * (off - error));
        }
        self.samples += 1;
        let weight = 1.0 / (y.max(FLOOR_MS) * y.max(FLOOR_MS));
        let px: [f64; N] = std::array::from_fn(|i| dot(&self.inverse[i], x));
        let scale = FORGET / weight + dot(x, &px);
        let gain: [f64; N] = std::array::from_fn(|i| px[i] / scale);
        let miss = y - dot(&self.weights, x);
        for (w, g) in self.weights.iter_mut().zip(&gain) {
            *w += g * miss;
        }
        for (row, g) in self.inverse.iter_mut().zip(&gain) {
            for (cell, p) in row.iter_mut().zip(&px) {
                // Forgetting must not blow up directions that no sample ever has.
                *cell = ((*cell - g * p) / FORGET).clamp(-UNSURE, UNSURE);
            }
        }
        before
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    #[test]
    fn a_linear_law_is_found_through_noise() {
        let mut rng = Seed(5).stream("law");
        let mut learner = Learner::<3>::new();
        let law = |a: f64, b: f64| 20.0 + 50.0 * a + 7.0 * b;
        for _ in 0..3_000 {
            let (a, b) = (rng.unit() * 10.0, rng.unit() * 3.0);
            let y = law(a, b) * (1.0 + 0.05 * rng.normal());
            learner.learn(&[1.0, a, b], y, 1.0);
        }
        for (a, b) in [(0.5, 1.0), (9.0, 0.1), (4.0, 2.9)] {
            let off = learner.predict(&[1.0, a, b]) / law(a, b) - 1.0;
            assert!(off.abs() < 0.03, "{a} {b}: {off}");
        }
        assert!((0.03..0.06).contains(&learner.error().unwrap()), "{:?}", learner.error());
    }
}
