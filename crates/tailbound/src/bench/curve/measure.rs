//! Measuring: the pilot, and the points one after another. What is finished is never measured twice.

use super::args::CurveArgs;
use super::folder::{self, Settings};
use super::plan;
use super::table::{Row, Table};
use crate::bench::point::{self, Asked, Shape, Sut};
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::journal::{self, Kept};
use crate::bench::serve::judge::Judged;
use crate::bench::serve::live::Ran;
use crate::bench::serve::passes::Passes;
use crate::bench::serve::{Again, again, exit_code};
use crate::bundle::{self, Kind};
use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use tailbound_clock::Dur;
use tailbound_prompt::PromptSet;
use tailbound_stats::loadgen::endpoints::plan::{CurvePlan, PlannedPoint};
use tailbound_stats::loadgen::endpoints::point::{Measured, Point, Reason};

/// A curve that is being measured.
pub struct Curve<'a> {
    args: &'a CurveArgs,
    dir: PathBuf,
    sut: Sut,
    prompts: PromptSet,
    settings: Settings,
    plan: CurvePlan,
}

impl<'a> Curve<'a> {
    /// Plans, by the folder's settings if it was begun before, else by the flags and, where they don't say how long a request takes, a pilot.
    pub fn prepare(args: &'a CurveArgs, dir: PathBuf, sut: Sut, prompts: PromptSet) -> Outcome<Curve<'a>> {
        let dataset = prompts.prompts.len() as u64;
        let before = Settings::read(&dir)?;
        if before.is_none() && dir.is_dir() && std::fs::read_dir(&dir).is_ok_and(|mut d| d.next().is_some()) {
            return Err(Failure::usage(format!("--output-dir {}: it holds something else", dir.display()))
                .hint("name a folder that is empty, or not there yet"));
        }
        let given = plan::given_request_s(args);
        let request_s = match &before {
            Some(settings) if given.is_none() => settings.request_s,
            _ if given.is_some() || args.curve.passes.is_some() => given,
            _ => Some(pilot(args, &sut, &prompts)?),
        };
        let planned = plan::curve(args, dataset, request_s)?;
        let hash = plan::hash(args, &planned, &sut.model().id)?;
        let settings = match before {
            Some(settings) if settings.hash == hash => settings,
            Some(settings) => {
                let (was, is) = (&settings.hash[..12], &hash[..12]);
                return Err(Failure::usage(format!(
                    "--output-dir {}: it holds a curve of another plan ({was}…, and this is {is}…)",
                    dir.display()
                ))
                .hint("go on with the flags it was begun with (curve.json has them), or name another folder"));
            }
            None => {
                let argv = std::env::args().collect();
                let model = sut.model().id.clone();
                let virtual_profile = args.curve.virtual_time.then(|| args.curve.profile.clone());
                let settings = Settings { argv, hash, model, dataset_samples: dataset, request_s, virtual_profile };
                settings.write(&dir)?;
                settings
            }
        };
        Ok(Curve { args, dir, sut, prompts, settings, plan: planned })
    }

    /// Measures every point that has not been measured to its end, or those of them that were asked for.
    pub fn measure(&self) -> Outcome<()> {
        let only = &self.args.curve.only;
        if let Some(unknown) = only.iter().find(|&&c| self.plan.points.iter().all(|p| p.concurrency != c)) {
            let known: Vec<String> = self.plan.points.iter().map(|p| p.concurrency.to_string()).collect();
            return Err(Failure::usage(format!("--only {unknown}: the curve has no such point"))
                .hint(format!("its points are {}", known.join(", "))));
        }
        let open: Vec<&PlannedPoint> =
            self.open().filter(|p| only.is_empty() || only.contains(&p.concurrency)).collect();
        let done = self.plan.points.len() - self.open().count();
        let takes = open.iter().map(|p| p.expected_s).sum::<Option<f64>>().map(plan::length);
        let takes = takes.map_or(String::new(), |t| format!(", about {t}"));
        eprintln!(
            "{} points to measure{takes}{}",
            open.len(),
            if done > 0 { format!("; {done} are there") } else { String::new() }
        );
        for (i, point) in open.iter().enumerate() {
            let takes = point.expected_s.map_or(String::new(), |s| format!(", about {}", plan::length(s)));
            eprintln!(
                "{} of {}: concurrency {}, {} requests{takes}",
                i + 1,
                open.len(),
                point.concurrency,
                point.samples
            );
            self.measure_point(point)?;
        }
        Ok(())
    }

    /// The points that have not been measured to their end.
    pub fn open(&self) -> impl Iterator<Item = &PlannedPoint> {
        self.plan.points.iter().filter(|p| !folder::finished(&folder::of(&self.dir, p)))
    }

    fn measure_point(&self, point: &PlannedPoint) -> Outcome<()> {
        let dir = folder::of(&self.dir, point);
        folder::clear(&dir)?;
        let shape = plan::shape(self.args, point);
        let serve = self.args.serve(shape, Some(&dir));
        let order = plan::order(point.samples, self.prompts.prompts.len() as u32);
        let ran = run(&serve, &self.sut, &self.prompts, order, !self.args.curve.no_salt, Some(shape))?;
        if ran.facts.interrupted {
            return Err(interrupted(&self.dir, ran.terminated));
        }
        let judged = Judged::new(&serve, &ran)?;
        let started = journal::read(&dir)?.names.unix_ms(ran.facts.start);
        let figures = judge(point, &self.settings, &judged, &ran, started);
        let results = [(bundle::RESULT, judged.json(&serve) + "\n"), (bundle::POINT, point_json(&figures)?)];
        bundle::seal(&dir, Kind::Point, ran.plan.clone(), &results)
    }

    /// The table of what is finished, from its rows; once that is every point, it is written down and sealed.
    pub fn table(&self) -> Outcome<Table> {
        let finished: Vec<&PlannedPoint> =
            self.plan.points.iter().filter(|p| folder::finished(&folder::of(&self.dir, p))).collect();
        let mut rows = Vec::with_capacity(finished.len());
        for point in &finished {
            let kept = journal::read(&folder::of(&self.dir, point))?;
            rows.push(Row::new(folder::name(point), measured(point, &self.settings, kept)?.1));
        }
        let table = Table::new(&self.settings, rows);
        if finished.len() == self.plan.points.len() {
            let points: Vec<PathBuf> = finished.iter().map(|p| folder::of(&self.dir, p)).collect();
            super::seal(&self.dir, &self.settings.hash, &table, &points)?;
        }
        Ok(table)
    }
}

/// A curve read back from its folder: its settings and its plan.
pub fn read(dir: &Path) -> Outcome<(CurveArgs, Settings, CurvePlan)> {
    let settings = Settings::read(dir)?.ok_or_else(|| {
        Failure::new(format!("failed to read {}: it holds no curve", dir.display()))
            .hint("a curve's folder is what `tailbound bench curve --output-dir` named")
    })?;
    let args = settings.args()?;
    let plan = plan::curve(&args, settings.dataset_samples, settings.request_s)?;
    Ok((args, settings, plan))
}

/// A measured point from its rows, as a run and as a point.
pub fn measured(point: &PlannedPoint, settings: &Settings, kept: Kept) -> Outcome<(Again, Point)> {
    let again = again(kept)?;
    let judged = Judged::new(&again.args, &again.ran)?;
    let figures = judge(point, settings, &judged, &again.ran, again.started_at_ms);
    Ok((again, figures))
}

/// The figures by the rules, and what the run's own verdict has against it.
pub fn judge(point: &PlannedPoint, settings: &Settings, judged: &Judged<'_>, ran: &Ran, started_at_ms: u64) -> Point {
    let mut figures = Point::of(Measured {
        plan: *point,
        dataset: settings.dataset_samples,
        rows: &ran.rows,
        version: env!("CARGO_PKG_VERSION"),
        started_at_ms,
    });
    let verdict = judged.run().verdict;
    figures
        .reasons
        .extend(verdict.reasons.iter().map(|r| Reason::new(r.code.name(), format!("{}; {}", r.sentence, r.mend))));
    figures
}

/// What is published of a point.
pub fn point_json(point: &Point) -> Outcome<String> {
    Ok(serde_json::to_string_pretty(point).map_err(Failure::new)? + "\n")
}

fn interrupted(dir: &Path, terminated: bool) -> Failure {
    let mut failure = Failure::new("interrupted; the point that was being measured will be measured again")
        .hint(format!("the same command with --output-dir {} goes on with the curve", dir.display()));
    failure.exit = exit_code(!terminated, terminated, true, true);
    failure
}

/// One run in passes over the data set.
fn run(
    serve: &ServeArgs,
    sut: &Sut,
    prompts: &PromptSet,
    order: Vec<u32>,
    salted: bool,
    shape: Option<Shape>,
) -> Outcome<Ran> {
    let passes = Some(Passes { order, salt: salted.then(point::salt) });
    point::run(sut, Asked { serve, prompts, replay: None, passes, classes: &[], shape })
}

/// How long a request takes at both ends of the curve.
fn pilot(args: &CurveArgs, sut: &Sut, prompts: &PromptSet) -> Outcome<[f64; 2]> {
    let ends = [args.curve.c_min, args.curve.c_max];
    eprintln!(
        "a pilot at the concurrencies {} and {} tells how long a request takes (--request-time saves it)",
        ends[0], ends[1]
    );
    let mut medians = [Dur::ZERO; 2];
    for (concurrency, median) in ends.into_iter().zip(&mut medians) {
        let requests = (2 * concurrency).max(8);
        let shape = Shape { requests, concurrency: Some(concurrency), ..Shape::default() };
        let serve = args.serve(shape, None);
        let order = plan::order(shape.requests, prompts.prompts.len() as u32);
        let ran = run(&serve, sut, prompts, order, !args.curve.no_salt, None)?;
        if ran.facts.interrupted {
            let mut failure = Failure::new("interrupted during the pilot; nothing is measured yet");
            failure.exit = exit_code(!ran.terminated, ran.terminated, true, true);
            return Err(failure);
        }
        let mut took: Vec<Dur> = ran.rows.iter().filter(|r| r.ok()).filter_map(|r| r.e2e()).collect();
        took.sort_unstable();
        *median = took.get(took.len() / 2).copied().ok_or_else(|| {
            Failure::new(format!("no request of the pilot at a concurrency of {concurrency} was answered"))
                .hint("see what the server says: tailbound doctor URL")
        })?;
    }
    Ok(plan::request_s(medians[0], medians[1], ends))
}
