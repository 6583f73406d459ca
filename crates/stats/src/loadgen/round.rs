//! One set of queries being issued: what LoadGen's issuing thread does, as a machine.

use tailbound_clock::{Dur, Time};

use super::effective::Effective;
pub use super::outcome::Outcome;
use super::pacing::Ticks;
pub use super::pacing::{Pacing, Skip};
use super::samples::{Ending, Sample};
use super::schedule::{Generated, Phase, Query};
use super::settings::Scenario;
pub use super::stop::Stop;
use super::tokens;

/// A query to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Its number.
    pub query: u64,
    /// When it is due; latency counts from here.
    pub due: Time,
    /// The number of its first sample; the others follow.
    pub first_sample: u64,
    /// Library indices.
    pub samples: Vec<u32>,
}

/// A round in progress.
#[derive(Clone, Debug)]
pub struct Round {
    scenario: Scenario,
    phase: Phase,
    effective: Effective,
    queries: Vec<Query>,
    /// Which answers are to be logged, by sample number minus `first_sample`.
    logged: Vec<bool>,
    first_sample: u64,
    first_query: u64,
    start: Time,
    next: usize,
    stop: Option<Stop>,
    last_issued: Time,
    open: Vec<Open>,
    /// Everything before this one is answered or lost.
    oldest: usize,
    outstanding: u64,
    completed_queries: u64,
    /// Samples still to come of each query.
    remaining: Vec<u32>,
    done: Vec<Sample>,
    lost: Vec<u64>,
    errors: Vec<String>,
    last_done: Time,
    pacing: Pacing,
    ticks: Ticks,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    query: usize,
    due: Time,
    issued: Time,
    first_token: Option<Time>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Done,
    Lost,
}

impl Round {
    /// A round that starts `now`.
    pub fn new(e: &Effective, phase: Phase, made: Generated, now: Time, pacing: Pacing) -> Round {
        Round {
            scenario: e.requested.scenario,
            phase,
            effective: e.clone(),
            first_sample: made.queries.first().map_or(0, |q| q.first_sample),
            first_query: made.queries.first().map_or(0, |q| q.seq),
            queries: made.queries,
            logged: made.logged,
            start: now,
            next: 0,
            stop: None,
            last_issued: now,
            open: Vec::new(),
            oldest: 0,
            outstanding: 0,
            completed_queries: 0,
            remaining: Vec::new(),
            done: Vec::new(),
            lost: Vec::new(),
            errors: Vec::new(),
            last_done: now,
            pacing,
            ticks: Ticks::default(),
        }
    }

    /// What it is for.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the answer to a sample is to be logged.
    pub fn wants_answer(&self, sample: u64) -> bool {
        let at = sample.checked_sub(self.first_sample).map(|i| i as usize);
        at.and_then(|i| self.logged.get(i)).copied().unwrap_or(false)
    }

    /// Time has passed: issues what is due, gives up what is lost.
    pub fn wake(&mut self, now: Time, out: &mut Vec<Vec<Issue>>) {
        self.give_up(now);
        match (self.scenario, self.interval()) {
            (_, Some(interval)) => self.issue_at_ticks(now, interval, out),
            (Scenario::Server, _) => self.issue_due(now, out),
            (Scenario::SingleStream | Scenario::MultiStream, _) if self.outstanding == 0 => {
                self.issue_one(now, now, out)
            }
            (Scenario::Offline, _) if self.next == 0 || self.phase == Phase::Accuracy => {
                self.issue_one(self.start, now, out);
            }
            _ => {}
        }
        if self.stop.is_none() && self.next == self.queries.len() {
            let streams = matches!(self.scenario, Scenario::SingleStream | Scenario::MultiStream);
            let short = streams && self.phase == Phase::Performance && self.interval().is_none();
            self.stop = Some(if short { Stop::RanOut } else { Stop::AllIssued });
        }
    }

    fn issue_due(&mut self, now: Time, out: &mut Vec<Vec<Issue>>) {
        let coalesce = self.effective.requested.server_coalesce_queries;
        let mut batch = Vec::new();
        while self.stop.is_none() && self.next_due().is_some_and(|due| due <= now + self.pacing.ahead) {
            let due = self.start + Dur(self.queries[self.next].due_ns);
            batch.push(self.take(due, now.max(due)));
            // A coalesced batch is one call, after which LoadGen looks at its limits.
            if !coalesce || self.next_due().is_none_or(|due| due > now + self.pacing.ahead) {
                self.check_limits();
            }
            if !coalesce {
                out.push(std::mem::take(&mut batch));
            }
        }
        if !batch.is_empty() {
            out.push(batch);
        }
    }

