use crate::describe::burstiness;
use serde::{Deserialize, Serialize};
use tailbound_clock::{Rng, Seed};

const NS: f64 = 1e9;
/// Cells per window in the profile; every level below splits in ten.
const SHARES: usize = 6;
const SPLIT: usize = 10;
/// From this many arrivals on, it is no accident where in a cell they begin and end.
const CLEAR: usize = 5;
/// From this many arrivals in a window on, an empty sixth is no accident (chance: 6 %).
const CLOSED: u32 = 15;
/// The levels end at cells of about this many nanoseconds.
const FINEST: f64 = 1e6;

/// Arrivals with the dispersion of a trace at every scale: the trace's own profile of counts per window (what a client sends
/// when), and inside it random splits, each as uneven as the trace's.
///
/// Per window a Poisson number is drawn around the profile; it is shared out over the window's six parts by their profile, and
/// from there down by Dirichlet-multinomial tenths to a millisecond. Since the draws add noise of their own, both profiles are
/// drawn in towards their means by as much as makes the variance of the result the trace's. Silent windows stay silent, and so do
/// silent sixths of busy windows. How often neighbouring cells are alike is found by trial, so that the gap CV comes out too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cascade {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Arrivals in each sixth of each window; six entries a window.
    pub profile: Vec<u32>,
    /// Where arrivals begin in each sixth that follows a silent one, and where they end in each that precedes one, in 255ths of
    /// the sixth, so that silences keep their length. (0, 255) elsewhere.
    pub extent: Vec<(u8, u8)>,
    /// How much of the windows' deviation from their mean is kept, 0 to 1.
    pub keep_windows: f64,
    /// How much of the sixths' deviation is kept, 0 to 1.
    pub keep_shares: f64,
    /// Per level below, coarse to fine: the intra-class correlation of the split, 0 (even chances) to 1 (all in one cell).
    pub clumping: Vec<f64>,
    /// The share of splits whose cells are put in order of size, which makes bursts and silences longer than their cells.
    pub adjacency: f64,
}

impl Cascade {
    /// Learns from ascending arrival times in nanoseconds since some origin, over `span_ns` from it. Windows are a minute, or ten
    /// (a hundred …) for sparse traffic, so that they hold twenty arrivals on average.
    pub fn fit(times: &[i64], span_ns: i64) -> Cascade {
        let mut window = 60.0 * NS;
        while (times.len() as f64) * window < 20.0 * span_ns as f64 && window * 10.0 <= span_ns as f64 {
            window *= 10.0;
        }
        let cell = window / SHARES as f64;
        let windows = ((span_ns as f64 / window) as usize + 1).max(1);
        let mut profile = vec![0u32; windows * SHARES];
        let mut extent = vec![(0, 255); windows * SHARES];
        for group in times.chunk_by(|a, b| index(*a, cell) == index(*b, cell)) {
            let i = index(group[0], cell) as usize;
            let Some(n) = profile.get_mut(i) else { continue };
            *n = group.len() as u32;
            if let Some(clear) = clear_extent(group, cell) {
                extent[i] = clear;
            }
        }
        at_silences(&profile, &mut extent);
        let (keep_windows, keep_shares) = (keep_windows(&profile), keep_shares(&profile));
        let clumping = clumping(&unfolded(times, cell, &extent), cell);
        let mut cascade =
            Cascade { window_s: window / NS, keep_windows, keep_shares, clumping, adjacency: 0.0, profile, extent };
        cascade.adjacency = cascade.find_adjacency(times, span_ns);
        cascade
    }

