//! `tailbound bench serve`: flags → plan → prompts → run → report → exit code, in that order.

mod again;
pub mod args;
pub mod data;
pub mod data_args;
pub mod discover;
pub mod journal;
pub mod judge;
pub mod live;
pub mod page;
pub mod passes;
pub mod plan;
pub mod preset;
pub mod refused;
pub mod replay;
pub mod requests;
mod save;
pub mod target;
pub mod tokens;
pub mod trace_args;

use super::scenario::thresholds::Watcher;
use crate::bundle::{self, Kind};
use crate::failure::{Outcome, exit};
use crate::http::Server;
use crate::output;
use crate::server_metrics;
pub use again::{Again, again};
use args::{Format, ServeArgs};
pub use discover::Model;
use judge::Judged;
use live::Ran;
use requests::Prepared;
use tailbound_prompt::DataSet;
pub use target::Endpoint;
pub use tokens::Counter;

/// Runs the command; the exit code tells the verdict.
pub fn run(args: &ServeArgs) -> Outcome<u8> {
    let ran = match measure(args)? {
        Some(ran) => ran,
        None => return Ok(0), // a dry run
    };
    let code = tell(args, &ran)?;
    if let Some(folder) = &args.report.run_dir {
        let published = Judged::new(args, &ran)?.json(args) + "\n";
        bundle::seal(folder, Kind::Run, ran.plan.clone(), &[(bundle::RESULT, published)])?;
    }
    Ok(code)
}

/// Prints and saves what a run came to; the exit code tells the verdict.
pub fn tell(args: &ServeArgs, ran: &Ran) -> Outcome<u8> {
    let judged = Judged::new(args, ran)?;
    // Saved first, so that "saved to …" stands above the report; but a save that fails must not cost the report.
    let saved = save::result(args, &judged);
    output::print(&match args.report.format {
        Format::Text => judged.text(args.report.explain),
        Format::Json => judged.json(args) + "\n",
    })?;
    saved?;
    Ok(if args.report.no_fail && !ran.facts.interrupted { 0 } else { judged.exit_code() })
}

/// Everything up to the rows. `None` for a dry run.
pub fn measure(args: &ServeArgs) -> Outcome<Option<Ran>> {
    // What needs no network is judged first, so that a typing error costs nothing.
    refused::check(args)?;
    plan::check_selection(&args.report)?;
    live::metadata(args)?;
    requests::extra(&args.payload)?;
    save::check(args)?;
    preset::check(args)?;
    server_metrics::check(&args.target)?;
    let mut replay = replay::read(args)?;
    let plan = plan::plan(&args.load, replay.as_ref().map(|r| &r.outline))?;
    if let Some(replay) = &mut replay {
        replay.outline.cut_to(plan.requests());
    }
    let facts = plan::facts(args, &plan, replay.as_ref().map(|r| &r.outline))?;
    let data_set = match (&replay, args.preset) {
        (Some(replay), _) => replay.data_set(args)?,
        (None, Some(preset)) => DataSet::Drawn(preset.terms().lengths),
        (None, None) => data::data_set(&args.data)?,
    };
    data::tell_ignored(args, replay.is_some());
    let Reached { endpoint, server, model, counter } = Reached::at(args)?;
    let prompts = counter.with(|counting| data::prompts(args, &data_set, plan.prompts_needed(), counting))?;
    let outline = replay.as_ref().map(|r| &r.outline);
    let plan = plan::fit(&args.load, outline, plan, prompts.prompts.len())?;
    let prepared = Prepared::new(args, &endpoint, &plan, &model.name, &prompts.prompts, replay.as_ref())?;
    prompts.notes.iter().for_each(|note| output::note(note));

    if args.report.dry_run {
        output::print(&live::dry_run(args, &plan, &endpoint, &model, &counter, &prepared, outline))?;
        return Ok(None);
    }
    let acks = discover::ready(args, &server, &prepared)?;
    let names = live::Names::new(&model, &counter, &prompts, &prepared, outline).of_scenario(args);
    // The bodies are written: texts and rows would only take their memory a second time.
    drop((prompts, data_set, replay));
    let mut watcher = args.load.phased.as_deref().map(|phased| Watcher::new(phased, &plan));
    let (gathered, ending) = live::run(args, &plan, &server, &prepared, &names, acks, &mut |row| match &mut watcher {
        Some(watcher) => watcher.row(row).is_none_or(|why| {
            eprintln!("ended early: {why}");
            false
        }),
        None => true,
    })?;
    live::assemble(args, &plan, facts, &names, gathered, Some(ending)).map(Some)
}

/// A server that was found, and what it said of itself.
pub struct Reached {
    /// Where requests go.
    pub endpoint: Endpoint,
    /// The server there.
    pub server: Server,
    /// The model to ask for.
    pub model: Model,
    /// Who counts tokens.
    pub counter: Counter,
}

impl Reached {
    /// By the flags. A dry run asks only what the flags leave open.
    pub fn at(args: &ServeArgs) -> Outcome<Reached> {
        let endpoint = Endpoint::from_args(&args.target)?;
        let server = discover::server(args, &endpoint)?;
        if !args.report.dry_run {
            discover::reachable(args, &server)?;
        }
        let model = discover::model(args, &server)?;
        let counter = Counter::resolve(&args.target, &model, &server)?;
        Ok(Reached { endpoint, server, model, counter })
    }

    /// Whether it answers a first request, within `--ready-check-timeout-sec`, and how what it sends may be acknowledged.
    pub fn ready(&self, args: &ServeArgs, prepared: &Prepared) -> Outcome<tailbound_client::Acks> {
        discover::ready(args, &self.server, prepared)
    }
}

/// The exit code of a verdict.
pub fn exit_code(interrupted: bool, terminated: bool, valid: bool, objectives_met: bool) -> u8 {
    match (interrupted, terminated, valid, objectives_met) {
        (true, ..) => exit::INTERRUPTED,
        (_, true, ..) => exit::TERMINATED,
        (_, _, false, _) => exit::INVALID,
        (_, _, _, false) => exit::OBJECTIVE_MISSED,
        _ => 0,
    }
}
