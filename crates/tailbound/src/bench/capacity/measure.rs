//! Probes, one after another, each a run; what was run before is read back from the folder.

use super::args::CapacityArgs;
use super::asked::Asked;
use super::folder::{self, Kept};
use crate::bench::curve::folder::clear;
use crate::bench::point::{self, Shape, Sut};
use crate::bench::serve::judge::Judged;
use crate::bench::serve::live::Ran;
use crate::bench::serve::passes::Passes;
use crate::bench::serve::{again, exit_code, journal};
use crate::bundle::{self, Kind};
use crate::failure::{Failure, Outcome};
use std::path::PathBuf;
use tailbound_clock::{Dur, Seed};
use tailbound_prompt::PromptSet;
use tailbound_record::{End as RowEnd, Moment, Row};
use tailbound_stats::Code;
use tailbound_stats::capacity::{End, Probe, Probed, Seen, Spec, Unit, Watch};

/// A search that is being made.
pub struct Search<'a> {
    pub args: &'a CapacityArgs,
    pub asked: Asked,
    pub spec: Spec,
    pub sut: Sut,
    pub prompts: PromptSet,
    /// The class of each prompt; empty: all are one.
    pub classes: Vec<u16>,
    pub dir: Option<PathBuf>,
}

/// A probe in what it differs from others.
pub fn shape(args: &CapacityArgs, unit: Unit, probe: &Probe) -> Shape {
    Shape {
        requests: probe.requests,
        concurrency: (unit == Unit::Concurrency).then_some(probe.load as u64),
        rate: (unit == Unit::Rate).then_some(probe.load),
        seed: Some(args.search.seed.wrapping_add(u64::from(probe.number))),
        ..Shape::default()
    }
}

impl Search<'_> {
    /// A probe: read back if it was run to its end before, else run.
    pub fn probed(&self, probe: Probe) -> Outcome<Probed> {
        let dir = self.dir.as_deref().map(|dir| folder::of(dir, probe.number));
        if let Some(dir) = &dir {
            if let Some(kept) = folder::kept(dir)? {
                if kept.probe != probe {
                    return Err(Failure::new(format!(
                        "failed to go on with {}: it holds another probe",
                        dir.display()
                    )));
                }
                let ran = again(journal::read(dir)?)?.ran;
                return Ok(self.marked(probe, &ran.rows, kept.end, kept.invalid));
            }
            clear(dir)?;
        }
        let (serve, shape) = {
            let shape = shape(self.args, self.spec.unit, &probe);
            (self.args.serve(shape, dir.as_deref()), shape)
        };
        let mut watch = Watch::new(&self.spec.requirements, &probe, self.spec.unit == Unit::Rate);
        let mut end = End::Whole;
        let asked = point::Asked {
            serve: &serve,
            prompts: &self.prompts,
            replay: None,
            passes: Some(self.passes(&probe)),
            classes: &self.classes,
            shape: Some(shape),
        };
        let ran =
            point::run_while(&self.sut, asked, &mut |row| match self.seen(row).and_then(|seen| watch.on(seen)) {
                None => true,
                Some(early) => {
                    end = early;
                    false
                }
            })?;
        if ran.facts.interrupted {
            return Err(self.interrupted(ran.terminated));
        }
        let judged = Judged::new(&serve, &ran)?;
        let invalid = not_the_systems(&judged);
        if let Some(dir) = &dir {
            let kept = Kept { probe, end, invalid: invalid.clone() };
            let kept = serde_json::to_string_pretty(&kept).map_err(Failure::new)? + "\n";
            let results = [(bundle::RESULT, judged.json(&serve) + "\n"), (bundle::POINT, kept)];
            bundle::seal(dir, Kind::Probe, ran.plan.clone(), &results)?;
        }
        Ok(self.marked(probe, &ran.rows, end, invalid))
    }

    /// Prompts drawn anew for each probe.
    fn passes(&self, probe: &Probe) -> Passes {
        let mut rng = Seed(self.args.search.seed).numbered("capacity-prompts", u64::from(probe.number));
        let n = self.prompts.prompts.len() as u64;
        let order = (0..probe.requests).map(|_| rng.below(n) as u32).collect();
        Passes { order, salt: (!self.args.search.no_salt).then(point::salt) }
    }

    fn seen(&self, row: &Row) -> Option<Seen> {
        let mark = self.asked.criterion.mark(row, &self.asked.facts)?;
        let arrived = arrived(row)?;
        Some(Seen { mark, took: row.at.get(Moment::StreamEnd).map_or(Dur::ZERO, |end| end.since(arrived)) })
    }

    /// What a probe's rows say.
    fn marked(&self, probe: Probe, rows: &[Row], end: End, invalid: Option<String>) -> Probed {
        let sent: Vec<&Row> = rows.iter().filter(|r| !matches!(r.end, RowEnd::NeverSent(_))).collect();
        let judged = sent.iter().filter(|r| r.id >= probe.settle);
        let marks = judged.filter_map(|r| self.asked.criterion.mark(r, &self.asked.facts)).collect();
        let first = sent.iter().filter_map(|r| arrived(r)).min();
        let last = sent.iter().filter_map(|r| arrived(r)).max();
        let over = sent.iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max();
        let busy: f64 = sent.iter().filter_map(|r| Some(r.at.get(Moment::StreamEnd)?.since(arrived(r)?).secs())).sum();
        let secs = |until: Option<_>| {
            first.zip(until).map_or(0.0, |(from, until)| Dur::secs(tailbound_clock::Time::since(until, from)))
        };
        let whole = secs(over).max(1e-9);
        Probed {
            probe,
            requests: sent.len() as u64,
            marks,
            end,
            open: self.spec.unit == Unit::Rate,
            in_flight: busy / whole,
            kept_up: (secs(last) / whole).min(1.0),
            invalid,
        }
    }

    fn interrupted(&self, terminated: bool) -> Failure {
        let failure = Failure::new("interrupted; the probe that was running will be run again");
        let mut failure = match &self.dir {
            Some(dir) => {
                failure.hint(format!("the same command with --output-dir {} goes on with the search", dir.display()))
            }
            None => failure.hint("with --output-dir DIR a search can be gone on with"),
        };
        failure.exit = exit_code(!terminated, terminated, true, true);
        failure
    }
}

fn arrived(row: &Row) -> Option<tailbound_clock::Time> {
    row.at.get(Moment::Scheduled).or_else(|| row.at.get(Moment::WriteStart))
}

/// What is held against a run that the system under test is not to blame for. Its errors are misses, its backlog is what is sought.
fn not_the_systems(judged: &Judged<'_>) -> Option<String> {
    let of_the_system =
        [Code::ServerErrors, Code::NothingCompleted, Code::Backlog, Code::FewSamples, Code::NoisyMachine];
    let reasons = &judged.run().verdict.reasons;
    reasons.iter().find(|r| !of_the_system.contains(&r.code)).map(|r| format!("[{}] {}", r.code.name(), r.sentence))
}

/// A run of the prefill profile: one request at a time.
pub fn alone(ran: &Ran) -> Vec<(f64, f64)> {
    let of = |row: &Row| Some((f64::from(row.prompt_tokens()?), row.ttft()?.secs()));
    ran.rows.iter().filter(|r| r.ok()).filter_map(of).collect()
}
