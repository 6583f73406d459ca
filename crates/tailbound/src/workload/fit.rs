//! `tailbound workload fit FILE --output MODEL.json`.

use super::{SourceArgs, account, place, unreadable};
use crate::failure::{Failure, Outcome};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tailbound_trace::{Trace, generate};

/// Learn a model from a trace.
#[derive(Args, Debug)]
pub struct FitArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Where the model goes, as JSON (- for stdout)
    #[arg(long, value_name = "MODEL.json")]
    output: PathBuf,
}

/// Reads, learns, writes the model. Failed requests are learned like others: they arrived.
pub fn run(args: &FitArgs) -> Outcome<()> {
    let trace = Trace::collect(args.source.open()?).map_err(unreadable)?;
    eprint!("{}", account(&trace.accounting));
    let model = generate::fit(&trace).map_err(|e| {
        Failure::new(e)
            .during(format_args!("learning from {}", args.source.file.display()))
            .hint("`tailbound workload describe` tells whether a trace has times")
    })?;
    place::write(&args.output, |sink| {
        serde_json::to_writer(&mut *sink, &model)
            .map_err(std::io::Error::from)
            .and_then(|()| sink.write_all(b"\n"))
            .map_err(|e| Failure::new(format!("failed to write {}: {e}", args.output.display())))
    })?;
    let named = model.clients.iter().filter(|c| c.name.is_some()).count();
    eprintln!("model: clients with a name: {named}; others, taken together: {}", model.clients.len() - named);
    eprintln!("written: {} s of habits to {}", model.span_s, place::name(&args.output));
    Ok(())
}
