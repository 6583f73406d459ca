//! Which points a curve is measured at, and how long that takes.

use serde::Serialize;

use super::regions::{NoRegions, Region, Regions, ULTRA_LOW_MAX};

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlannedPoint {
    /// Requests in flight.
    pub concurrency: u64,
    /// Its region; `None` for a dedicated offline point.
    pub region: Option<Region>,
    /// Whether an accuracy run belongs to it.
    pub accuracy: bool,
    /// Whether it is the offline point: the highest one is elected, or a dedicated one has its own run.
    pub offline: Offline,
    /// What the steady window must last, s.
    pub min_window_s: f64,
    /// Passes over the data set: at least four, and one to warm up.
    pub passes: u64,
    /// Requests to issue: whole passes.
    pub samples: u64,
    /// How long that takes at the expected time a request, s; `None` if nobody knows that time.
    pub expected_s: Option<f64>,
}

/// A point's part in the offline result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Offline {
    /// None.
    None,
    /// The highest point is the offline result as well.
    Elected,
    /// All samples at once, in a run of its own.
    Dedicated,
}

/// A curve to measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePlan {
    /// Its regions.
    pub regions: Regions,
    /// Its points by concurrency, a dedicated offline point last.
    pub points: Vec<PlannedPoint>,
}

/// What is asked of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveSpec {
    /// The lowest concurrency, 1 to 32.
    pub c_min: u64,
    /// The highest the system supports.
    pub c_max: u64,
    /// Fixed-concurrency points, at least 7.
    pub points: usize,
    /// Samples of the data set.
    pub dataset: u64,
    /// Whether offline has a run of its own.
    pub dedicated_offline: bool,
    /// Expected time a request takes at a concurrency: `base + per_concurrent × concurrency`, s.
    pub request_s: Option<[f64; 2]>,
    /// Passes over the data set at every point; `None`: as many as the window is expected to need.
    pub passes: Option<u64>,
    /// What the window must last, s; `None`: what the rules ask.
    pub min_window_s: Option<f64>,
}

/// Why a curve cannot be planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CannotPlan {
    /// The ends.
    #[error(transparent)]
    Regions(#[from] NoRegions),
    /// Too few or too many.
    #[error("{points} points: a curve has 7 to {most} of fixed concurrency")]
    Points {
        /// Asked for.
        points: usize,
        /// The most.
        most: usize,
    },
    /// Neither passes nor a time a request takes.
    #[error("how long a request takes is unknown, so the number of passes must be given")]
    NoLength,
    /// A window takes four super-passes, and the first is cropped as warm-up.
    #[error("{0} passes: a steady window needs 4, after 1 to warm up")]
    Passes(u64),
    /// No data.
    #[error("the data set is empty: a point issues whole passes over it")]
    NoData,
    /// A dedicated offline point needs at least as many samples as the highest concurrency.
    #[error(
        "the data set has {dataset} samples, fewer than the maximum concurrency {c_max}: the offline point must be elected"
    )]
    OfflineTooSmall {
        /// Samples.
        dataset: u64,
        /// Highest concurrency.
        c_max: u64,
    },
}

