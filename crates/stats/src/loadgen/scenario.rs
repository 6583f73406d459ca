//! A whole test as a machine: phases, sets and rounds, and the logs they leave.
//!
//! It reads no clock and sends nothing: a driver tells it what happened and when, and does what it asks for. The live
//! client and the virtual engine drive the same machine.

use tailbound_clock::Time;

use super::accuracy::{self, Answer};
use super::detail::Journal;
use super::effective::{Effective, Impossible};
use super::peak::{self, Criterion, Peak, Step};
use super::round::{Outcome, Pacing, Round};
use super::schedule::{self, LoadedSet, Phase, Sequence};
use super::score;
use super::settings::{Library, Mode, Settings};
use super::summary::{self, Frame};
use super::wall;

pub use super::protocol::{Effect, Event, Options, Run, Tried};

/// A test in progress.
#[derive(Debug)]
pub struct Test {
    effective: Effective,
    library: Library,
    options: Options,
    sequence: Sequence,
    journal: Journal,
    opened: Time,
    stage: Stage,
    accuracy_sets: std::collections::VecDeque<LoadedSet>,
    peak: Option<Peak>,
    best: Option<Run>,
    tried: Vec<Tried>,
    result: Option<Run>,
    answers: Vec<Answer>,
    interrupted: bool,
}

#[derive(Debug)]
enum Stage {
    Idle,
    Loading { set: LoadedSet, phase: Phase, qps: f64 },
    Running { round: Box<Round>, set: LoadedSet, qps: f64, flushed: bool },
    Finished,
}

impl Test {
    /// A test with these settings over a library of that size.
    ///
    /// # Errors
    /// Everything that makes the settings impossible.
    pub fn new(settings: &Settings, library: Library, options: Options) -> Result<Test, Vec<Impossible>> {
        let effective = Effective::of(settings, library);
        let complaints = effective.complaints();
        if !complaints.is_empty() {
            return Err(complaints);
        }
        Ok(Test {
            effective,
            library,
            options,
            sequence: Sequence::default(),
            journal: Journal::default(),
            opened: Time::ZERO,
            stage: Stage::Idle,
            accuracy_sets: std::collections::VecDeque::new(),
            peak: None,
            best: None,
            tried: Vec::new(),
            result: None,
            answers: Vec::new(),
            interrupted: false,
        })
    }

    /// The settings it runs with.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// Something happened at `now`.
    pub fn on(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        self.journal.now_ns = now.since(self.opened).ns();
        match event {
            Event::Start => self.start(now, out),
            Event::Loaded => self.begin_round(now),
            Event::Stop => {
                self.interrupted = true;
                if let Stage::Running { round, .. } = &mut self.stage {
                    round.interrupt();
                } else if !matches!(self.stage, Stage::Finished) {
                    self.finish(out);
                }
            }
            Event::Wake => {}
            Event::Issued { query, at } => self.in_round(|r| r.issued(query, at)),
            Event::FirstToken { sample } => self.in_round(|r| r.first_token(now, sample)),
            Event::Completed { sample, tokens } => self.in_round(|r| r.completed(now, sample, tokens)),
            Event::Answered { sample, issued, first_token, at, tokens } => self.in_round(|r| {
                if let Some(issued) = issued {
                    r.issued_sample(sample, issued);
                }
                if let Some(first) = first_token {
                    r.first_token(first, sample);
                }
                r.completed(at, sample, tokens);
            }),
            Event::Lost { sample } => self.in_round(|r| r.lost(sample)),
        }
        self.advance(now, out);
    }

    /// When to send [`Event::Wake`]; `None` while only another event can move the test on.
    pub fn next_wake(&self) -> Option<Time> {
        match &self.stage {
            Stage::Running { round, .. } => round.next_wake(),
            _ => None,
        }
    }

    fn in_round(&mut self, act: impl FnOnce(&mut Round)) {
        if let Stage::Running { round, .. } = &mut self.stage {
            act(round);
        }
    }

