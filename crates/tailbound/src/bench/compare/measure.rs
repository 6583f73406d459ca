//! Measuring the sides in turn: A B, then B A, then A B …

use super::args::CompareArgs;
use super::measured::Measured;
use super::side::{Named, What};
use crate::bench::point::{self, Asked, Shape, Sut};
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::judge::Judged;
use crate::bench::serve::preset::Preset;
use crate::bench::serve::replay::Replay;
use crate::bench::serve::{data, plan, replay};
use crate::bundle::{self, Kind};
use crate::failure::{Failure, Outcome};
use crate::output;
use std::path::{Path, PathBuf};
use tailbound_os::signals;
use tailbound_prompt::{DataSet, PromptSet};
use tailbound_sweep::{Server, ServerCommand};

/// The sides' runs, by round.
pub struct Sides {
    pub runs: Vec<Vec<Measured>>,
    /// The exit code, if it was stopped before its end.
    pub stopped: Option<u8>,
}

/// In which order the sides run in a round: forth, then back, so that what drifts meets all of them alike.
pub fn order(round: u32, sides: usize) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..sides).collect() } else { (0..sides).rev().collect() }
}

/// Runs every side in every round.
pub fn measure(args: &CompareArgs, sides: &[Named], preset: Option<Preset>, dir: Option<&Path>) -> Outcome<Sides> {
    let mut runs: Vec<Vec<Measured>> = sides.iter().map(|_| Vec::new()).collect();
    let mut done = 0;
    for round in 0..args.how.rounds {
        let mut prompts: Option<(u64, PromptSet)> = None;
        for side in order(round, sides.len()) {
            let run = Run { args, sides, side, round, preset, dir };
            if !args.report.disable_tqdm {
                eprintln!("round {} of {}: {}", round + 1, args.how.rounds, sides[side].name);
            }
            let mut measured = run.measure(&mut prompts)?;
            done += 1;
            measured.order = Some(done);
            let stopped = measured.stopped;
            runs[side].push(measured);
            if stopped.is_some() {
                return Ok(Sides { runs, stopped });
            }
        }
    }
    Ok(Sides { runs, stopped: None })
}

/// One run of one side.
struct Run<'a> {
    args: &'a CompareArgs,
    sides: &'a [Named],
    side: usize,
    round: u32,
    preset: Option<Preset>,
    dir: Option<&'a Path>,
}

