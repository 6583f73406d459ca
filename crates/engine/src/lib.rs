//! One replica as a model: continuous batching, paged KV with prefix cache, step-time laws, counters. No clock, no I/O.