    fn start(&mut self, now: Time, out: &mut Vec<Effect>) {
        if !matches!(self.stage, Stage::Idle) {
            return;
        }
        self.opened = now;
        self.journal.now_ns = 0;
        let mut identity = self.options.identity.clone();
        if identity.datetime.is_empty() {
            identity.datetime = wall::iso8601(self.wall_ms(now));
        }
        identity.qsl_total = self.library.total;
        identity.qsl_performance = self.library.performance;
        self.journal.identity(&identity);
        for warning in &self.options.warnings {
            self.journal.warning(warning);
        }
        self.journal.settings(&self.effective);
        match self.effective.requested.mode {
            Mode::AccuracyOnly | Mode::SubmissionRun => self.start_accuracy(out),
            Mode::PerformanceOnly => self.start_performance(out),
            Mode::FindPeakPerformance => self.start_peak(out),
        }
    }

    fn start_accuracy(&mut self, out: &mut Vec<Effect>) {
        self.journal.message("Starting accuracy mode");
        self.accuracy_sets = self.sets(Phase::Accuracy).into();
        if let Some(set) = self.accuracy_sets.pop_front() {
            self.load(set, Phase::Accuracy, self.effective.target_qps, out);
        }
    }

    fn start_performance(&mut self, out: &mut Vec<Effect>) {
        self.journal.message("Starting performance mode");
        if let Some(set) = self.sets(Phase::Performance).into_iter().next() {
            self.load(set, Phase::Performance, self.effective.target_qps, out);
        }
    }

    fn start_peak(&mut self, out: &mut Vec<Effect>) {
        self.journal.message("Starting FindPeakPerformance mode");
        let r = &self.effective.requested;
        let peak = Peak::new(
            self.effective.target_qps,
            r.server_find_peak_qps_boundary_step_size,
            r.server_find_peak_qps_decimals_of_precision,
        );
        let mut messages = Vec::new();
        let step = peak.first(&mut messages);
        self.peak = Some(peak);
        self.follow(step, messages, out);
    }

    fn sets(&self, phase: Phase) -> Vec<LoadedSet> {
        schedule::loadable_sets(&self.effective, self.library, phase, self.options.set_choice)
    }

    fn load(&mut self, set: LoadedSet, phase: Phase, qps: f64, out: &mut Vec<Effect>) {
        out.push(Effect::Load(set.samples.clone()));
        self.journal.loaded(&set);
        self.stage = Stage::Loading { set, phase, qps };
    }

