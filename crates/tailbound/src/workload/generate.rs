//! `tailbound workload generate --model MODEL.json --output FILE`.

use super::{OutputFormat, account, place, unwritable};
use crate::failure::{Failure, Outcome};
use crate::units;
use clap::Args;
use std::path::PathBuf;
use tailbound_clock::{Dur, Seed};
use tailbound_trace::generate::{ClientModel, Generate, Model, generate};
use tailbound_trace::write;

/// Draw a workload from a model.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// What `tailbound workload fit` wrote
    #[arg(long, value_name = "MODEL.json")]
    model: PathBuf,
    /// The same seed draws the same workload, on every machine
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// How long it lasts; by default as long as the trace the model was learned from
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
}

/// They are drawn in memory before they are written.
const MOST_ROWS: f64 = 1e8;

/// Reads the model, draws, writes.
pub fn run(args: &GenerateArgs) -> Outcome<()> {
    if args.duration == Some(Dur::ZERO) {
        return Err(Failure::usage("--duration must be above zero"));
    }
    let model = model(args)?;
    let ask = Generate { duration_s: args.duration.map(|d| d.ns() as f64 / 1e9), rate_scale: args.rate_scale };
    let during = format!("drawing from {}", args.model.display());
    let rows = expected(&model, &ask);
    if rows > MOST_ROWS {
        let hint = "shorten --duration or lower --rate-scale";
        return Err(Failure::new(format!("it would be about {rows:.1e} requests, more than {MOST_ROWS:.0e}"))
            .during(during)
            .hint(hint));
    }
    let trace = generate(&model, &ask, Seed(args.seed)).map_err(|e| Failure::new(e).during(&during))?;
    if trace.rows.is_empty() {
        let hint = "a longer --duration or a larger --rate-scale gives more; another --seed may";
        return Err(Failure::new("the draw gave no requests").during(during).hint(hint));
    }
    place::write(&args.output, |sink| {
        write(&trace, args.output_format.output(), sink).map_err(unwritable(&args.output))
    })?;
    eprint!("{}", account(&trace.accounting));
    eprintln!(
        "written: {} rows over {} s, to {}",
        trace.rows.len(),
        trace.span_ns() as f64 / 1e9,
        place::name(&args.output)
    );
    Ok(())
}

fn model(args: &GenerateArgs) -> Outcome<Model> {
    let name = args.model.display();
    let unreadable = |what: String| {
        Failure::new(format!("failed to read {name}: {what}"))
            .hint("`tailbound workload fit TRACE --output FILE` makes a model")
    };
    let text = std::fs::read(&args.model).map_err(|e| unreadable(e.to_string()))?;
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
