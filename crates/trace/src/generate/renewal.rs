use serde::{Deserialize, Serialize};
use tailbound_clock::Rng;

/// A law of gaps with mean 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gaps {
    /// All equal.
    Constant,
    /// Gamma of this shape; 1 is Poisson.
    Gamma(f64),
    /// Weibull of this shape; 1 is Poisson.
    Weibull(f64),
}

impl Gaps {
    /// A gap.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Gaps::Constant => 1.0,
            Gaps::Gamma(k) => rng.gamma(k) / k,
            Gaps::Weibull(k) => libm::exp(libm::log(rng.exponential()) / k - libm::lgamma(1.0 + 1.0 / k)),
        }
    }

    /// The wait until the next arrival for somebody who comes at a random moment: a uniform part of a gap drawn with weight
    /// proportional to its length. Weighted by length, Gamma(k) becomes Gamma(k + 1), and a Weibull's kth power Gamma(1 + 1/k).
    pub fn residual(self, rng: &mut Rng) -> f64 {
        let gap = match self {
            Gaps::Constant => 1.0,
            Gaps::Gamma(k) => rng.gamma(k + 1.0) / k,
            Gaps::Weibull(k) => libm::exp(libm::log(rng.gamma(1.0 + 1.0 / k)) / k - libm::lgamma(1.0 + 1.0 / k)),
        };
        rng.unit() * gap
    }
}

/// A stretch of time with one rate and one law; seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// From …
    pub start: f64,
    /// … to, exclusive.
    pub end: f64,
    /// Arrivals per second; 0 is silence.
    pub rate: f64,
    /// The law of gaps, in units of 1/rate.
    pub gaps: Gaps,
}

/// Arrival times in seconds over successive pieces. Gaps are drawn in units of expected arrivals and spent at each piece's rate,
/// so that renewal goes on across edges; the first is a residual, so that the process is stationary from the start.
pub fn renewal(pieces: &[Piece], rng: &mut Rng) -> Vec<f64> {
    let mut out = Vec::new();
    let mut wait: Option<f64> = None;
    for piece in pieces.iter().filter(|p| p.rate > 0.0 && p.end > p.start) {
        let mut at = piece.start;
        let mut left = wait.unwrap_or_else(|| piece.gaps.residual(rng));
        loop {
            let next = at + left / piece.rate;
            if next >= piece.end {
                left -= (piece.end - at) * piece.rate;
                break;
            }
            out.push(next);
            at = next;
            left = piece.gaps.draw(rng);
        }
        wait = Some(left.max(0.0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    #[test]
    fn gaps_have_mean_one_and_residuals_half_the_second_moment() {
        // E[residual] = E[gap²] / 2 for mean 1: (1 + CV²) / 2.
        let gamma = |x: f64| libm::tgamma(x);
        for (gaps, cv2) in [
            (Gaps::Constant, 0.0),
            (Gaps::Gamma(0.5), 2.0),
            (Gaps::Gamma(3.0), 1.0 / 3.0),
            (Gaps::Weibull(0.7), gamma(1.0 + 2.0 / 0.7) / gamma(1.0 + 1.0 / 0.7).powi(2) - 1.0),
            (Gaps::Weibull(2.0), 4.0 / std::f64::consts::PI - 1.0),
        ] {
            let mut rng = Seed(5).stream("gaps");
            let n = 200_000;
            let mean = (0..n).map(|_| gaps.draw(&mut rng)).sum::<f64>() / f64::from(n);
            let residual = (0..n).map(|_| gaps.residual(&mut rng)).sum::<f64>() / f64::from(n);
            assert!((mean - 1.0).abs() < 0.02, "{gaps:?}: {mean}");
            assert!((residual / (0.5 * (1.0 + cv2)) - 1.0).abs() < 0.05, "{gaps:?}: {residual}");
        }
    }

    #[test]
    fn renewal_is_stationary_and_goes_on_across_edges() {
        let piece = |start, end, rate| Piece { start, end, rate, gaps: Gaps::Gamma(0.2) };
        let pieces = [piece(0.0, 1.0, 2.0), piece(1.0, 2.0, 0.0), piece(2.0, 3.0, 6.0), piece(3.0, 4.0, 1.0)];
        let mut counts = [0u32; 4];
        for seed in 0..20_000 {
            let mut rng = Seed(seed).stream("renewal");
            renewal(&pieces, &mut rng).iter().for_each(|&at| counts[at as usize] += 1);
        }
        for (n, want) in counts.iter().zip([2.0, 0.0, 6.0, 1.0]) {
            assert!((f64::from(*n) / 20_000.0 - want).abs() < 0.06 * f64::max(want, 0.1), "{counts:?}");
        }
    }
}
