//! LoadGen and MLPerf Endpoints against what the official programs wrote.

#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "loadgen_audit.rs"]
mod audit;
#[path = "loadgen_check.rs"]
mod check;
#[path = "loadgen_conf.rs"]
mod conf;
#[path = "loadgen_data.rs"]
mod data;
#[path = "loadgen_drive.rs"]
mod drive;
#[path = "loadgen_endpoints.rs"]
mod endpoints;
#[path = "loadgen_export.rs"]
mod export;
#[path = "loadgen_improved.rs"]
mod improved;
#[path = "loadgen_isca.rs"]
mod isca;
#[path = "loadgen_point.rs"]
mod point;
#[path = "loadgen_runs.rs"]
mod runs;
#[path = "loadgen_scenario.rs"]
mod scenario;
#[path = "loadgen_schedules.rs"]
mod schedules;
#[path = "loadgen_steady.rs"]
mod steady;
#[path = "loadgen_verdict.rs"]
mod verdict;
