//! `tailbound workload convert FILE --output FILE`: another format, and transforms on the way.

use super::{OutputFormat, SourceArgs, account, open_trace, place, unreadable, write_trace};
use crate::failure::{Failure, Outcome};
use crate::units;
use clap::Args;
use std::path::PathBuf;
use tailbound_clock::{Dur, Seed};
use tailbound_trace::transform::Unit;
use tailbound_trace::{Names, Trace};

/// Write a trace in another format. First what is kept (window, samples), then what is added (merge, number), then lengths and time.
#[derive(Args, Debug)]
pub struct ConvertArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Where the result goes (- for stdout)
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Its format
    #[arg(long, value_enum)]
    output_format: OutputFormat,
    /// Keep the pattern, change the mean rate: by a factor (`2`), or to a rate (`20/s`)
    #[arg(long, value_name = "X", value_parser = rate_scale, conflicts_with = "speed_up")]
    rate_scale: Option<RateScale>,
    /// Divide all times by this; waits inside sessions stay
    #[arg(long, value_name = "X", value_parser = factor)]
    speed_up: Option<f64>,
    /// Keep the arrivals from FROM on and before TO, counted from the first: `10min..1h`, `..30s`, `1h..`
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    window: Option<Window>,
    /// Keep this share of the sessions, each whole: `0.1` or `10%`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sample_sessions: Option<f64>,
    /// Keep this share of the clients, each with all it sends
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "sample_sessions")]
    sample_clients: Option<f64>,
    /// Which sessions or clients a sample keeps
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Another trace to add, from its own beginning; may be given again
    #[arg(long, value_name = "FILE")]
    merge: Vec<PathBuf>,
    /// Exactly so many rows: the first, or the whole trace over and over with new sessions
    #[arg(long, value_name = "N", value_parser = units::count32)]
    num_prompts: Option<u32>,
    /// Factor on prompt lengths; shared beginnings grow with them
    #[arg(long, value_name = "X", value_parser = factor)]
    input_scale: Option<f64>,
    /// Factor on output lengths
    #[arg(long, value_name = "X", value_parser = factor)]
    output_scale: Option<f64>,
    /// Cut every group of prompts that share a beginning into so many that don't share with each other
    #[arg(long, value_name = "N", value_parser = units::some32)]
    prefix_roots: Option<u32>,
    /// Shorten every silence to this at most
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    max_gap: Option<Dur>,
}

/// How much faster a trace is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateScale {
    /// So many times as fast.
    Factor(f64),
    /// To this mean rate.
    PerSecond(f64),
}

/// In nanoseconds after the first arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The first moment of it.
    pub from: i64,
    /// The first moment after it.
    pub to: i64,
}

/// Reads, transforms, writes; says on stderr what became of every row.
pub fn run(args: &ConvertArgs) -> Outcome<()> {
    args.output_format.fits(&args.output)?;
    let mut trace = Trace::collect(args.source.open()?).map_err(unreadable)?;
    let mut told = account(&trace.accounting);
    let done = transform(args, &mut trace, &mut told);
    eprint!("{told}");
    done?;
    if trace.rows.is_empty() {
        return Err(Failure::new("no rows are left to write").hint("widen --window or --sample-sessions"));
    }
    write_trace(&trace, args.output_format, &args.output)?;
    eprintln!("written: {} rows to {}", trace.rows.len(), place::name(&args.output));
    Ok(())
}

