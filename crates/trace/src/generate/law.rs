use crate::error::Error;
use crate::generate::Pdf;
use std::str::FromStr;
use tailbound_clock::Rng;

/// A distribution of real numbers: tokens, turns, seconds, shares. Read from text such as `lognormal:mean=500,cv=1.2,max=8192`.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Always this.
    Fixed(f64),
    /// Every value from low to high alike. Whole numbers if [`Law::count`] asks for them, both ends included.
    Uniform {
        /// The least …
        low: f64,
        /// … and the greatest.
        high: f64,
    },
    /// Exponential of this mean.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// A normal distribution cut to [low, high]; its mean and deviation are those before the cut.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        sd: f64,
        /// Cut below …
        low: f64,
        /// … and above.
        high: f64,
    },
    /// The logarithm is normal; cut to [low, high].
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Cut below …
        low: f64,
        /// … and above.
        high: f64,
    },
    /// These values with these weights: an empirical distribution, or a Zipf's.
    Discrete(Pdf),
    /// One of several, with these weights.
    Mixture(Vec<(f64, Law)>),
}

/// Zipf's weights are kept one by one.
const MOST_RANKS: u64 = 1 << 24;

impl Law {
    /// Zipf: value k from low to high with weight k^−exponent.
    pub fn zipf(exponent: f64, low: u64, high: u64) -> Result<Law, Error> {
        if !(1 <= low && low <= high && high < MOST_RANKS && exponent.is_finite()) {
            return refuse(format!("zipf needs 1 <= min <= max < {MOST_RANKS} and a finite exponent"));
        }
        let weights = (low..=high).map(|k| (k as f64, libm::pow(k as f64 / low as f64, -exponent))).collect();
        Pdf::new(weights).map(Law::Discrete).ok_or_else(|| Error::Asked("zipf: every weight is zero".into()))
    }

    /// The values as they are, each as likely as it is frequent.
    pub fn empirical(values: impl IntoIterator<Item = f64>) -> Result<Law, Error> {
        let pairs = values.into_iter().map(|v| (v, 1.0)).collect();
        Pdf::new(pairs).map(Law::Discrete).ok_or_else(|| Error::Asked("an empirical distribution needs values".into()))
    }

    /// A value.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Law::Fixed(x) => *x,
            Law::Uniform { low, high } => low + (high - low) * rng.unit(),
            Law::Exponential { mean } => mean * rng.exponential(),
            Law::Normal { mean, sd, low, high } => cut(*low, *high, || mean + sd * rng.normal()),
            Law::LogNormal { mu, sigma, low, high } => cut(*low, *high, || libm::exp(mu + sigma * rng.normal())),
            Law::Discrete(pdf) => pdf.at(rng.unit()),
            Law::Mixture(parts) => {
                let total: f64 = parts.iter().map(|(w, _)| w).sum();
                let mut left = rng.unit() * total;
                let part = parts.iter().find(|(weight, _)| {
                    left -= weight;
                    left < 0.0
                });
                part.or(parts.last()).map_or(0.0, |(_, law)| law.draw(rng))
            }
        }
    }

    /// A whole number, the nearest to a value and at least `least`.
    pub fn count(&self, least: u32, rng: &mut Rng) -> u32 {
        let x = match self {
            Law::Uniform { low, high } => libm::floor(low + (high - low + 1.0) * rng.unit()).min(*high),
            Law::Mixture(parts) if parts.len() == 1 => return parts[0].1.count(least, rng),
            other => libm::round(other.draw(rng)),
        };
        (x.clamp(0.0, f64::from(u32::MAX)) as u32).max(least)
    }
}

/// Draws until one lies between the edges; after many in vain, the edge that is nearer.
fn cut(low: f64, high: f64, mut draw: impl FnMut() -> f64) -> f64 {
    let mut x = draw();
    for _ in 0..1000 {
        if (low..=high).contains(&x) {
            break;
        }
        x = draw();
    }
    x.clamp(low, high)
}

fn refuse<T>(what: String) -> Result<T, Error> {
    Err(Error::Asked(what))
}

