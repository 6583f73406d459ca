//! Which of several settings nobody beats at both things at once, and how sure that is.
//!
//! A point is a setting, measured some times; both of its figures (tokens/s for each user, tokens/s for each accelerator) are better the
//! greater they are. The frontier is drawn through the means of valid runs; what runs repeat by tells how often chance would have drawn
//! another one.

use crate::compare::Estimate;
use crate::student::two_sided;
use tailbound_clock::{Rng, Seed};

/// A setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Both figures of each valid run.
    pub runs: Vec<(f64, f64)>,
    /// Whether it may be on the frontier: a setting with an INVALID run may not.
    pub valid: bool,
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Mean of the first figure with its interval; `None` without runs. Of a single run the interval is not known, and spans everything
    /// (−∞ to ∞).
    pub x: Option<Estimate>,
    /// Mean of the second figure, likewise.
    pub y: Option<Estimate>,
    /// Whether no valid setting is better at one figure and at least as good at the other.
    pub on_frontier: bool,
    /// In how many of the frontiers that runs like these might give it is; `None` where runs don't tell: of one run, or INVALID.
    pub confidence: Option<f64>,
}

/// The frontier at one value of the first figure: the most of the second that a setting gives with at least that much of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The first figure.
    pub x: f64,
    /// The most of the second, with the interval in which chance leaves it.
    pub y: Estimate,
}

/// A frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontier {
    /// The settings, in their own order.
    pub settings: Vec<Placed>,
    /// The staircase, by ascending `x`: a step for each setting on the frontier.
    pub steps: Vec<Step>,
    /// Settings on the frontier that were run but once: intervals and confidences take them as if they were exact.
    pub unrepeated: usize,
}

/// Draws the frontier; intervals miss with probability `alpha` (0–1), by `draws` frontiers (at least 200) drawn from `seed`.
///
/// Means of `k` runs are drawn from the two-dimensional Student distribution with k − 1 degrees of freedom around their mean, with the
/// runs' own covariance.
pub fn frontier(settings: &[Setting], alpha: f64, draws: usize, seed: Seed) -> Frontier {
    let moments: Vec<Option<Moments>> = settings.iter().map(|s| Moments::of(&s.runs)).collect();
    let valid = |i: usize| settings[i].valid && moments[i].is_some();
    let means: Vec<Option<(f64, f64)>> =
        moments.iter().enumerate().map(|(i, m)| m.filter(|_| valid(i)).map(|m| m.mean)).collect();
    let on = unbeaten(&means);
    let mut levels: Vec<f64> =
        means.iter().zip(&on).filter(|(_, on)| **on).filter_map(|(m, _)| Some((*m)?.0)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();

    let mut rng = seed.stream("pareto");
    let mut times = vec![0usize; settings.len()];
    let mut tops: Vec<Vec<f64>> = vec![Vec::with_capacity(draws); levels.len()];
    for _ in 0..draws {
        let drawn: Vec<Option<(f64, f64)>> =
            moments.iter().enumerate().map(|(i, m)| m.filter(|_| valid(i)).map(|m| m.draw(&mut rng))).collect();
        unbeaten(&drawn).iter().zip(&mut times).for_each(|(on, n)| *n += usize::from(*on));
        for (level, tops) in levels.iter().zip(&mut tops) {
            tops.extend(top(&drawn, *level));
        }
    }
    let placed = |i: usize| Placed {
        x: moments[i].map(|m| m.estimate(m.mean.0, m.variance.0, alpha)),
        y: moments[i].map(|m| m.estimate(m.mean.1, m.variance.1, alpha)),
        on_frontier: on[i],
        confidence: moments[i].filter(|m| valid(i) && m.runs > 1).map(|_| times[i] as f64 / draws as f64),
    };
    let steps = levels.iter().zip(tops).filter_map(|(x, mut drawn)| {
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn.get((share * drawn.len() as f64) as usize).or(drawn.last()).copied();
        let value = top(&means, *x)?;
        let (low, high) = (at(alpha / 2.0)?.min(value), at(1.0 - alpha / 2.0)?.max(value));
        Some(Step { x: *x, y: Estimate { value, low, high } })
    });
    Frontier {
        steps: steps.collect(),
        settings: (0..settings.len()).map(placed).collect(),
        unrepeated: (0..settings.len()).filter(|i| on[*i] && moments[*i].is_some_and(|m| m.runs == 1)).count(),
    }
}

/// Of each point, whether no other is at least as good at both and better at one.
fn unbeaten(points: &[Option<(f64, f64)>]) -> Vec<bool> {
    let beats = |a: &(f64, f64), b: &(f64, f64)| a.0 >= b.0 && a.1 >= b.1 && (a.0 > b.0 || a.1 > b.1);
    let best = |p: &Option<(f64, f64)>| p.as_ref().is_some_and(|p| !points.iter().flatten().any(|q| beats(q, p)));
    points.iter().map(best).collect()
}

fn top(points: &[Option<(f64, f64)>], x: f64) -> Option<f64> {
    points.iter().flatten().filter(|p| p.0 >= x).map(|p| p.1).max_by(f64::total_cmp)
}

/// Mean, variances and covariance of runs.
#[derive(Clone, Copy)]
struct Moments {
    runs: usize,
    mean: (f64, f64),
    variance: (f64, f64),
    covariance: f64,
}

impl Moments {
    fn of(runs: &[(f64, f64)]) -> Option<Moments> {
        if runs.is_empty() {
            return None;
        }
        let n = runs.len() as f64;
        let mean = (runs.iter().map(|r| r.0).sum::<f64>() / n, runs.iter().map(|r| r.1).sum::<f64>() / n);
        let moment = |f: &dyn Fn(f64, f64) -> f64| {
            let sum: f64 = runs.iter().map(|r| f(r.0 - mean.0, r.1 - mean.1)).sum();
            if runs.len() > 1 { sum / (n - 1.0) } else { 0.0 }
        };
        let variance = (moment(&|x, _| x * x), moment(&|_, y| y * y));
        Some(Moments { runs: runs.len(), mean, variance, covariance: moment(&|x, y| x * y) })
    }

    fn estimate(&self, value: f64, variance: f64, alpha: f64) -> Estimate {
        let reach = match self.runs {
            1 => f64::INFINITY,
            n => two_sided(alpha, n as f64 - 1.0) * (variance / n as f64).sqrt(),
        };
        Estimate { value, low: value - reach, high: value + reach }
    }

    fn draw(&self, rng: &mut Rng) -> (f64, f64) {
        if self.runs == 1 {
            return self.mean;
        }
        let dof = self.runs as f64 - 1.0;
        // χ² of `dof` degrees of freedom is twice a gamma variable of half as many.
        let scale = (dof / (2.0 * rng.gamma(dof / 2.0)) / self.runs as f64).sqrt();
        let (u, v) = (rng.normal(), rng.normal());
        let sx = self.variance.0.sqrt();
        let slope = if sx > 0.0 { self.covariance / sx } else { 0.0 };
        let rest = (self.variance.1 - slope * slope).max(0.0).sqrt();
        (self.mean.0 + scale * sx * u, self.mean.1 + scale * (slope * u + rest * v))
    }
}
