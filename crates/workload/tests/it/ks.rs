//! A Kolmogorov–Smirnov test and the gamma distribution, checked against scipy.

/// The largest distance between the sample's and the given distribution function.
pub fn distance(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let gap = |(i, &x): (usize, &f64)| {
        let f = cdf(x);
        ((i + 1) as f64 / n - f).max(f - i as f64 / n)
    };
    sample.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// `scipy.stats.kstwo.ppf(0.95, 10000)`: what 5 % of right samples of 10,000 exceed.
pub const CRITICAL_10_000: f64 = 0.013_564_202_793_681_023;

/// The regularised lower incomplete gamma function P(a, x): its series, or the continued fraction of its complement (Numerical Recipes, 6.2).
pub fn gamma_cdf(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = (shape * x.ln() - x - libm::lgamma(shape)).exp();
    if x < shape + 1.0 {
        let (mut term, mut sum, mut a) = (1.0 / shape, 1.0 / shape, shape);
        while term.abs() > sum.abs() * 1e-16 {
            a += 1.0;
            term *= x / a;
            sum += term;
        }
        return sum * front;
    }
    let tiny = 1e-300;
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut h = d;
    for i in 1..1000 {
        let an = -f64::from(i) * (f64::from(i) - shape);
        b += 2.0;
        d = 1.0 / (an * d + b).clamp_away(tiny);
        c = (b + an / c).clamp_away(tiny);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    1.0 - front * h
}

trait ClampAway {
    fn clamp_away(self, tiny: f64) -> f64;
}
impl ClampAway for f64 {
    fn clamp_away(self, tiny: f64) -> f64 {
        if self.abs() < tiny { tiny } else { self }
    }
}

/// `scipy.stats.gamma.cdf(x, shape)` at x = 0.01, 0.3, 1, 2.5, 7, 15.
#[test]
fn the_gamma_distribution_is_scipys() {
    let xs = [0.01, 0.3, 1.0, 2.5, 7.0, 15.0];
    #[rustfmt::skip]
    let rows: [(f64, [f64; 6]); 6] = [
        (0.25, [0.34818645276048427, 0.7713307206282927, 0.9320788679898908, 0.99078625152046, 0.9999466655231372, 0.9999999894288399]),
        (0.5, [0.11246291601828491, 0.5614219739190003, 0.8427007929497151, 0.9746526813225317, 0.9998171893670181, 0.9999999567953695]),
        (1.0, [0.009950166250831952, 0.25918177931828207, 0.6321205588285577, 0.9179150013761012, 0.9990881180344455, 0.9999996940976795]),
        (2.0, [4.966791334026596e-05, 0.03693631311376678, 0.2642411176571153, 0.7127025048163542, 0.9927049442755639, 0.999995105562872]),
        (3.5, [8.530580469428529e-09, 0.001008252871644388, 0.04015963126989843, 0.34003677030571755, 0.9488186465869346, 0.9999050402749187]),
        (10.0, [2.7307942836962656e-27, 1.2392013383169973e-12, 1.1142547833872071e-07, 0.0002773520946208362, 0.16950406276132673, 0.9301463393005901]),
    ];
    for (shape, expected) in rows {
        for (x, want) in xs.into_iter().zip(expected) {
            let got = gamma_cdf(shape, x);
            assert!((got - want).abs() < 1e-12, "P({shape}, {x}) = {got}, scipy {want}");
        }
    }
}

/// The test must be able to fail: exponential gaps are not gamma gaps of shape 1.1.
#[test]
fn the_test_tells_neighbouring_laws_apart() {
    let mut rng = tailbound_clock::Seed(1).stream("ks");
    let mut sample: Vec<f64> = (0..10_000).map(|_| rng.exponential()).collect();
    assert!(distance(&mut sample, |x| 1.0 - (-x).exp()) < CRITICAL_10_000);
    assert!(distance(&mut sample, |x| gamma_cdf(1.1, 1.1 * x)) > CRITICAL_10_000);
}