const KINDS: &str = "N, LOW..HIGH, fixed:N, uniform:LOW..HIGH, exponential:mean=M, normal:mean=M,sd=S, lognormal:mean=M,cv=C \
    (or p50=M,sigma=S), zipf:s=1.1,max=N; min= and max= cut; 0.7*LAW + 0.3*LAW mixes";

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Law, String> {
        let parts: Vec<&str> = text.split('+').map(str::trim).collect();
        if parts.len() == 1 && !text.contains('*') {
            return one(text.trim());
        }
        let weighted = parts.iter().map(|part| {
            let (weight, law) = part.split_once('*').ok_or_else(|| format!("`{part}` should read WEIGHT*LAW"))?;
            Ok((positive("the weight", number(weight)?)?, one(law.trim())?))
        });
        weighted.collect::<Result<_, String>>().map(Law::Mixture)
    }
}

fn one(text: &str) -> Result<Law, String> {
    let (kind, rest) = text.split_once(':').unwrap_or(("", text));
    if matches!(kind, "" | "fixed" | "uniform") {
        return match rest.split_once("..") {
            Some((low, high)) if kind != "fixed" => uniform(number(low)?, number(high)?),
            None if kind != "uniform" => Ok(Law::Fixed(not_negative("a fixed value", number(rest)?)?)),
            _ => Err(format!("`{text}` is no distribution; known are {KINDS}")),
        };
    }
    let mut given = Given::read(rest)?;
    let (low, high) = (given.take("min").unwrap_or(0.0), given.take("max").unwrap_or(f64::INFINITY));
    if low > high {
        return Err(format!("`{text}`: min is above max"));
    }
    let law = match kind {
        "exponential" => Law::Exponential { mean: positive("mean", given.need("mean")?)? },
        "normal" => Law::Normal { mean: given.need("mean")?, sd: not_negative("sd", given.need("sd")?)?, low, high },
        "lognormal" => {
            let sigma = match (given.take("sigma"), given.take("cv")) {
                (Some(sigma), None) => not_negative("sigma", sigma)?,
                (None, Some(cv)) => libm::sqrt(libm::log1p(not_negative("cv", cv)? * cv)),
                _ => return Err(format!("`{text}` needs one of sigma and cv")),
            };
            let mu = match (given.take("mean"), given.take("p50")) {
                (Some(mean), None) => libm::log(positive("mean", mean)?) - sigma * sigma / 2.0,
                (None, Some(p50)) => libm::log(positive("p50", p50)?),
                _ => return Err(format!("`{text}` needs one of mean and p50")),
            };
            Law::LogNormal { mu, sigma, low, high }
        }
        "zipf" => {
            let whole = |x: f64, other: u64| if x.is_finite() { x.max(1.0) as u64 } else { other };
            Law::zipf(given.need("s")?, whole(low, 1), whole(high, MOST_RANKS)).map_err(|e| e.to_string())?
        }
        _ => return Err(format!("`{text}` is no distribution; known are {KINDS}")),
    };
    given.nothing_left(text)?;
    Ok(law)
}

fn uniform(low: f64, high: f64) -> Result<Law, String> {
    if not_negative("the least value", low)? > high {
        return Err(format!("{low}..{high} is empty: LOW must not be above HIGH"));
    }
    Ok(Law::Uniform { low, high })
}

/// `KEY=NUMBER` pairs.
pub(super) struct Given(Vec<(String, f64)>);

