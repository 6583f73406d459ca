//! Readers for public traces, and what they say: describe, fit, generate.
