//! A run made again from what its folder kept: the same flags, the same plan, the same judgement.

use super::args::ServeArgs;
use super::journal::Kept;
use super::live::{self, Gathered, Ran};
use super::plan;
use crate::cli::{BenchCommand, Cli, Command, normalized};
use crate::failure::{Failure, Outcome};
use clap::Parser;

/// A run and what it was asked for with.
pub struct Again {
    /// Its flags.
    pub args: ServeArgs,
    /// Its rows and what they came to.
    pub ran: Ran,
    /// When it started, ms since 1970.
    pub started_at_ms: u64,
}

/// Rebuilds a run. One that died is as if interrupted.
pub fn again(kept: Kept) -> Outcome<Again> {
    let mut args = flags(&kept)?;
    args.load.phased = kept.names.phased.clone().map(Into::into);
    let replay = kept.names.replay.as_ref();
    let mut plan = plan::plan(&args.load, replay)?;
    // The passes of a point go round its prompts.
    if kept.names.point.is_none() {
        plan = plan::fit(&args.load, replay, plan, kept.names.num_prompts)?;
    }
    let facts = plan::facts(&args, &plan, replay)?;
    let gathered = Gathered { rows: kept.rows, scrapes: kept.scrapes };
    let ran = live::assemble(&args, &plan, facts, &kept.names, gathered, kept.ending)?;
    let started_at_ms = kept.names.unix_ms(ran.facts.start);
    Ok(Again { args, ran, started_at_ms })
}

fn flags(kept: &Kept) -> Outcome<ServeArgs> {
    let cli = Cli::try_parse_from(normalized(kept.names.argv.iter().map(Into::into)))
        .map_err(|e| Failure::new(format!("failed to understand the run's own command: {}", e.kind())))?;
    let command = match cli.command {
        Command::Bench(bench) => bench.command,
        _ => return Err(Failure::new("the folder does not hold a run of `bench serve`")),
    };
    let mut args = match (command, kept.names.point) {
        (BenchCommand::Serve(serve), _) => *serve,
        (BenchCommand::Compare(compare), Some(shape)) => compare.serve(shape, None, None),
        (BenchCommand::Curve(curve), Some(shape)) => curve.serve(shape, None),
        (BenchCommand::Capacity(capacity), Some(shape)) => capacity.serve(shape, None),
        _ => {
            return Err(Failure::new(
                "the folder does not hold a run of `bench serve`, nor a point of a curve or a search",
            ));
        }
    };
    (args.report.save_result, args.report.append_result) = (false, false);
    Ok(args)
}
