//! One measured point: one run with the flags of `bench serve`, against a server in real time or the engine model in virtual time, giving
//! rows from which the figures and the verdict follow ([`Judged`](super::serve::judge::Judged)).
//!
//! Whatever measures more than once (curves, capacity, comparisons, workload sweeps) makes its points here, so that a point is live or
//! virtual by one `match`, its folder is a run's folder, and [`again`](super::serve::again()) rebuilds it from there.

mod replica;
mod sut;
mod virtual_time;

use super::serve::args::ServeArgs;
use super::serve::live::{self, Gathered, Ran, Watch};
use super::serve::passes::Passes;
use super::serve::preset::Preset;
use super::serve::replay::Replay;
use super::serve::requests::Prepared;
use super::serve::{Counter, plan};
use crate::failure::Outcome;
pub use replica::{Replica, Sample, Wanted};
use serde::{Deserialize, Serialize};
pub use sut::{Modelled, Sut};
use tailbound_clock::Seed;
use tailbound_os::clock;
use tailbound_prompt::PromptSet;
use virtual_time::Order;

/// In what a point differs from the others of its command; with the command's own flags it makes the point's flags again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Measured requests.
    pub requests: u64,
    /// At most so many in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Arrivals a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Seed of the arrivals, where it isn't the command's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The preset, where the command has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Requests before them, left out of every figure.
    pub warmups: u32,
}

/// What is to be run.
pub struct Asked<'a> {
    /// The flags; with a `run_dir` everything is kept there as it happens.
    pub serve: &'a ServeArgs,
    /// The prompts, made by [`Sut::prompts`].
    pub prompts: &'a PromptSet,
    /// The trace they came from, if they did.
    pub replay: Option<&'a Replay>,
    /// Another order than theirs.
    pub passes: Option<Passes>,
    /// The class of each prompt, where there is no trace to tell; empty: all are one.
    pub classes: &'a [u16],
    /// What the run's folder says of the point.
    pub shape: Option<Shape>,
}

/// Differs between runs, so that no server knows a prompt from an earlier one.
pub fn salt() -> Seed {
    Seed(Seed(clock::now().ns() ^ u64::from(std::process::id()) << 40).stream("salt").u64())
}

/// Runs a point to its end.
pub fn run(sut: &Sut, asked: Asked<'_>) -> Outcome<Ran> {
    run_while(sut, asked, &mut |_| true)
}

/// The same, ended early (nothing more is sent, what is in flight goes on) once `watch`, shown each measured request as it ends, says `false`.
pub fn run_while(sut: &Sut, asked: Asked<'_>, watch: Watch<'_>) -> Outcome<Ran> {
    let Asked { serve, prompts, replay, passes, classes, shape } = asked;
    let outline = replay.map(|replay| &replay.outline);
    let planned = plan::plan(&serve.load, outline)?;
    // Passes go round the prompts; without them there can't be more requests than prompts.
    let planned = match &passes {
        Some(_) => planned,
        None => plan::fit(&serve.load, outline, planned, prompts.prompts.len())?,
    };
    let facts = plan::facts(serve, &planned, outline)?;
    let prepared = Prepared::new(serve, sut.endpoint(), &planned, &sut.model().name, &prompts.prompts, replay)?;
    let (names, (gathered, ending)) = match sut {
        Sut::Server(reached) => {
            let prepared = prepared.in_passes(passes).of_classes(classes);
            let acks = reached.ready(serve, &prepared)?;
            let names = live::Names::new(&reached.model, &reached.counter, prompts, &prepared, outline).of_point(shape);
            let done = live::run(serve, &planned, &reached.server, &prepared, &names, acks, watch)?;
            (names, done)
        }
        Sut::Model(modelled) => {
            let names = live::Names::new(&modelled.model, &Counter::None, prompts, &prepared, outline);
            let names = names.of_point(shape).in_virtual_time();
            let replica = modelled.replica(&prompts.prompts)?;
            let order = Order { passes: passes.as_ref(), classes };
            let (rows, ending) = virtual_time::run(serve, &planned, replica, order, &names, watch)?;
            (names, (Gathered { rows, ..Gathered::default() }, ending))
        }
    };
    live::assemble(serve, &planned, facts, &names, gathered, Some(ending))
}