    fn interval(&self) -> Option<Dur> {
        self.pacing.interval.filter(|_| self.scenario == Scenario::MultiStream && self.phase == Phase::Performance)
    }

    fn issue_at_ticks(&mut self, now: Time, interval: Dur, out: &mut Vec<Vec<Issue>>) {
        while self.stop.is_none() && self.next < self.queries.len() {
            let due = self.ticks.next(self.start, interval);
            if due > now {
                return;
            }
            // What has been answered by now may not have been then.
            let late = self.outstanding > 0 || self.last_done > due;
            self.ticks.pass(late.then(|| self.first_query + self.next as u64 - 1));
            if !late {
                self.issue_one(due, now, out);
            }
        }
    }

    fn issue_one(&mut self, due: Time, now: Time, out: &mut Vec<Vec<Issue>>) {
        if self.stop.is_some() || self.next == self.queries.len() {
            return;
        }
        let issue = self.take(due, now);
        out.push(vec![issue]);
        self.check_limits();
    }

    fn next_due(&self) -> Option<Time> {
        self.queries.get(self.next).map(|q| self.start + Dur(q.due_ns))
    }

    fn take(&mut self, due: Time, now: Time) -> Issue {
        let query = &self.queries[self.next];
        let n = query.samples.len();
        let issue = Issue { query: query.seq, due, first_sample: query.first_sample, samples: query.samples.clone() };
        let open = Open { query: self.next, due, issued: now, first_token: None, state: State::Waiting };
        self.open.extend(std::iter::repeat_n(open, n));
        self.remaining.push(n as u32);
        self.outstanding += n as u64;
        self.last_issued = now;
        self.next += 1;
        issue
    }

    /// LoadGen's limits, in its order, after a query was issued.
    fn check_limits(&mut self) {
        if self.phase == Phase::Accuracy {
            return;
        }
        let e = &self.effective;
        let issued = self.next as u64;
        let elapsed = self.last_issued.since(self.start);
        if self.scenario == Scenario::Server {
            let outstanding = issued - self.completed_queries;
            if e.max_async_queries != 0 && outstanding > e.max_async_queries {
                self.stop = Some(Stop::TooManyOutstanding { issued, outstanding });
                return;
            }
        } else if issued >= e.min_query_count && elapsed >= Dur::from_ms(e.target_duration_ms) {
            self.stop = Some(Stop::Naturally);
            return;
        }
        if e.max_query_count != 0 && issued >= e.max_query_count {
            self.stop = Some(Stop::MaxQueries(issued));
        } else if e.max_duration_ms != 0 && elapsed > Dur::from_ms(e.max_duration_ms) {
            self.stop = Some(Stop::MaxDuration(elapsed.ns()));
        }
    }

    /// The moment a query really left, where the driver knows better than the machine.
    pub fn issued(&mut self, query: u64, at: Time) {
        let Some(place) = query.checked_sub(self.first_query).map(|p| p as usize).filter(|&p| p < self.next) else {
            return;
        };
        let q = &self.queries[place];
        let first = (q.first_sample - self.first_sample) as usize;
        for o in &mut self.open[first..first + q.samples.len()] {
            o.issued = at;
        }
        if place + 1 == self.next {
            self.last_issued = at;
        }
    }

    /// The moment one sample's request really left.
    pub fn issued_sample(&mut self, sample: u64, at: Time) {
        let next = self.next;
        let Some(o) = self.open(sample) else { return };
        o.issued = at;
        let query = o.query;
        if query + 1 == next && self.queries[query].first_sample == sample {
            self.last_issued = at;
        }
    }

    fn open(&mut self, sample: u64) -> Option<&mut Open> {
        let at = sample.checked_sub(self.first_sample)?;
        self.open.get_mut(at as usize)
    }

    /// A sample's first token came.
    pub fn first_token(&mut self, now: Time, sample: u64) {
        match self.open(sample) {
            Some(o) if o.state == State::Waiting => o.first_token = o.first_token.or(Some(now)),
            _ => self.errors.push("Attempted to record token latency after sample was completed".into()),
        }
    }

