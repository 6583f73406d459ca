//! A trace, or a data set of conversations, as a load: read, cut, scaled, and every row of it accounted for.

mod outline;
mod prompts;
mod source;
mod turns;

use super::args::ServeArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::workload::convert::RateScale;
pub use outline::{Labels, Outline};
use source::Source;
use std::sync::Arc;
use tailbound_clock::{Dur, Seed};
use tailbound_prompt as prompt;
use tailbound_report::TraceAccount;
use tailbound_trace::transform::Unit;
use tailbound_trace::{Body, Row, Trace};

/// A trace about to be replayed.
pub struct Replay {
    trace: Trace,
    /// What the plan and the report need to know of it.
    pub outline: Outline,
}

/// Nobody is surprised by a shorter run.
const LONG: Dur = Dur::from_secs(600);

/// The trace that the flags name; `None` for data sets of another kind.
pub fn read(args: &ServeArgs) -> Outcome<Option<Replay>> {
    let Some(source) = Source::of(args)? else { return refuse_trace_flags(args).map(|()| None) };
    let mut trace = source.collect(args)?;
    let mut account = TraceAccount {
        source: source.path().display().to_string(),
        format: source.format(&trace),
        rows_read: trace.accounting.rows_read,
        dropped: trace.accounting.dropped.iter().map(|(why, s)| (why.word(), s.count, s.first_row)).collect(),
        ..TraceAccount::default()
    };
    tell_notices(&trace);
    turns::note_waits(&mut trace);
    transform(args, &mut trace, &mut account)?;
    let timed = timed(args, &trace)?;
    let sessions = turns::sessions(&trace, timed, args)?;
    account.sessions = sessions.as_ref().map(|s| s.begun(s.turns.len()) as u64);
    account.rows_planned = trace.rows.len() as u64;
    let span = Dur(trace.span_ns().max(0).unsigned_abs());
    if timed && (source.tells_timing() || span > LONG) {
        output::note(&format!(
            "arrivals follow the trace's own times, over {span}; --rate-scale is faster, --no-self-timed or a --request-rate sends by a law"
        ));
    }
    let turns = outline::turn_labels(sessions.as_ref());
    let outline = Outline {
        schedule: timed.then(|| trace.schedule()),
        sessions,
        account,
        forced: trace.rows.iter().all(|row| row.more.as_ref().is_none_or(|more| more.body == Body::None)),
        classes: outline::labels(&trace, |row| row.class),
        clients: outline::labels(&trace, |row| row.client),
        turns,
    };
    Ok(Some(Replay { trace, outline }))
}

impl Replay {
    /// What the prompts are made from.
    pub fn data_set(&self, args: &ServeArgs) -> Outcome<prompt::DataSet> {
        prompts::data_set(&self.trace, args).map(prompt::DataSet::Rows)
    }

    /// The recorded answers, where turns carry on a conversation; `None` where every prompt is whole as it is.
    pub fn answers(&self) -> Option<Vec<Arc<str>>> {
        let rows = &self.trace.rows;
        let answer = |row: &Row| row.more.as_ref().and_then(|more| more.answer.as_deref()).map_or("".into(), Arc::from);
        rows.iter().any(turns::carries_on).then(|| rows.iter().map(answer).collect())
    }
}

/// Window first, then the sample, then the number asked for, then speed.
fn transform(args: &ServeArgs, trace: &mut Trace, account: &mut TraceAccount) -> Outcome<()> {
    let failed = |e: tailbound_trace::Error| Failure::new(e).during("preparing the trace");
    let flags = &args.trace;
    if let Some(x) = flags.timed_trace_sec_multiplier {
        trace.speed_up(1.0 / x).map_err(failed)?;
    }
    if let Some(window) = flags.window {
        account.outside_window = trace.window(window.from, window.to);
    }
    if let Some(share) = flags.sample_sessions {
        account.not_sampled = trace.sample(Unit::Session, share, Seed(args.load.seed)).map_err(failed)?;
    }
    if trace.rows.is_empty() {
        return Err(Failure::usage("no row of the trace is left to send").hint("widen --window or --sample-sessions"));
    }
    if trace.times().is_empty() && !args.data.disable_shuffle {
        turns::shuffle_sessions(trace, Seed(args.load.seed));
    }
    let have = trace.rows.len();
    let asked = args.load.num_prompts.map_or(have, |n| n as usize);
    let wanted = if args.data.no_oversample { asked.min(have) } else { asked };
    account.beyond_count = have.saturating_sub(wanted) as u64;
    account.repeated = wanted.saturating_sub(have) as u64;
    trace.take_exactly(wanted).map_err(failed)?;
    account.speed = match flags.rate_scale {
        None => None,
        Some(RateScale::PerSecond(rate)) => Some(trace.scale_to_rate(rate).map_err(failed)?),
        Some(RateScale::Factor(x)) => trace.speed_up(x).map(|()| Some(x)).map_err(failed)?,
    };
    Ok(())
}

/// Whether requests arrive at the trace's times.
fn timed(args: &ServeArgs, trace: &Trace) -> Outcome<bool> {
    let has_times = !trace.times().is_empty();
    if args.trace.self_timed && !has_times {
        return Err(Failure::usage("--self-timed: the trace has no times").hint("give a --request-rate instead"));
    }
    let timed = has_times && !by_law(args);
    let scaled = args.trace.rate_scale.is_some() || args.trace.window.is_some();
    match (timed, scaled) {
        (false, true) => {
            Err(Failure::usage("--rate-scale and --window are about the trace's own times, which are not used here")
                .hint("drop them, or drop --request-rate and --no-self-timed"))
        }
        _ => Ok(timed),
    }
}

/// Whether the flags ask for arrivals by a law rather than by a trace.
fn by_law(args: &ServeArgs) -> bool {
    let load = &args.load;
    args.trace.no_self_timed
        || (!args.trace.self_timed && (load.request_rate.is_some() || load.ramp_up_strategy.is_some()))
}

/// Flags about traces are refused, not ignored, where there is no trace.
fn refuse_trace_flags(args: &ServeArgs) -> Outcome<()> {
    let t = &args.trace;
    let given = [
        ("--self-timed", t.self_timed),
        ("--rate-scale", t.rate_scale.is_some()),
        ("--window", t.window.is_some()),
        ("--sample-sessions", t.sample_sessions.is_some()),
        ("--trace-format", t.trace_format.is_some()),
        ("--columns", t.columns.is_some()),
        ("--trace-model", !t.trace_model.is_empty()),
        ("--trace-class", !t.trace_class.is_empty()),
        ("--block-tokens", t.block_tokens.is_some()),
        ("--timed-trace-sec-multiplier", t.timed_trace_sec_multiplier.is_some()),
        ("--multi-turn", t.multi_turn),
        ("--think-time", t.think_time != Dur::ZERO),
    ];
    let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let name = &args.data.dataset_name;
    let failure = Failure::usage(format!("{flag}: the data set {name} is no trace"));
    Err(match flag {
        "--multi-turn" => failure.hint("--multi-turn goes with --dataset-name sharegpt or openai-messages"),
        _ => failure.hint("name one, e.g. --dataset-name trace --dataset-path FILE"),
    })
}

fn tell_notices(trace: &Trace) {
    for (what, seen) in &trace.accounting.notices {
        output::note(&format!("{} rows: {}, first at row {}", seen.count, what.word(), seen.first_row));
    }
}
