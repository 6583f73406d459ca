use crate::describe::fits::{self, Fit};
use crate::describe::lengths::{moments, percentile};
use crate::row::Clock;
use serde::Serialize;

const SECOND: i64 = 1_000_000_000;

/// When requests arrived. Times in seconds; definitions in [`crate::describe::explain`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct ArrivalFigures {
    pub n: u64,
    /// Of the file's own clock, in seconds; 0 for wall-clock times ([`Self::first_unix_ns`] has the moment).
    pub first: f64,
    pub last: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_unix_ns: Option<i64>,
    pub span_s: f64,
    /// Of the file's order: negative if the last row is earlier than the first.
    pub last_row_minus_first_row_s: f64,
    pub order_inversions_in_file: u64,
    pub mean_rate_nminus1_over_span: Option<f64>,
    pub mean_rate_n_over_span: Option<f64>,
    /// Rows at the same time as the row before them.
    pub duplicate_timestamps: u64,
    pub distinct_timestamps: u64,
    /// The most rows at one time.
    pub max_group: u64,
    pub iat: Option<GapFigures>,
    pub counts_1s: Option<CountFigures>,
    pub counts_10s: Option<CountFigures>,
    pub counts_60s: Option<CountFigures>,
    pub gap_cv_in_60s_windows: Option<WindowFigures>,
    pub gap_cv_in_300s_windows: Option<WindowFigures>,
    /// What the figures above say about the recording rather than about the traffic.
    pub artefacts: Vec<String>,
}

/// Gaps between successive arrivals, zero gaps included, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct GapFigures {
    pub mean: f64,
    pub std_pop: f64,
    pub std_sample: Option<f64>,
    pub cv_pop: Option<f64>,
    pub cv_sample: Option<f64>,
    pub zero_gaps: u64,
    pub max: f64,
    pub p1: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    #[serde(rename = "p99.9")]
    pub p999: f64,
    /// Shape of the Gamma renewal process of the same gap CV: vLLM's `--burstiness`.
    pub burstiness_vllm_equiv_1_over_cv2: Option<f64>,
    #[serde(rename = "goh_barabasi_B")]
    pub goh_barabasi_b: Option<f64>,
    /// On gaps above zero, if they vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma_mle_on_positive_gaps: Option<GammaFit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weibull_mle_on_positive_gaps: Option<Fit>,
}

/// A Gamma fit and the number of gaps it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct GammaFit {
    pub shape: f64,
    pub scale: f64,
    pub n_positive: u64,
}

/// Arrivals per whole window of some length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct CountFigures {
    pub windows: u64,
    pub mean: f64,
    pub var_pop: f64,
    pub index_of_dispersion: Option<f64>,
    pub peak: u64,
    pub empty: u64,
    pub peak_to_mean: Option<f64>,
}

/// The gap CV inside windows of some length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct WindowFigures {
    pub windows_used: u64,
    pub mean: f64,
    pub p5: f64,
    pub p50: f64,
    pub p95: f64,
}

/// The figures of ascending arrival times in nanoseconds. The vector's memory is reused for the gaps, as there may be many.
pub(crate) fn figures(sorted: Vec<i64>, clock: Clock, order_inversions: u64, file_span: i64) -> Option<ArrivalFigures> {
    let (&first, &last) = (sorted.first()?, sorted.last()?);
    let n = sorted.len() as u64;
    let origin = if clock == Clock::Wall { first } else { 0 };
    let span_s = seconds(last - first);
    let rate = |k: u64| (last > first).then(|| k as f64 / span_s);
    let (distinct, max_group) = groups(&sorted);
    let artefacts = artefacts(&sorted, distinct);
    let mut figures = ArrivalFigures {
        n,
        first: seconds(first - origin),
        last: seconds(last - origin),
        first_unix_ns: (clock == Clock::Wall).then_some(first),
        span_s,
        last_row_minus_first_row_s: seconds(file_span),
        order_inversions_in_file: order_inversions,
        mean_rate_nminus1_over_span: rate(n - 1),
        mean_rate_n_over_span: rate(n),
        duplicate_timestamps: n - distinct,
        distinct_timestamps: distinct,
        max_group,
        iat: None,
        counts_1s: counts(&sorted, SECOND),
        counts_10s: counts(&sorted, 10 * SECOND),
        counts_60s: counts(&sorted, 60 * SECOND),
        gap_cv_in_60s_windows: windows(&sorted, 60 * SECOND, origin),
        gap_cv_in_300s_windows: windows(&sorted, 300 * SECOND, origin),
        artefacts,
    };
    let mut before = seconds(first - origin);
    let gap = move |at: i64| {
        let now = seconds(at - origin);
        let gap = now - before;
        before = now;
        gap
    };
    figures.iat = gaps(sorted.into_iter().skip(1).map(gap).collect());
    Some(figures)
}

pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn groups(sorted: &[i64]) -> (u64, u64) {
    let (mut distinct, mut largest) = (0, 0);
    for group in sorted.chunk_by(|a, b| a == b) {
        distinct += 1;
        largest = largest.max(group.len() as u64);
    }
    (distinct, largest)
}

fn gaps(mut gaps: Vec<f64>) -> Option<GapFigures> {
    let (mean, var) = moments(&gaps)?;
    let n = gaps.len() as f64;
    gaps.sort_unstable_by(f64::total_cmp);
    let p = |percent| percentile(&gaps, percent).unwrap_or_default();
    let std_pop = libm::sqrt(var);
    let std_sample = (gaps.len() > 1).then(|| libm::sqrt(var * n / (n - 1.0)));
    let over_mean = |std: f64| (mean > 0.0).then(|| std / mean);
    let cv_pop = over_mean(std_pop);
    let zero_gaps = gaps.partition_point(|&g| g <= 0.0);
    let mut figures = GapFigures {
        mean,
        std_pop,
        std_sample,
        cv_pop,
        cv_sample: std_sample.and_then(over_mean),
        zero_gaps: zero_gaps as u64,
        max: gaps[gaps.len() - 1],
        p1: p(1.0),
        p5: p(5.0),
        p25: p(25.0),
        p50: p(50.0),
        p75: p(75.0),
        p90: p(90.0),
        p95: p(95.0),
        p99: p(99.0),
        p999: p(99.9),
        burstiness_vllm_equiv_1_over_cv2: cv_pop.filter(|cv| *cv > 0.0).map(|cv| 1.0 / (cv * cv)),
        goh_barabasi_b: (mean > 0.0).then(|| (std_pop - mean) / (std_pop + mean)),
        gamma_mle_on_positive_gaps: None,
        weibull_mle_on_positive_gaps: None,
    };
    gaps.drain(..zero_gaps);
    fit(&mut figures, gaps);
    Some(figures)
}

/// Fits mean something only where the positive gaps vary: a clock that ticks every 3 s has none to fit.
fn fit(figures: &mut GapFigures, positive: Vec<f64>) {
    let Some((mean, var)) = moments(&positive) else { return };
    if positive.len() < 2 || libm::sqrt(var) <= 0.2 * mean {
        return;
    }
    let n = positive.len() as f64;
    let logs: Vec<f64> = positive.into_iter().map(libm::log).collect();
    let fit = fits::gamma(n, mean * n, logs.iter().sum());
    figures.gamma_mle_on_positive_gaps =
        fit.map(|f| GammaFit { shape: f.shape, scale: f.scale, n_positive: logs.len() as u64 });
    figures.weibull_mle_on_positive_gaps = fits::weibull(&logs);
}

/// How bursty arrivals are, in the four figures a generator has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Burstiness {
    /// CV (population) of the gaps.
    pub gap_cv: Option<f64>,
    /// Index of dispersion of counts per 1 s, 10 s and 60 s.
    pub dispersion: [Option<f64>; 3],
}

/// The burstiness of ascending arrival times in nanoseconds: the same figures as in a description, without the rest.
pub fn burstiness(sorted: &[i64]) -> Burstiness {
    let gaps: Vec<f64> = sorted.windows(2).map(|w| seconds(w[1] - w[0])).collect();
    let gap_cv = moments(&gaps).filter(|(mean, _)| *mean > 0.0).map(|(mean, var)| libm::sqrt(var) / mean);
    let dispersion = [1, 10, 60].map(|s| counts(sorted, s * SECOND)?.index_of_dispersion);
    Burstiness { gap_cv, dispersion }
}

