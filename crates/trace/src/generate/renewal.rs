use super::incomplete_gamma::lower;
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

    /// The share of [`Gaps::residual`]s that are under `wait`: ∫₀^wait S(t) dt for the survival function S of the gap.
    fn residuals_under(self, wait: f64) -> f64 {
        match self {
            Gaps::Constant => wait.clamp(0.0, 1.0),
            // Parts: x·S(x) + ∫₀ˣ t f(t) dt.
            Gaps::Gamma(k) => wait * (1.0 - lower(k, k * wait)) + lower(k + 1.0, k * wait),
            Gaps::Weibull(k) => {
                let over_scale = libm::log(wait) + libm::lgamma(1.0 + 1.0 / k);
                lower(1.0 / k, libm::exp(k * over_scale))
            }
        }
    }

    /// The residual that has this share of the others under it, by bisection of its logarithm.
    fn residual_at(self, share: f64) -> f64 {
        let (mut low, mut high) = (-60.0, 20.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.residuals_under(libm::exp(middle)) < share { low = middle } else { high = middle }
        }
        libm::exp(high)
    }
}

/// A stretch of time with one law, whose rate runs straight from one value to another; seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// From …
    pub start: f64,
    /// … to, exclusive.
    pub end: f64,
    /// Arrivals per second at its start; 0 is silence.
    pub rate: f64,
    /// Arrivals per second at its end.
    pub end_rate: f64,
    /// The law of gaps, in units of 1/rate.
    pub gaps: Gaps,
}

impl Piece {
    /// With one rate throughout.
    pub fn even(start: f64, end: f64, rate: f64, gaps: Gaps) -> Piece {
        Piece { start, end, rate, end_rate: rate, gaps }
    }

    /// Arrivals expected in it.
    pub fn expected(&self) -> f64 {
        self.between(self.start, self.end)
    }

    fn rate_at(&self, at: f64) -> f64 {
        self.rate + (self.end_rate - self.rate) * (at - self.start) / (self.end - self.start)
    }

    /// Arrivals expected between two moments in it.
    fn between(&self, from: f64, to: f64) -> f64 {
        (to - from) * (self.rate_at(from) + self.rate_at(to)) / 2.0
    }

    /// When `left` more arrivals are expected: rate·d + slope·d²/2 = left, in the form that loses no digits for small slopes.
    /// Infinite if the rate falls to zero before.
    fn after(&self, at: f64, left: f64) -> f64 {
        let (rate, slope) = (self.rate_at(at), (self.end_rate - self.rate) / (self.end - self.start));
        let square = rate * rate + 2.0 * slope * left;
        match square {
            ..0.0 => f64::INFINITY,
            _ if left == 0.0 => at,
            _ => at + 2.0 * left / (rate + libm::sqrt(square)),
        }
    }
}

/// Arrival times in seconds over successive pieces. Gaps are drawn in units of expected arrivals and spent at each piece's rate,
/// so that renewal goes on across edges; the first is a residual, so that the process is stationary from the start.
///
/// Where the law changes, the wait under way keeps its rank among the waits of its law: long stays long. Taken over as it is, a
/// short-tailed wait at the beginning of a bursty piece would make that piece begin as if with an arrival, and give it
/// (CV² − 1)/2 arrivals too many.
pub fn renewal(pieces: &[Piece], rng: &mut Rng) -> Vec<f64> {
    let mut out = Vec::new();
    let mut under_way: Option<(f64, Gaps)> = None;
    for piece in pieces.iter().filter(|p| p.end > p.start && p.expected() > 0.0) {
        let mut at = piece.start;
        let mut left = match under_way {
            None => piece.gaps.residual(rng),
            Some((left, law)) if law == piece.gaps => left,
            Some((left, law)) => piece.gaps.residual_at(law.residuals_under(left).min(1.0 - 1e-12)),
        };
        loop {
            let next = piece.after(at, left);
            if next >= piece.end {
                left -= piece.between(at, piece.end);
                break;
            }
            out.push(next);
            at = next;
            left = piece.gaps.draw(rng);
        }
        under_way = Some((left.max(0.0), piece.gaps));
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
        let piece = |start, end, rate| Piece::even(start, end, rate, Gaps::Gamma(0.2));
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

    #[test]
    fn residuals_keep_their_rank_from_law_to_law() {
        // Ranks of residuals are uniform: Kolmogorov–Smirnov at 1e-4, for n = 5000.
        for gaps in [Gaps::Constant, Gaps::Gamma(0.05), Gaps::Gamma(3.0), Gaps::Weibull(0.25), Gaps::Weibull(2.0)] {
            let mut rng = Seed(6).stream("ranks");
            let mut ranks: Vec<f64> = (0..5000).map(|_| gaps.residuals_under(gaps.residual(&mut rng))).collect();
            ranks.sort_by(f64::total_cmp);
            let off = ranks.iter().enumerate().map(|(i, r)| (r - (i as f64 + 0.5) / 5000.0).abs()).fold(0.0, f64::max);
            assert!(off < 2.23 / 5000f64.sqrt(), "{gaps:?}: {off}");
            for share in [0.001, 0.3, 0.99] {
                assert!((gaps.residuals_under(gaps.residual_at(share)) / share - 1.0).abs() < 1e-9, "{gaps:?} {share}");
            }
        }
    }

    #[test]
    fn a_bursty_piece_after_a_calm_one_has_no_arrivals_too_many() {
        let piece = |start: f64, gaps| Piece::even(start, start + 1.0, 50.0, gaps);
        let pieces = [piece(0.0, Gaps::Gamma(1.0)), piece(1.0, Gaps::Gamma(0.05)), piece(2.0, Gaps::Weibull(0.4))];
        let mut counts = [0.0; 3];
        for seed in 0..20_000 {
            let mut rng = Seed(seed).stream("renewal");
            renewal(&pieces, &mut rng).iter().for_each(|&at| counts[at as usize] += 1.0);
        }
        // Taken over as they are, the waits would give the second piece 59, not 50. Its standard error here is 0.2.
        for n in counts {
            assert!((n / 20_000.0 - 50.0_f64).abs() < 0.9, "{counts:?}");
        }
    }

    #[test]
    fn a_sloping_rate_gives_its_arrivals_where_they_belong() {
        let slope = |from, to| Piece { start: 0.0, end: 10.0, rate: from, end_rate: to, gaps: Gaps::Constant };
        // Even gaps in operational time: the k-th arrival of 0→10/s over 10 s comes when t²/2 = k − u.
        let up = renewal(&[slope(0.0, 10.0)], &mut Seed(1).stream("slope"));
        let first = up[0] * up[0] / 2.0;
        for (k, at) in up.iter().enumerate() {
            assert!((at * at / 2.0 - first - k as f64).abs() < 1e-9, "{k}: {at}");
        }
        let down = renewal(&[slope(10.0, 0.0)], &mut Seed(1).stream("slope"));
        for n in [up.len(), down.len()] {
            assert!((49..=51).contains(&n), "{n}");
        }
        assert!(down.windows(2).all(|w| w[1] - w[0] > 0.05) && down[down.len() - 1] < 10.0);
        assert!((slope(2.0, 4.0).expected() - 30.0).abs() < 1e-12);
    }
}
