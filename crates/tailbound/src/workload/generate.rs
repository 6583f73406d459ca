//! `tailbound workload generate --output FILE`: from a model, from a ServeGen pool, or from laws.

mod laws;

use super::{OutputFormat, account, place, write_trace};
use crate::failure::{Failure, Outcome};
use crate::units;
use clap::Args;
use laws::LawArgs;
use std::path::{Path, PathBuf};
use tailbound_clock::{Dur, Seed};
use tailbound_trace::Trace;
use tailbound_trace::generate::{ClientModel, Extent, Generate, Model, generate, synthesize};
use tailbound_trace::servegen::{Compose, Pool, compose};

/// Draw a workload: from a model, from a ServeGen pool, or from laws.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// What `tailbound workload fit` wrote
    #[arg(long, value_name = "MODEL.json", group = "what")]
    model: Option<PathBuf>,
    /// A ServeGen pool: its folder of chunk-N-trace.csv and chunk-N-dataset.json
    #[arg(long, value_name = "FOLDER", group = "what")]
    servegen: Option<PathBuf>,
    /// The part of the pool's time: 840min..860min
    #[arg(long, value_name = "FROM..TO", value_parser = super::convert::window, requires = "servegen")]
    window: Option<super::convert::Window>,
    /// Requests per second of the whole pool, in every window of its time, instead of the pool's own
    #[arg(long, value_name = "RATE", value_parser = units::rate, requires = "servegen")]
    pool_rate: Option<f64>,
    /// Spearman's correlation of input and output tokens within a client of the pool
    #[arg(long, value_name = "R", default_value = "0", allow_negative_numbers = true, requires = "servegen")]
    client_correlation: f64,
    /// The same seed draws the same workload, on every machine
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// How long it lasts; for a model, by default as long as the trace it was learned from
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Dur>,
    /// Factor on every rate
    #[arg(long, value_name = "X", default_value = "1", value_parser = super::convert::factor)]
    rate_scale: f64,
    /// Where the workload goes (- for stdout)
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Its format
    #[arg(long, value_enum, default_value_t = OutputFormat::Canonical)]
    output_format: OutputFormat,
    #[command(flatten)]
    laws: LawArgs,
}

const EXAMPLES: &str = "\
Examples:
  tailbound workload generate --model code.json --duration 10min --output code.jsonl
  tailbound workload generate --servegen data/reason/deepseek-r1 --window 840min..860min --pool-rate 10/s --output r1.jsonl
  tailbound workload generate --arrivals gamma:5/s,cv=3 --num-prompts 1000 --input-tokens lognormal:mean=900,cv=1.2 \\
      --turns 1..8 --block-tokens 16 --output chat.jsonl";

/// They are drawn in memory before they are written.
const MOST_ROWS: f64 = 1e8;

/// Draws, and writes.
pub fn run(args: &GenerateArgs) -> Outcome<()> {
    args.output_format.fits(&args.output)?;
    if args.duration == Some(Dur::ZERO) {
        return Err(Failure::usage("--duration must be above zero"));
    }
    let trace = match (&args.model, &args.servegen) {
        (Some(path), _) => from_model(args, path)?,
        (_, Some(folder)) => from_pool(args, folder)?,
        (None, None) if args.laws.are_given() => from_laws(args)?,
        (None, None) => {
            let what = "nothing says what to draw";
            return Err(Failure::usage(what).hint("give --model, --servegen or --arrivals (--rate-series, --stages)"));
        }
    };
    if trace.rows.is_empty() {
        let hint = "a longer --duration or a larger --rate-scale gives more; another --seed may";
        return Err(Failure::new("the draw gave no requests").hint(hint));
    }
    write_trace(&trace, args.output_format, &args.output)?;
    eprint!("{}", account(&trace.accounting));
    eprintln!(
        "written: {} rows over {} s, to {}",
        trace.rows.len(),
        trace.span_ns() as f64 / 1e9,
        place::name(&args.output)
    );
    Ok(())
}

fn from_model(args: &GenerateArgs, path: &Path) -> Outcome<Trace> {
    let model = model(path)?;
    let ask = Generate { duration_s: args.duration.map(Dur::secs), rate_scale: args.rate_scale };
    let during = format!("drawing from {}", path.display());
    not_too_many(expected(&model, &ask)).map_err(|e| e.during(&during))?;
    generate(&model, &ask, Seed(args.seed)).map_err(|e| Failure::new(e).during(&during))
}

