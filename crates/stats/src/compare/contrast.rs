//! One side against the first: every measure, its effect, and what it rests on.

use super::effect::{Effect, Estimate, jackknife};
use super::measure::{Measure, Scale, Stat};
use super::segments::Segments;
use super::series::{Series, block_length};
use super::{Claim, Design, Finding, Pairing, ROUNDS_THAT_TELL, Run, Side};
use crate::Dist;
use crate::binomial::order_ranks;
use tailbound_record::Row;

/// Most segments of a side: more make intervals no better.
const MOST_SEGMENTS: usize = 200;
/// Parts, of all of a side's runs together, that stand in for rounds where there are too few.
const PARTS: usize = 5;
/// Fewest segments of a side whose spread says something.
const FEWEST_SEGMENTS: usize = 8;

/// One side against the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// Which side, by its place in the list.
    pub side: usize,
    /// What was paired. Requests are, only where both sides have the same ones.
    pub pairing: Pairing,
    /// Rounds, or, unpaired, the runs of the side that has fewer.
    pub rounds: usize,
    /// The primary figure first.
    pub findings: Vec<Finding>,
}

impl Contrast {
    /// The figure that decides.
    pub fn primary(&self) -> &Finding {
        &self.findings[0]
    }

    /// Whether the intervals know what differs from run to run.
    pub fn knows_runs(&self) -> bool {
        self.rounds >= ROUNDS_THAT_TELL
    }
}

pub(super) fn contrast(sides: &[Side<'_>], other: usize, design: &Design) -> Contrast {
    let (a, b) = (&sides[0], &sides[other]);
    let (rows_a, rows_b) = (ordered(a), ordered(b));
    let pairing = possible(design.pairing, &rows_a, &rows_b);
    let measures =
        [design.primary].into_iter().chain(design.secondary.iter().copied().filter(|m| *m != design.primary));
    let findings = measures.map(|measure| {
        let one = take(measure, &rows_a, &a.runs);
        let two = take(measure, &rows_b, &b.runs);
        finding(measure, one.as_deref(), two.as_deref(), pairing, other, design)
    });
    let findings = findings.collect();
    Contrast { side: other, pairing, rounds: a.runs.len().min(b.runs.len()), findings }
}

fn ordered<'a>(side: &Side<'a>) -> Vec<Vec<&'a Row>> {
    let by_number = |run: &Run<'a>| {
        let mut rows: Vec<&Row> = run.rows.iter().collect();
        rows.sort_by_key(|row| row.id);
        rows
    };
    side.runs.iter().map(by_number).collect()
}

/// Rounds need as many runs on both sides; pairs of requests the same numbers in them.
fn possible(wanted: Pairing, a: &[Vec<&Row>], b: &[Vec<&Row>]) -> Pairing {
    if a.len() != b.len() {
        return Pairing::None;
    }
    let same = |(a, b): (&Vec<&Row>, &Vec<&Row>)| a.iter().map(|r| r.id).eq(b.iter().map(|r| r.id));
    if wanted == Pairing::Requests && !a.iter().zip(b).all(same) {
        return Pairing::Rounds;
    }
    wanted
}