/// Plans a curve: the lowest and the highest concurrency, one point in the middle (by ratio) of each region between, and
/// the rest spread by ratio over the widest gaps.
///
/// # Errors
/// If the rules allow no such curve.
pub fn plan(spec: CurveSpec) -> Result<CurvePlan, CannotPlan> {
    let regions = Regions::of(spec.c_max, spec.c_min)?;
    let most = 32 - usize::from(spec.dedicated_offline);
    if !(7..=most).contains(&spec.points) {
        return Err(CannotPlan::Points { points: spec.points, most });
    }
    if spec.dataset == 0 {
        return Err(CannotPlan::NoData);
    }
    match (spec.passes, spec.request_s) {
        (Some(passes), _) if passes < LEAST_PASSES => return Err(CannotPlan::Passes(passes)),
        (None, None) => return Err(CannotPlan::NoLength),
        _ => {}
    }
    if spec.dedicated_offline && spec.dataset < spec.c_max {
        return Err(CannotPlan::OfflineTooSmall { dataset: spec.dataset, c_max: spec.c_max });
    }
    let concurrencies = spread(&regions, spec.points);
    let mut points: Vec<PlannedPoint> = concurrencies.iter().map(|&c| point(&regions, spec, c)).collect();
    choose_accuracy(&mut points);
    if spec.dedicated_offline {
        let mut offline = point(&regions, spec, spec.dataset);
        (offline.region, offline.accuracy, offline.offline) = (None, true, Offline::Dedicated);
        points.push(offline);
    } else if let Some(last) = points.last_mut() {
        (last.accuracy, last.offline) = (true, Offline::Elected);
    }
    Ok(CurvePlan { regions, points })
}

fn spread(regions: &Regions, wanted: usize) -> Vec<u64> {
    let middle = |[low, high]: [u64; 2]| libm::round(libm::sqrt(low as f64 * high as f64)) as u64;
    let mut chosen = vec![regions.c_min, regions.c_max];
    for range in [regions.low_concurrency, regions.med_concurrency, regions.high_concurrency] {
        if range[0] <= range[1] && !chosen.iter().any(|c| (range[0]..=range[1]).contains(c) && *c != regions.c_max) {
            chosen.push(middle(range).clamp(range[0], range[1]));
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    while chosen.len() < wanted {
        let ratio = |w: &[u64]| if w[1] - w[0] > 1 { w[1] as f64 / w[0] as f64 } else { 0.0 };
        let widest = chosen.windows(2).max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let Some(&[low, high]) = widest.filter(|w| w[1] - w[0] > 1) else { break };
        let between = middle([low, high]).clamp(low + 1, high - 1);
        chosen.push(between);
        chosen.sort_unstable();
    }
    chosen
}

/// A window of four, and one to warm up.
const LEAST_PASSES: u64 = 5;
/// Requests are never as long as expected: so much more is issued than the window is expected to need.
const SLACK: f64 = 1.1;

/// What the rules ask a steady window to last at a concurrency, s.
pub fn by_rule_s(concurrency: u64) -> f64 {
    if concurrency <= ULTRA_LOW_MAX { 600.0 } else { 1200.0 }
}

fn point(regions: &Regions, spec: CurveSpec, concurrency: u64) -> PlannedPoint {
    let min_window_s = spec.min_window_s.unwrap_or(by_rule_s(concurrency));
    let request_s = spec.request_s.map(|[base, per]| base + per * concurrency as f64).filter(|&s| s > 0.0);
    let rate = request_s.map(|s| concurrency as f64 / s);
    let for_window = rate.map_or(0.0, |rate| SLACK * min_window_s * rate / spec.dataset as f64);
    // The window starts after a warm-up of at least one pass.
    let passes = spec.passes.unwrap_or_else(|| (libm::ceil(for_window) as u64 + 1).max(LEAST_PASSES));
    let samples = passes * spec.dataset;
    PlannedPoint {
        concurrency,
        region: regions.place(concurrency),
        accuracy: false,
        offline: Offline::None,
        min_window_s,
        passes,
        samples,
        expected_s: rate.map(|rate| samples as f64 / rate),
    }
}

/// One accuracy run in each mandatory band: the first point that fits. The elected offline point adds its own.
fn choose_accuracy(points: &mut [PlannedPoint]) {
    for band in Region::MANDATORY {
        if let Some(p) = points.iter_mut().find(|p| p.region == Some(band)) {
            p.accuracy = true;
        }
    }
}

impl CurvePlan {
    /// How long the whole curve is expected to take, s, one point after another, without accuracy runs; `None` if nobody
    /// knows how long a request takes.
    pub fn expected_s(&self) -> Option<f64> {
        self.points.iter().map(|p| p.expected_s).sum()
    }
}