fn from_pool(args: &GenerateArgs, folder: &Path) -> Outcome<Trace> {
    let pool = Pool::open(folder).map_err(super::unreadable)?;
    let windows = pool.clients.first().map_or(&[][..], |c| &c.windows);
    let first = windows.first().map_or(0, |w| w.t);
    let last = windows.last().map_or(0, |w| w.t + pool.window_s);
    let (mut from_s, mut to_s) = (first, last);
    if let Some(window) = args.window {
        let second = |ns: i64| u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX);
        (from_s, to_s) = (second(window.from).max(first), second(window.to).min(last));
    }
    if let Some(duration) = args.duration {
        to_s = to_s.min(from_s.saturating_add(duration.secs() as u32));
    }
    let during = format!("composing from {}", folder.display());
    if from_s >= to_s {
        let hint = format!("the pool's time goes from {first} s to {last} s");
        return Err(Failure::new("nothing lies in that window").during(during).hint(hint));
    }
    let own = if args.pool_rate.is_none() { args.rate_scale } else { 1.0 };
    let rate = args.pool_rate.map(|rate| rate * args.rate_scale);
    if let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
        return Err(Failure::usage(format!("--pool-rate must be above zero, but is {rate}")));
    }
    if own != 1.0 {
        return Err(Failure::usage("--rate-scale needs --pool-rate with a pool"));
    }
    let ask = Compose { from_s, to_s, rate, rank_correlation: args.client_correlation };
    not_too_many(tailbound_trace::servegen::analytic(&pool, &ask).requests).map_err(|e| e.during(&during))?;
    compose(&pool, &ask, Seed(args.seed)).map_err(|e| Failure::new(e).during(&during))
}

fn from_laws(args: &GenerateArgs) -> Outcome<Trace> {
    let spec = args.laws.spec(args.duration, args.rate_scale)?;
    not_too_many(match spec.extent {
        Extent::Seconds(seconds) => spec.arrivals.mean_rate(seconds) * seconds,
        Extent::Requests(n) => n as f64,
    })?;
    synthesize(&spec, Seed(args.seed)).map_err(|e| Failure::new(e).during("drawing from laws"))
}

fn not_too_many(rows: f64) -> Outcome<()> {
    if rows <= MOST_ROWS {
        return Ok(());
    }
    Err(Failure::new(format!("it would be about {rows:.1e} requests, more than {MOST_ROWS:.0e}"))
        .hint("shorten --duration or lower the rate (--rate-scale)"))
}

fn model(path: &Path) -> Outcome<Model> {
    let name = path.display();
    let unreadable = |what: String| {
        Failure::new(format!("failed to read {name}: {what}"))
            .hint("`tailbound workload fit TRACE --output FILE` makes a model")
    };
    let text = std::fs::read(path).map_err(|e| unreadable(e.to_string()))?;
    let model: Model = serde_json::from_slice(&text).map_err(|e| unreadable(format!("not a model: {e}")))?;
    if !(model.span_s > 0.0 && model.span_s < 1e9) {
        return Err(unreadable(format!("span_s is {}, and must be above zero", model.span_s)));
    }
    if let Some(i) = model.clients.iter().position(|c| !usable(c)) {
        return Err(unreadable(format!("client {} is none a trace gives (was the model edited?)", i + 1)));
    }
    Ok(model)
}

fn expected(model: &Model, ask: &Generate) -> f64 {
    let learned: f64 = model.clients.iter().flat_map(|c| &c.arrivals.profile).map(|n| f64::from(*n)).sum();
    learned * ask.rate_scale * ask.duration_s.unwrap_or(model.span_s) / model.span_s
}

/// Whether drawing from it ends, and makes sense: a model may have been edited.
fn usable(client: &ClientModel) -> bool {
    let a = &client.arrivals;
    let share = |x: &f64| (0.0..=1.0).contains(x);
    let total: u64 = a.profile.iter().map(|n| u64::from(*n)).sum();
    let ends = (1.0..1e9).contains(&a.window_s) && total < 1 << 32 && a.profile.len().is_multiple_of(6);
    ends && !client.lengths.is_empty()
        && share(&a.keep_windows)
        && share(&a.keep_shares)
        && a.clumping.iter().all(|c| (0.0..1.0).contains(c))
}
