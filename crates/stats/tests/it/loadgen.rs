//! LoadGen and MLPerf Endpoints against what the official programs wrote.

#[path = "loadgen_data.rs"]
mod data;
#[path = "loadgen_schedules.rs"]
mod schedules;
