//! A comparison as its file has it: what programs read, and all that its page is made from. `docs/compare.md` says what each key is.

use super::{Compared, Side};
use serde::{Deserialize, Serialize};
use tailbound_stats::compare as stats;
use tailbound_stats::compare::Measure;

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was asked.
    pub workload: String,
    /// How the load was; empty if sides differ in it.
    pub load: String,
    /// How it was compared.
    pub design: Design,
    /// Whether every run counts.
    pub valid: bool,
    /// The sides, the one all others are compared with first.
    pub sides: Vec<SideRecord>,
    /// One for each other side.
    pub contrasts: Vec<Contrast>,
    /// The gate, if there was one.
    pub gate: Option<GateRecord>,
    /// Sentences for the reader.
    pub notes: Vec<String>,
}

/// How sides were compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The metric that decides.
    pub primary: String,
    /// What was to be paired.
    pub pairing: String,
    /// The chance of a false claim.
    pub alpha: f64,
    /// Ratios this close are the same.
    pub margin: f64,
    /// Shares this close are the same.
    pub share_margin: f64,
    /// Draws.
    pub replicates: usize,
    /// Their seed.
    pub seed: u64,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRecord {
    /// What it is called.
    pub name: String,
    /// Where or what it is.
    pub source: String,
    /// Its runs.
    pub runs: Vec<RunRecord>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1.
    pub round: usize,
    /// Its place in the order of measuring, from 1.
    pub order: Option<usize>,
    /// Where it is kept.
    pub folder: Option<String>,
    /// Requests planned.
    pub requests: usize,
    /// Requests answered whole.
    pub completed: usize,
    /// Whether it counts.
    pub valid: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

/// One side against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// The side.
    pub side: String,
    /// The first.
    pub against: String,
    /// What may be said, in words.
    pub sentence: String,
    /// What could be paired.
    pub pairing: String,
    /// Rounds.
    pub rounds: usize,
    /// Whether intervals know what differs from run to run.
    pub knows_runs: bool,
    /// The primary metric first.
    pub findings: Vec<Finding>,
    /// How the answers agree, where texts were kept.
    pub agreement: Option<Agreement>,
}

/// One figure of two sides, in its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name in flags.
    pub metric: String,
    /// Whether it decides.
    pub primary: bool,
    /// `ms`, `1/s` or `share`.
    pub unit: String,
    /// Whether less is better.
    pub lower_is_better: bool,
    /// Of the first side.
    pub a: Option<f64>,
    /// Of this side.
    pub b: Option<f64>,
    /// b / a.
    pub ratio: Option<Estimate>,
    /// b − a.
    pub difference: Option<Estimate>,
    /// The ratio, or for shares the difference, with the interval that resampling within runs gives alone.
    pub within_runs: Option<Estimate>,
    /// The chance of such a difference if there is none.
    pub p: Option<f64>,
    /// The same, allowing for the others.
    pub adjusted_p: Option<f64>,
    /// What may be said.
    pub claim: String,
    /// Whether a claimed difference is for the better.
    pub better: Option<bool>,
    /// Requests or windows that are resampled as one.
    pub block: f64,
    /// Stretches.
    pub segments: usize,
    /// It in words.
    pub sentence: String,
}

/// A figure with its interval; `None` for an end that is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: Option<f64>,
    /// From here …
    pub low: Option<f64>,
    /// … to here.
    pub high: Option<f64>,
}

/// How answers agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Pairs of texts.
    pub pairs: usize,
    /// That are the same to the last byte.
    pub identical: usize,
    /// Without a text on a side.
    pub unread: usize,
    /// The share that is the same.
    pub share: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Where the others part.
    pub first_divergence_chars: Divergence,
    /// How much of the shorter text is shared.
    pub shared_beginning: Shared,
}

/// Characters before answers part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divergence {
    /// The least.
    pub min: Option<f64>,
    /// In the median.
    pub median: Option<f64>,
}

/// The share of the shorter text before answers part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// In the median.
    pub median: Option<f64>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateRecord {
    /// As a share.
    pub tolerance: f64,
    /// Whether a regression must be excluded.
    pub proof: bool,
    /// `None` while a run is INVALID.
    pub passes: Option<bool>,
}