impl Run<'_> {
    fn measure(&self, prompts: &mut Option<(u64, PromptSet)>) -> Outcome<Measured> {
        let side = &self.sides[self.side];
        let folder = self.dir.map(|dir| dir.join(folder_name(&side.name)).join(format!("round-{}", self.round + 1)));
        let shape = shape(self.args, self.sides, self.side, self.round, self.preset);
        let mut serve = self.args.serve(shape, None, folder.as_deref());
        let mut profile = None;
        let mut server = None;
        match &side.what {
            What::Url(url) => serve.target.base_url = Some(url.clone()),
            What::Profile(name) => profile = Some(name.as_str()),
            What::Command(argv) => {
                let started = self.start(argv)?;
                serve.target.base_url = Some(tailbound_sweep::address(argv));
                server = Some(started);
            }
            What::Saved(_) => return Err(Failure::usage("saved runs are not measured again")),
        }
        let measured = self.point(&serve, shape, profile, prompts);
        if let Some(mut server) = server {
            let lives = server.check();
            server.stop();
            lives.map_err(|e| Failure::new(format!("failed to {e}")).during(format!("measuring {}", side.name)))?;
        }
        measured.map_err(|e| e.during(format!("measuring {}", side.name)))
    }

    fn point(
        &self,
        serve: &ServeArgs,
        shape: Shape,
        profile: Option<&str>,
        prompts: &mut Option<(u64, PromptSet)>,
    ) -> Outcome<Measured> {
        let sut = Sut::of(serve, profile)?;
        if sut.counts_words() {
            output::note("in virtual time a word is a token");
        }
        let replay = replay::read(serve)?;
        let seed = serve.load.seed;
        if prompts.as_ref().is_none_or(|(of, _)| *of != seed) {
            *prompts = Some((seed, prompts_of(&sut, serve, replay.as_ref())?));
        }
        let Some((_, prompts)) = prompts else { return Err(Failure::new("no prompts were made")) };
        let asked = Asked { serve, prompts, replay: replay.as_ref(), passes: None, classes: &[], shape: Some(shape) };
        let ran = point::run(&sut, asked)?;
        let judged = Judged::new(serve, &ran)?;
        let mut measured = Measured::new(serve, &judged, ran.facts.interrupted);
        if let Some(folder) = &serve.report.run_dir {
            let published = judged.json(serve) + "\n";
            bundle::seal(folder, Kind::Run, ran.plan.clone(), &[(bundle::RESULT, published)])?;
            measured.folder = Some(folder.clone());
        }
        measured.requests = Some(format!("{} {seed}", ran.plan));
        drop(judged);
        measured.take(ran);
        Ok(measured)
    }

    /// Starts the side's server for this run alone: what differs from start to start is then part of what is seen.
    fn start(&self, argv: &[String]) -> Outcome<Server> {
        signals::watch();
        let side = &self.sides[self.side].name;
        let failed = |what: String| Failure::new(what).during(format!("starting {side}"));
        let logs = self.dir.map_or_else(default_logs, |dir| dir.join("logs"));
        let log = logs.join(format!("{}-round-{}.log", folder_name(side), self.round + 1));
        let mut command = ServerCommand::new(argv.to_vec(), log).map_err(|e| failed(e.to_string()))?;
        command.ready_path.clone_from(&self.args.how.ready_path);
        command.ready_timeout = self.args.how.server_ready_timeout;
        let stopped = || signals::interrupts() + signals::terminates() > 0;
        Server::start(command, &stopped).map_err(|e| {
            let mut failure = failed(format!("failed to {e}"));
            if stopped() {
                failure.exit = stop_code();
            }
            failure
        })
    }
}

/// What a run of a round is asked for. Every round has a seed of its own, the same for all sides; only of one server that is two sides
/// each gets its own, since its prefix cache would know the prompts when they come again.
pub fn shape(args: &CompareArgs, sides: &[Named], side: usize, round: u32, preset: Option<Preset>) -> Shape {
    let one_server = sides.iter().filter(|s| s.what == sides[side].what && matches!(s.what, What::Url(_))).count() > 1;
    let own = if one_server { side as u64 + 1 } else { 0 };
    Shape {
        requests: args.requests().unwrap_or(0),
        seed: Some(args.load.seed.wrapping_add(u64::from(round)).wrapping_add(own << 32)),
        preset,
        ..Shape::default()
    }
}

fn prompts_of(sut: &Sut, serve: &ServeArgs, replay: Option<&Replay>) -> Outcome<PromptSet> {
    let planned = plan::plan(&serve.load, replay.map(|r| &r.outline))?;
    let set = match (replay, serve.preset) {
        (Some(replay), _) => replay.data_set(serve)?,
        (None, Some(preset)) => DataSet::Drawn(preset.terms().lengths),
        (None, None) => data::data_set(&serve.data)?,
    };
    let prompts = sut.prompts(serve, &set, planned.prompts_needed())?;
    prompts.notes.iter().for_each(|note| output::note(note));
    Ok(prompts)
}

fn default_logs() -> PathBuf {
    let logs = std::env::temp_dir().join(format!("tailbound-compare-{}", std::process::id()));
    output::note(&format!("server logs are in {}; --output-dir keeps them elsewhere", logs.display()));
    logs
}

/// A name that is one part of a path.
fn folder_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

/// The exit code of the signal that came.
pub fn stop_code() -> u8 {
    crate::bench::serve::exit_code(signals::terminates() == 0, signals::terminates() > 0, true, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_forth_and_back() {
        assert_eq!(
            (order(0, 2), order(1, 2), order(2, 3), order(3, 3)),
            (vec![0, 1], vec![1, 0], vec![0, 1, 2], vec![2, 1, 0])
        );
        assert_eq!(folder_name("a b/../c"), "a_b_.._c");
    }
}
