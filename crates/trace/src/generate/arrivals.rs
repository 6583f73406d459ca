use crate::generate::law::{Given, not_negative, number, positive};
use crate::generate::{Gaps, Piece, renewal};
use std::str::FromStr;
use tailbound_clock::Rng;

/// When requests (or sessions, or tasks) arrive. Read from text such as `gamma:5/s,cv=3` or `diurnal:5/s,swing=0.6,peak=15h`.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A renewal process: gaps of one law, whose rate follows a curve.
    Renewal {
        /// The law of gaps.
        gaps: Gaps,
        /// The rate.
        curve: Curve,
    },
    /// A Poisson process whose rate jumps: it stays in each state for an exponential time and goes on to the next.
    Modulated(Vec<State>),
}

/// One state of [`Arrivals::Modulated`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Arrivals per second while in it.
    pub rate: f64,
    /// How long it lasts on average, in seconds.
    pub mean_stay_s: f64,
}

/// A rate over time: straight between its points (seconds, arrivals/s), which may jump; before the first and after the last it stays.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// Straight between the points.
    Points(Vec<(f64, f64)>),
    /// mean·(1 + swing·cos(2π(t − peak)/period)), drawn with a point every period/288.
    Wave {
        /// Mean rate.
        mean: f64,
        /// Amplitude over mean, 0 to 1.
        swing: f64,
        /// When it is highest, in seconds.
        peak_s: f64,
        /// Its length in seconds.
        period_s: f64,
    },
}

impl Arrivals {
    /// Arrival times in seconds from 0 up to `duration_s`.
    pub fn draw(&self, duration_s: f64, rng: &mut Rng) -> Vec<f64> {
        match self {
            Arrivals::Renewal { gaps, curve } => renewal(&curve.pieces(duration_s, *gaps), rng),
            Arrivals::Modulated(states) => renewal(&modulated(states, duration_s, rng), rng),
        }
    }

    /// The first `n` arrivals, if the rate does not end in silence.
    pub fn first(&self, n: usize, seed_of: impl Fn() -> Rng) -> Vec<f64> {
        let mut duration = 1.0;
        loop {
            let mut times = self.draw(duration, &mut seed_of());
            if times.len() >= n || duration > 1e9 {
                times.truncate(n);
                return times;
            }
            duration *= 4.0;
        }
    }

    /// Arrivals per second, on average over `duration_s`.
    pub fn mean_rate(&self, duration_s: f64) -> f64 {
        match self {
            Arrivals::Renewal { gaps, curve } => {
                curve.pieces(duration_s, *gaps).iter().map(Piece::expected).sum::<f64>() / duration_s
            }
            Arrivals::Modulated(states) => {
                let time: f64 = states.iter().map(|s| s.mean_stay_s).sum();
                states.iter().map(|s| s.rate * s.mean_stay_s).sum::<f64>() / time
            }
        }
    }
}

/// One drawing of the states, beginning in one that is there with the probability of a random moment.
fn modulated(states: &[State], duration_s: f64, rng: &mut Rng) -> Vec<Piece> {
    let total: f64 = states.iter().map(|s| s.mean_stay_s).sum();
    let mut left = rng.unit() * total;
    let first = states.iter().position(|s| {
        left -= s.mean_stay_s;
        left < 0.0
    });
    let (mut now, mut at, mut pieces) = (first.unwrap_or(0), 0.0, Vec::new());
    while at < duration_s {
        let state = states[now % states.len()];
        let end = (at + state.mean_stay_s * rng.exponential()).min(duration_s);
        pieces.push(Piece::even(at, end, state.rate, Gaps::Gamma(1.0)));
        (at, now) = (end, now + 1);
    }
    pieces
}

impl Curve {
    /// One rate for ever.
    pub fn even(rate: f64) -> Curve {
        Curve::Points(vec![(0.0, rate)])
    }

    /// From (start, rate) pairs, each rate holding until the next start: a rate series.
    pub fn steps(series: &[(f64, f64)]) -> Curve {
        let next = |i: usize| series.get(i + 1).map(|s| s.0);
        let both = series.iter().enumerate().flat_map(|(i, &(t, rate))| [Some((t, rate)), next(i).map(|t| (t, rate))]);
        Curve::Points(both.flatten().collect())
    }

    /// From (duration, target) pairs, the rate going straight to each target within its duration, from the first target's start
    /// at zero: load generators' stages.
    pub fn stages(stages: &[(f64, f64)]) -> Curve {
        let mut at = 0.0;
        let mut points = vec![(0.0, 0.0)];
        for &(duration, target) in stages {
            at += duration;
            points.push((at, target));
        }
        Curve::Points(points)
    }

