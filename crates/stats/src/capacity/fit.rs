//! Attainment over the logarithm of the load: a logistic curve that falls.

/// What a probe, or all of its blocks together, says of one requirement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Logarithm of the load.
    pub x: f64,
    /// Requests judged.
    pub judged: f64,
    /// Requests that met it.
    pub met: f64,
}

/// logit(attainment) = level − steepness · (x − centre).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logistic {
    /// The logit at the centre.
    pub level: f64,
    /// How steeply it falls, over 0.
    pub steepness: f64,
    /// Where the level is meant.
    pub centre: f64,
}

/// How far from the root a probe counts much: at a load e^0.35 away, by 0.6.
const REACH: f64 = 0.35;
/// And how far where attainment falls steeply, in logits: no logistic curve is right from all to nothing.
pub(super) const LOGITS: f64 = 3.0;
/// What is believed of the steepness before anything is known: that of a single random server which is two thirds busy, whose misses are
/// exp(−(μ − λ)t) of all, times or over e^0.7, and the less sure the rarer they are. Where it is steeper, data soon outweigh it. Without it
/// a few unlucky probes side by side could make attainment flat, and its root lie anywhere.
fn steepness(share: f64) -> (f64, f64) {
    let rare = -libm::log(1.0 - share);
    (libm::log(2.0 * rare), 0.7 * (rare / std::f64::consts::LN_10).clamp(1.0, 2.0))
}

/// Requests that a half-met request at each probe stands for, so that a probe without a miss still has a finite logit.
const HALF: f64 = 0.5;

impl Logistic {
    /// Fits by penalised maximum likelihood (Newton's method). `near` is where the root is believed to lie and `inflation` is how many
    /// requests an independent one stands for.
    fn weighted(points: &[Point], near: f64, reach: f64, share: f64, inflation: f64) -> Logistic {
        let (usual, deviation) = steepness(share);
        let (mut level, mut log_steep) = (2.0, usual);
        let tie = inflation / (deviation * deviation);
        for _ in 0..30 {
            let steep = libm::exp(log_steep);
            // Gradient and information in (level, logarithm of the steepness).
            let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, tie * (usual - log_steep), 1e-9, 0.0, tie);
            for p in points.iter().filter(|p| p.judged > 0.0) {
                let d = (p.x - near) / reach;
                let w = libm::exp(-0.5 * d * d).max(1e-4);
                let (n, met) = (p.judged + 2.0 * HALF, p.met + HALF);
                let z = -steep * (p.x - near);
                let q = 1.0 / (1.0 + libm::exp(-(level + z)));
                let r = w * (met - n * q);
                let v = w * n * (q * (1.0 - q)).max(1e-9);
                g0 += r;
                g1 += r * z;
                h00 += v;
                h01 += v * z;
                h11 += v * z * z;
            }
            let det = h00 * h11 - h01 * h01;
            if det <= 0.0 {
                break;
            }
            let a = ((h11 * g0 - h01 * g1) / det).clamp(-2.0, 2.0);
            let b = ((h00 * g1 - h01 * g0) / det).clamp(-0.5, 0.5);
            level += a;
            log_steep += b;
            if a.abs() < 1e-8 && b.abs() < 1e-8 {
                break;
            }
        }
        Logistic { level, steepness: libm::exp(log_steep), centre: near }
    }

    /// Attainment at a load's logarithm.
    pub fn at(&self, x: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-self.logit(x)))
    }

    /// Its logit.
    pub fn logit(&self, x: f64) -> f64 {
        self.level - self.steepness * (x - self.centre)
    }

    /// Where attainment is `share`.
    pub fn root(&self, share: f64) -> f64 {
        self.centre + (self.level - libm::log(share / (1.0 - share))) / self.steepness
    }
}

/// The fit about its own root. `start` is where to begin, e.g. the middle of the bracket.
pub fn fit(points: &[Point], share: f64, start: f64, inflation: f64) -> Logistic {
    within(LOGITS, points, share, start, inflation)
}

/// The same by what lies nearer: where it differs, the curve is not logistic.
pub(super) fn nearer(points: &[Point], share: f64, start: f64, inflation: f64) -> Logistic {
    within(LOGITS / 3.0, points, share, start, inflation)
}

fn within(logits: f64, points: &[Point], share: f64, start: f64, inflation: f64) -> Logistic {
    let (low, high) = points.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.x), high.max(p.x)));
    let mut near = start;
    let mut found = Logistic::weighted(points, near, REACH, share, inflation);
    let mut settled = false;
    for _ in 0..6 {
        let root = found.root(share).clamp(low - 0.5, high + 0.5);
        if settled && (root - near).abs() < 1e-4 {
            break;
        }
        settled = true;
        near = root;
        let reach = REACH.min(logits / found.steepness);
        found = Logistic::weighted(points, near, reach, share, inflation);
    }
    found
}
