//! Random workloads: laws of arrivals and of lengths, and models of clients learned from traces.

mod arrivals;
mod cascade;
mod conversation;
mod incomplete_gamma;
mod law;
mod model;
mod pdf;
mod renewal;
mod synthetic;

pub use arrivals::{Arrivals, Curve, State};
pub use cascade::Cascade;
pub use conversation::SessionModel;
pub use law::Law;
pub use model::{ClientModel, Generate, Model, fit, generate};
pub use pdf::{Copula, Pdf};
pub use renewal::{Gaps, Piece, renewal};
pub use synthetic::{Agents, Extent, Popularity, Prefixes, Sessions, Shape, Synthetic, synthesize};
