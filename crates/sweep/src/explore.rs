//! Which levels of load to measure between one request after another and all at once.

/// What the load's level is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// Requests per second.
    RequestRate,
    /// Requests in flight.
    MaxConcurrency,
}

impl Variable {
    /// The parameter's name.
    pub fn key(self) -> &'static str {
        match self {
            Variable::RequestRate => "request_rate",
            Variable::MaxConcurrency => "max_concurrency",
        }
    }

    /// A level that can be written: three digits of a rate, a whole number of clients.
    fn rounded(self, level: f64) -> f64 {
        match self {
            Variable::MaxConcurrency => level.round().max(1.0),
            Variable::RequestRate => {
                let unit = libm::pow(10.0, 2.0 - libm::floor(libm::log10(level)));
                // A power of ten divides or multiplies without loss where `unit` itself is exact.
                if unit >= 1.0 { (level * unit).round() / unit } else { (level / (1.0 / unit)).round() * (1.0 / unit) }
            }
        }
    }
}

/// What a level came to, averaged over its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The level: as asked for, or for the two ends what they came to.
    pub level: f64,
    /// Requests per second.
    pub throughput: f64,
    /// Mean end-to-end latency, s.
    pub latency: f64,
}

/// The level at which an end of the range stands: its own throughput as a rate, or by Little's law the requests in flight.
pub fn end_level(variable: Variable, throughput: f64, latency: f64) -> f64 {
    match variable {
        Variable::RequestRate => throughput,
        Variable::MaxConcurrency => throughput * latency,
    }
}

/// Neighbours nearer than this tell nothing new.
const NEAREST: f64 = 1.05;

/// The next level worth measuring, of `budget` in all, given what is measured; the two ends are measured first and are among
/// `measured`. `None` when there is none.
///
/// Half of what lies between the ends is spaced geometrically: a server's behaviour changes by factors, and linear steps put nearly all
/// levels beyond the knee. The rest halves the gaps beside the knee, which is where power (throughput ÷ latency; Kleinrock 1979) is
/// greatest. The answer depends on nothing but the arguments, so that a resumed exploration goes on as it would have.
pub fn next(variable: Variable, budget: usize, measured: &[Point]) -> Option<f64> {
    let mut points: Vec<Point> = measured.to_vec();
    points.retain(|p| p.level.is_finite() && p.level > 0.0);
    points.sort_by(|a, b| a.level.total_cmp(&b.level));
    let (low, high) = (points.first()?.level, points.last()?.level);
    if measured.len() >= budget || high / low < NEAREST {
        return None;
    }
    let new = |level: f64| {
        let level = variable.rounded(level);
        let near = |p: &Point| (level / p.level).max(p.level / level) < NEAREST;
        (level > low && level < high && !points.iter().any(near)).then_some(level)
    };
    let between = budget.saturating_sub(2);
    let spaced = between.div_ceil(2);
    let step = |i: usize| low * libm::pow(high / low, i as f64 / (spaced + 1) as f64);
    // From the middle outwards would be as good; from the bottom up, a person watching sees the load rise.
    let coarse = (1..=spaced).filter(|_| measured.len() < 2 + spaced).find_map(|i| new(step(i)));
    coarse.or_else(|| {
        let mut gaps = beside_the_knee(&points);
        gaps.extend(points.windows(2).map(|pair| (pair[0].level, pair[1].level)));
        gaps.into_iter().find_map(|(a, b)| new((a * b).sqrt()))
    })
}

/// The level of greatest power.
pub fn knee(points: &[Point]) -> Option<Point> {
    let power = |p: &Point| p.throughput / p.latency;
    points.iter().copied().filter(|p| power(p).is_finite()).max_by(|a, b| power(a).total_cmp(&power(b)))
}

/// The gaps on both sides of the knee, the wider one first.
fn beside_the_knee(points: &[Point]) -> Vec<(f64, f64)> {
    let Some(knee) = knee(points) else { return Vec::new() };
    let beside = |pair: &&[Point]| pair[0].level == knee.level || pair[1].level == knee.level;
    let mut gaps: Vec<(f64, f64)> =
        points.windows(2).filter(beside).map(|pair| (pair[0].level, pair[1].level)).collect();
    gaps.sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
    gaps
}
