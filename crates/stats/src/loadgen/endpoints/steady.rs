//! Steady-state detection, exactly as the reference detector does it (Mann–Kendall with Hamed and Rao's correction, bounds
//! 3, 5 and 8 % on the coefficient of variation, adaptive warm-up).

use serde::Serialize;

use super::passes::{SuperPass, issue_span, lower, pooled};
use super::trend::{mann_kendall, median, pettitt, relative_drift, variation};

/// The fewest super-passes a trend can be told from.
pub const MIN_PASSES: usize = 4;
/// A trend breaks a window only from this end-to-end change on.
const DRIFT_FLOOR: f64 = 0.05;
/// The loosest of the three bounds decides.
const LOOSEST_VARIATION: f64 = 0.08;
const ALPHA: f64 = 0.05;
/// The floor of a window's length, s.
pub const MIN_DURATION_S: f64 = 600.0;

/// A metric over super-passes.
#[derive(Clone, Copy, Debug)]
struct Metric {
    name: &'static str,
    list: fn(&SuperPass) -> &Vec<f64>,
    percentile: f64,
}

const TPOT_P50: Metric = Metric { name: "tpot_p50", list: |p| &p.tpot_ns, percentile: 0.5 };
const TPOT_P90: Metric = Metric { name: "tpot_p90", list: |p| &p.tpot_ns, percentile: 0.9 };
const TTFT_P50: Metric = Metric { name: "ttft_p50", list: |p| &p.ttft_ns, percentile: 0.5 };
const TTFT_P90: Metric = Metric { name: "ttft_p90", list: |p| &p.ttft_ns, percentile: 0.9 };
/// What a window is admitted by. TTFT only warns: its tail is structural at high concurrency.
const GATED: [Metric; 2] = [TPOT_P50, TPOT_P90];
const WATCHED: [Metric; 4] = [TTFT_P50, TTFT_P90, TPOT_P50, TPOT_P90];

/// The direction of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the reference's words
pub enum Trend {
    Up,
    Down,
    Steady,
    Insufficient,
}

/// What a window must last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Required {
    /// What it lasts from first to last issue, s.
    pub window_s: f64,
    /// What it must last, s: the largest of the next three.
    pub min_s: f64,
    /// Enough super-passes for ±5 % of TPOT; 0 where four are enough.
    pub precision_s: f64,
    /// Five times the P90 of latency.
    pub relaxation_s: f64,
    /// Super-passes wanted.
    pub passes: u64,
}

impl Required {
    /// Whether the window is too short.
    pub fn short(&self) -> bool {
        self.window_s < self.min_s
    }
}

/// A later level that differs from the reported one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Anomaly {
    /// Super-passes (after warm-up) before the change.
    pub change_point: usize,
    /// By how much mean TPOT differs, percent; above zero it got worse.
    pub delta_pct: f64,
}

/// Count, mean and percentiles of a list in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Summary {
    pub count: usize,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
}

