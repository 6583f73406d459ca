//! Integration tests of `tailbound-stats`: one binary.

mod compare;
mod figures;
mod loadgen;
mod pareto;
