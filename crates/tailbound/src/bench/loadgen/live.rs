//! A test over HTTP: the scenario machine's effects become requests, their rows its events.

use super::heard::Heard;
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::live::{config, watch_signals};
use crate::bench::serve::requests::Prepared;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tailbound_client::{self as client, Control, Schedule, Target};
use tailbound_clock::{Dur, Time};
use tailbound_os::signals;
use tailbound_record::{Moment, Row, Why};
use tailbound_stats::loadgen::scenario::{Effect, Event, Test};
use tailbound_stats::loadgen::{Mode, Scenario};
use tailbound_workload::{IntentId, LoadEffect};

/// Server queries are handed to the pacer so long before they are due.
pub const AHEAD: Dur = Dur::from_ms(5);

/// How a test is sent.
pub struct Sending<'a> {
    pub serve: &'a ServeArgs,
    pub target: &'a Target,
    pub bodies: &'a Prepared,
    /// How long a sample may stay unanswered.
    pub lost_after: Dur,
    /// At most so many in flight.
    pub cap: Option<u32>,
    pub quiet: bool,
}

/// Runs a test to its end; every sample ends, at the latest `lost_after` its release.
pub fn run(test: &mut Test, sending: &Sending<'_>) -> Outcome<Heard> {
    let library = Library { bodies: sending.bodies, indices: RwLock::new(Vec::new()) };
    let keep_text = keeps_text(test);
    let mut driver = Driver {
        library: &library,
        test,
        cap: sending.cap.map_or(usize::MAX, |n| n as usize),
        waiting: VecDeque::new(),
        in_flight: 0,
        effects: Vec::new(),
        started: None,
        stopped: None,
        heard: Heard::default(),
    };
    let mut config = client::Config { keep_text, ..config(sending.serve) };
    config.timeouts.request = config.timeouts.request.min(sending.lost_after);
    signals::watch();
    let control = Arc::new(Control::new());
    let over = AtomicBool::new(false);
    let log = std::thread::scope(|scope| {
        scope.spawn(|| watch_signals(&control, &over));
        let line = progress::Line::start(&control, None, sending.quiet);
        let log = client::run(&mut driver, &library, sending.target, &config, &control, &mut |_| {});
        drop(line);
        over.store(true, Ordering::Relaxed);
        log
    });
    let log = log.map_err(|e| {
        let failure = Failure::new(format!("failed to {e}")).during(format!("sending samples to {}", sending.target));
        match driver.cap {
            usize::MAX => failure.hint("--max-concurrency N keeps so many in flight and lets the others wait"),
            _ => failure,
        }
    })?;
    log.refused.iter().for_each(|note| output::note(note));
    Ok(driver.heard)
}

/// Answers are kept only where some of them are logged.
fn keeps_text(test: &Test) -> bool {
    let r = &test.effective().requested;
    matches!(r.mode, Mode::AccuracyOnly | Mode::SubmissionRun)
        || r.accuracy_log_probability > 0.0
        || r.accuracy_log_sampling_target > 0
}

/// Which sample of the library each request is.
struct Library<'a> {
    bodies: &'a Prepared,
    /// By sample number, in order of issue.
    indices: RwLock<Vec<u32>>,
}

impl client::Requests for Library<'_> {
    fn request(&self, id: IntentId) -> client::Request<'_> {
        let indices = self.indices.read().unwrap_or_else(PoisonError::into_inner);
        let index = indices.get(id.0 as usize).copied().unwrap_or(0);
        self.bodies.numbered(id.0, index as usize, id.0.to_string().into())
    }
}

struct Driver<'a> {
    library: &'a Library<'a>,
    test: &'a mut Test,
    cap: usize,
    /// Samples that wait for a place, with their due moments.
    waiting: VecDeque<(u64, Time)>,
    in_flight: usize,
    effects: Vec<Effect>,
    started: Option<Time>,
    stopped: Option<Why>,
    heard: Heard,
}