fn transform(args: &ConvertArgs, trace: &mut Trace, told: &mut String) -> Outcome<()> {
    let during = format!("converting {}", args.source.file.display());
    let failed = |e: tailbound_trace::Error| Failure::new(e).during(&during);
    if let Some(window) = args.window {
        let gone = trace.window(window.from, window.to);
        *told += &format!("  window: {gone} rows outside left out\n");
    }
    if let Some(share) = args.sample_sessions {
        let gone = trace.sample(Unit::Session, share, Seed(args.seed)).map_err(failed)?;
        *told += &format!("  sample: {gone} rows of other sessions left out\n");
    }
    if let Some(share) = args.sample_clients {
        let gone = trace.sample(Unit::Client, share, Seed(args.seed)).map_err(failed)?;
        *told += &format!("  sample: {gone} rows of other clients left out\n");
    }
    for file in &args.merge {
        let other = Trace::collect(open_trace(file, &args.source.options())?).map_err(unreadable)?;
        *told += &format!("  merged: {} rows of {}\n", other.rows.len(), file.display());
        let own = std::mem::replace(trace, Trace::of_rows(Vec::new(), Names::default(), None));
        *trace = Trace::merge(vec![own, other]).map_err(failed)?;
    }
    if let Some(n) = args.num_prompts {
        *told += &format!("  rows: {n} of {}\n", trace.rows.len());
        trace.take_exactly(n as usize).map_err(failed)?;
    }
    if args.input_scale.is_some() || args.output_scale.is_some() {
        trace.multiply_lengths(args.input_scale.unwrap_or(1.0), args.output_scale.unwrap_or(1.0)).map_err(failed)?;
    }
    if let Some(roots) = args.prefix_roots {
        trace.split_prefixes(roots).map_err(failed)?;
    }
    if let Some(cap) = args.max_gap {
        let capped = trace.cap_gaps(i64::try_from(cap.ns()).unwrap_or(i64::MAX));
        let removed = capped.removed_ns as f64 / 1e9;
        *told += &format!("  gaps: {} shortened, {removed} s of silence taken out\n", capped.gaps);
    }
    let factor = match (args.rate_scale, args.speed_up) {
        (Some(RateScale::PerSecond(rate)), _) => Some(trace.scale_to_rate(rate).map_err(failed)?),
        (Some(RateScale::Factor(x)), _) | (_, Some(x)) => {
            trace.speed_up(x).map_err(failed)?;
            Some(x)
        }
        (None, None) => None,
    };
    if let Some(x) = factor {
        *told += &format!("  speed: {x} times the trace's\n");
    }
    Ok(())
}

/// A factor above zero.
pub fn factor(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches(['x', '×']).parse() {
        Ok(x) if x > 0.0 && f64::is_finite(x) => Ok(x),
        _ => Err(format!("`{text}` is not a factor above zero, such as `2` or `0.5`")),
    }
}

/// A factor, or a rate.
pub fn rate_scale(text: &str) -> Result<RateScale, String> {
    if !text.contains('/') {
        return factor(text).map(RateScale::Factor);
    }
    match units::rate(text)? {
        rate if rate > 0.0 && rate.is_finite() => Ok(RateScale::PerSecond(rate)),
        _ => Err(format!("`{text}` is not a rate above zero, such as `20/s`")),
    }
}

/// A share above 0 and up to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, of) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    match number.trim().parse::<f64>() {
        Ok(x) if x > 0.0 && x <= of => Ok(x / of),
        _ => Err(format!("`{text}` is not a share above 0 and up to 1, such as `0.1` or `10%`")),
    }
}

/// `FROM..TO`.
pub fn window(text: &str) -> Result<Window, String> {
    let (from, to) =
        text.split_once("..").ok_or_else(|| format!("`{text}` should read FROM..TO, as in `10min..1h`"))?;
    let end = |text: &str, open: i64| match text.trim() {
        "" => Ok(open),
        time => units::duration(time).map(|d| i64::try_from(d.ns()).unwrap_or(i64::MAX)),
    };
    let window = Window { from: end(from, 0)?, to: end(to, i64::MAX)? };
    if window.from >= window.to {
        return Err(format!("`{text}` is empty: FROM must be before TO"));
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_windows_and_shares_are_read_as_written() {
        assert_eq!(rate_scale("2"), Ok(RateScale::Factor(2.0)));
        assert_eq!(rate_scale("0.5x"), Ok(RateScale::Factor(0.5)));
        assert_eq!(rate_scale("120/min"), Ok(RateScale::PerSecond(2.0)));
        assert!(rate_scale("0").is_err() && rate_scale("-2/s").is_err() && rate_scale("inf/s").is_err());
        assert_eq!(share("10%"), Ok(0.1));
        assert!(share("0").is_err() && share("1.5").is_err() && share("nan").is_err());
        assert_eq!(window("1s..2min"), Ok(Window { from: 1_000_000_000, to: 120_000_000_000 }));
        assert_eq!(window("..3"), Ok(Window { from: 0, to: 3_000_000_000 }));
        assert_eq!(window("1h..").map(|w| w.to), Ok(i64::MAX));
        assert!(window("5").is_err() && window("2s..1s").is_err() && window("a..b").is_err());
    }
}
