//! Whether the run counts: VALID, or INVALID with every reason.
//!
//! A run is INVALID when its numbers describe this client, or another load than the one asked for. An objective that was
//! missed does not make a run invalid, and an invalid run proves nothing about objectives.

mod checks;
mod words;

use crate::{RunFacts, Summary};

/// What the client knows about its own condition during the run. Everything is optional: what was not measured is not judged.
#[derive(Clone, Debug, Default)]
pub struct ClientHealth {
    /// How late each send left, ns: the pacer's own figures, instead of those in the rows.
    pub lateness_ns: Option<Vec<u64>>,
    /// How late a timer probe woke, ns: the machine's scheduling noise.
    pub probe_noise_ns: Option<Vec<u64>>,
    /// CPU time of this process / (wall time × threads that carry the load), 0–1.
    pub cpu_share: Option<f64>,
    /// Share of events that shared a read, if it is not to be taken from the rows.
    pub coalesced_share: Option<f64>,
    /// 99th percentile of how long received bytes waited for this process to read them, ns.
    pub reader_late_p99_ns: Option<f64>,
    /// The limit on open files was hit.
    pub fd_limit_hit: Option<bool>,
    /// Local ports ran out.
    pub port_limit_hit: Option<bool>,
    /// What this machine's client is known to be good for (`tailbound calibrate`): 99th percentile of its send lateness at the load in
    /// question, ns.
    pub calibrated_lateness_p99_ns: Option<f64>,
}

/// How much of what makes a run invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Sends may be late at p99 by this much in any case, ns.
    pub lateness_ns: f64,
    /// Or by this share of the median TTFT.
    pub lateness_share: f64,
    /// The achieved rate must be at least this share of the scheduled one.
    pub rate_share: f64,
    /// Share of requests of an open-loop run that the cap may hold back beyond the bound on lateness.
    pub capped_share: f64,
    /// Share of events that may share a read.
    pub coalesced_share: f64,
    /// CPU share at which the client counts as saturated.
    pub cpu_share: f64,
    /// Share of planned requests that may fail on the server's or the network's side.
    pub error_share: f64,
    /// How far forced output lengths may be off, as a share.
    pub output_off: f64,
    /// How far prompt lengths may be off, as a share.
    pub prompt_off: f64,
    /// How far our tokenizer and the server's usage may disagree, as a share.
    pub recount_off: f64,
    /// Percentiles about to be reported, for the check on sample sizes.
    pub percentiles: Vec<f64>,
    /// Whether too few samples (or a noisy machine) make the run invalid rather than only cautioned about.
    pub demanding: bool,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lateness_ns: 1e6,
            lateness_share: 0.01,
            rate_share: 0.99,
            capped_share: 0.01,
            coalesced_share: crate::summary::COALESCED_BOUND,
            cpu_share: 0.95,
            error_share: 0.01,
            output_off: 0.01,
            prompt_off: 0.05,
            recount_off: 0.10,
            percentiles: vec![99.0],
            demanding: false,
        }
    }
}

/// What a reason or a caution is about. Names are stable: scripts may test for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// Nothing completed.
    NothingCompleted,
    /// Sends left later than scheduled.
    SendsLate,
    /// The rate asked for was not reached.
    RateShort,
    /// The cap held an open loop back.
    CapShaped,
    /// This client's CPU was used up.
    ClientSaturated,
    /// Events were read together because the reader was late, or nobody knows why.
    ReadsShared,
    /// The reader was later than the median gap between tokens.
    ReaderLate,
    /// The scheduler woke a timer late.
    NoisyMachine,
    /// Files or ports ran out.
    LocalLimit,
    /// Generated lengths are not those asked for.
    OutputLengths,
    /// Prompt lengths are not those asked for.
    PromptLengths,
    /// Too many errors on the server's or the network's side.
    ServerErrors,
    /// Our tokenizer and the server's usage disagree.
    TokenCounts,
    /// A percentile rests on too few samples.
    FewSamples,
    /// The server fell behind the arrivals.
    Backlog,
    /// Receive times were taken by this process, not the kernel.
    UserStamps,
    /// Output tokens are events, because nobody counted them.
    TokensUncounted,
    /// Somebody stopped the run.
    Interrupted,
}

impl Code {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Code::NothingCompleted => "nothing_completed",
            Code::SendsLate => "sends_late",
            Code::RateShort => "rate_short",
            Code::CapShaped => "cap_shaped_the_load",
            Code::ClientSaturated => "client_saturated",
            Code::ReadsShared => "reads_shared",
            Code::ReaderLate => "reader_late",
            Code::NoisyMachine => "noisy_machine",
            Code::LocalLimit => "local_limit",
            Code::OutputLengths => "output_lengths_off",
            Code::PromptLengths => "prompt_lengths_off",
            Code::ServerErrors => "server_errors",
            Code::TokenCounts => "token_counts_disagree",
            Code::FewSamples => "too_few_samples",
            Code::Backlog => "server_backlog",
            Code::UserStamps => "user_space_stamps",
            Code::TokensUncounted => "tokens_uncounted",
            Code::Interrupted => "interrupted",
        }
    }
}

/// One reason against a run, or one caution about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// What it is about.
    pub code: Code,
    /// What was found, in a sentence without a full stop.
    pub sentence: String,
    /// The figures behind it: name with its unit, value.
    pub figures: Vec<(&'static str, f64)>,
    /// What would mend it.
    pub mend: String,
}

/// The verdict on the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why the run does not count; empty for a valid one.
    pub reasons: Vec<Reason>,
    /// What to bear in mind beside the numbers.
    pub cautions: Vec<Reason>,
}

impl Verdict {
    /// Whether the run counts.
    pub fn valid(&self) -> bool {
        self.reasons.is_empty()
    }

    /// `VALID` or `INVALID`.
    pub fn word(&self) -> &'static str {
        if self.valid() { "VALID" } else { "INVALID" }
    }
}

/// Judges a run by its rows' summary and what its client knows of itself.
pub fn judge(summary: &Summary, facts: &RunFacts, health: &ClientHealth, bounds: &Bounds) -> Verdict {
    let mut verdict = Verdict::default();
    let case = checks::Case { summary, facts, health, bounds };
    for check in checks::ALL {
        for (against, reason) in check(&case) {
            match against {
                checks::Against::Run => verdict.reasons.push(reason),
                checks::Against::Number => verdict.cautions.push(reason),
            }
        }
    }
    verdict
}