/// The series of every run; `None` if any run has no such figure.
fn take(measure: Measure, rows: &[Vec<&Row>], runs: &[Run<'_>]) -> Option<Vec<Series>> {
    rows.iter().zip(runs).map(|(rows, run)| measure.series(rows, run.facts)).collect()
}

fn finding(
    measure: Measure,
    a: Option<&[Series]>,
    b: Option<&[Series]>,
    pairing: Pairing,
    other: usize,
    design: &Design,
) -> Finding {
    let stat = match measure {
        Measure::Latency(_, stat) => stat,
        _ => Stat::Mean,
    };
    let mut finding = Finding::new(measure, a.and_then(|a| whole(a, stat)), b.and_then(|b| whole(b, stat)));
    let (Some(a), Some(b), Some((was, is))) = (a, b, finding.a.zip(finding.b)) else { return finding };
    if let Stat::Percentile(p) = stat
        && (too_few(a, p) || too_few(b, p))
    {
        finding.claim = Claim::TooFew;
        return finding;
    }
    if measure.scale() == Scale::Ratio && !(was > 0.0 && is > 0.0) {
        return finding;
    }
    let paired = pairing == Pairing::Requests;
    let block = if paired { paired_block(a, b, was, is, stat) } else { block(a, was, stat).max(block(b, is, stat)) };
    let (mut cut_a, mut cut_b) = (cut(a, block), cut(b, block));
    if pairing != Pairing::None {
        cut_a = cut_a.iter().zip(&cut_b).map(|(a, b)| *a.min(b)).collect();
        cut_b.clone_from(&cut_a);
    }
    let (one, two) = (Segments::new(a, &cut_a, stat), Segments::new(b, &cut_b, stat));
    finding.block = block;
    finding.segments = one.len().min(two.len());
    if finding.segments < FEWEST_SEGMENTS {
        finding.claim = Claim::TooFew;
        return finding;
    }

    let ratio = |a: f64, b: f64| libm::log(b / a);
    let difference = |a: f64, b: f64| b - a;
    let floor = if measure.scale() == Scale::Difference { least_error(a, b, paired) } else { 0.0 };
    let draws = resampled(&one, &two, pairing, (measure, other), design);
    let effect = |of: &dyn Fn(f64, f64) -> f64, floor: f64| {
        let usable = draws.iter().filter(|(a, b)| measure.scale() == Scale::Difference || (*a > 0.0 && *b > 0.0));
        let replicates: Vec<f64> = usable.map(|(a, b)| of(*a, *b)).collect();
        let between = between(&one, &two, (a.len(), b.len()), pairing, (was, is), of);
        Effect::new(of(was, is), replicates, (finding.segments - 1) as f64, between, floor)
    };
    let on_difference = effect(&difference, floor);
    finding.difference = Some(on_difference.estimate(design.alpha));
    let decides = match measure.scale() {
        Scale::Difference => on_difference,
        Scale::Ratio => effect(&ratio, 0.0),
    };
    let (low, high) = decides.within(design.alpha);
    finding.within = Some(Estimate { value: decides.value, low, high });
    if measure.scale() == Scale::Ratio {
        finding.ratio = Some(decides.estimate(design.alpha).map(libm::exp));
        finding.within = finding.within.map(|within| within.map(libm::exp));
    }
    finding.p = Some(decides.p_value());
    finding.effect = Some(decides);
    finding
}

/// The figure over all runs of a side.
fn whole(runs: &[Series], stat: Stat) -> Option<f64> {
    match stat {
        Stat::Mean => {
            let weight: f64 = runs.iter().map(|run| run.values.len() as f64 * run.weight()).sum();
            (weight > 0.0).then(|| runs.iter().flat_map(|run| &run.values).sum::<f64>() / weight)
        }
        Stat::Percentile(p) => pooled(runs).percentile(p),
    }
}

fn pooled(runs: &[Series]) -> Dist {
    Dist::new(runs.iter().flat_map(|run| &run.values).copied().collect())
}

fn too_few(runs: &[Series], p: f64) -> bool {
    // Gaps of one request are one request's: what counts is how many requests there are.
    let units: usize = runs.iter().map(|run| (0..run.units()).filter(|i| !run.unit(*i).is_empty()).count()).sum();
    order_ranks(units, p / 100.0, 0.95).is_none()
}

/// Answered requests a side that a percentile (0–100) takes; `None` for more than a million.
pub fn requests_for(p: f64) -> Option<usize> {
    let enough = |n: usize| order_ranks(n, p / 100.0, 0.95).is_some();
    let (mut low, mut high) = (0, 1_000_000);
    if !enough(high) {
        return None;
    }
    while low + 1 < high {
        let middle = (low + high) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// What each unit adds to a figure, up to a factor: for means its own mean as a share of the figure, for percentiles the share of
/// its values above it.
fn influence(unit: &[f64], figure: f64, stat: Stat) -> Option<f64> {
    let n = unit.len() as f64;
    let sum: f64 = match stat {
        Stat::Mean => unit.iter().map(|v| v / figure).sum(),
        Stat::Percentile(_) => unit.iter().filter(|v| **v > figure).count() as f64,
    };
    (n > 0.0).then(|| sum / n)
}

/// The mean over runs of the length its correlations ask for.
fn block(runs: &[Series], figure: f64, stat: Stat) -> f64 {
    let of = |run: &Series| {
        let series: Vec<f64> = (0..run.units()).filter_map(|i| influence(run.unit(i), figure, stat)).collect();
        block_length(&series)
    };
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// The same of what each pair adds to the difference.
fn paired_block(a: &[Series], b: &[Series], was: f64, is: f64, stat: Stat) -> f64 {
    let of = |(a, b): (&Series, &Series)| {
        let both = |i: usize| Some(influence(b.unit(i), is, stat)? - influence(a.unit(i), was, stat)?);
        block_length(&(0..a.units()).filter_map(both).collect::<Vec<f64>>())
    };
    a.iter().zip(b).map(of).sum::<f64>() / a.len() as f64
}

/// Stretches of each run: of `block` units, but not more of them than intervals gain by.
fn cut(runs: &[Series], block: f64) -> Vec<usize> {
    let most = MOST_SEGMENTS.div_ceil(runs.len());
    runs.iter().map(|run| ((run.units() as f64 / block) as usize).clamp(1, most)).collect()
}

/// Both figures of each resampling of stretches. Pairs of stretches stay together; where only rounds are tied, a stretch of one side comes
/// with some stretch of the other's run in that round, since what the two runs share is no difference.
fn resampled(
    one: &Segments,
    two: &Segments,
    pairing: Pairing,
    (measure, other): (Measure, usize),
    design: &Design,
) -> Vec<(f64, f64)> {
    let mut rng = design.seed.numbered(&format!("compare/{measure}"), other as u64);
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let mut draws = Vec::with_capacity(design.replicates);
    for _ in 0..design.replicates {
        let (mut first, mut second) = (vec![0u32; one.len()], vec![0u32; two.len()]);
        for _ in 0..one.len() {
            let drawn = below(one.len());
            first[drawn] += 1;
            match pairing {
                Pairing::Requests => second[drawn] += 1,
                Pairing::Rounds => {
                    let tied = two.of_run(one.run[drawn]);
                    second[tied.start + below(tied.len())] += 1;
                }
                Pairing::None => {}
            }
        }
        if pairing == Pairing::None {
            (0..two.len()).for_each(|_| second[below(two.len())] += 1);
        }
        draws.extend(one.figure(&first).zip(two.figure(&second)));
    }
    draws
}

/// Standard error and degrees of freedom by leaving out rounds, or, where these aren't tied, runs of either side. Where there are too few of
/// either, long parts of runs stand in for them: they don't know what differs from run to run, but hang together less than stretches do.
fn between(
    one: &Segments,
    two: &Segments,
    (runs_a, runs_b): (usize, usize),
    pairing: Pairing,
    (was, is): (f64, f64),
    of: &dyn Fn(f64, f64) -> f64,
) -> Option<(f64, f64)> {
    let parts = match runs_a.min(runs_b) {
        ROUNDS_THAT_TELL.. => 1,
        few => PARTS.div_ceil(few),
    };
    let (groups_a, groups_b) = (runs_a * parts, runs_b * parts);
    if pairing != Pairing::None {
        let left_out = (0..groups_a).map(|k| Some(of(one.without(k, parts)?, two.without(k, parts)?)));
        let left_out = left_out.collect::<Option<Vec<f64>>>().filter(|l| l.iter().all(|v| v.is_finite()))?;
        return Some((jackknife(&left_out), groups_a as f64 - 1.0));
    }
    let left_a = (0..groups_a).map(|k| Some(of(one.without(k, parts)?, is))).collect::<Option<Vec<f64>>>()?;
    let left_b = (0..groups_b).map(|k| Some(of(was, two.without(k, parts)?))).collect::<Option<Vec<f64>>>()?;
    if left_a.iter().chain(&left_b).any(|v| !v.is_finite()) {
        return None;
    }
    let (va, vb) = (jackknife(&left_a).powi(2), jackknife(&left_b).powi(2));
    // Welch's degrees of freedom.
    let dof = (va + vb).powi(2) / (va * va / (groups_a as f64 - 1.0) + vb * vb / (groups_b as f64 - 1.0));
    Some(((va + vb).sqrt(), if dof.is_finite() { dof } else { 1.0 }))
}

/// A standard error for shares that doesn't vanish where all requests agree: Agresti and Caffo's (2000) of two shares, and of pairs
/// Agresti and Min's (2005), from the pairs that disagree.
fn least_error(a: &[Series], b: &[Series], paired: bool) -> f64 {
    let count = |runs: &[Series]| {
        let values = runs.iter().flat_map(|run| &run.values);
        (values.clone().count() as f64, values.sum::<f64>())
    };
    let ((na, xa), (nb, xb)) = (count(a), count(b));
    if paired {
        let pairs = a.iter().zip(b).flat_map(|(a, b)| (0..a.units()).map(move |i| (a.unit(i), b.unit(i))));
        let apart = pairs.filter(|(a, b)| !a.is_empty() && !b.is_empty() && a != b).count() as f64;
        return (apart + 1.0).sqrt() / (na.min(nb) + 2.0);
    }
    let part = |n: f64, x: f64| {
        let share = (x + 1.0) / (n + 2.0);
        share * (1.0 - share) / (n + 2.0)
    };
    (part(na, xa) + part(nb, xb)).sqrt()
}
