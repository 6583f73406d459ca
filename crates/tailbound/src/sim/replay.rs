//! `tailbound sim replay`: what a router was told, told again.

use crate::failure::{Failure, Outcome};
use crate::output;
use clap::Args;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use tailbound_route::Router;
use tailbound_route::log::{Entry, Head, Replay, VERSION, replay};

/// `tailbound sim replay`.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// The log that `tailbound sim --router-log` wrote
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Decide by this EndpointPickerConfig instead of the log's own
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// Exit code 1 if the log's own policy decides otherwise than the log says.
pub fn run(args: &ReplayArgs) -> Outcome<u8> {
    let failed = |e: std::io::Error| Failure::usage(format!("failed to read {}: {e}", args.log.display()));
    let mut lines = BufReader::new(File::open(&args.log).map_err(failed)?).lines();
    let first = lines.next().transpose().map_err(failed)?.unwrap_or_default();
    let head: Head = parse(&args.log, 1, &first)?;
    if head.tailbound_router_log != VERSION {
        let what =
            format!("{}: version {} of the log is not known here", args.log.display(), head.tailbound_router_log);
        return Err(Failure::usage(what));
    }
    let policy = args.policy.as_deref().map(read).transpose()?;
    let config = head.config(policy.as_deref()).map_err(|e| match &args.policy {
        Some(file) => Failure::usage(format!("{}: {e}", file.display())),
        None => Failure::usage(format!("{}: {e}", args.log.display())),
    })?;
    let mut broken = None;
    let entries = lines.enumerate().map_while(|(i, line)| {
        let entry = line.map_err(failed).and_then(|line| parse::<Entry>(&args.log, i + 2, &line));
        entry.map_err(|failure| broken = Some(failure)).ok()
    });
    let replay = replay(&mut Router::new(config), entries);
    if let Some(failure) = broken {
        return Err(failure);
    }
    output::print(&told(&replay, policy.is_some()))?;
    Ok(u8::from(policy.is_none() && replay.differing > 0))
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("failed to read {}: {e}", file.display())))
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path, line: usize, text: &str) -> Outcome<T> {
    serde_json::from_str(text)
        .map_err(|e| Failure::usage(format!("{}: line {line} is no line of a router's log: {e}", file.display())))
}

fn told(r: &Replay, swapped: bool) -> String {
    let mut out = format!("{} events, {} requests\n", r.entries, r.requests);
    match r.differing {
        0 => out += "every decision as in the log\n",
        n => {
            let _ = writeln!(
                out,
                "{n} events were answered otherwise than in the log; {} requests went elsewhere",
                r.moved
            );
        }
    }
    if let (false, Some((number, log, now))) = (swapped, &r.first) {
        let _ = writeln!(out, "the first at line {}: the log says {log:?}, now {now:?}", number + 1);
    }
    if r.differing > 0 {
        out += "replica   in the log      now\n";
        for (endpoint, (was, is)) in &r.share {
            let _ = writeln!(out, "{:<9} {was:>10} {is:>8}", endpoint.0);
        }
        let _ = writeln!(out, "{:<9} {:>10} {:>8}", "refused", r.refused.0, r.refused.1);
    }
    out
}
