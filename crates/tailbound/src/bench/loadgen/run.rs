//! `tailbound bench loadgen run`: flags and files → settings → samples → test → logs → verdict, in that order.

use super::args::{RuleArgs, RunArgs};
use super::heard::Heard;
use super::rules::{Rules, rules};
use super::{isca, live, logs, told, virtual_time};
use crate::bench::point::{Modelled, Sut};
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::requests::{Prepared, extra};
use crate::bench::serve::{Counter, Reached, data, plan};
use crate::failure::{Failure, Outcome};
use crate::output;
use tailbound_clock::{Dur, Time};
use tailbound_os::{clock, clock::WallAnchor};
use tailbound_prompt::{Prompt, PromptSet};
use tailbound_stats::loadgen::detail::Identity;
use tailbound_stats::loadgen::peak::Criterion;
use tailbound_stats::loadgen::scenario::{Options, Test};
use tailbound_stats::loadgen::schedule::SetChoice;
use tailbound_stats::loadgen::{Library, Scenario, Settings};

/// Samples of a library whose size nobody named.
const SAMPLES: u32 = 1024;

/// Data sets that are schedules too.
const REPLAYED: [&str; 5] = ["trace", "timed_trace", "mooncake", "azure", "record"];

/// Runs the command; the exit code tells the verdict.
pub fn run(args: &RunArgs) -> Outcome<u8> {
    // What needs no network is judged first, so that a typing error costs nothing.
    let rules = rules(&args.rules)?;
    extra(&args.payload)?;
    logs::check(args.rules.output_dir.as_deref())?;
    let size = samples_wanted(&args.rules, &rules);
    let serve = args.serve(size)?;
    if !serve.target.server_metrics.is_empty() {
        return Err(Failure::usage(
            "--server-metrics: a LoadGen run has a log of its own, which holds no metrics of servers",
        )
        .hint("`bench serve` and `bench curve` read them"));
    }
    if REPLAYED.contains(&serve.data.dataset_name.as_str()) {
        let name = &serve.data.dataset_name;
        return Err(Failure::usage(format!(
            "--dataset-name {name}: LoadGen has a schedule of its own, so that no trace is replayed"
        ))
        .hint("one of random, prefix_repetition, sample, sharegpt, custom, burstgpt"));
    }
    data::data_set(&serve.data)?;
    let planned = library(size as usize, &rules);
    let test = Test::new(&rules.settings, planned, Options::default()).map_err(impossible)?;
    if let Some(samples) = rules.samples.filter(|&n| n != planned.total) {
        let have = planned.total;
        output::note(&format!("the library has {have} samples, the benchmark {samples}: this run is for practice"));
    }
    if args.rules.dry_run {
        output::print(&told::plan(&test, &rules))?;
        return Ok(0);
    }
    let bench = Bench::new(args, &rules, &serve, size)?;
    if rules.task.is_some() {
        return isca::run(args, &rules, &bench);
    }
    let mut test = bench.test(&rules.settings, None)?;
    let mut heard = bench.run(&mut test)?;
    heard.log(&mut test, bench.counter().tokenizer());
    told::tell(args, &test, &heard, bench.is_virtual())
}

/// A system under test and the samples for it.
pub struct Bench<'a> {
    args: &'a RuleArgs,
    how: How<'a>,
    /// Sizes of the sample library.
    pub library: Library,
    name: String,
    data_set: String,
    warnings: Vec<String>,
}

enum How<'a> {
    Live { reached: Box<Reached>, bodies: Box<Prepared>, serve: &'a ServeArgs },
    Virtual { modelled: Box<Modelled>, prompts: Vec<Prompt> },
}

