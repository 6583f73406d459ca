//! What may be said of a figure, and what may not.

use super::effect::{Effect, Estimate, holm};
use super::{Contrast, Design, Measure, Scale};

/// What the data support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The second side's figure is lower.
    Lower,
    /// The second side's figure is higher.
    Higher,
    /// They are the same within the margin.
    Same,
    /// They may differ or not.
    Open,
    /// Too few requests, or too few independent stretches of them, to say anything.
    TooFew,
    /// One side has no such figure, or it is zero.
    Missing,
    /// A run is INVALID.
    Withheld,
}

impl Claim {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Claim::Lower => "lower",
            Claim::Higher => "higher",
            Claim::Same => "same",
            Claim::Open => "open",
            Claim::TooFew => "too_few",
            Claim::Missing => "missing",
            Claim::Withheld => "withheld",
        }
    }
}

/// One figure of two sides.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which.
    pub measure: Measure,
    /// Over all runs of the first side.
    pub a: Option<f64>,
    /// Over all runs of the second side.
    pub b: Option<f64>,
    /// b / a with its own interval, for what is compared by ratios.
    pub ratio: Option<Estimate>,
    /// b − a with its own interval.
    pub difference: Option<Estimate>,
    /// The ratio (for shares the difference) with the interval that resampling within runs gives by itself.
    pub within: Option<Estimate>,
    /// The chance of a difference like this, or a greater one, if there is none.
    pub p: Option<f64>,
    /// The same, allowing for the figures looked at beside it.
    pub adjusted_p: Option<f64>,
    /// What may be said.
    pub claim: Claim,
    /// Requests (or windows) in a stretch that is resampled as one, before whole stretches are made of them.
    pub block: f64,
    /// Such stretches, of the side that has fewer.
    pub segments: usize,
    pub(super) effect: Option<Effect>,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Finding) -> bool {
        let parts = |f: &Finding| (f.measure, f.a, f.b, f.ratio, f.difference, f.p, f.adjusted_p, f.claim, f.segments);
        parts(self) == parts(other)
    }
}

/// Whether a figure got worse by more than a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regression {
    /// The whole interval lies beyond the tolerance.
    Shown,
    /// The interval reaches beyond it.
    Possible,
    /// The whole interval lies within it.
    Excluded,
    /// There is no interval.
    Unknown,
}

impl Finding {
    pub(super) fn new(measure: Measure, a: Option<f64>, b: Option<f64>) -> Finding {
        Finding {
            measure,
            a,
            b,
            ratio: None,
            difference: None,
            within: None,
            p: None,
            adjusted_p: None,
            claim: Claim::Missing,
            block: 0.0,
            segments: 0,
            effect: None,
        }
    }

    /// Whether a difference is claimed, and whether it is for the better.
    pub fn better(&self) -> Option<bool> {
        match self.claim {
            Claim::Lower => Some(self.measure.lower_is_better()),
            Claim::Higher => Some(!self.measure.lower_is_better()),
            _ => None,
        }
    }

    /// Whether the figure got worse by more than `tolerance`: a share of the first side's figure, or, for shares, so many points / 100.
    pub fn regression(&self, tolerance: f64) -> Regression {
        let change = match self.measure.scale() {
            Scale::Ratio => self.ratio.map(|r| r.map(|r| r - 1.0)),
            Scale::Difference => self.difference,
        };
        let Some(change) = change else { return Regression::Unknown };
        let (least, most) = match self.measure.lower_is_better() {
            true => (change.low, change.high),
            false => (-change.high, -change.low),
        };
        if least > tolerance {
            Regression::Shown
        } else if most > tolerance {
            Regression::Possible
        } else {
            Regression::Excluded
        }
    }
}

/// Says of every figure what may be said. The primary figures of all contrasts are one family, all other figures another.
pub(super) fn settle(contrasts: &mut [Contrast], design: &Design, valid: bool) {
    for primary in [true, false] {
        let in_family = |i: usize| (i == 0) == primary;
        let mut family: Vec<&mut Finding> = contrasts
            .iter_mut()
            .flat_map(|c| c.findings.iter_mut().enumerate().filter(|(i, _)| in_family(*i)).map(|(_, f)| f))
            .filter(|f| f.effect.is_some())
            .collect();
        let adjusted = holm(&family.iter().filter_map(|f| f.p).collect::<Vec<f64>>());
        let each = design.alpha / family.len().max(1) as f64;
        for (finding, p) in family.iter_mut().zip(adjusted) {
            finding.adjusted_p = Some(p);
            finding.claim = if valid { claim(finding, p, each, design) } else { Claim::Withheld };
        }
    }
}

/// A difference if Holm's adjustment leaves one; else sameness if the interval at the family's level (Bonferroni) lies within the margin.
fn claim(finding: &Finding, adjusted: f64, each: f64, design: &Design) -> Claim {
    let Some(effect) = &finding.effect else { return Claim::Missing };
    if adjusted <= design.alpha {
        return if effect.value < 0.0 { Claim::Lower } else { Claim::Higher };
    }
    let (low, high) = effect.interval(each);
    let margin = match finding.measure.scale() {
        Scale::Ratio => libm::log1p(design.margin),
        Scale::Difference => design.share_margin,
    };
    if low >= -margin && high <= margin { Claim::Same } else { Claim::Open }
}
