use crate::error::Error;
use serde::{Deserialize, Serialize};
use tailbound_clock::Rng;

/// A discrete distribution: values ascending, with the probability of a value up to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(f64, f64)>", into = "Vec<(f64, f64)>")]
pub struct Pdf {
    values: Vec<f64>,
    upto: Vec<f64>,
}

impl Pdf {
    /// From values and their weights, in any order; weights need not sum to one. `None` without a positive weight.
    pub fn new(mut pairs: Vec<(f64, f64)>) -> Option<Pdf> {
        pairs.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = pairs.iter().map(|(_, w)| w).sum();
        if pairs.is_empty() || !total.is_finite() {
            return None;
        }
        let mut sum = 0.0;
        let mut out = Pdf { values: Vec::with_capacity(pairs.len()), upto: Vec::with_capacity(pairs.len()) };
        for (value, weight) in pairs {
            sum += weight / total;
            out.values.push(value);
            out.upto.push(sum);
        }
        Some(out)
    }

    /// The value at that quantile, `u` in [0, 1).
    pub fn at(&self, u: f64) -> f64 {
        let i = self.upto.partition_point(|&p| p <= u);
        self.values[i.min(self.values.len() - 1)]
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.pairs().map(|(value, p)| value * p).sum::<f64>() / self.upto.last().copied().unwrap_or(1.0)
    }

    /// Values and probabilities.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let before = std::iter::once(&0.0).chain(&self.upto);
        self.values.iter().zip(self.upto.iter().zip(before)).map(|(&value, (upto, before))| (value, upto - before))
    }
}

impl From<Pdf> for Vec<(f64, f64)> {
    fn from(pdf: Pdf) -> Self {
        pdf.pairs().collect()
    }
}

impl TryFrom<Vec<(f64, f64)>> for Pdf {
    type Error = &'static str;
    fn try_from(pairs: Vec<(f64, f64)>) -> Result<Pdf, &'static str> {
        Pdf::new(pairs).ok_or("a distribution needs a value with a weight above zero")
    }
}

/// Pairs of uniform numbers with a given Spearman correlation: a Gaussian copula, whose normals correlate by 2 sin(πρ/6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copula {
    normal_correlation: f64,
}

impl Copula {
    /// For a rank correlation between −1 and 1.
    pub fn new(spearman: f64) -> Result<Copula, Error> {
        if !(-1.0..=1.0).contains(&spearman) {
            return Err(Error::Asked(format!("a rank correlation lies between -1 and 1, not {spearman}")));
        }
        Ok(Copula { normal_correlation: 2.0 * libm::sin(std::f64::consts::PI * spearman / 6.0) })
    }

    /// Draws a pair.
    pub fn pair(&self, rng: &mut Rng) -> (f64, f64) {
        let r = self.normal_correlation;
        if r == 0.0 {
            return (rng.unit(), rng.unit());
        }
        let x = rng.normal();
        let y = r * x + libm::sqrt((1.0 - r * r).max(0.0)) * rng.normal();
        (uniform(x), uniform(y))
    }
}

/// Φ(x), kept under 1.
fn uniform(x: f64) -> f64 {
    (0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)).min(1.0 - f64::EPSILON)
}
