//! What the arrivals themselves explain of attainment, taken off it (a control variate).
//!
//! Two runs at one load differ mostly because their gaps between arrivals, and their requests' sizes, happened to come as they did. The
//! client knows both. So a toy is fed with them: one server, first come first served, whose time is always the same, or goes with the
//! tokens of the prompt or of the output. By how much the toy did better or worse than it does on average, with gaps drawn anew from the law they
//! came from and sizes from those that were seen, has a mean of zero whatever the system is; as much of it as shows in the system's own
//! attainment (a regression over blocks of requests) is taken off. The toy need not resemble the system: where it does not, the
//! regression says so, and nothing is changed.
//!
//! Control variates: Asmussen and Glynn, *Stochastic Simulation*, chapter V.2.

use super::blocks::{Surprises, regression};
use super::{End, Mark, Probed, Spec};
use tailbound_clock::Rng;

/// How busy the toy is at the root: what may resemble a system is tried.
const BUSY: [f64; 7] = [0.4, 0.55, 0.7, 0.8, 0.88, 0.94, 0.98];
/// Probes drawn anew over which the toy's average is taken: they add a fiftieth to the variance that is taken off.
const ORDERS: usize = 50;
/// But no more requests than this, and no fewer probes than that: long ones vary less.
const ORDERED: usize = 1_000_000;
const FEWEST_ORDERS: usize = 8;
/// A toy that explains less of the variance between blocks is left out, and so is one that explains no more than chance would of so few
/// blocks.
const EXPLAINS: f64 = 0.1;
const CHANCE: f64 = 8.0;
/// Gaps that are drawn from their law.
const GAPS: usize = 65_536;
/// Parts of the sizes that were seen, by which it is told how well they tell the law they came from.
const PARTS: usize = 16;
/// Of shorter probes nothing is taken off.
const FEWEST: usize = 100;

/// By what a request takes of the toy's time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Alike,
    Prompt,
    Output,
}

impl Size {
    fn of(self, mark: &Mark) -> Option<f64> {
        match self {
            Size::Alike => Some(1.0),
            Size::Prompt => mark.prompt.map(f64::from),
            Size::Output => mark.output.map(f64::from),
        }
    }
}

/// A probe as the toy sees it.
struct Fed {
    /// Its arrivals a second, as a share of the root's.
    rate: f64,
    /// Gaps before its requests, in their mean.
    gaps: Vec<f64>,
    /// What they take of the toy, in the mean of all.
    sizes: Vec<f64>,
    judged: Vec<u32>,
}

/// What the toys show: each probe's surprises by requirement and mark, and how much of them shows in the system.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// One for each probe; empty where nothing is taken off.
    pub toys: Vec<Surprises>,
    /// By requirement; 0 where no toy explains anything.
    pub slopes: Vec<f64>,
    /// By requirement: how far the toy's average may be off, since only so many sizes were seen, in standard deviations of one request.
    pub unsure: Vec<f64>,
}

impl Control {
    /// `surprises`: what the fit leaves unexplained of each probe; `near`: the probes near the root, which `blocks` are cut from.
    pub fn of(
        spec: &Spec,
        probes: &[&Probed],
        near: &[usize],
        root: f64,
        surprises: &[Surprises],
        block: usize,
    ) -> Control {
        let mut control = Control::none(probes.len(), spec.requirements.len());
        let whole = |i: &&usize| probes[**i].open && probes[**i].end == End::Whole && probes[**i].marks.len() >= FEWEST;
        let near: Vec<usize> = near.iter().filter(whole).copied().collect();
        let Some(burstiness) = spec.burstiness.filter(|_| !near.is_empty()) else { return control };
        let mut rng = spec.seed.stream("capacity-toys");
        let gaps: Vec<f64> = (0..GAPS).map(|_| rng.gamma(burstiness) / burstiness).collect();
        let sizes = [Size::Alike, Size::Prompt, Size::Output];
        let fed: Vec<Vec<Fed>> = sizes.iter().filter_map(|&size| feed(probes, &near, root, size)).collect();
        for k in 0..spec.requirements.len() {
            let share = spec.requirements[k].share;
            let own: Vec<&[f64]> = near.iter().map(|&i| surprises[i].of(k)).collect();
            let Some(best) = best(&fed, k, share, &own, block) else { continue };
            let (toys, unsure) = best.against_its_average(k, share, &gaps, &mut rng);
            let Some((slope, _, _)) = regression(&own, &toys, block).filter(|r| r.0 > 0.0) else { continue };
            (control.slopes[k], control.unsure[k]) = (slope, unsure);
            for (&i, toy) in near.iter().zip(toys) {
                control.toys[i].set(k, toy);
            }
        }
        control
    }