    fn begin_round(&mut self, now: Time) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Loading { set, phase, qps } => self.run_round(set, phase, qps, now),
            other => self.stage = other,
        }
    }

    fn run_round(&mut self, set: LoadedSet, phase: Phase, qps: f64, now: Time) {
        let mut e = self.effective.clone();
        e.target_qps = qps;
        let made = schedule::generate(&e, &set, phase, &mut self.sequence);
        self.journal.generated(&made);
        let Options { ahead, lost_after, interval, .. } = self.options;
        let round = Round::new(&e, phase, made, now, Pacing { ahead, lost_after, interval });
        self.stage = Stage::Running { round: Box::new(round), set, qps, flushed: false };
    }

    /// Wakes the round, and moves on when it has ended.
    fn advance(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Stage::Running { round, flushed, .. } = &mut self.stage {
            let mut batches = Vec::new();
            round.wake(now, &mut batches);
            out.extend(batches.into_iter().map(Effect::Issue));
            if round.stopped().is_some() && !*flushed {
                *flushed = true;
                out.push(Effect::Flush);
            }
            let Some(outcome) = round.outcome() else { return };
            self.end_round(now, outcome, out);
        }
    }

    fn end_round(&mut self, now: Time, outcome: Outcome, out: &mut Vec<Effect>) {
        let Stage::Running { set, qps, round, .. } = std::mem::replace(&mut self.stage, Stage::Idle) else { return };
        let phase = round.phase();
        if let Some((error, text)) = outcome.stop.message() {
            match error {
                true => self.journal.error("error_runtime", &text),
                false => self.journal.message(&text),
            }
        }
        for error in &outcome.errors {
            self.journal.error("error_runtime", error);
        }
        if !outcome.lost.is_empty() {
            let text = format!("{} samples were issued and never answered", outcome.lost.len());
            self.journal.error("error_runtime", &text);
        }
        let begin = wall::for_power(self.wall_ms(outcome.start));
        self.journal.done(&begin, &wall::for_power(self.wall_ms(outcome.last_done)));
        if self.interrupted {
            self.keep(outcome, phase, qps);
            return self.finish(out);
        }
        match (phase, self.effective.requested.mode) {
            (Phase::Accuracy, mode) => match self.accuracy_sets.pop_front() {
                Some(next) => self.load(next, Phase::Accuracy, qps, out),
                None if mode == Mode::SubmissionRun => self.start_performance(out),
                None => self.finish(out),
            },
            (Phase::Performance, Mode::FindPeakPerformance) => self.next_rate(now, outcome, set, qps, out),
            (Phase::Performance, _) => {
                self.keep(outcome, phase, qps);
                self.finish(out);
            }
        }
    }

    fn run(&self, outcome: Outcome, qps: f64) -> Run {
        let mut e = self.effective.clone();
        e.target_qps = qps;
        let score = outcome.ending.and_then(|ending| score::measure(&e, &outcome.samples, ending).ok());
        Run { outcome, score }
    }

    fn keep(&mut self, outcome: Outcome, phase: Phase, qps: f64) {
        if phase == Phase::Performance {
            self.result = Some(self.run(outcome, qps));
        }
    }

    fn next_rate(&mut self, now: Time, outcome: Outcome, set: LoadedSet, qps: f64, out: &mut Vec<Effect>) {
        let run = self.run(outcome, qps);
        let passed = run.score.as_ref().is_some_and(|s| match self.options.criterion {
            Criterion::Constraints => s.decision.constraints != Some(false),
            Criterion::Certified => peak::certified(s) && run.outcome.lost.is_empty(),
        });
        self.tried.push(Tried {
            qps,
            passed,
            stopping: run.score.as_ref().is_some_and(|s| s.decision.stopping),
            queries: run.outcome.ending.map_or(0, |e| e.queries_issued),
        });
        if passed || self.best.is_none() {
            self.best = Some(run);
        }
        let mut messages = Vec::new();
        let Some(peak) = &mut self.peak else { return };
        let step = peak.tested(passed, &mut messages);
        if let Step::Test { qps, load: false } = step {
            for m in &messages {
                self.journal.message(m);
            }
            return self.run_round(set, Phase::Performance, qps, now);
        }
        self.follow(step, messages, out);
    }

    fn follow(&mut self, step: Step, messages: Vec<String>, out: &mut Vec<Effect>) {
        // Where bisection starts, LoadGen loads the set between its two messages.
        let late = messages.len().saturating_sub(1).max(1);
        for m in &messages[..late.min(messages.len())] {
            self.journal.message(m);
        }
        match step {
            Step::Test { qps, .. } => {
                if let Some(set) = self.sets(Phase::Performance).into_iter().next() {
                    self.load(set, Phase::Performance, qps, out);
                }
                for m in &messages[late..] {
                    self.journal.message(m);
                }
            }
            Step::Found(_) | Step::BaseFails => {
                for m in &messages[late.min(messages.len())..] {
                    self.journal.message(m);
                }
                if step == Step::BaseFails {
                    self.journal.error(
                        "error_runtime",
                        "FindPeakPerformance: Initial lower bound does not satisfy performance constraints, Ending early.",
                    );
                }
                self.result = self.best.take();
                self.finish(out);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Effect>) {
        self.stage = Stage::Finished;
        if let Some(score) = self.result.as_ref().and_then(|r| r.score.as_ref()) {
            self.journal.result(score);
        }
        out.push(Effect::Finished);
    }

    fn wall_ms(&self, t: Time) -> i64 {
        self.options.wall_at_zero_ms + (t.ns() / 1_000_000) as i64
    }

    /// Whether the driver should hand over a sample's answer with [`Test::answer`].
    pub fn wants_answer(&self, sample: u64) -> bool {
        match &self.stage {
            Stage::Running { round, .. } => round.wants_answer(sample),
            _ => false,
        }
    }

    /// The answer to a sample that is to be logged.
    pub fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// Whether the test is over.
    pub fn finished(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    /// The performance run that counts (in a peak search, the best), once finished.
    pub fn result(&self) -> Option<&Run> {
        self.result.as_ref()
    }

    /// The rates a peak search tried, in order.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The detail log.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// `mlperf_log_summary.txt`.
    pub fn summary(&self) -> String {
        let frame = Frame {
            sut_name: self.options.identity.sut_name.clone(),
            errors: self.journal.errors(),
            warnings: self.journal.warnings(),
        };
        summary::write(self.result.as_ref().and_then(|r| r.score.as_ref()), &frame)
    }

    /// `mlperf_log_accuracy.json`.
    pub fn accuracy_log(&self) -> String {
        accuracy::write(&self.answers)
    }
}