    /// By trial draws from a fixed seed: the adjacency at which the mean gap CV is the trace's, interpolated.
    fn find_adjacency(&self, times: &[i64], span_ns: i64) -> f64 {
        let Some(want) = burstiness(times).gap_cv else { return 0.0 };
        let span_s = span_ns as f64 / NS;
        // A few thousand gaps settle a mean CV; long traces need no more draws than one.
        let draws = (40_000 / times.len().max(1)).clamp(1, 10);
        let mean_cv = |adjacency: f64| {
            let trial = Cascade { adjacency, ..self.clone() };
            let mut rng = Seed(0).stream("fit.adjacency");
            let cvs = (0..draws).filter_map(|_| burstiness(&trial.draw(span_s, span_s, 1.0, &mut rng)).gap_cv);
            let (n, sum) = cvs.fold((0, 0.0), |(n, sum), cv| (n + 1, sum + cv));
            if n > 0 { sum / f64::from(n) } else { want }
        };
        let (mut low, mut low_cv) = (0.0, mean_cv(0.0));
        for step in 1..=4 {
            if low_cv >= want {
                return low;
            }
            let high = f64::from(step) / 4.0;
            let high_cv = mean_cv(high);
            if high_cv >= want {
                return low + (high - low) * (want - low_cv) / (high_cv - low_cv);
            }
            (low, low_cv) = (high, high_cv);
        }
        1.0
    }

    /// Draws arrival times in nanoseconds over `duration_s`, ascending; the profile is repeated as often as needed and its rates
    /// multiplied by `rate_scale`. `span_s` is the trace's own length: the profile's last window is cut to it.
    pub fn draw(&self, span_s: f64, duration_s: f64, rate_scale: f64, rng: &mut Rng) -> Vec<i64> {
        let mut out = Vec::new();
        let windows = self.profile.len() / SHARES;
        let mean = self.mean_of_active();
        let mut start = 0.0;
        while start < duration_s {
            for w in 0..windows {
                let from = start + w as f64 * self.window_s;
                if from >= duration_s || from >= start + span_s {
                    break;
                }
                let counts = &self.profile[w * SHARES..(w + 1) * SHARES];
                let n: u32 = counts.iter().sum();
                if n > 0 {
                    let expected = rate_scale * (mean + self.keep_windows * (f64::from(n) - mean));
                    self.window(from * NS, w * SHARES, poisson(expected.max(0.0), rng), rng, &mut out);
                }
            }
            start += span_s.max(self.window_s.min(1.0));
        }
        let end = (duration_s * NS) as i64;
        out.retain(|at| *at < end);
        out.sort_unstable();
        out
    }

    fn mean_of_active(&self) -> f64 {
        let active = self.profile.chunks(SHARES).map(|c| c.iter().sum::<u32>()).filter(|n| *n > 0);
        let (n, sum) = active.fold((0u32, 0.0), |(n, sum), x| (n + 1, sum + f64::from(x)));
        sum / f64::from(n.max(1))
    }

    fn window(&self, from: f64, first: usize, n: u64, rng: &mut Rng, out: &mut Vec<i64>) {
        let counts = &self.profile[first..first + SHARES];
        let total: u32 = counts.iter().sum();
        let open = open_cells(counts);
        let even = (1.0 - self.keep_shares) / open as f64;
        // What is not kept goes to the open sixths only: one arrival astray would split a long silence, which the gap CV rests on.
        let share = |c: &u32| match c {
            0 if open < SHARES => 0.0,
            c => self.keep_shares * f64::from(*c) / f64::from(total) + even,
        };
        let weights: Vec<f64> = counts.iter().map(share).collect();
        let cell = self.window_s * NS / SHARES as f64;
        for (i, k) in multinomial(n, &weights, rng).into_iter().enumerate() {
            let (begin, end) = self.extent.get(first + i).copied().unwrap_or((0, 255));
            let begin = f64::from(begin) / 255.0;
            let length = f64::from(end) / 255.0 - begin;
            self.split(from + (i as f64 + begin) * cell, length * cell, k, 0, rng, out);
        }
    }

