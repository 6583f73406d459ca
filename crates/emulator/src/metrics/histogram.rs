//! Prometheus histograms with vLLM's buckets.

/// Time to first token, in seconds.
pub(crate) const TTFT: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];
/// Between tokens, in seconds.
pub(crate) const ITL: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0];
/// A request's phases, in seconds.
pub(crate) const PHASE: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];
/// Tokens of a step.
pub(crate) const STEP: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];
/// Answers per request.
pub(crate) const ANSWERS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];
/// Preemptions per request.
pub(crate) const PREEMPTIONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];

/// 1, 2, 5, 10, … up to the longest sequence: tokens of a request.
pub(crate) fn tokens(max_model_len: u32) -> Vec<f64> {
    let mut bounds = Vec::new();
    for exponent in 0.. {
        for mantissa in [1u64, 2, 5] {
            let bound = mantissa * 10u64.pow(exponent);
            if bound > u64::from(max_model_len) {
                return bounds;
            }
            bounds.push(bound as f64);
        }
    }
    bounds
}

/// Counts by upper bound; what passes the last bound is in `total` alone.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub bounds: Vec<f64>,
    /// Per bucket, not cumulative.
    pub counts: Vec<u64>,
    pub total: u64,
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &[f64]) -> Histogram {
        Histogram { bounds: bounds.to_vec(), counts: vec![0; bounds.len()], total: 0, sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        // A bound belongs to its bucket (`le`).
        let bucket = self.bounds.partition_point(|&b| b < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.total += 1;
        self.sum += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut h = Histogram::new(&[1.0, 2.0]);
        for v in [0.5, 1.0, 1.5, 2.0, 9.0] {
            h.observe(v);
        }
        assert_eq!((h.counts, h.total, h.sum), (vec![2, 2], 5, 14.0));
    }

    #[test]
    fn token_buckets_end_at_the_longest_sequence() {
        assert_eq!(tokens(2048).last(), Some(&2000.0));
        assert_eq!(tokens(2048).len(), 11);
        assert_eq!(tokens(1), [1.0]);
    }
}