impl Given {
    pub(super) fn read(text: &str) -> Result<Given, String> {
        let pair = |part: &str| {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` should read KEY=NUMBER"))?;
            Ok((key.trim().to_owned(), number(value)?))
        };
        let parts = text.split(',').filter(|p| !p.trim().is_empty());
        parts.map(pair).collect::<Result<_, String>>().map(Given)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<f64> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn need(&mut self, key: &str) -> Result<f64, String> {
        self.take(key).ok_or_else(|| format!("{key}= is missing"))
    }

    pub(super) fn nothing_left(&self, of: &str) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |(key, _)| Err(format!("`{of}` has no {key}=")))
    }
}

/// A finite number; `k` and `M` multiply, `ms`, `s`, `min`, `h` and `d` make seconds.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let units = [
        ("ms", 1e-3),
        ("us", 1e-6),
        ("s", 1.0),
        ("min", 60.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("k", 1e3),
        ("M", 1e6),
        ("%", 1e-2),
    ];
    let (digits, unit) = units
        .into_iter()
        .find_map(|(unit, x)| text.strip_suffix(unit).map(|digits| (digits, x)))
        .unwrap_or((text, 1.0));
    match digits.trim().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x * unit),
        _ => Err(format!("`{text}` is not a number")),
    }
}

pub(super) fn positive(what: &str, x: f64) -> Result<f64, String> {
    if x > 0.0 { Ok(x) } else { Err(format!("{what} must be above zero, not {x}")) }
}

pub(super) fn not_negative(what: &str, x: f64) -> Result<f64, String> {
    if x >= 0.0 { Ok(x) } else { Err(format!("{what} must not be below zero, but is {x}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_clock::Seed;

    fn moments(law: &Law, n: usize) -> (f64, f64) {
        let mut rng = Seed(3).stream("law");
        let xs: Vec<f64> = (0..n).map(|_| law.draw(&mut rng)).collect();
        let mean = xs.iter().sum::<f64>() / n as f64;
        (mean, xs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64)
    }

    #[test]
    fn laws_have_their_moments() {
        // Mean and variance; those of the cut normal and of Zipf are scipy's (truncnorm, zipfian).
        for (text, mean, variance) in [
            ("512", 512.0, 0.0),
            ("uniform:10..30", 20.0, 400.0 / 12.0),
            ("exponential:mean=4", 4.0, 16.0),
            ("normal:mean=100,sd=15", 100.0, 225.0),
            ("normal:mean=100,sd=50,min=50,max=120", 87.287_848_6, 379.337_994_2),
            ("lognormal:mean=500,cv=1.2", 500.0, 360_000.0),
            ("lognormal:p50=100,sigma=0.5", 113.314_845_3, 3_646.958_540_2),
            ("zipf:s=1.1,max=1024", 101.802_532_7, 39_092.321_970_9),
            ("0.25*fixed:8 + 0.75*uniform:0..4", 3.5, 0.25 * 20.25 + 0.75 * (16.0 / 12.0 + 2.25)),
        ] {
            let (m, v) = moments(&text.parse().unwrap(), 200_000);
            assert!((m - mean).abs() <= 0.02 * mean, "{text}: mean {m}, not {mean}");
            assert!((v - variance).abs() <= 0.08 * variance, "{text}: variance {v}, not {variance}");
        }
    }

    #[test]
    fn whole_numbers_of_a_uniform_law_are_alike() {
        let law: Law = "1..4".parse().unwrap();
        let mut rng = Seed(4).stream("law");
        let mut seen = [0u32; 6];
        (0..40_000).for_each(|_| seen[law.count(0, &mut rng) as usize] += 1);
        assert_eq!((seen[0], seen[5]), (0, 0));
        assert!(seen[1..5].iter().all(|n| (9_600..10_400).contains(n)), "{seen:?}");
    }

    #[test]
    fn an_empirical_law_draws_its_sample() {
        let law = Law::empirical([7.0, 7.0, 7.0, 900.0]).unwrap();
        let mut rng = Seed(5).stream("law");
        let sevens = (0..10_000).filter(|_| law.draw(&mut rng) == 7.0).count();
        assert!((7_350..7_650).contains(&sevens), "{sevens}");
        assert!(Law::empirical([]).is_err());
    }

    #[test]
    fn what_is_no_law_is_refused_with_what_would_be() {
        for (text, why) in [
            ("gaussian:mean=1", "known are"),
            ("normal:mean=1", "sd="),
            ("normal:mean=1,sd=-2", "below zero"),
            ("normal:mean=1,sd=2,mu=3", "mu="),
            ("lognormal:mean=5", "sigma and cv"),
            ("5..2", "empty"),
            ("zipf:s=1,max=99999999", "zipf needs"),
            ("0.5*4 + 3", "WEIGHT*LAW"),
            ("x", "not a number"),
            ("-3", "below zero"),
        ] {
            let error = text.parse::<Law>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!("8k".parse(), Ok(Law::Fixed(8000.0)));
        assert_eq!("500ms..2s".parse(), Ok(Law::Uniform { low: 0.5, high: 2.0 }));
    }
}