    fn split(&self, from: f64, length: f64, n: u64, level: usize, rng: &mut Rng, out: &mut Vec<i64>) {
        if n == 0 {
            return;
        }
        let clumping = self.clumping.get(level).copied();
        let (Some(clumping), 2..) = (clumping, n) else {
            out.extend((0..n).map(|_| (from + length * rng.unit()) as i64));
            return;
        };
        let cell = length / SPLIT as f64;
        let mut cells = multinomial(n, &weights(clumping, rng), rng);
        if self.adjacency > 0.0 && rng.unit() < self.adjacency {
            cells.sort_unstable();
            if rng.below(2) == 0 {
                cells.reverse();
            }
        }
        for (i, k) in cells.into_iter().enumerate() {
            self.split(from + i as f64 * cell, cell, k, level + 1, rng, out);
        }
    }
}

/// Poisson noise adds the mean to the variance of the (active) windows: keep s of the deviation, s² var + mean = var.
fn keep_windows(profile: &[u32]) -> f64 {
    let counts: Vec<f64> =
        profile.chunks(SHARES).map(|c| f64::from(c.iter().sum::<u32>())).filter(|n| *n > 0.0).collect();
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n.max(1.0);
    let var = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / n.max(1.0);
    if var > mean { libm::sqrt(1.0 - mean / var) } else { 0.0 }
}

/// The cell of these arrivals as far as they fill it: from first to last, and one mean gap further on either side.
fn clear_extent(group: &[i64], cell: f64) -> Option<(u8, u8)> {
    let (first, last) = (*group.first()? as f64 / cell, *group.last()? as f64 / cell);
    if group.len() < CLEAR {
        return None;
    }
    let start = libm::floor(first);
    let margin = (last - first) / (group.len() - 1) as f64;
    let (begin, end) = ((first - start - margin).max(0.0), (last - start + margin).min(1.0));
    Some(((begin * 255.0) as u8, libm::ceil(end * 255.0) as u8))
}

/// Keeps only those edges of cells that are edges of silences.
fn at_silences(profile: &[u32], extent: &mut [(u8, u8)]) {
    for (i, (begin, end)) in extent.iter_mut().enumerate() {
        if i == 0 || profile[i - 1] > 0 {
            *begin = 0;
        }
        if profile.get(i + 1).is_none_or(|next| *next > 0) {
            *end = 255;
        }
    }
}

/// Cells that can have arrivals. An empty sixth of a busy window stays empty.
fn open_cells(counts: &[u32]) -> usize {
    match counts.iter().sum::<u32>() {
        CLOSED.. => counts.iter().filter(|c| **c > 0).count(),
        _ => SHARES,
    }
}

/// Multinomial noise adds N − Σ… to the squares of the shares: keep t of the deviation so that Σ c² comes out as in the trace.
fn keep_shares(profile: &[u32]) -> f64 {
    let (mut want, mut room) = (0.0, 0.0);
    for counts in profile.chunks(SHARES) {
        let n = f64::from(counts.iter().sum::<u32>());
        let squares: f64 = counts.iter().map(|&c| f64::from(c) * f64::from(c)).sum();
        let open = open_cells(counts) as f64;
        want += squares - n - n * (n - 1.0) / open;
        if n > 0.0 {
            room += n * (n - 1.0) * (squares / (n * n) - 1.0 / open);
        }
    }
    if want > 0.0 && room > 0.0 { libm::sqrt(want / room).min(1.0) } else { 0.0 }
}

/// The arrivals with each cut cell stretched to its full length: the splits below a sixth are learned on what they will split.
fn unfolded(times: &[i64], cell: f64, extent: &[(u8, u8)]) -> Vec<i64> {
    let unfold = |at: &i64| {
        let i = index(*at, cell) as usize;
        let (begin, end) = extent.get(i).copied().unwrap_or((0, 255));
        let part = (*at as f64 / cell - i as f64) * 255.0 - f64::from(begin);
        let part = part / (f64::from(end) - f64::from(begin)).max(1.0);
        ((i as f64 + part.clamp(0.0, 0.999_999)) * cell) as i64
    };
    times.iter().map(unfold).collect()
}

