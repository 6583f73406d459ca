//! Integration tests of `tailbound-stats`: one binary.

mod figures;
mod loadgen;