/// Arrivals in the whole windows [first + i·w, first + (i + 1)·w).
pub(crate) fn counts(sorted: &[i64], window: i64) -> Option<CountFigures> {
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let windows = (last - first) / window;
    if windows == 0 {
        return None;
    }
    let index = |at: &i64| (at - first) / window;
    let inside = &sorted[..sorted.partition_point(|at| index(at) < windows)];
    let (mut used, mut peak, mut squares) = (0u64, 0u64, 0u128);
    for group in inside.chunk_by(|a, b| index(a) == index(b)) {
        let n = group.len() as u64;
        used += 1;
        peak = peak.max(n);
        squares += u128::from(n) * u128::from(n);
    }
    let (n, k) = (inside.len() as u128, windows as u128);
    let mean = n as f64 / k as f64;
    let var_pop = (k * squares - n * n) as f64 / k as f64 / k as f64;
    let over_mean = |x: f64| (mean > 0.0).then(|| x / mean);
    Some(CountFigures {
        windows: windows as u64,
        mean,
        var_pop,
        index_of_dispersion: over_mean(var_pop),
        peak,
        empty: windows as u64 - used,
        peak_to_mean: over_mean(peak as f64),
    })
}

/// The gap CV (population) inside each window with at least ten arrivals, the last partial one included.
fn windows(sorted: &[i64], window: i64, origin: i64) -> Option<WindowFigures> {
    let mut cvs: Vec<f64> = gap_cvs(sorted, window, origin).into_iter().map(|(_, cv)| cv).collect();
    let (mean, _) = moments(&cvs)?;
    cvs.sort_unstable_by(f64::total_cmp);
    let p = |percent| percentile(&cvs, percent).unwrap_or_default();
    Some(WindowFigures { windows_used: cvs.len() as u64, mean, p5: p(5.0), p50: p(50.0), p95: p(95.0) })
}

/// Start (seconds since the first arrival) and gap CV of those windows.
pub(crate) fn gap_cvs(sorted: &[i64], window: i64, origin: i64) -> Vec<(f64, f64)> {
    let Some(&first) = sorted.first() else { return Vec::new() };
    let index = |at: &i64| (at - first) / window;
    let mut cvs = Vec::new();
    let mut gaps: Vec<f64> = Vec::new();
    for group in sorted.chunk_by(|a, b| index(a) == index(b)).filter(|g| g.len() >= 10) {
        gaps.clear();
        gaps.extend(group.windows(2).map(|w| seconds(w[1] - origin) - seconds(w[0] - origin)));
        if let Some((mean, var)) = moments(&gaps)
            && mean > 0.0
        {
            cvs.push((seconds(index(&group[0]) * window), libm::sqrt(var) / mean));
        }
    }
    cvs
}

fn artefacts(sorted: &[i64], distinct: u64) -> Vec<String> {
    let mut out = Vec::new();
    let n = sorted.len() as u64;
    if n < 20 {
        return out;
    }
    let first = sorted[0];
    let whole = |unit: i64| sorted.iter().all(|at| (at - first) % unit == 0);
    let resolution =
        [(60 * SECOND, "1 min"), (SECOND, "1 s"), (SECOND / 1000, "1 ms")].into_iter().find(|(u, _)| whole(*u));
    if let Some((unit, word)) = resolution
        && unit >= SECOND
    {
        out.push(format!(
            "times have a resolution of {word}: short gaps are rounded, so gap CV and fits at high rates are artefacts; \
             the index of dispersion at 10 s and above is not touched"
        ));
    }
    if distinct * 2 < n {
        let mut steps: Vec<f64> = Vec::new();
        let mut before = first;
        for &at in sorted.iter().filter(|&&at| at != first) {
            if at != before {
                steps.push(seconds(at - before));
            }
            before = at;
        }
        steps.sort_unstable_by(f64::total_cmp);
        let median = percentile(&steps, 50.0).unwrap_or_default();
        let near = steps.iter().filter(|s| (**s - median).abs() <= 0.01 * median).count();
        if near * 10 >= steps.len() * 8 && resolution.is_none_or(|(u, _)| seconds(u) < 0.9 * median) {
            out.push(format!(
                "arrivals come in batches every {median} s ({distinct} distinct times for {n} rows): gaps, their CV, \
                 fits and dispersion below that interval describe the recording, not the traffic"
            ));
        }
    }
    out
}
