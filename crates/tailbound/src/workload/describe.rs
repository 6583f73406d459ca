//! `tailbound workload describe FILE`.

use super::{SourceArgs, account, page, place, unreadable};
use crate::bench::serve::args::Format;
use crate::failure::{Failure, Outcome};
use crate::output;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tailbound_trace::servegen::Pool;
use tailbound_trace::{Description, describe, describe::explain};

/// What a trace is like.
#[derive(Args, Debug)]
pub struct DescribeArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Result on stdout as text, or as one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Say how every figure is defined, too
    #[arg(long)]
    explain: bool,
    /// Write a page with plots, too: one file that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Reads, describes and prints. The account of the rows is part of the text; beside JSON it goes to stderr too.
pub fn run(args: &DescribeArgs) -> Outcome<()> {
    if args.source.file.is_dir() {
        return pool(args);
    }
    let description = describe(&mut args.source.open()?).map_err(unreadable)?;
    if let Some(path) = &args.html {
        place::write(path, |sink| {
            sink.write_all(page::page(&description).as_bytes())
                .map_err(|e| Failure::new(format!("failed to write {}: {e}", path.display())))
        })?;
        if path.as_os_str() == "-" {
            return Ok(());
        }
    }
    match args.format {
        Format::Text => output::print(&text(&description, args.explain)),
        Format::Json => {
            eprint!("{}", account(&description.accounting));
            output::print(&json(&description, args.explain)?)
        }
    }
}

/// A folder is a ServeGen pool: what its windows state.
fn pool(args: &DescribeArgs) -> Outcome<()> {
    if args.html.is_some() {
        return Err(Failure::usage("--html draws traces; a pool has no arrivals until `workload generate` draws them"));
    }
    let figures = Pool::open(&args.source.file).map_err(unreadable)?.figures();
    match args.format {
        Format::Text => output::print(&format!("{}  (servegen)\n{figures}", args.source.file.display())),
        Format::Json => {
            let json = serde_json::to_string_pretty(&figures);
            output::print(&(json.map_err(|e| Failure::new(format!("failed to write the description: {e}")))? + "\n"))
        }
    }
}

fn text(description: &Description, explained: bool) -> String {
    let mut text = description.to_string();
    if explained {
        text += "\nfigures (by their names in JSON)\n";
        text.extend(explain().iter().map(|d| format!("  {}\n      {}\n", d.figure, d.meaning)));
    }
    text
}

fn json(description: &Description, explained: bool) -> Outcome<String> {
    let failed = |e: serde_json::Error| Failure::new(format!("failed to write the description: {e}"));
    if !explained {
        return Ok(serde_json::to_string_pretty(description).map_err(failed)? + "\n");
    }
    let mut value = serde_json::to_value(description).map_err(failed)?;
    let definitions: serde_json::Map<String, serde_json::Value> =
        explain().iter().map(|d| (d.figure.into(), d.meaning.into())).collect();
    value["definitions"] = definitions.into();
    Ok(serde_json::to_string_pretty(&value).map_err(failed)? + "\n")
}
