//! What the fit leaves unexplained, in blocks of consecutive requests long enough that one says little about the next.

use super::fit::Logistic;
use super::{Mark, Probed};
use tailbound_clock::Rng;

/// Consecutive requests of one probe: for each requirement how many it judged, and by how much more met it than the fit expects, in
/// standard deviations of one request.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    sums: Vec<(f64, f64)>,
    /// Logarithm of the rate at which its requests arrived, over that of its probe.
    rush: f64,
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
    /// Cuts probes near the root. `fits`: one for each requirement, from number `first` on.
    pub fn of(near: &[&Probed], fits: &[Logistic], first: usize) -> Blocks {
        let surprises: Vec<Vec<Vec<f64>>> = near.iter().map(|p| surprises(p, fits, first)).collect();
        let of = |k: usize| -> Vec<Vec<f64>> {
            surprises.iter().map(|p| p[k].iter().copied().filter(|z| !z.is_nan()).collect()).collect()
        };
        let memory = (0..fits.len()).map(|k| memory(&of(k))).fold(1.0, f64::max);
        let total: usize = near.iter().map(|p| p.marks.len()).sum();
        let wanted = (MEMORIES * memory).max(SHORTEST as f64) as usize;
        let length = wanted.min((total / FEWEST).max(SHORTEST));
        let mut blocks: Vec<Block> = near.iter().zip(&surprises).flat_map(|(p, s)| cut(p, s, length)).collect();
        explain_by_rush(&mut blocks, fits.len());
        // Of correlations that die away over τ/2 a block of L keeps 1 − τ/2L.
        let kept = 1.0 - (memory / (2.0 * length as f64)).min(0.6);
        Blocks { blocks, length, understated: 1.0 / kept, memory }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Draws what a probe of `n` requests might leave unexplained, for each requirement: standard deviations of one request, in all.
    pub fn draw(&self, n: usize, rng: &mut Rng) -> Vec<f64> {
        let pieces = (n as f64 / self.length as f64).round().max(1.0) as usize;
        let mut sums = vec![(0.0, 0.0); self.blocks[0].sums.len()];
        for _ in 0..pieces {
            let block = &self.blocks[rng.below(self.blocks.len() as u64) as usize];
            for (sum, own) in sums.iter_mut().zip(&block.sums) {
                *sum = (sum.0 + own.0, sum.1 + own.1);
            }
        }
        // Whole blocks are a little more or less than the probe: their variance is scaled to its length.
        let scale = libm::sqrt(n as f64 / (pieces * self.length) as f64);
        sums.into_iter().map(|(_, sum)| sum * scale).collect()
    }
}

/// For each requirement, each request's met or not less the fit's expectation, in its standard deviations; NaN where it is not judged.
fn surprises(probed: &Probed, fits: &[Logistic], first: usize) -> Vec<Vec<f64>> {
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
    fits.iter().enumerate().map(of).collect()
}

fn cut(probed: &Probed, surprises: &[Vec<f64>], length: usize) -> Vec<Block> {
    let whole = probed.arrived(&probed.marks);
    let n = surprises[0].len();
    let pieces = ((n as f64 / length as f64).round() as usize).max(1);
    let of = |i: usize| {
        let sum = |all: &Vec<f64>| {
            let own = all[i * n / pieces..(i + 1) * n / pieces].iter().filter(|z| !z.is_nan());
            own.fold((0.0, 0.0), |(count, sum), z| (count + 1.0, sum + z))
        };
        let own = probed.arrived(&probed.marks[i * n / pieces..(i + 1) * n / pieces]);
        let rush = own.zip(whole).map_or(0.0, |(own, whole)| libm::log(own / whole));
        Block { sums: surprises.iter().map(sum).collect(), rush }
    };
    (0..pieces).map(of).collect()
}

/// Takes off what comes of a block's arrivals being more or fewer than its probe's: over a probe that evens out, and the fit goes by the
/// probe's own rate.
fn explain_by_rush(blocks: &mut [Block], requirements: usize) {
    for k in 0..requirements {
        let (mut zd, mut dd) = (0.0, 0.0);
        for block in blocks.iter() {
            let (n, sum) = block.sums[k];
            zd += sum * block.rush;
            dd += n * block.rush * block.rush;
        }
        let slope = if dd > 0.0 { zd / dd } else { 0.0 };
        for block in blocks.iter_mut() {
            block.sums[k].1 -= slope * block.rush * block.sums[k].0;
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