    /// Every rate times `by`.
    pub fn scaled(self, by: f64) -> Curve {
        match self {
            Curve::Points(points) => Curve::Points(points.into_iter().map(|(t, rate)| (t, rate * by)).collect()),
            Curve::Wave { mean, swing, peak_s, period_s } => Curve::Wave { mean: mean * by, swing, peak_s, period_s },
        }
    }

    fn pieces(&self, duration_s: f64, gaps: Gaps) -> Vec<Piece> {
        let points = match self {
            Curve::Points(points) => points.clone(),
            Curve::Wave { mean, swing, peak_s, period_s } => {
                let step = period_s / 288.0;
                let wave = |t: f64| mean * (1.0 + swing * libm::cos(std::f64::consts::TAU * (t - peak_s) / period_s));
                (0..=libm::ceil(duration_s / step) as usize).map(|i| i as f64 * step).map(|t| (t, wave(t))).collect()
            }
        };
        let mut pieces = Vec::new();
        let Some(&(first, rate)) = points.first() else { return pieces };
        if first > 0.0 {
            pieces.push(Piece::even(0.0, first, rate, gaps));
        }
        for pair in points.windows(2) {
            let ((start, rate), (end, end_rate)) = (pair[0], pair[1]);
            pieces.push(Piece { start, end, rate, end_rate, gaps });
        }
        if let Some(&(last, rate)) = points.last()
            && last < duration_s
        {
            pieces.push(Piece::even(last.max(0.0), duration_s, rate, gaps));
        }
        let cut = |mut piece: Piece| {
            if piece.end > duration_s {
                piece.end_rate =
                    piece.rate + (piece.end_rate - piece.rate) * (duration_s - piece.start) / (piece.end - piece.start);
                piece.end = duration_s;
            }
            piece
        };
        pieces.into_iter().filter(|p| p.start < duration_s && p.end > p.start).map(cut).collect()
    }
}

const KINDS: &str = "RATE, constant:RATE, poisson:RATE, gamma:RATE,cv=C (or shape=K), weibull:RATE,cv=C (or shape=K), \
    ramp:RATE..RATE,over=TIME, diurnal:RATE,swing=S,peak=TIME,period=TIME, mmpp:RATE/TIME,RATE/TIME as in mmpp:2/s:60s,30/s:5s";

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Arrivals, String> {
        let (kind, rest) = text.trim().split_once(':').unwrap_or(("poisson", text));
        if kind == "mmpp" {
            return states(rest).map(Arrivals::Modulated);
        }
        let (first, options) = rest.split_once(',').unwrap_or((rest, ""));
        let mut given = Given::read(options)?;
        let curve = match kind {
            "ramp" => {
                let (from, to) = first.split_once("..").ok_or_else(|| format!("`{first}` should read RATE..RATE"))?;
                let over = positive("over", given.need("over")?)?;
                Curve::Points(vec![(0.0, rate(from)?), (over, rate(to)?)])
            }
            "diurnal" => {
                let swing = given.take("swing").unwrap_or(0.5);
                if !(0.0..=1.0).contains(&swing) {
                    return Err(format!("swing lies between 0 and 1, not at {swing}"));
                }
                let period_s = positive("period", given.take("period").unwrap_or(86_400.0))?;
                Curve::Wave {
                    mean: rate(first)?,
                    swing,
                    peak_s: given.take("peak").unwrap_or(period_s / 2.0),
                    period_s,
                }
            }
            _ => Curve::even(rate(first)?),
        };
        let gaps = match kind {
            "constant" => Gaps::Constant,
            "weibull" => weibull(&mut given)?,
            "gamma" => gamma(&mut given)?.ok_or("gamma needs cv= or shape=")?,
            "poisson" => Gaps::Gamma(1.0),
            "ramp" | "diurnal" => gamma(&mut given)?.unwrap_or(Gaps::Gamma(1.0)),
            _ => return Err(format!("`{text}` is no law of arrivals; known are {KINDS}")),
        };
        given.nothing_left(text)?;
        Ok(Arrivals::Renewal { gaps, curve })
    }
}

/// `5/s`, `300/min`, or a bare number per second.
fn rate(text: &str) -> Result<f64, String> {
    let (number_text, per) = match text.trim().split_once('/') {
        None => (text.trim(), 1.0),
        Some((n, "s")) => (n, 1.0),
        Some((n, "min")) => (n, 60.0),
        Some((n, "h")) => (n, 3600.0),
        Some(_) => return Err(format!("`{text}` is not a rate such as 5/s or 300/min")),
    };
    not_negative("a rate", number(number_text)? / per)
}