/// The intra-class correlation of each split in ten, by the method of moments: for a Dirichlet-multinomial
/// E[Σ n²] = Σ N(1 − 1/m)(1 + (N − 1)ρ) + N²/m.
fn clumping(times: &[i64], mut parent: f64) -> Vec<f64> {
    let m = SPLIT as f64;
    let mut out = Vec::new();
    while parent > FINEST {
        let cell = parent / m;
        let (mut want, mut room) = (0.0, 0.0);
        for group in times.chunk_by(|a, b| index(*a, parent) == index(*b, parent)) {
            let n = group.len() as f64;
            let cells = group.chunk_by(|a, b| index(*a, cell) == index(*b, cell));
            let squares: f64 = cells.map(|c| (c.len() * c.len()) as f64).sum();
            want += squares - n * (1.0 - 1.0 / m) - n * n / m;
            room += n * (n - 1.0) * (1.0 - 1.0 / m);
        }
        out.push(if room > 0.0 { (want / room).clamp(0.0, 0.999) } else { 0.0 });
        parent = cell;
    }
    out
}

fn index(at: i64, cell: f64) -> u64 {
    (at as f64 / cell) as u64
}

/// Weights of a symmetric Dirichlet with that intra-class correlation: concentration (1/ρ − 1)/m each.
fn weights(clumping: f64, rng: &mut Rng) -> Vec<f64> {
    if clumping <= 0.0 {
        return vec![1.0; SPLIT];
    }
    let shape = (1.0 / clumping - 1.0) / SPLIT as f64;
    let mut weights: Vec<f64> = (0..SPLIT).map(|_| rng.gamma(shape)).collect();
    if weights.iter().sum::<f64>() <= 0.0 {
        // Shapes near zero underflow: then one cell has it all.
        weights[rng.below(SPLIT as u64) as usize] = 1.0;
    }
    weights
}

fn multinomial(n: u64, weights: &[f64], rng: &mut Rng) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut out = vec![0; weights.len()];
    for _ in 0..n {
        let mut left = rng.unit() * total;
        let cell = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        let last = weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
        out[cell.unwrap_or(last)] += 1;
    }
    out
}

/// A Poisson number: arrivals of a unit process before `mean`.
fn poisson(mean: f64, rng: &mut Rng) -> u64 {
    let (mut n, mut at) = (0, rng.exponential());
    while at < mean {
        n += 1;
        at += rng.exponential();
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half an hour of Poisson arrivals, 5/s.
    fn half_an_hour(rng: &mut Rng) -> Vec<i64> {
        let mut at = 0.0;
        let next = || {
            at += rng.exponential() / 5.0;
            (at * NS) as i64
        };
        std::iter::repeat_with(next).take_while(|at| *at < 1_800_000_000_000).collect()
    }

    #[test]
    fn silent_parts_of_busy_windows_stay_silent() {
        let mut rng = Seed(2).stream("silence");
        let talks = |at: &i64| at % 60_000_000_000 < 20_000_000_000;
        let times: Vec<i64> = half_an_hour(&mut rng).into_iter().filter(talks).collect();
        let cascade = Cascade::fit(&times, 1_800_000_000_000);
        // The two open sixths are alike but for chance, which is mostly not kept.
        assert!(cascade.keep_shares < 0.9, "{cascade:?}");
        let drawn = cascade.draw(1800.0, 3600.0, 2.0, &mut rng);
        assert_eq!(drawn.iter().filter(|at| !talks(at)).count(), 0);
        let ratio = drawn.len() as f64 / times.len() as f64;
        assert!((ratio - 4.0).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn a_poisson_process_stays_one() {
        let mut rng = Seed(1).stream("poisson");
        let times = half_an_hour(&mut rng);
        let cascade = Cascade::fit(&times, 1_800_000_000_000);
        assert!(cascade.clumping.iter().all(|c| *c < 0.01), "{cascade:?}");
        assert!(cascade.keep_shares < 0.5);
        let drawn = cascade.draw(1800.0, 3600.0, 2.0, &mut rng);
        let ratio = drawn.len() as f64 / times.len() as f64;
        assert!((ratio - 4.0).abs() < 0.1, "{ratio}");
    }
}
