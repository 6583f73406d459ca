//! The flags of runs that replay a trace or hold conversations, parsed and dumb.

use crate::units;
use crate::workload::convert::{RateScale, Window, factor, rate_scale, share, window};
use crate::workload::{columns, trace_format};
use clap::{Args, ValueEnum};
use tailbound_clock::Dur;
use tailbound_trace::{Columns, Format};

/// How a trace becomes a load.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Traces and sessions")]
pub struct TraceArgs {
    /// Requests arrive at the trace's own times (as they do unless a rate is given)
    #[arg(long, conflicts_with = "no_self_timed")]
    pub self_timed: bool,
    /// Requests arrive as --request-rate says, whatever times the trace has
    #[arg(long)]
    pub no_self_timed: bool,
    /// Keep the trace's pattern, change its mean rate: by a factor (`10`), or to a rate (`20/s`). Waits inside sessions stay
    #[arg(long, value_name = "X", value_parser = rate_scale)]
    pub rate_scale: Option<RateScale>,
    /// Only the arrivals from FROM on and before TO, counted from the first: `10min..1h`, `..30s`
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    pub window: Option<Window>,
    /// Only this share of the sessions, each whole: `0.1` or `10%`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub sample_sessions: Option<f64>,
    /// The trace's format, where its content should not decide
    #[arg(long, value_name = "NAME", value_parser = trace_format)]
    pub trace_format: Option<Format>,
    /// Where a custom trace has what: time=T,unit=s|ms|us|ns|date,input=I,output=O,session=S,client=C,model=M,class=K,text=X
    #[arg(long, value_name = "MAP", value_parser = columns)]
    pub columns: Option<Columns>,
    /// Only rows of these models
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub trace_model: Vec<String>,
    /// Only rows of these classes (BurstGPT: `API log`, `Conversation log`)
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub trace_class: Vec<String>,
    /// Tokens per prefix block, where the rows' lengths should not decide
    #[arg(long, value_name = "TOKENS", visible_alias = "timed-trace-chunk-hash-size", value_parser = units::some32)]
    pub block_tokens: Option<u32>,
    /// What the trace's times are multiplied by to be seconds
    #[arg(long, value_name = "X", value_parser = factor)]
    pub timed_trace_sec_multiplier: Option<f64>,
    /// sharegpt: send every turn of each conversation, in order, each after the answer to the one before (chat endpoints)
    #[arg(long)]
    pub multi_turn: bool,
    /// Which answers a conversation carries on: the server's own, or the recorded ones
    #[arg(long, value_enum, default_value_t = History::Server)]
    pub history: History,
    /// Wait between an answer and the session's next turn, where the trace states none
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = units::duration)]
    pub think_time: Dur,
}

/// Whose answers a conversation carries on.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// What this server answered
    Server,
    /// What the data set holds
    Recorded,
}
