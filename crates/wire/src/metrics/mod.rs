//! Pages of metrics: Prometheus' text format and OpenMetrics, and what the figures of serving systems mean.
//!
//! Nobody else in this workspace reads `/metrics`. A page is first read as it stands ([`samples`]), then its figures are put into the words
//! that all kinds of servers share ([`reading`]).

mod known;
mod text;

pub use known::reading;
pub use text::{Labels, Sample, samples};

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMetrics {
    /// It isn't text.
    #[error("it is not text{}", if *.gzip { " (it is compressed, which nobody asked for)" } else { "" })]
    NotText {
        /// Whether it begins as gzip does.
        gzip: bool,
    },
    /// A line that the format does not allow.
    #[error("line {line} is not in Prometheus' format: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// No figure in it is known here.
    #[error("no figure in it is known here")]
    Unknown,
}
