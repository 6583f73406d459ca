//! What the fit leaves unexplained, in blocks of consecutive requests long enough that one says little about the next.

use super::fit::Logistic;
use super::{Mark, Probed};
use tailbound_clock::Rng;

/// Of one requirement in a block: how many it judged, by how much more met it than the fit expects, and by how much more did of the
/// toy's ([`Control`]), in standard deviations of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    judged: f64,
    own: f64,
    toy: f64,
}

/// Consecutive requests of one probe: their sums by requirement.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    sums: Vec<Sum>,
    /// Logarithm of the rate at which its requests arrived, over that of its probe.
    rush: f64,
}

/// By requirement and by mark: met or not, less what was expected, in standard deviations of one request; NaN where it is not judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Surprises(Vec<Vec<f64>>);

impl Surprises {
    /// Those of a probe by fits, the first of which is that of requirement `first`.
    pub fn of_probe(probed: &Probed, fits: &[Logistic], first: usize) -> Surprises {
        let x = probed.x();
        let of = |(k, fit): (usize, &Logistic)| {
            let expected = fit.at(x).clamp(1e-6, 1.0 - 1e-6);
            let deviation = libm::sqrt(expected * (1.0 - expected));
            let of = |mark: &Mark| match (mark.judged >> (first + k) & 1, mark.met >> (first + k) & 1) {
                (0, _) => f64::NAN,
                (_, met) => (f64::from(met) - expected) / deviation,
            };
            probed.marks.iter().map(of).collect()
        };
        Surprises(fits.iter().enumerate().map(of).collect())
    }

    /// By one requirement; empty if nothing was said of it.
    pub fn of(&self, requirement: usize) -> &[f64] {
        self.0.get(requirement).map_or(&[], Vec::as_slice)
    }

    /// Says them of one requirement.
    pub fn set(&mut self, requirement: usize, surprises: Vec<f64>) {
        if self.0.len() <= requirement {
            self.0.resize(requirement + 1, Vec::new());
        }
        self.0[requirement] = surprises;
    }

    /// The sum of one requirement's.
    pub fn sum(&self, requirement: usize) -> f64 {
        self.of(requirement).iter().filter(|z| !z.is_nan()).sum()
    }
}

/// The blocks of all probes near the root.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// Requests in a block.
    pub length: usize,
    /// By how much blocks of that length understate the variance, as a factor.
    pub understated: f64,
    /// How long a miss is remembered, in requests.
    pub memory: f64,
    /// How many requests an independent one stands for, in what is left once the toys' part is taken off.
    pub inflation: f64,
    /// By requirement, whether something was taken off by a toy.
    steered: Vec<bool>,
}

/// Blocks are so many times as long as a miss is remembered,
const MEMORIES: f64 = 5.0;
/// as far as there are so many of them,
const FEWEST: usize = 24;
/// and never shorter than this.
const SHORTEST: usize = 20;
/// The furthest lag of the autocorrelation.
const FURTHEST: usize = 1000;

impl Blocks {
    /// Cuts probes near the root: by what is unexplained of each, and by their toys' surprises with the slopes at which they show.
    pub fn of(near: &[&Probed], surprises: &[Surprises], toys: &[&Surprises], slopes: &[f64]) -> Blocks {
        let requirements = surprises.first().map_or(0, |s| s.0.len());
        let of = |k: usize| -> Vec<Vec<f64>> {
            surprises.iter().map(|s| s.of(k).iter().copied().filter(|z| !z.is_nan()).collect()).collect()
        };
        let memory = (0..requirements).map(|k| memory(&of(k))).fold(1.0, f64::max);
        let total: usize = near.iter().map(|p| p.marks.len()).sum();
        let wanted = (MEMORIES * memory).max(SHORTEST as f64) as usize;
        let length = wanted.min((total / FEWEST).max(SHORTEST));
        let cut = near.iter().zip(surprises).zip(toys).flat_map(|((p, own), toy)| cut(p, own, toy, length));
        let mut blocks: Vec<Block> = cut.collect();
        explain_by_rush(&mut blocks, requirements);
        // Of correlations that die away over τ/2 a block of L keeps 1 − τ/2L.
        let kept = 1.0 - (memory / (2.0 * length as f64)).min(0.6);
        let understated = 1.0 / kept;
        let inflation = (0..requirements).map(|k| understated * varied(&blocks, k, slopes[k])).fold(1.0, f64::max);
        let steered = slopes.iter().map(|slope| *slope > 0.0).collect();
        Blocks { blocks, length, understated, memory, inflation, steered }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Draws what probes of so many requests each might leave unexplained: by probe and by requirement, standard deviations of one request
    /// in all. What the toy explains is taken off with the slope that the drawn blocks would have shown.
    pub fn draw(&self, probes: &[usize], rng: &mut Rng) -> Vec<Vec<f64>> {
        let requirements = self.steered.len();
        let drawn: Vec<Vec<&Block>> = probes
            .iter()
            .map(|&n| {
                let pieces = (n as f64 / self.length as f64).round().max(1.0) as usize;
                (0..pieces).map(|_| &self.blocks[rng.below(self.blocks.len() as u64) as usize]).collect()
            })
            .collect();
        let slopes: Vec<f64> = (0..requirements)
            .map(|k| if self.steered[k] { slope(drawn.iter().flatten().copied(), k) } else { 0.0 })
            .collect();
        let usual: Vec<f64> = (0..requirements)
            .map(|k| {
                let (n, toy) =
                    self.blocks.iter().fold((0.0, 0.0), |(n, toy), b| (n + b.sums[k].judged, toy + b.sums[k].toy));
                if n > 0.0 { toy / n } else { 0.0 }
            })
            .collect();
        let of = |(blocks, &n): (&Vec<&Block>, &usize)| {
            // Whole blocks are a little more or less than the probe: their variance is scaled to its length.
            let scale = libm::sqrt(n as f64 / (blocks.len() * self.length) as f64);
            let left = |k: usize| {
                let of = |b: &&Block| b.sums[k].own - slopes[k] * (b.sums[k].toy - usual[k] * b.sums[k].judged);
                scale * blocks.iter().map(of).sum::<f64>()
            };
            (0..requirements).map(left).collect()
        };
        drawn.iter().zip(probes).map(of).collect()
    }
}

fn cut(probed: &Probed, own: &Surprises, toy: &Surprises, length: usize) -> Vec<Block> {
    let whole = probed.arrived(&probed.marks);
    let n = probed.marks.len();
    let pieces = pieces(n, length);
    let of = |i: usize| {
        let part = i * n / pieces..(i + 1) * n / pieces;
        let sum = |k: usize| {
            let toy = toy.of(k).get(part.clone()).unwrap_or(&[]).iter().filter(|z| !z.is_nan()).sum();
            let own = own.of(k)[part.clone()].iter().filter(|z| !z.is_nan());
            own.fold(Sum { toy, ..Sum::default() }, |sum, z| Sum { judged: sum.judged + 1.0, own: sum.own + z, ..sum })
        };
        let arrived = probed.arrived(&probed.marks[part.clone()]);
        let rush = arrived.zip(whole).map_or(0.0, |(own, whole)| libm::log(own / whole));
        Block { sums: (0..own.0.len()).map(sum).collect(), rush }
    };
    (0..pieces).map(of).collect()
}

/// The variance between blocks for each request, in that of one request.
fn varied(blocks: &[Block], k: usize, slope: f64) -> f64 {
    let (squares, judged) = blocks.iter().fold((0.0, 0.0), |(squares, judged), b| {
        let left = b.sums[k].own - slope * b.sums[k].toy;
        (squares + left * left, judged + b.sums[k].judged)
    });
    if judged > 0.0 { squares / judged } else { 1.0 }
}

/// How much of the toy's surprise shows in the system's, by blocks.
fn slope<'a>(blocks: impl Iterator<Item = &'a Block>, k: usize) -> f64 {
    let (zc, cc) = blocks.fold((0.0, 0.0), |(zc, cc), b| {
        let sum = b.sums[k];
        (zc + sum.own * sum.toy, cc + sum.toy * sum.toy)
    });
    if cc > 0.0 { zc / cc } else { 0.0 }
}

