//! Random workloads: laws of arrivals and of lengths, and models of clients learned from traces.

mod cascade;
mod model;
mod pdf;
mod renewal;

pub use cascade::Cascade;
pub use model::{ClientModel, Generate, Model, fit, generate};
pub use pdf::{Copula, Pdf};
pub use renewal::{Gaps, Piece, renewal};
