//! Samples cut into stretches that may be resampled, and a figure of any choice of them.

use super::measure::Stat;
use super::series::Series;
use crate::Dist;

/// Most points at which a distribution's resampled counts are kept.
const GRID: usize = 2048;

/// One side's samples, cut.
pub(crate) struct Segments {
    /// Which run each segment belongs to.
    pub run: Vec<usize>,
    figure: Figure,
}

enum Figure {
    /// Numerator and denominator of each segment.
    Mean(Vec<(f64, f64)>),
    Percentile {
        share: f64,
        /// Values per segment.
        counts: Vec<u32>,
        grid: Vec<f64>,
        /// For each point of the grid, how many values of each segment are not above it.
        below: Vec<u32>,
    },
}

/// Units of one run.
#[derive(Clone, Copy)]
struct Stretch {
    run: usize,
    from: usize,
    until: usize,
}

impl Segments {
    /// Cuts each run into the given number of stretches of as many units each as can be.
    pub fn new(runs: &[Series], per_run: &[usize], stat: Stat) -> Segments {
        let mut run = Vec::new();
        let mut stretches: Vec<Stretch> = Vec::new();
        for (k, (series, n)) in runs.iter().zip(per_run).enumerate() {
            for s in 0..*n {
                run.push(k);
                stretches.push(Stretch { run: k, from: s * series.units() / n, until: (s + 1) * series.units() / n });
            }
        }
        let figure = match stat {
            Stat::Mean => Figure::Mean(stretches.iter().map(|s| sum_and_weight(runs, *s)).collect()),
            Stat::Percentile(p) => percentile(runs, &stretches, p),
        };
        Segments { run, figure }
    }

    pub fn len(&self) -> usize {
        self.run.len()
    }

    /// The segments of a run.
    pub fn of_run(&self, run: usize) -> std::ops::Range<usize> {
        self.run.partition_point(|r| *r < run)..self.run.partition_point(|r| *r <= run)
    }

    /// The figure without the k-th group, where each run is cut into so many groups of its segments, in order.
    pub fn without(&self, k: usize, parts: usize) -> Option<f64> {
        let group = |(i, run): (usize, &usize)| {
            let own = self.of_run(*run);
            run * parts + (i - own.start) * parts / own.len()
        };
        let times: Vec<u32> = self.run.iter().enumerate().map(|s| u32::from(group(s) != k)).collect();
        self.figure(&times)
    }

    /// The figure with each segment taken as often as `times` says; `None` if nothing is taken.
    pub fn figure(&self, times: &[u32]) -> Option<f64> {
        match &self.figure {
            Figure::Mean(parts) => {
                let (mut sum, mut weight) = (0.0, 0.0);
                for ((s, w), n) in parts.iter().zip(times) {
                    sum += s * f64::from(*n);
                    weight += w * f64::from(*n);
                }
                (weight > 0.0).then(|| sum / weight)
            }
            Figure::Percentile { share, counts, grid, below } => {
                let dot = |row: &[u32]| row.iter().zip(times).map(|(c, n)| u64::from(*c) * u64::from(*n)).sum::<u64>();
                let last = dot(counts).checked_sub(1)?;
                let at = |rank: u64| {
                    let columns = counts.len();
                    let (mut low, mut high) = (0, grid.len() - 1);
                    while low < high {
                        let middle = (low + high) / 2;
                        let enough = dot(&below[middle * columns..(middle + 1) * columns]) > rank;
                        if enough { high = middle } else { low = middle + 1 }
                    }
                    grid[low]
                };
                let position = share * last as f64;
                let floor = position.floor();
                let (low, fraction) = (at(floor as u64), position - floor);
                if fraction == 0.0 {
                    return Some(low);
                }
                Some(low + (at((floor as u64 + 1).min(last)) - low) * fraction)
            }
        }
    }
}

fn sum_and_weight(runs: &[Series], stretch: Stretch) -> (f64, f64) {
    let series = &runs[stretch.run];
    let (mut sum, mut n) = (0.0, 0usize);
    for unit in stretch.from..stretch.until {
        sum += series.unit(unit).iter().sum::<f64>();
        n += series.unit(unit).len();
    }
    (sum, n as f64 * series.weight())
}

fn percentile(runs: &[Series], stretches: &[Stretch], p: f64) -> Figure {
    let values = |s: Stretch| (s.from..s.until).flat_map(move |unit| runs[s.run].unit(unit)).copied();
    let all = Dist::new(stretches.iter().copied().flat_map(values).collect());
    let share = p / 100.0;
    let grid = grid(all.sorted(), share, stretches.len());
    let mut below = vec![0u32; grid.len() * stretches.len()];
    let mut counts = Vec::with_capacity(stretches.len());
    for (column, stretch) in stretches.iter().copied().enumerate() {
        let mut n = 0;
        for value in values(stretch) {
            n += 1;
            let point = grid.partition_point(|g| *g < value);
            if point < grid.len() {
                below[point * stretches.len() + column] += 1;
            }
        }
        counts.push(n);
    }
    for i in stretches.len()..below.len() {
        below[i] += below[i - stretches.len()];
    }
    Figure::Percentile { share, counts, grid, below }
}

/// Every value where they are few; else half of the points over the whole range of ranks, and half where resampled percentiles can lie:
/// were all values of a segment on the same side of it, its rank would have a standard deviation of √(p(1 − p)/segments).
fn grid(sorted: &[f64], share: f64, segments: usize) -> Vec<f64> {
    let last = sorted.len().saturating_sub(1) as f64;
    let mut grid: Vec<f64> = if sorted.len() <= GRID {
        sorted.to_vec()
    } else {
        let reach = 4.0 * (share * (1.0 - share) / segments.max(1) as f64).sqrt();
        let half = GRID / 2 - 1;
        let over = |from: f64, until: f64| {
            (0..=half).map(move |i| from + (until - from) * i as f64 / half as f64).map(|rank| rank.clamp(0.0, 1.0))
        };
        let ranks = over(0.0, 1.0).chain(over(share - reach, share + reach));
        ranks.map(|rank| sorted[(rank * last) as usize]).collect()
    };
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    grid
}
