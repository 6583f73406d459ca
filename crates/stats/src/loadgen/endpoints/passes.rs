//! Super-passes: one pass over the data set in issue order, the unit the steady state is judged in.

/// What was seen of one performance sample, in ns of any clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was issued.
    pub issued_ns: i64,
    /// When its first non-empty text came.
    pub first_ns: Option<i64>,
    /// When it was complete; `None` if it never was.
    pub done_ns: Option<i64>,
    /// Tokens of the text after the first chunk, by the reference tokenizer.
    pub tokens_after_first: u64,
}

/// The samples of one super-pass. A list may be shorter than `issued`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuperPass {
    /// Samples issued.
    pub issued: usize,
    /// First issue.
    pub first_issue_ns: i64,
    /// Last issue: the drain comes after it and is no part of the throughput.
    pub last_issue_ns: i64,
    /// Times to first token, sorted.
    pub ttft_ns: Vec<f64>,
    /// Times per output token after the first chunk, sorted.
    pub tpot_ns: Vec<f64>,
    /// Latencies, sorted.
    pub latency_ns: Vec<f64>,
    /// Tokens counted for TPOT; those of first chunks are not among them.
    pub tokens: u64,
}

/// Cuts samples in issue order into super-passes of `size`; the last may be short. `size` must not be zero.
pub fn super_passes(samples: &[Seen], size: usize) -> Vec<SuperPass> {
    debug_assert!(size > 0);
    samples.chunks(size.max(1)).map(super_pass).collect()
}

fn super_pass(samples: &[Seen]) -> SuperPass {
    let mut pass = SuperPass {
        issued: samples.len(),
        first_issue_ns: samples.iter().map(|s| s.issued_ns).next().unwrap_or(0),
        last_issue_ns: samples.iter().map(|s| s.issued_ns).max().unwrap_or(0),
        ..SuperPass::default()
    };
    for s in samples {
        pass.ttft_ns.extend(s.first_ns.map(|first| (first - s.issued_ns) as f64));
        pass.latency_ns.extend(s.done_ns.map(|done| (done - s.issued_ns) as f64));
        if let (Some(first), Some(done)) = (s.first_ns, s.done_ns)
            && s.tokens_after_first > 0
        {
            pass.tpot_ns.push((done - first) as f64 / s.tokens_after_first as f64);
            pass.tokens += s.tokens_after_first;
        }
    }
    for list in [&mut pass.ttft_ns, &mut pass.tpot_ns, &mut pass.latency_ns] {
        list.sort_by(f64::total_cmp);
    }
    pass
}

/// `sorted[⌊p · (n − 1)⌋]`; `None` of nothing.
pub(super) fn lower(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((p * last as f64) as usize).copied()
}

/// Everything of one kind in a stretch of super-passes, sorted.
pub(super) fn pooled(passes: &[SuperPass], list: fn(&SuperPass) -> &Vec<f64>) -> Vec<f64> {
    let mut all: Vec<f64> = passes.iter().flat_map(|p| list(p).iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// First to last issue of a stretch, ns.
pub(super) fn issue_span(passes: &[SuperPass]) -> i64 {
    let first = passes.iter().map(|p| p.first_issue_ns).min();
    let last = passes.iter().map(|p| p.last_issue_ns).max();
    first.zip(last).map_or(0, |(first, last)| last - first)
}
