/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The best point.
    pub at: Vec<f64>,
    /// What is left there.
    pub residuals: Vec<f64>,
    /// How often the function was asked.
    pub evaluations: u32,
}

/// When a search has done enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// Steps taken at most.
    pub steps: u32,
    /// Or: a step that made the sum of squares smaller by less than this share of it.
    pub gain: f64,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { steps: 30, gain: 1e-4 }
    }
}

/// The size of the step by which slopes are taken. Simulated times are not smooth: a request may just miss a step, so
/// that differences over a smaller one would be noise.
const SLOPE: f64 = 0.02;

/// Levenberg's and Marquardt's search from `start` for the point at which the squares of what `f` returns are least. Slopes
/// are taken by differences. For positive quantities of different sizes, let the point be their logarithms.
///
/// `f` must return equally many finite numbers wherever it is asked, `None` if a point is not to be had.
pub fn least_squares(start: &[f64], stop: Stop, mut f: impl FnMut(&[f64]) -> Option<Vec<f64>>) -> Option<Fitted> {
    let n = start.len();
    let mut best = Fitted { at: start.to_vec(), residuals: f(start)?, evaluations: 1 };
    let mut damping = 1e-3;
    for _ in 0..stop.steps {
        let before = squares(&best.residuals);
        let mut slopes = Vec::with_capacity(n);
        for i in 0..n {
            let mut at = best.at.clone();
            at[i] += SLOPE;
            let moved = f(&at);
            best.evaluations += 1;
            let slope = moved.map_or_else(
                || vec![0.0; best.residuals.len()],
                |r| r.iter().zip(&best.residuals).map(|(a, b)| (a - b) / SLOPE).collect(),
            );
            slopes.push(slope);
        }
        let mut moved = false;
        for _ in 0..8 {
            let step = solve(&slopes, &best.residuals, damping);
            let at: Vec<f64> = best.at.iter().zip(&step).map(|(x, d)| x - d.clamp(-1.0, 1.0)).collect();
            best.evaluations += 1;
            match f(&at).filter(|r| squares(r) < before) {
                Some(residuals) => {
                    (best.at, best.residuals) = (at, residuals);
                    damping = (damping / 4.0_f64).max(1e-9);
                    moved = true;
                    break;
                }
                None => damping *= 8.0,
            }
        }
        if !moved || before - squares(&best.residuals) < stop.gain * before {
            break;
        }
    }
    Some(best)
}

fn squares(r: &[f64]) -> f64 {
    r.iter().map(|x| x * x).sum()
}

/// (JᵀJ + damping · diag) d = Jᵀr, by elimination with pivots; a direction without slope isn't moved in.
pub(super) fn solve(slopes: &[Vec<f64>], residuals: &[f64], damping: f64) -> Vec<f64> {
    let n = slopes.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> = (0..n).map(|j| dot(&slopes[i], &slopes[j])).collect();
            row[i] += damping * row[i] + 1e-12;
            row.push(dot(&slopes[i], residuals));
            row
        })
        .collect();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs())).unwrap_or(i);
        rows.swap(i, pivot);
        let (above, below) = rows.split_at_mut(i + 1);
        let pivot = &above[i];
        for row in below {
            let times = row[i] / pivot[i];
            for (x, p) in row.iter_mut().zip(pivot).skip(i) {
                *x -= times * p;
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * x[j]).sum();
        x[i] = (rows[i][n] - known) / rows[i][i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_is_found_from_its_values() {
        let values: Vec<f64> = (0..20).map(|i| 3.0 * libm::exp(-0.2 * f64::from(i))).collect();
        let f = |p: &[f64]| {
            let model = (0..20).map(|i| libm::exp(p[0]) * libm::exp(-libm::exp(p[1]) * f64::from(i)));
            Some(model.zip(&values).map(|(m, v)| m - v).collect())
        };
        let fitted = least_squares(&[0.0, -3.0], Stop { steps: 50, gain: 1e-12 }, f).unwrap();
        assert!((libm::exp(fitted.at[0]) - 3.0).abs() < 1e-3, "{fitted:?}");
        assert!((libm::exp(fitted.at[1]) - 0.2).abs() < 1e-4, "{fitted:?}");
    }

    #[test]
    fn what_has_no_influence_stays() {
        let fitted = least_squares(&[1.0, 7.0], Stop::default(), |p| Some(vec![p[0] - 4.0, 0.0])).unwrap();
        assert!((fitted.at[0] - 4.0).abs() < 1e-6 && fitted.at[1] == 7.0, "{fitted:?}");
    }

    #[test]
    fn a_start_that_is_not_to_be_had_is_nothing() {
        assert_eq!(least_squares(&[1.0], Stop::default(), |_| None), None);
    }
}
