//! What a detection says in `point.yaml`.

use serde::Serialize;

use super::steady::{Detection, Trend};

/// The words of `point.yaml`'s `steady_state` block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// `windowable`, `insufficient_duration`, `insufficient_passes` or `partial_dataset`.
    pub status: &'static str,
    /// `STEADY STATE`, `drifting_up`, `drifting_down`, `anomaly` or `not found`.
    pub verdict: &'static str,
    /// The window, if there is one.
    pub window: Option<BlockWindow>,
    /// Each watched metric: `Plateau`, `Drifting Up` or `Drifting Down`.
    pub state: Vec<(&'static str, &'static str)>,
}

/// A window as `point.yaml` has it: super-passes counted from the start of the run, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // the file's names
pub struct BlockWindow {
    pub super_pass_start: usize,
    pub super_pass_end: usize,
    pub super_pass_size: usize,
    pub n_samples: usize,
    pub duration_s: f64,
}

impl Detection {
    /// The block for `point.yaml`, which no official tool writes.
    pub fn block(&self, super_pass_size: usize) -> Block {
        let gated_drift = self.trend.iter().any(|(name, t)| name.starts_with("tpot") && *t == Trend::Up);
        let gated_fall = self.trend.iter().any(|(name, t)| name.starts_with("tpot") && *t == Trend::Down);
        let status = match (&self.window, self.found) {
            (Some(_), true) => "windowable",
            (Some(_), false) => "insufficient_duration",
            (None, _) if self.warmup + self.passes == 0 => "partial_dataset",
            (None, _) => "insufficient_passes",
        };
        let verdict = match (self.found, &self.anomaly) {
            (true, Some(_)) => "anomaly",
            (true, None) => "STEADY STATE",
            _ if gated_drift => "drifting_up",
            _ if gated_fall => "drifting_down",
            _ => "not found",
        };
        let word = |name: &str| match self.drifting().find(|(n, _)| *n == name) {
            Some((_, Trend::Up)) => "Drifting Up",
            Some((_, Trend::Down)) => "Drifting Down",
            _ => "Plateau",
        };
        // Inside a window that was found every gated metric is flat, whatever comes after it.
        let state = self.trend.iter().map(|&(name, _)| {
            let gated = self.found && name.starts_with("tpot");
            (name, if gated { "Plateau" } else { word(name) })
        });
        Block {
            status,
            verdict,
            window: self.window.as_ref().map(|w| BlockWindow {
                super_pass_start: self.warmup + w.first,
                super_pass_end: self.warmup + w.end - 1,
                super_pass_size,
                n_samples: w.samples,
                duration_s: w.required.window_s,
            }),
            state: state.collect(),
        }
    }
}