    /// Nothing is taken off.
    pub fn none(probes: usize, requirements: usize) -> Control {
        Control {
            toys: vec![Surprises::default(); probes],
            slopes: vec![0.0; requirements],
            unsure: vec![0.0; requirements],
        }
    }

    /// The part of a probe's surprises that is taken off, in all.
    pub fn luck(&self, probe: usize, requirement: usize) -> f64 {
        self.slopes[requirement] * self.toys[probe].sum(requirement)
    }

    /// Whether anything of a probe is taken off.
    pub fn steers(&self, probe: usize) -> bool {
        (0..self.slopes.len()).any(|k| !self.toys[probe].of(k).is_empty())
    }
}

/// What the toy is fed with; `None` if a size is not known, or they are all alike and that was tried.
fn feed(probes: &[&Probed], near: &[usize], root: f64, size: Size) -> Option<Vec<Fed>> {
    let sizes: Vec<Vec<f64>> =
        near.iter().map(|&i| probes[i].marks.iter().map(|m| size.of(m)).collect()).collect::<Option<_>>()?;
    let (count, total) = sizes.iter().flatten().fold((0.0, 0.0), |(n, sum), s| (n + 1.0, sum + s));
    let mean = total / count;
    let varied = sizes.iter().flatten().any(|s| libm::fabs(s - mean) > 0.01 * mean);
    if mean <= 0.0 || (size != Size::Alike && !varied) {
        return None;
    }
    let fed = near.iter().zip(sizes).map(|(&i, sizes)| {
        let marks = &probes[i].marks;
        let seconds: Vec<f64> = marks.windows(2).map(|w| w[1].at.since(w[0].at).secs()).collect();
        let gap = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let gaps = std::iter::once(1.0).chain(seconds.iter().map(|s| s / gap)).collect();
        let sizes = sizes.iter().map(|s| s / mean).collect();
        (gap > 0.0).then_some(Fed {
            rate: 1.0 / gap / root,
            gaps,
            sizes,
            judged: marks.iter().map(|m| m.judged).collect(),
        })
    });
    fed.collect()
}

/// A toy that was fed with the probes near the root.
struct Toy<'a> {
    fed: &'a [Fed],
    busy: f64,
    /// What it explains of the variance between blocks.
    explains: f64,
}

/// The toy that explains most of what is unexplained so far.
fn best<'a>(fed: &'a [Vec<Fed>], k: usize, share: f64, own: &[&[f64]], block: usize) -> Option<Toy<'a>> {
    let toys = fed.iter().flat_map(|fed| BUSY.iter().filter_map(move |&busy| Toy::of(fed, busy, k, share, own, block)));
    toys.max_by(|a, b| a.explains.total_cmp(&b.explains))
}

impl<'a> Toy<'a> {
    fn of(fed: &'a [Fed], busy: f64, k: usize, share: f64, own: &[&[f64]], block: usize) -> Option<Toy<'a>> {
        let took: Vec<Vec<f64>> = fed.iter().map(|f| serve(&f.gaps, &f.sizes, busy * f.rate)).collect();
        let bit = 1u32 << k;
        let judged = |(f, took): (&Fed, &Vec<f64>)| -> Vec<f64> {
            took.iter().zip(&f.judged).filter(|(_, judged)| **judged & bit != 0).map(|(t, _)| *t).collect()
        };
        let times: Vec<Vec<f64>> = fed.iter().zip(&took).map(judged).collect();
        let limit = limit(times.concat(), share)?;
        // What each probe met will do for the regression: what is constant in a probe is told apart later.
        let of = |((f, took), times): ((&Fed, &Vec<f64>), &Vec<f64>)| {
            surprise(took, &f.judged, bit, limit, met(times, limit).unwrap_or(0.0))
        };
        let surprises: Vec<Vec<f64>> = fed.iter().zip(&took).zip(&times).map(of).collect();
        let (slope, explains, blocks) = regression(own, &surprises, block)?;
        (slope > 0.0 && explains > EXPLAINS && explains * blocks as f64 > CHANCE).then_some(Toy { fed, busy, explains })
    }

    /// Each probe's surprises, against what the toy does on average, with the limit that on average the share of requests meets at the
    /// root; and how far that average may be off, in standard deviations of one request.
    fn against_its_average(&self, k: usize, share: f64, gaps: &[f64], rng: &mut Rng) -> (Vec<Vec<f64>>, f64) {
        let bit = 1u32 << k;
        let seen = self.fed.iter().flat_map(|f| f.sizes.iter().copied().zip(f.judged.iter().copied())).collect();
        let law = Law { gaps, requests: seen };
        let length = self.fed.iter().map(|f| f.gaps.len()).max().unwrap_or(0);
        let orders = (ORDERED / law.requests.len()).clamp(FEWEST_ORDERS, ORDERS);
        // Of none judged there is nothing to take off.
        let limit = limit(law.times(length, orders, self.busy, bit, rng), share).unwrap_or(0.0);
        let of = |f: &Fed| {
            let times = law.times(f.gaps.len(), orders, self.busy * f.rate, bit, rng);
            surprise(
                &serve(&f.gaps, &f.sizes, self.busy * f.rate),
                &f.judged,
                bit,
                limit,
                met(&times, limit).unwrap_or(1.0),
            )
        };
        let toys = self.fed.iter().map(of).collect();
        (toys, law.unsure(length, orders, self.busy, bit, limit, rng) / libm::sqrt(share * (1.0 - share)))
    }
}

/// The law of gaps, as many drawn from it, and all requests that were seen: their sizes, and who judges them.
struct Law<'a> {
    gaps: &'a [f64],
    requests: Vec<(f64, u32)>,
}

