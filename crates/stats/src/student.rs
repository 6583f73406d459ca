//! Student's t, by the incomplete beta function.

use crate::binomial::normal_quantile;
use crate::compare::Estimate;
use crate::loadgen::early_stopping::incomplete_beta;

/// From here on the normal curve serves.
const NORMAL_FROM: f64 = 1e6;

/// The `t` that a Student variable of `dof` degrees of freedom exceeds in absolute value with probability `alpha` (0–1).
pub(crate) fn two_sided(alpha: f64, dof: f64) -> f64 {
    if dof >= NORMAL_FROM {
        return normal_quantile(1.0 - alpha / 2.0);
    }
    // P(|T| > t) = I_x(dof/2, 1/2) with x = dof / (dof + t²): rises with x.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if incomplete_beta(dof / 2.0, 0.5, middle) < alpha { low = middle } else { high = middle }
    }
    let x = 0.5 * (low + high);
    (dof * (1.0 - x) / x).sqrt()
}

/// The mean of values and the interval that misses it with probability `alpha` (0–1), by Student; `None` for fewer than two.
pub fn mean_interval(values: &[f64], alpha: f64) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - value) * (v - value)).sum::<f64>() / (n - 1.0);
    let reach = two_sided(alpha, n - 1.0) * (variance / n).sqrt();
    Some(Estimate { value, low: value - reach, high: value + reach })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_tables() {
        for (alpha, dof, t) in [
            (0.05, 1.0, 12.706_204_736_174_698),
            (0.05, 3.0, 3.182_446_305_283_711),
            (0.05, 19.0, 2.093_024_054_408_263),
            (0.10, 199.0, 1.652_546_746_165_021),
            (0.01, 7.0, 3.499_483_297_350_493),
        ] {
            assert!((two_sided(alpha, dof) / t - 1.0).abs() < 1e-9, "{alpha} {dof}: {}", two_sided(alpha, dof));
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_the_textbooks() {
        // scipy.stats.t.interval(0.95, 3, loc=2.5, scale=scipy.stats.sem([1, 2, 3, 4]))
        let e = mean_interval(&[1.0, 2.0, 3.0, 4.0], 0.05).unwrap();
        assert!((e.low - 0.445_739_743).abs() < 1e-8 && (e.high - 4.554_260_257).abs() < 1e-8, "{e:?}");
        assert_eq!((e.value, mean_interval(&[1.0], 0.05)), (2.5, None));
    }
}
