//! Where the capacity lies: the root of the fit, and of fits to redrawn blocks.

use super::blocks::{Blocks, Surprises};
use super::control::Control;
use super::fit::{LOGITS, Logistic, Point, fit, nearer};
use super::{Probed, Spec};
use crate::binomial::normal_quantile;
use serde::{Deserialize, Serialize};

/// A root with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The load at which the binding requirement's attainment crosses its share.
    pub root: f64,
    /// From here …
    pub low: f64,
    /// … to here with the confidence asked for.
    pub high: f64,
    /// That confidence.
    pub confidence: f64,
    /// The requirement with the lowest root.
    pub binding: usize,
    /// Requests in a block.
    pub block: usize,
    /// How long a miss is remembered, in requests.
    pub memory: f64,
    /// The binding requirement's attainment over the logarithm of the load.
    pub fit: Logistic,
}

impl Interval {
    /// How far it reaches to either side, as a share of the root.
    pub fn reach(&self) -> f64 {
        ((self.root - self.low).max(self.high - self.root)) / self.root
    }
}

/// What attainment is at a load, by the fit, with its interval there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// The load.
    pub load: f64,
    /// Share of requests that meet the requirement.
    pub attainment: f64,
    /// From here …
    pub low: f64,
    /// … to here with the search's confidence.
    pub high: f64,
}

/// How much of the interval may come of the curve's shape, as a share of what comes of chance.
const BENT: f64 = 2.0;
/// Redrawn fits.
const DRAWS: usize = 400;

/// Every requirement's fit, and those of redrawn blocks.
struct Redrawn {
    blocks: Blocks,
    fits: Vec<Logistic>,
    draws: Vec<Vec<Logistic>>,
    /// By how much the root moves, in logarithms, if only what lies near it is fitted.
    bent: f64,
}

/// Probes at loads within e^0.2 of the root tell how misses cluster there.
const NEAR: f64 = 0.2;
/// What the arrivals explain is looked for about the root, which it moves: so often.
const ROUNDS: usize = 2;
/// Probes that must have met a share near the one asked for before the fit is believed to know how steep attainment is.
const TELLING: usize = 3;
/// How many requests an independent one is taken to stand for before that is known.
const GUESS: f64 = 20.0;