impl<'a> Bench<'a> {
    fn new(args: &'a RunArgs, rules: &Rules, serve: &'a ServeArgs, size: u32) -> Outcome<Bench<'a>> {
        let sut = Sut::of(serve, args.rules.virtual_time.then_some(args.rules.profile.as_str()))?;
        let prompts = sut.prompts(serve, &data::data_set(&serve.data)?, Some(size))?;
        tell(&args.data.dataset_name, &sut, &prompts);
        let library = library(prompts.prompts.len(), rules);
        let (how, name) = match sut {
            Sut::Server(reached) => {
                let plan = plan::fit(&serve.load, None, plan::plan(&serve.load, None)?, prompts.prompts.len())?;
                let model = &reached.model;
                let bodies = Prepared::new(serve, &reached.endpoint, &plan, &model.name, &prompts.prompts, None)?;
                if serve.payload.no_stream && rules.settings.use_token_latencies {
                    output::note("--no-stream: without a stream the first token is only heard of with the last");
                }
                let name = format!("Network SUT {}", model.id);
                (How::Live { reached, bodies: Box::new(bodies), serve }, name)
            }
            Sut::Model(modelled) => {
                let name = format!("Virtual SUT {}", modelled.profile.name);
                (How::Virtual { modelled, prompts: prompts.prompts }, name)
            }
        };
        Ok(Bench {
            args: &args.rules,
            how,
            library,
            name,
            data_set: args.data.dataset_name.clone(),
            warnings: rules.warnings.clone(),
        })
    }

    fn counter(&self) -> &Counter {
        match &self.how {
            How::Live { reached, .. } => &reached.counter,
            How::Virtual { modelled, .. } => &modelled.counter,
        }
    }

    fn is_virtual(&self) -> bool {
        matches!(self.how, How::Virtual { .. })
    }

    /// A test of these settings; `interval`: MultiStream at a fixed one.
    pub fn test(&self, settings: &Settings, interval: Option<Dur>) -> Outcome<Test> {
        // The virtual world begins in 1970, so that a run's logs are the same whenever it is made.
        let wall_at_zero_ms = match self.is_virtual() {
            true => 0,
            false => {
                let now = clock::now();
                (WallAnchor::take().unix_ns(now) / 1_000_000) as i64 - (now.since(Time::ZERO).ns() / 1_000_000) as i64
            }
        };
        // What is coalesced must not be handed out ahead: it is merged only where it is late.
        let ahead = !self.is_virtual() && !settings.server_coalesce_queries;
        let options = Options {
            set_choice: if self.args.legacy_qsl { SetChoice::WholeLibrary } else { SetChoice::FirstN },
            ahead: if ahead { live::AHEAD } else { Dur::ZERO },
            interval,
            wall_at_zero_ms,
            criterion: if self.args.improved { Criterion::Certified } else { Criterion::Constraints },
            warnings: self.warnings.clone(),
            identity: Identity {
                version: vec![("loadgen_version".into(), format!("\"tailbound {}\"", env!("CARGO_PKG_VERSION")))],
                sut_name: self.name.clone(),
                qsl_name: self.data_set.clone(),
                ..Identity::default()
            },
            ..Options::default()
        };
        Test::new(settings, self.library, options).map_err(impossible)
    }

    /// Runs it to its end.
    pub fn run(&self, test: &mut Test) -> Outcome<Heard> {
        match &self.how {
            How::Virtual { modelled, prompts } => virtual_time::run(test, modelled.replica(prompts)?),
            How::Live { reached, bodies, serve } => {
                let offline = test.effective().requested.scenario == Scenario::Offline;
                let patience = if offline { Dur::from_secs(6 * 3600) } else { Dur::from_secs(600) };
                let sending = live::Sending {
                    serve,
                    target: &reached.server.target,
                    bodies,
                    lost_after: self.args.lost_after.unwrap_or(patience),
                    cap: self.args.max_concurrency,
                    quiet: self.args.quiet,
                };
                live::run(test, &sending)
            }
        }
    }
}

fn samples_wanted(args: &RuleArgs, rules: &Rules) -> u32 {
    let of_benchmark = rules.samples.and_then(|n| u32::try_from(n).ok());
    args.num_samples.or(of_benchmark).unwrap_or(SAMPLES)
}

fn library(total: usize, rules: &Rules) -> Library {
    let total = total as u64;
    Library { total, performance: rules.samples.unwrap_or(total).min(total) }
}

/// What is to be said of the prompts. What is said of made prompts is said of the server that counted them; a model of one counts nothing.
fn tell(data_set: &str, sut: &Sut, prompts: &PromptSet) {
    let made = matches!(data_set, "random" | "prefix_repetition");
    if !(made && sut.counts_words()) {
        prompts.notes.iter().for_each(|note| output::note(note));
    }
    if sut.counts_words() && !made {
        output::note("in virtual time without --tokenizer a word is a token");
    }
}

/// Settings that LoadGen would log an error about, or hang on.
fn impossible(complaints: Vec<tailbound_stats::loadgen::Impossible>) -> Failure {
    let all: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    Failure::usage(format!("impossible settings: {}", all.join("; ")))
}