impl Law<'_> {
    /// How long judged requests are with the toy, in so many probes of `n` requests drawn anew, in as long a time.
    fn times(&self, n: usize, orders: usize, busy: f64, bit: u32, rng: &mut Rng) -> Vec<f64> {
        let mut all = Vec::with_capacity(n * orders);
        for _ in 0..orders {
            let mut gaps: Vec<f64> = (0..n).map(|_| self.gaps[rng.below(self.gaps.len() as u64) as usize]).collect();
            let mean = gaps.iter().sum::<f64>() / n as f64;
            gaps.iter_mut().for_each(|gap| *gap /= mean);
            let drawn = |_| self.requests[rng.below(self.requests.len() as u64) as usize];
            let requests: Vec<(f64, u32)> = (0..n).map(drawn).collect();
            let sizes: Vec<f64> = requests.iter().map(|r| r.0).collect();
            let judged = serve(&gaps, &sizes, busy).into_iter().zip(&requests).filter(|(_, r)| r.1 & bit != 0);
            all.extend(judged.map(|(took, _)| took));
        }
        all
    }

    /// Standard deviation of the toy's average, that of the sizes having been seen: parts of them are compared, each twice, so that what
    /// drawing adds is told apart from what the sizes do.
    fn unsure(&self, n: usize, orders: usize, busy: f64, bit: u32, limit: f64, rng: &mut Rng) -> f64 {
        if self.requests.iter().all(|r| r.0 == self.requests[0].0) {
            return 0.0;
        }
        let half = orders.div_ceil(2 * PARTS) + 1;
        let of = |part: usize| {
            let requests: Vec<(f64, u32)> = self.requests.iter().skip(part).step_by(PARTS).copied().collect();
            let law = Law { gaps: self.gaps, requests };
            let once = |rng: &mut Rng| met(&law.times(n, half, busy, bit, rng), limit);
            if law.requests.is_empty() { None } else { Some((once(rng)?, once(rng)?)) }
        };
        let parts: Vec<(f64, f64)> = (0..PARTS).filter_map(of).collect();
        let count = parts.len() as f64;
        let (a, b) = parts.iter().fold((0.0, 0.0), |(a, b), p| (a + p.0 / count, b + p.1 / count));
        let common = parts.iter().map(|p| (p.0 - a) * (p.1 - b)).sum::<f64>() / (count - 1.0).max(1.0);
        libm::sqrt(common.max(0.0) / count.max(1.0))
    }
}

/// What the share of these is within; `None` of nothing.
fn limit(mut times: Vec<f64>, share: f64) -> Option<f64> {
    let at = ((share * times.len() as f64) as usize).min(times.len().checked_sub(1)?);
    Some(*times.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// The share within the limit; `None` of nothing.
fn met(times: &[f64], limit: f64) -> Option<f64> {
    (!times.is_empty()).then(|| times.iter().filter(|t| **t <= limit).count() as f64 / times.len() as f64)
}

/// How long each request is with the toy, in the mean of its service. Gaps in their mean, sizes in theirs; `busy`: service over gap.
fn serve(gaps: &[f64], sizes: &[f64], busy: f64) -> Vec<f64> {
    let mut left = 0.0f64;
    let took = gaps.iter().zip(sizes).map(|(gap, size)| {
        left = (left - gap / busy).max(0.0) + size;
        left
    });
    took.collect()
}

/// Each judged request's met or not, less what is expected, in standard deviations; all zero where that tells nothing.
fn surprise(took: &[f64], judged: &[u32], bit: u32, limit: f64, expected: f64) -> Vec<f64> {
    let deviation = libm::sqrt(expected * (1.0 - expected));
    let of = |(took, judged): (&f64, &u32)| match judged & bit {
        0 => f64::NAN,
        _ if deviation < 1e-3 => 0.0,
        _ => (f64::from(u8::from(*took <= limit)) - expected) / deviation,
    };
    took.iter().zip(judged).map(of).collect()
}