impl Redrawn {
    fn new(spec: &Spec, probes: &[&Probed], start: f64) -> Option<Redrawn> {
        let judged: Vec<&Probed> = probes.iter().filter(|p| !p.marks.is_empty()).copied().collect();
        if judged.is_empty() {
            return None;
        }
        let share = |k: usize| spec.requirements[k].share;
        let all = 0..spec.requirements.len();
        let mut points: Vec<Vec<Point>> = all.clone().map(|k| judged.iter().map(|p| point(p, k)).collect()).collect();
        let fitted = |points: &[Vec<Point>], start: f64, inflation: f64| -> Vec<Logistic> {
            all.clone().map(|k| fit(&points[k], share(k), start, inflation)).collect()
        };
        let unexplained =
            |fits: &[Logistic]| -> Vec<Surprises> { judged.iter().map(|p| Surprises::of_probe(p, fits, 0)).collect() };
        let cut = |near: &[usize], surprises: &[Surprises], control: &Control| {
            // Those that nothing is taken off would not be like the others.
            let steered: Vec<usize> = near.iter().copied().filter(|&i| control.steers(i)).collect();
            let near = if steered.is_empty() { near } else { &steered };
            let probes: Vec<&Probed> = near.iter().map(|&i| judged[i]).collect();
            let own: Vec<Surprises> = near.iter().map(|&i| surprises[i].clone()).collect();
            let toys: Vec<&Surprises> = near.iter().map(|&i| &control.toys[i]).collect();
            Blocks::of(&probes, &own, &toys, &control.slopes)
        };
        let close = |fits: &[Logistic]| {
            let (root, binding) = Redrawn::root(spec, fits);
            near(&judged, root, &fits[binding])
        };
        let mut control = Control::none(judged.len(), spec.requirements.len());
        let first = fitted(&points, libm::log(start), GUESS);
        let mut root = Redrawn::root(spec, &first).0;
        let mut blocks = cut(&close(&first), &unexplained(&first), &control);
        let mut fits = fitted(&points, root, blocks.inflation);
        let block = blocks.length;
        for _ in 0..ROUNDS {
            root = Redrawn::root(spec, &fits).0;
            let near = close(&fits);
            let surprises = unexplained(&fits);
            control = Control::of(spec, &judged, &near, libm::exp(root), &surprises, block);
            for (k, points) in points.iter_mut().enumerate() {
                for (j, point) in points.iter_mut().enumerate() {
                    let p = fits[k].at(point.x);
                    let luck = libm::sqrt(p * (1.0 - p)) * control.luck(j, k);
                    point.met = (self::point(judged[j], k).met - luck).clamp(0.0, point.judged);
                }
            }
            fits = fitted(&points, root, blocks.inflation);
            blocks = cut(&close(&fits), &unexplained(&fits), &control);
        }
        let mut rng = spec.seed.stream("capacity-bootstrap");
        let lengths: Vec<usize> = judged.iter().map(|p| p.marks.len()).collect();
        let draws = (0..DRAWS).map(|_| {
            let mut drawn = points.clone();
            // How many sizes were seen is the same for all probes.
            let chance = rng.normal();
            for (j, surprises) in blocks.draw(&lengths, &mut rng).into_iter().enumerate() {
                for (k, surprise) in surprises.into_iter().enumerate() {
                    let (n, p) = (drawn[k][j].judged, fits[k].at(drawn[k][j].x));
                    let surprise = surprise + control.slopes[k] * control.unsure[k] * chance * n;
                    drawn[k][j].met = (n * p + libm::sqrt(p * (1.0 - p)) * surprise).clamp(0.0, n);
                }
            }
            all.clone().map(|k| fit(&drawn[k], share(k), fits[k].root(share(k)), blocks.inflation)).collect()
        });
        let draws = draws.collect();
        let local: Vec<Logistic> = all.clone().map(|k| nearer(&points[k], share(k), root, blocks.inflation)).collect();
        let bent = libm::fabs(Redrawn::root(spec, &local).0 - Redrawn::root(spec, &fits).0);
        Some(Redrawn { blocks, fits, draws, bent })
    }

    /// The logarithm of the load up to which every requirement holds, by fits, and the requirement that binds.
    fn root(spec: &Spec, fits: &[Logistic]) -> (f64, usize) {
        let roots = fits.iter().zip(&spec.requirements).map(|(fit, r)| fit.root(r.share)).zip(0..);
        roots.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0))
    }
}

/// By all probes that count; `None` as long as none has a judged request. `start`: a load near the root.
pub(super) fn interval(spec: &Spec, probes: &[&Probed], start: f64) -> Option<Interval> {
    let redrawn = Redrawn::new(spec, probes, start)?;
    let (root, binding) = Redrawn::root(spec, &redrawn.fits);
    let draws: Vec<f64> = redrawn.draws.iter().map(|fits| Redrawn::root(spec, fits).0 - root).collect();
    let scale = spread(&redrawn, spec.confidence);
    let (down, up) = reach(draws, spec.confidence);
    // That attainment is no logistic curve is not chance; a fit to little may be off by more than it says, so it can't count without bounds.
    let bent = redrawn.bent.min(BENT * up * scale);
    let (below, above) = knee(spec.requirements[binding].share, binding, probes, root);
    Some(Interval {
        root: libm::exp(root),
        low: libm::exp((root + down * scale - bent).min(below)),
        high: libm::exp((root + up * scale + bent).max(above)),
        confidence: spec.confidence,
        binding,
        block: redrawn.blocks.length,
        memory: redrawn.blocks.memory,
        fit: redrawn.fits[binding],
    })
}