impl Driver<'_> {
    fn tell(&mut self, now: Time, event: Event, out: &mut Vec<LoadEffect>) {
        self.test.on(now, event, &mut self.effects);
        let mut at = 0;
        while at < self.effects.len() {
            match &self.effects[at] {
                Effect::Load(_) => self.test.on(now, Event::Loaded, &mut self.effects),
                Effect::Issue(batch) => {
                    let mut indices = self.library.indices.write().unwrap_or_else(PoisonError::into_inner);
                    for issue in batch {
                        // Samples are numbered in the order of their issue, from 0.
                        debug_assert_eq!(issue.first_sample, indices.len() as u64);
                        indices.extend_from_slice(&issue.samples);
                        let numbers = (issue.first_sample..).take(issue.samples.len());
                        self.waiting.extend(numbers.map(|sample| (sample, issue.due)));
                    }
                }
                Effect::Flush | Effect::Finished => {}
            }
            at += 1;
        }
        self.effects.clear();
        self.release(now, out);
    }

    fn release(&mut self, now: Time, out: &mut Vec<LoadEffect>) {
        while self.in_flight < self.cap
            && let Some((sample, due)) = self.waiting.pop_front()
        {
            // What waited for a place leaves when the place came free.
            out.push(LoadEffect::Send { id: IntentId(sample as u32), scheduled: due, due: due.max(now) });
            self.in_flight += 1;
        }
        if self.test.finished() && self.in_flight == 0 {
            out.push(LoadEffect::Finished);
        }
    }

    fn answered(&mut self, row: &Row) -> Event {
        let settings = &self.test.effective().requested;
        let token_mode = settings.use_token_latencies;
        let reports_first = token_mode && settings.scenario != Scenario::Offline;
        let sample = row.id;
        if !row.ok() {
            self.heard.lost(row);
            return Event::Lost { sample };
        }
        let tokens = i64::from(row.output_tokens());
        if self.test.wants_answer(sample) {
            let indices = self.library.indices.read().unwrap_or_else(PoisonError::into_inner);
            let index = indices.get(sample as usize).copied().unwrap_or(0);
            self.heard.answer(sample, index, row.text.as_deref().unwrap_or_default(), tokens);
        }
        let last = row.at.get(Moment::LastToken).or_else(|| row.at.get(Moment::StreamEnd));
        Event::Answered {
            sample,
            issued: row.at.get(Moment::WriteStart),
            first_token: row.at.get(Moment::FirstToken).filter(|_| reports_first),
            at: last.unwrap_or(Time::ZERO),
            tokens: token_mode.then_some(tokens),
        }
    }
}

impl Schedule for Driver<'_> {
    fn wake(&mut self, now: Time, out: &mut Vec<LoadEffect>) {
        let event = if self.started.is_none() { Event::Start } else { Event::Wake };
        self.started.get_or_insert(now);
        self.tell(now, event, out);
    }

    fn stop(&mut self, now: Time, why: Why, out: &mut Vec<LoadEffect>) {
        if self.started.is_none() {
            self.started = Some(now);
            self.tell(now, Event::Start, out);
        }
        self.stopped.get_or_insert(why);
        for (sample, _) in std::mem::take(&mut self.waiting) {
            self.tell(now, Event::Lost { sample }, out);
        }
        self.tell(now, Event::Stop, out);
    }

    fn ended(&mut self, now: Time, row: &Row, out: &mut Vec<LoadEffect>) {
        self.in_flight -= 1;
        let event = self.answered(row);
        self.tell(now, event, out);
    }

    fn next_wake(&self) -> Option<Time> {
        self.test.next_wake()
    }

    fn stopped(&self) -> Option<Why> {
        self.stopped
    }

    fn at_once(&self) -> Option<u64> {
        let e = self.test.effective();
        let samples = match (e.requested.scenario, e.requested.mode) {
            (Scenario::Offline, Mode::AccuracyOnly) => e.accuracy_sample_count,
            (Scenario::Offline | Scenario::MultiStream, _) => e.samples_per_query,
            (Scenario::SingleStream | Scenario::Server, _) => return None,
        };
        Some(samples.min(self.cap as u64))
    }

    fn origin(&self) -> Option<Time> {
        self.started
    }

    fn unsent(&self) -> Vec<Row> {
        Vec::new()
    }
}
