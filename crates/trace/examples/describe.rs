//! `describe FILE [--json] [--drop-failures] [--format NAME]`: what the trace in FILE is like.

use std::io::Write;
use std::process::ExitCode;
use tailbound_trace::{Failures, Format, Options, describe, open};

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Box<dyn std::error::Error>> {
    let mut options = Options { failures: Failures::Keep, ..Options::default() };
    let (mut file, mut json) = (None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--drop-failures" => options.failures = Failures::Drop,
            "--format" => {
                options.format = Some(args.next().as_deref().and_then(Format::from_word).ok_or("unknown format")?)
            }
            _ => file = Some(arg),
        }
    }
    let file = file.ok_or("usage: describe FILE [--json] [--drop-failures] [--format NAME]")?;
    let description = describe(&mut open(file, &options)?)?;
    Ok(if json { serde_json::to_string_pretty(&description)? + "\n" } else { description.to_string() })
}