/// As long as hardly a probe has met a share near the one asked for, how steep the knee is is a belief, and all that is known is that it
/// lies between a load that was borne and one that was not: their logarithms, about the root.
fn knee(share: f64, k: usize, probes: &[&Probed], root: f64) -> (f64, f64) {
    let logit = |q: f64| libm::log(q / (1.0 - q));
    let telling = |p: &&&Probed| {
        p.attainment(k).is_some_and(|q| q < 1.0 && q > 0.0 && libm::fabs(logit(q) - logit(share)) < LOGITS)
    };
    if probes.iter().filter(telling).count() >= TELLING {
        return (root, root);
    }
    let side = |borne: bool| {
        let of = move |p: &&&Probed| p.attainment(k).is_some_and(|q| (q >= share) == borne) && (p.x() <= root) == borne;
        probes.iter().filter(of).map(|p| p.x())
    };
    let (below, above) = (side(true).reduce(f64::max), side(false).reduce(f64::min));
    (below.map_or(root, |x| x.min(root)), above.map_or(root, |x| x.max(root)))
}

/// Attainment of the requirement that binds over the load, for a plot; empty if nothing was judged.
pub fn curve(spec: &Spec, probes: &[Probed], loads: &[f64]) -> Vec<Band> {
    let usable: Vec<&Probed> = probes.iter().filter(|p| p.counts()).collect();
    let Some(start) = usable.last().map(|p| p.probe.load) else { return Vec::new() };
    let Some(redrawn) = Redrawn::new(spec, &usable, start) else { return Vec::new() };
    let (_, binding) = Redrawn::root(spec, &redrawn.fits);
    let scale = spread(&redrawn, spec.confidence);
    let at = |&load: &f64| {
        let x = libm::log(load);
        let fit = redrawn.fits[binding];
        let draws = redrawn.draws.iter().map(|fits| fits[binding].logit(x) - fit.logit(x)).collect();
        let (down, up) = reach(draws, spec.confidence);
        let share = |shift: f64| 1.0 / (1.0 + libm::exp(-(fit.logit(x) + shift)));
        Band { load, attainment: fit.at(x), low: share(down * scale), high: share(up * scale) }
    };
    loads.iter().map(at).collect()
}

/// How far draws lie from their estimate, to either side: the outer quantile that lies further, since few blocks with few misses in them tell too
/// little of the other.
fn reach(mut draws: Vec<f64>, confidence: f64) -> (f64, f64) {
    draws.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let at = |q: f64| draws[((q * draws.len() as f64) as usize).min(draws.len() - 1)];
    let reach = (-at(tail)).max(at(1.0 - tail)).max(0.0);
    (-reach, reach)
}

fn point(probed: &Probed, k: usize) -> Point {
    let (judged, met) = probed.counts_of(k);
    Point { x: probed.x(), judged: judged as f64, met: met as f64 }
}

/// Which are near the root, the nearer the steeper attainment is there: beyond the knee misses are remembered for ever. All, as long as none is.
fn near(probes: &[&Probed], root: f64, fit: &Logistic) -> Vec<usize> {
    let within =
        |reach: f64| -> Vec<usize> { (0..probes.len()).filter(|&i| (probes[i].x() - root).abs() < reach).collect() };
    let reaches = [NEAR.min(LOGITS / fit.steepness), NEAR, f64::MAX];
    reaches.into_iter().map(within).find(|near| !near.is_empty()).unwrap_or_default()
}

/// By how much redrawn roots must be spread to be the answer's: what blocks of this length hide, the two degrees of freedom the fit
/// takes, and Student's tails for so few blocks.
fn spread(redrawn: &Redrawn, confidence: f64) -> f64 {
    let blocks = redrawn.blocks.len() as f64;
    let free = (blocks - 2.0).max(2.0);
    let z = normal_quantile(0.5 + confidence / 2.0);
    libm::sqrt(redrawn.blocks.understated * blocks.max(free) / free) * student(z, free) / z
}

/// Student's quantile from the normal one (Cornish and Fisher's expansion; to 1 % from 3 degrees of freedom at 95 %).
pub(super) fn student(z: f64, free: f64) -> f64 {
    let (z3, z5, z7) = (z * z * z, z * z * z * z * z, z * z * z * z * z * z * z);
    z + (z3 + z) / (4.0 * free)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * free * free)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * free * free * free)
}
