//! Integration tests of `tailbound-stats`: one binary.

mod capacity;
mod compare;
mod figures;
mod fluidity;
mod loadgen;
mod over_time;
mod pareto;