    /// A sample was answered.
    pub fn completed(&mut self, now: Time, sample: u64, tokens: Option<i64>) {
        let (scenario, token_mode) = (self.scenario, self.effective.requested.use_token_latencies);
        let Some(o) = self.open(sample).filter(|o| o.state == State::Waiting) else {
            self.errors.push(format!("sample {sample} was answered although it was not waiting for an answer"));
            return;
        };
        o.state = State::Done;
        let open = *o;
        if token_mode && scenario != Scenario::Offline && open.first_token.is_none() {
            self.errors.push("Attempted to record a sample latency before it's first token latency".into());
        }
        if token_mode && let Some(error) = tokens::count_error(tokens) {
            self.errors.push(error.into());
        }
        let query = &self.queries[open.query];
        let index = query.samples[(sample - query.first_sample) as usize];
        self.done.push(Sample {
            seq: sample,
            query: query.seq,
            index,
            due_ns: open.due.since(self.start).ns(),
            issue_delay_ns: open.issued.minus(open.due),
            ttft_ns: open.first_token.map(|t| t.minus(open.due)),
            latency_ns: now.minus(open.due),
            tokens,
        });
        self.last_done = self.last_done.max(now);
        self.close(open.query);
    }

    /// A sample will not be answered.
    pub fn lost(&mut self, sample: u64) {
        let Some(o) = self.open(sample).filter(|o| o.state == State::Waiting) else { return };
        o.state = State::Lost;
        let query = o.query;
        self.lost.push(sample);
        self.close(query);
    }

    fn close(&mut self, query: usize) {
        self.outstanding -= 1;
        self.remaining[query] -= 1;
        if self.remaining[query] == 0 {
            self.completed_queries += 1;
        }
        while self.open.get(self.oldest).is_some_and(|o| o.state != State::Waiting) {
            self.oldest += 1;
        }
    }

    fn give_up(&mut self, now: Time) {
        let Some(deadline) = self.deadline() else { return };
        let Some(after) = self.pacing.lost_after else { return };
        if now < deadline {
            return;
        }
        let overdue: Vec<u64> = (self.first_sample + self.oldest as u64..)
            .zip(&self.open[self.oldest..])
            .filter(|(_, o)| o.state == State::Waiting && o.issued + after <= now)
            .map(|(sample, _)| sample)
            .collect();
        for sample in overdue {
            self.lost(sample);
        }
    }

    /// When the oldest outstanding sample is given up, once only an answer could move the round on.
    fn deadline(&self) -> Option<Time> {
        let after = self.pacing.lost_after?;
        let streams = matches!(self.scenario, Scenario::SingleStream | Scenario::MultiStream);
        if self.outstanding == 0 || !(streams || self.stop.is_some()) {
            return None;
        }
        Some(self.open.get(self.oldest)?.issued + after)
    }

    /// Ends issuing from outside.
    pub fn interrupt(&mut self) {
        self.stop = self.stop.or(Some(Stop::Interrupted));
    }

    /// When to call [`Round::wake`] next; `None` if only an answer can move it on, or nothing.
    pub fn next_wake(&self) -> Option<Time> {
        if self.stop.is_some() {
            return self.deadline();
        }
        if let Some(interval) = self.interval() {
            return Some(self.ticks.next(self.start, interval));
        }
        match self.scenario {
            Scenario::Server => self.next_due().map(|due| due - self.pacing.ahead),
            Scenario::SingleStream | Scenario::MultiStream if self.outstanding > 0 => self.deadline(),
            _ => Some(self.last_issued.max(self.last_done)),
        }
    }

    /// Why issuing ended, if it has.
    pub fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// The outcome, once issuing has ended and nothing is outstanding.
    pub fn outcome(&mut self) -> Option<Outcome> {
        let stop = self.stop?;
        if self.outstanding > 0 {
            return None;
        }
        let samples = std::mem::take(&mut self.done);
        Some(Outcome {
            ending: self.ending(&samples),
            samples,
            stop,
            lost: std::mem::take(&mut self.lost),
            skips: std::mem::take(&mut self.ticks.skips),
            errors: std::mem::take(&mut self.errors),
            start: self.start,
            last_done: self.last_done,
        })
    }

    fn ending(&self, samples: &[Sample]) -> Option<Ending> {
        let last = self.queries.get(self.next.checked_sub(1)?)?;
        let open = self.open.last()?;
        let seconds = |t: Time| t.since(self.start).ns() as f64 / 1e9;
        let done = samples.iter().filter(|s| s.query == last.seq).map(|s| s.due_ns as i64 + s.latency_ns).max();
        // Without an answer to the last query the run ends with its last answer.
        let done_s = done.map_or(seconds(self.last_done), |ns| ns as f64 / 1e9);
        let due = if self.scenario == Scenario::Server { open.due } else { self.start + Dur(last.due_ns) };
        Some(Ending {
            queries_issued: self.next as u64,
            scheduled_s: seconds(due),
            issued_s: seconds(self.last_issued),
            done_s,
        })
    }
}
