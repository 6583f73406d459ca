//! The report for people, 80 columns wide.

mod failures;
mod figures;
mod groups;
mod own;
mod plain;
mod servers;
mod trace;
mod vllm;
mod wrap;

use crate::Run;
pub(crate) use figures::percent;
pub(crate) use own::metric_name;
pub(crate) use plain::sentences as plain_words;
pub(crate) use servers::{range as server_range, sentence as server_sentence};
pub(crate) use wrap::paragraph;

/// Whether to colour the words that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    #[default]
    Off,
    /// ANSI colours.
    On,
}

/// The whole report: failures if there were any, vLLM's block, Tailbound's block.
pub fn report(run: &Run<'_>, colour: Colour) -> String {
    let mut out = failures(run);
    out += &vllm_report(run);
    out += &own_report(run, colour);
    out
}

/// The block of `vllm bench serve` 0.33: its lines, order, widths and definitions.
pub fn vllm_report(run: &Run<'_>) -> String {
    vllm::block(run)
}

/// Tailbound's own block: verdict, objectives, rates, latencies from both starts, and what they mean in plain words.
pub fn own_report(run: &Run<'_>, colour: Colour) -> String {
    own::block(run, colour)
}

/// What became of a replayed trace's rows: names and values, for a plan.
pub fn trace_account(account: &crate::TraceAccount) -> Vec<(String, String)> {
    trace::lines(account)
}

/// The first ten failures as vLLM lists them, then all of them by cause. Empty if there were none.
pub fn failures(run: &Run<'_>) -> String {
    failures::block(run)
}

/// How every figure of this run's report is defined: name, formula, start.
pub fn explanations(run: &Run<'_>) -> String {
    let shown = vllm_report(run) + &own_report(run, Colour::Off);
    let mut out = String::new();
    for entry in crate::explain::of_report(&shown) {
        wrap::paragraph(&mut out, &format!("{}: ", entry.label), "    ", entry.text);
    }
    out
}