/// A steady window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// First super-pass, counted after warm-up.
    pub first: usize,
    /// One past the last.
    pub end: usize,
    /// Samples that have a TTFT.
    pub samples: usize,
    /// Which of the plateaus it is.
    pub plateau: usize,
    /// How many there are.
    pub plateaus: usize,
    /// Earlier ones that were too short.
    pub skipped_short: usize,
    /// What it lasts and must last.
    pub required: Required,
    /// Times to first token in it.
    pub ttft: Option<Summary>,
    /// Times per output token in it.
    pub tpot: Option<Summary>,
    /// 10⁹ over the *mean* TPOT (the rules' `tps_per_user` goes by P90).
    pub per_user_tps: f64,
    /// 95 % interval by batch means.
    pub per_user_ci: [f64; 2],
    /// Output tokens over the issue span, in 1/s.
    pub system_tps: f64,
    /// 95 % interval by batch means.
    pub system_ci: [f64; 2],
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detection {
    /// Whether a long enough steady window was found.
    pub found: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Super-passes dropped as warm-up.
    pub warmup: usize,
    /// Super-passes left.
    pub passes: usize,
    /// The window; when all are too short, the longest.
    pub window: Option<Window>,
    /// A level shift after it.
    pub anomaly: Option<Anomaly>,
    /// Trend of each watched metric from the window to the end of the run.
    pub trend: Vec<(&'static str, Trend)>,
    /// By how much each changes over that stretch, end to end, as a share of its median.
    pub change: Vec<(&'static str, f64)>,
}

impl Detection {
    /// The watched metrics that drift: a trend, and one that matters. Over many super-passes a test finds the least of trends.
    pub fn drifting(&self) -> impl Iterator<Item = (&'static str, Trend)> + '_ {
        let matters = |name: &str| self.change.iter().any(|&(n, change)| n == name && change.abs() >= DRIFT_FLOOR);
        self.trend.iter().copied().filter(move |&(name, t)| matches!(t, Trend::Up | Trend::Down) && matters(name))
    }
}

/// Finds the first steady window of a run, by the reference's floor of 600 s.
pub fn detect(all: &[SuperPass]) -> Detection {
    detect_within(all, MIN_DURATION_S)
}

/// [`detect`] with another floor of a window's length, s: what a run too short for the rules can still say of itself.
pub fn detect_within(all: &[SuperPass], floor_s: f64) -> Detection {
    let warmup = warmup(all).min(all.len());
    let passes = &all[warmup..];
    let plateaus = plateaus(passes);
    let required: Vec<Required> = plateaus.iter().map(|&(lo, hi)| required(&passes[lo..hi], floor_s)).collect();
    let chosen = required.iter().position(|r| !r.short());
    // Of plateaus that are all too short, the first of the longest is shown.
    let longest = (0..required.len()).rev().max_by(|&a, &b| required[a].window_s.total_cmp(&required[b].window_s));
    let Some(shown) = chosen.or(longest) else {
        return Detection {
            found: false,
            reason: Some("no admissible steady plateau".into()),
            warmup,
            passes: passes.len(),
            window: None,
            anomaly: None,
            trend: trends(passes),
            change: changes(passes),
        };
    };
    let (lo, hi) = plateaus[shown];
    let reason = chosen.is_none().then(|| {
        let r = required[shown];
        format!(
            "all {} admissible plateau(s) too short: the longest lasts {:.0} s of the {:.0} s required",
            plateaus.len(),
            r.window_s,
            r.min_s
        )
    });
    let mut window = window(&passes[lo..hi], lo, required[shown]);
    (window.plateau, window.plateaus) = (shown, plateaus.len());
    window.skipped_short = required[..shown].iter().filter(|r| r.short()).count();
    Detection {
        found: chosen.is_some(),
        reason,
        warmup,
        passes: passes.len(),
        window: Some(window),
        anomaly: level_shift(passes, &plateaus, shown),
        trend: trends(&passes[lo..]),
        change: changes(&passes[lo..]),
    }
}

/// A metric's value in each super-pass that has one.
fn trajectory(passes: &[SuperPass], m: Metric) -> Vec<f64> {
    passes.iter().filter_map(|p| lower((m.list)(p), m.percentile)).collect()
}

/// How many leading super-passes are off the level of the run's back half by more than 5 %, at least one and at most half.
fn warmup(passes: &[SuperPass]) -> usize {
    let values = trajectory(passes, TPOT_P50);
    if values.len() < MIN_PASSES {
        return 1;
    }
    let steady = median(&values[values.len() / 2..]).filter(|&m| m != 0.0).unwrap_or(1e-9);
    let cap = (values.len() / 2).max(1);
    let off = values.iter().take(cap).take_while(|v| (*v - steady).abs() / steady > 0.05).count();
    off.max(1)
}

fn trend(values: &[f64]) -> Trend {
    if values.len() < MIN_PASSES {
        return Trend::Insufficient;
    }
    match mann_kendall(values) {
        Some(mk) if mk.hamed_rao_p < ALPHA && mk.s > 0 => Trend::Up,
        Some(mk) if mk.hamed_rao_p < ALPHA && mk.s < 0 => Trend::Down,
        _ => Trend::Steady,
    }
}

fn trends(passes: &[SuperPass]) -> Vec<(&'static str, Trend)> {
    WATCHED.iter().map(|&m| (m.name, trend(&trajectory(passes, m)))).collect()
}

fn changes(passes: &[SuperPass]) -> Vec<(&'static str, f64)> {
    WATCHED.iter().filter_map(|&m| Some((m.name, relative_drift(&trajectory(passes, m))?))).collect()
}

fn admissible(passes: &[SuperPass]) -> bool {
    GATED.iter().all(|&m| {
        let values = trajectory(passes, m);
        if values.len() < passes.len() || values.len() < MIN_PASSES {
            return false; // a super-pass without a value
        }
        // The cheap half first: the trend test grows with the square of the window.
        let drifts = relative_drift(&values).unwrap_or(0.0).abs() >= DRIFT_FLOOR && trend(&values) != Trend::Steady;
        !drifts && variation(&values).unwrap_or(0.0).abs() <= LOOSEST_VARIATION
    })
}

/// From each start the longest window that grew without a break; then on past it.
fn plateaus(passes: &[SuperPass]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start + MIN_PASSES <= passes.len() {
        let grown = (start + MIN_PASSES..=passes.len()).take_while(|&end| admissible(&passes[start..end])).last();
        match grown {
            Some(end) => {
                found.push((start, end));
                start = end;
            }
            None => start += 1,
        }
    }
    found
}

fn required(passes: &[SuperPass], floor_s: f64) -> Required {
    let spread = variation(&trajectory(passes, TPOT_P50)).unwrap_or(0.0).abs();
    let spans: Vec<f64> = passes
        .iter()
        .filter(|p| p.last_issue_ns > p.first_issue_ns)
        .map(|p| (p.last_issue_ns - p.first_issue_ns) as f64 / 1e9)
        .collect();
    let wanted = libm::ceil(libm::pow(1.96 * spread / 0.05, 2.0)).max(MIN_PASSES as f64);
    let precision_s = if wanted > MIN_PASSES as f64 { wanted * median(&spans).unwrap_or(0.0) } else { 0.0 };
    let relaxation_s = 5.0 * lower(&pooled(passes, |p| &p.latency_ns), 0.9).unwrap_or(0.0) / 1e9;
    Required {
        window_s: issue_span(passes) as f64 / 1e9,
        min_s: precision_s.max(relaxation_s).max(floor_s),
        precision_s,
        relaxation_s,
        passes: wanted as u64,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn level_shift(passes: &[SuperPass], plateaus: &[(usize, usize)], shown: usize) -> Option<Anomaly> {
    let level = |(lo, hi): (usize, usize)| mean(&pooled(&passes[lo..hi], |p| &p.tpot_ns)).unwrap_or(0.0);
    let baseline = level(plateaus[shown]);
    let means: Vec<f64> = passes.iter().map(|p| mean(&p.tpot_ns).unwrap_or(0.0)).collect();
    let change = pettitt(&means).filter(|p| p.p < ALPHA && means.len() >= MIN_PASSES)?;
    if baseline <= 0.0 {
        return None;
    }
    plateaus[shown + 1..]
        .iter()
        .map(|&p| (level(p) - baseline) / baseline)
        .find(|d| d.abs() > 0.05)
        .map(|d| Anomaly { change_point: change.change, delta_pct: d * 100.0 })
}

fn summary(sorted: &[f64]) -> Option<Summary> {
    Some(Summary {
        count: sorted.len(),
        mean: mean(sorted)?,
        min: *sorted.first()?,
        max: *sorted.last()?,
        p50: lower(sorted, 0.5)?,
        p90: lower(sorted, 0.9)?,
        p99: lower(sorted, 0.99)?,
    })
}

fn window(passes: &[SuperPass], first: usize, required: Required) -> Window {
    let ttft = pooled(passes, |p| &p.ttft_ns);
    let tpot = summary(&pooled(passes, |p| &p.tpot_ns));
    let per_user = |tpot_ns: f64| if tpot_ns > 0.0 { 1e9 / tpot_ns } else { 0.0 };
    let mean_tpot = tpot.map_or(0.0, |t| t.mean);
    let pass_means: Vec<f64> = passes.iter().filter_map(|p| mean(&p.tpot_ns)).collect();
    let [low, high] = if pass_means.len() > 1 { batch_means(&pass_means) } else { [mean_tpot; 2] };
    let rate = |tokens: u64, span_ns: i64| if span_ns > 0 { tokens as f64 / (span_ns as f64 / 1e9) } else { 0.0 };
    let system_tps = rate(passes.iter().map(|p| p.tokens).sum(), issue_span(passes));
    let rates: Vec<f64> = passes
        .iter()
        .filter(|p| p.last_issue_ns > p.first_issue_ns)
        .map(|p| rate(p.tokens, p.last_issue_ns - p.first_issue_ns))
        .collect();
    let [from, to] = if rates.len() > 1 { batch_means(&rates) } else { [system_tps; 2] };
    let half = (to - from) / 2.0;
    Window {
        first,
        end: first + passes.len(),
        samples: ttft.len(),
        plateau: 0,
        plateaus: 0,
        skipped_short: 0,
        required,
        ttft: summary(&ttft),
        tpot,
        per_user_tps: per_user(mean_tpot),
        per_user_ci: [per_user(high), per_user(low)],
        system_tps,
        system_ci: [system_tps - half, system_tps + half],
    }
}

/// The 95 % interval of a mean from the means of batches, by Student's t.
fn batch_means(means: &[f64]) -> [f64; 2] {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let k = means.len() as f64;
    let mean = means.iter().sum::<f64>() / k;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (k - 1.0);
    let t = T.get(means.len().saturating_sub(2)).copied().unwrap_or(1.96);
    let half = t * libm::sqrt(variance) / libm::sqrt(k);
    [mean - half, mean + half]
}