impl Record {
    pub(super) fn of(compared: &Compared) -> Record {
        let design = &compared.design;
        let contrasts = compared.comparison.contrasts.iter().enumerate();
        Record {
            workload: compared.workload.clone(),
            load: compared.load.clone(),
            design: Design {
                primary: design.primary.to_string(),
                pairing: design.pairing.name().into(),
                alpha: design.alpha,
                margin: design.margin,
                share_margin: design.share_margin,
                replicates: design.replicates,
                seed: design.seed.0,
            },
            valid: compared.comparison.invalid.is_empty(),
            sides: compared.sides.iter().map(side).collect(),
            contrasts: contrasts.map(|(i, c)| contrast(compared, i, c)).collect(),
            gate: compared.gate.map(|gate| GateRecord {
                tolerance: gate.tolerance,
                proof: gate.proof,
                passes: compared.passes(),
            }),
            notes: compared.notes.clone(),
        }
    }
}

fn side(side: &Side) -> SideRecord {
    let run = |(round, run): (usize, &super::SideRun)| RunRecord {
        round: round + 1,
        order: run.order,
        folder: run.folder.clone(),
        requests: run.requests,
        completed: run.completed,
        valid: run.reasons.is_empty(),
        reasons: run.reasons.clone(),
    };
    SideRecord {
        name: side.name.clone(),
        source: side.source.clone(),
        runs: side.runs.iter().enumerate().map(run).collect(),
    }
}

fn contrast(compared: &Compared, i: usize, contrast: &stats::Contrast) -> Contrast {
    let findings = contrast.findings.iter().enumerate();
    Contrast {
        side: compared.sides[contrast.side].name.clone(),
        against: compared.sides[0].name.clone(),
        sentence: compared.sentence(i),
        pairing: contrast.pairing.name().into(),
        rounds: contrast.rounds,
        knows_runs: contrast.knows_runs(),
        findings: findings.map(|(rank, f)| finding(compared, contrast, f, rank == 0)).collect(),
        agreement: compared.agreements.get(i).and_then(Option::as_ref).map(agreement),
    }
}

fn finding(compared: &Compared, contrast: &stats::Contrast, finding: &stats::Finding, primary: bool) -> Finding {
    let (a, b) = (&compared.sides[0].name, &compared.sides[contrast.side].name);
    let (unit, scale) = unit(finding.measure);
    let scaled = |e: stats::Estimate| {
        estimate(stats::Estimate { value: e.value * scale, low: e.low * scale, high: e.high * scale })
    };
    Finding {
        metric: finding.measure.to_string(),
        primary,
        unit: unit.into(),
        lower_is_better: finding.measure.lower_is_better(),
        a: finding.a.map(|v| v * scale),
        b: finding.b.map(|v| v * scale),
        ratio: finding.ratio.map(estimate),
        difference: finding.difference.map(scaled),
        within_runs: finding.within.map(estimate),
        p: finding.p,
        adjusted_p: finding.adjusted_p,
        claim: finding.claim.name().into(),
        better: finding.better(),
        block: finding.block,
        segments: finding.segments,
        sentence: finding.sentence(a, b, &compared.design),
    }
}

fn estimate(e: stats::Estimate) -> Estimate {
    let there = |v: f64| v.is_finite().then_some(v);
    Estimate { value: there(e.value), low: there(e.low), high: there(e.high) }
}

fn agreement(agreement: &stats::Agreement) -> Agreement {
    Agreement {
        pairs: agreement.pairs,
        identical: agreement.identical,
        unread: agreement.unread,
        share: agreement.share(),
        interval: agreement.interval(),
        first_divergence_chars: Divergence {
            min: agreement.first_divergence.min(),
            median: agreement.first_divergence.median(),
        },
        shared_beginning: Shared { median: agreement.shared_beginning.median() },
    }
}

/// A measure's unit in files, and what turns its value into that.
fn unit(measure: Measure) -> (&'static str, f64) {
    match measure {
        Measure::Latency(..) => ("ms", 1e-6),
        Measure::Attainment | Measure::Completed => ("share", 1.0),
        _ => ("1/s", 1.0),
    }
}