/// Blocks of about a length that so many requests are cut into.
fn pieces(n: usize, length: usize) -> usize {
    ((n as f64 / length as f64).round() as usize).max(1)
}

/// By how much surprises go with others of the same requests, in blocks of about `length`: the slope, the part of the variance between
/// blocks that it explains, and how many blocks that is by. `None` where there is none.
pub(super) fn regression(own: &[&[f64]], others: &[Vec<f64>], length: usize) -> Option<(f64, f64, usize)> {
    let (mut zz, mut zc, mut cc, mut blocks) = (0.0, 0.0, 0.0, 0);
    for (own, other) in own.iter().zip(others) {
        let pieces = pieces(own.len(), length);
        for i in 0..pieces {
            let part = i * own.len() / pieces..(i + 1) * own.len() / pieces;
            let known = own[part.clone()].iter().zip(&other[part]).filter(|(z, c)| !z.is_nan() && !c.is_nan());
            let (z, c) = known.fold((0.0, 0.0), |sum, (z, c)| (sum.0 + z, sum.1 + c));
            (zz, zc, cc, blocks) = (zz + z * z, zc + z * c, cc + c * c, blocks + 1);
        }
    }
    (zz > 0.0 && cc > 0.0).then(|| (zc / cc, zc * zc / (zz * cc), blocks))
}

/// Takes off what comes of a block's arrivals being more or fewer than its probe's: over a probe that evens out, and the fit goes by the
/// probe's own rate.
fn explain_by_rush(blocks: &mut [Block], requirements: usize) {
    for k in 0..requirements {
        let (mut own, mut toy, mut dd) = (0.0, 0.0, 0.0);
        for block in blocks.iter() {
            let sum = block.sums[k];
            own += sum.own * block.rush;
            toy += sum.toy * block.rush;
            dd += sum.judged * block.rush * block.rush;
        }
        if dd <= 0.0 {
            continue;
        }
        for block in blocks.iter_mut() {
            let (rush, sum) = (block.rush, &mut block.sums[k]);
            sum.own -= own / dd * rush * sum.judged;
            sum.toy -= toy / dd * rush * sum.judged;
        }
    }
}

/// The integrated autocorrelation time of what the fit leaves unexplained, in requests: 1 if they are independent. Lags are summed up to
/// the first beyond five times its own value (Sokal's window). Nothing is taken off for each probe's own mean: that probes differ by
/// more than independent requests would is part of what a miss's memory does.
fn memory(series: &[Vec<f64>]) -> f64 {
    // Of probes in which all met it, or none, nothing is to be learnt.
    let varied = |s: &&Vec<f64>| s.iter().any(|z| *z != s[0]);
    let series: Vec<&Vec<f64>> = series.iter().filter(varied).collect();
    let at = |lag: usize| -> f64 {
        let of = |s: &Vec<f64>| s.iter().zip(s.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>();
        series.iter().copied().map(of).sum()
    };
    let variance = at(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let mut time = 1.0;
    for lag in 1..FURTHEST {
        time += 2.0 * at(lag) / variance;
        if lag as f64 >= 5.0 * time {
            break;
        }
    }
    time.max(1.0)
}