fn states(text: &str) -> Result<Vec<State>, String> {
    let state = |part: &str| {
        let (r, stay) = part.split_once(':').ok_or_else(|| format!("`{part}` should read RATE:TIME, as in 30/s:5s"))?;
        Ok(State { rate: rate(r)?, mean_stay_s: positive("a state's time", number(stay)?)? })
    };
    let states: Vec<State> = text.split(',').map(state).collect::<Result<_, String>>()?;
    if states.iter().all(|s| s.rate == 0.0) {
        return Err("one state at least needs a rate above zero".into());
    }
    Ok(states)
}

/// The shape with that CV: 1/CV².
fn gamma(given: &mut Given) -> Result<Option<Gaps>, String> {
    match (given.take("cv"), given.take("shape")) {
        (Some(cv), None) => Ok(Some(Gaps::Gamma(1.0 / (positive("cv", cv)? * cv)))),
        (None, Some(shape)) => Ok(Some(Gaps::Gamma(positive("shape", shape)?))),
        (None, None) => Ok(None),
        _ => Err("give one of cv and shape".into()),
    }
}

/// The shape with that CV, by bisection: CV² + 1 = Γ(1 + 2/k)/Γ(1 + 1/k)².
fn weibull(given: &mut Given) -> Result<Gaps, String> {
    let cv = match (given.take("cv"), given.take("shape")) {
        (Some(cv), None) => positive("cv", cv)?,
        (None, Some(shape)) => return Ok(Gaps::Weibull(positive("shape", shape)?)),
        _ => return Err("weibull needs one of cv and shape".into()),
    };
    let log_ratio = |k: f64| libm::lgamma(1.0 + 2.0 / k) - 2.0 * libm::lgamma(1.0 + 1.0 / k);
    let want = libm::log1p(cv * cv);
    let (mut low, mut high) = (0.05, 1000.0);
    if !(log_ratio(high)..=log_ratio(low)).contains(&want) {
        return Err(format!("no Weibull law has a CV of {cv}"));
    }
    for _ in 0..100 {
        let middle = libm::sqrt(low * high);
        if log_ratio(middle) > want { low = middle } else { high = middle }
    }
    Ok(Gaps::Weibull(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::burstiness;
    use tailbound_clock::Seed;

    fn of(text: &str) -> Arrivals {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn drawn(text: &str, duration: f64) -> Vec<f64> {
        of(text).draw(duration, &mut Seed(7).stream("arrivals"))
    }

    fn ns(times: &[f64]) -> Vec<i64> {
        times.iter().map(|t| (t * 1e9) as i64).collect()
    }

    #[test]
    fn laws_have_their_rate_and_their_gap_cv() {
        for (text, rate, cv) in [
            ("5/s", 5.0, 1.0),
            ("constant:300/min", 5.0, 0.0),
            ("gamma:5/s,cv=3", 5.0, 3.0),
            ("gamma:5/s,shape=4", 5.0, 0.5),
            ("weibull:5/s,cv=2", 5.0, 2.0),
            ("weibull:5/s,shape=1", 5.0, 1.0),
        ] {
            let times = drawn(text, 20_000.0);
            let near = |what: &str, got: f64, want: f64, by: f64| {
                assert!((got - want).abs() <= by, "{text}: {what} {got}, not {want}");
            };
            near("rate", times.len() as f64 / 20_000.0, rate, 0.06 * rate);
            near("cv", burstiness(&ns(&times)).gap_cv.unwrap(), cv, 0.03 * cv + 1e-9);
            near("mean rate", of(text).mean_rate(20_000.0), rate, 1e-9);
        }
    }

    #[test]
    fn gaps_follow_their_law() {
        // Kolmogorov–Smirnov at 1e-4: gaps of 1/s against the exponential's distribution.
        let times = drawn("poisson:1/s", 5000.0);
        let mut gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let off = |(i, g): (usize, &f64)| (1.0 - (-g).exp() - (i as f64 + 0.5) / n).abs();
        let worst = gaps.iter().enumerate().map(off).fold(0.0, f64::max);
        assert!(worst < 2.23 / n.sqrt(), "{worst}");
    }

    #[test]
    fn rates_follow_their_curves() {
        let counts = |curve: Curve, cuts: [f64; 4]| {
            let law = Arrivals::Renewal { gaps: Gaps::Constant, curve };
            let times = law.draw(cuts[3], &mut Seed(1).stream("curve"));
            [0, 1, 2].map(|i| times.iter().filter(|t| (cuts[i]..cuts[i + 1]).contains(t)).count() as i64)
        };
        let near = |got: [i64; 3], want: [i64; 3]| {
            assert!((0..3).all(|i| (got[i] - want[i]).abs() <= 1), "{got:?}, not {want:?}");
        };
        near(counts(Curve::steps(&[(0.0, 1.0), (10.0, 0.0), (20.0, 5.0)]), [0.0, 10.0, 20.0, 30.0]), [10, 0, 50]);
        near(
            counts(Curve::stages(&[(10.0, 10.0), (10.0, 10.0), (20.0, 0.0)]), [0.0, 10.0, 20.0, 40.0]),
            [50, 100, 100],
        );
        near(counts(Curve::Points(vec![(10.0, 2.0), (20.0, 4.0)]), [0.0, 10.0, 20.0, 30.0]), [20, 30, 40]);
        let Arrivals::Renewal { curve, .. } = of("ramp:0/s..10/s,over=10s") else { panic!() };
        near(counts(curve, [0.0, 5.0, 10.0, 20.0]), [12, 37, 100]);
    }

    #[test]
    fn a_day_has_its_peak_and_its_mean() {
        let times = drawn("diurnal:2/s,swing=0.6,peak=15h", 7.0 * 86_400.0);
        assert!((times.len() as f64 / (14.0 * 86_400.0) - 1.0).abs() < 0.01);
        // The first Fourier coefficient: its angle is the peak, its size half the swing.
        let angle = |t: &f64| std::f64::consts::TAU * t / 86_400.0;
        let n = times.len() as f64;
        let (c, s) = (
            times.iter().map(|t| angle(t).cos()).sum::<f64>() / n,
            times.iter().map(|t| angle(t).sin()).sum::<f64>() / n,
        );
        let peak_h = (s.atan2(c) / std::f64::consts::TAU * 24.0).rem_euclid(24.0);
        assert!((peak_h - 15.0).abs() < 0.1 && (2.0 * c.hypot(s) - 0.6).abs() < 0.01, "{peak_h} {}", 2.0 * c.hypot(s));
    }

    #[test]
    fn modulated_arrivals_have_their_mean_and_dispersion() {
        // Two states, stays 1/a and 1/b: for long windows the index of dispersion tends to
        // 1 + 2ab(λ₁ − λ₂)²/((a + b)²(aλ₂ + bλ₁)) (Fischer and Meier-Hellstern 1993; a leaves state 1, b state 2).
        let (l1, l2, a, b) = (2.0, 30.0, 1.0 / 6.0, 1.0);
        let law = of("mmpp:2/s:6s,30/s:1s");
        let times = law.draw(200_000.0, &mut Seed(2).stream("mmpp"));
        let mean = (l1 / a + l2 / b) / (1.0 / a + 1.0 / b);
        assert!((law.mean_rate(1.0) - mean).abs() < 1e-9);
        assert!((times.len() as f64 / 200_000.0 / mean - 1.0).abs() < 0.03);
        let limit = 1.0 + 2.0 * a * b * (l1 - l2) * (l1 - l2) / ((a + b) * (a + b) * (a * l2 + b * l1));
        let tau = 1.0 / (a + b);
        // In windows of 60 s: limit approached as 1 − (1 − e^(−t/τ))τ/t.
        let expected = 1.0 + (limit - 1.0) * (1.0 - tau / 60.0 * (1.0 - (-60.0 / tau).exp()));
        let iod = burstiness(&ns(&times)).dispersion[2].unwrap();
        assert!((iod / expected - 1.0).abs() < 0.1, "{iod}, not {expected}");
    }

    #[test]
    fn exactly_as_many_as_asked_and_the_same_each_time() {
        let law = of("gamma:3/s,cv=2");
        let first = |n| law.first(n, || Seed(9).stream("arrivals"));
        assert_eq!((first(10).len(), first(1000).len()), (10, 1000));
        assert_eq!(first(10), first(1000)[..10]);
    }

    #[test]
    fn what_is_no_law_is_refused_with_what_would_be() {
        for (text, why) in [
            ("pareto:5/s", "known are"),
            ("gamma:5/s", "cv= or shape="),
            ("gamma:5/s,cv=0", "above zero"),
            ("poisson:5/day", "rate such as"),
            ("poisson:5/s,cv=2", "cv="),
            ("ramp:1/s,over=5s", "RATE..RATE"),
            ("mmpp:0/s:5s", "above zero"),
            ("diurnal:5/s,swing=2", "between 0 and 1"),
            ("weibull:5/s,cv=1e9", "no Weibull"),
        ] {
            let error = text.parse::<Arrivals>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
