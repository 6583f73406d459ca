//! MLPerf Endpoints v1.0: the curve of system throughput against speed for each user.
//!
//! Sources: the rules (v1.0 draft), the reference client and the official submission checker, against whose outputs the
//! tests hold every part.

pub mod block;
pub mod check;
pub mod client;
pub mod export;
pub mod passes;
pub mod plan;
pub mod point;
pub mod regions;
pub mod steady;
pub mod trend;
