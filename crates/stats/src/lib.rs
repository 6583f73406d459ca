//! Rows to numbers: latency metrics, percentiles, goodput, steady state, verdicts.
