use tailbound_clock::Time;
use tailbound_record::{End, Moment, Row, Why};
use tailbound_workload::{IntentId, Law, Load, LoadEffect, LoadEvent};

/// What decides which request leaves when: a plan's [`Load`], or a benchmark with rules of its own (MLPerf's scenarios).
///
/// Its methods are called by whichever thread has something to tell, one at a time, with times that never go back, and must not
/// block. Every [`LoadEffect::Send`] is answered with exactly one `ended`. After [`LoadEffect::Finished`] nothing is called again.
pub trait Schedule: Send {
    /// [`Schedule::next_wake`] has come, or nothing has happened for a while. The first call starts the run.
    fn wake(&mut self, now: Time, out: &mut Vec<LoadEffect>);

    /// Send nothing more; requests in flight go on. May be called again and again.
    fn stop(&mut self, now: Time, why: Why, out: &mut Vec<LoadEffect>);

    /// A request that was handed over has ended, in whatever way. The row's moments are those of the socket: `now` is when it was heard
    /// of, and what is sent in answer cannot leave earlier.
    fn ended(&mut self, now: Time, row: &Row, out: &mut Vec<LoadEffect>);

    /// When to wake it at the latest; `None`: only an ended request can move it on.
    fn next_wake(&self) -> Option<Time>;

    /// Why nothing more is sent, if it was stopped or its time is over.
    fn stopped(&self) -> Option<Why>;

    /// Requests that will be in flight at once whatever the server does, as far as that is known beforehand: descriptors and ports for
    /// so many are made sure of.
    fn at_once(&self) -> Option<u64>;

    /// After the run: when its schedule began.
    fn origin(&self) -> Option<Time>;

    /// After the run: a row for each request that was planned and never handed over.
    fn unsent(&self) -> Vec<Row>;
}

impl Schedule for Load {
    fn wake(&mut self, now: Time, out: &mut Vec<LoadEffect>) {
        self.on(now, LoadEvent::Wake, out);
    }

    fn stop(&mut self, now: Time, why: Why, out: &mut Vec<LoadEffect>) {
        self.on(now, LoadEvent::Stop(why), out);
    }

    fn ended(&mut self, now: Time, row: &Row, out: &mut Vec<LoadEffect>) {
        let answer_tokens = if row.ok() { row.output_tokens() } else { 0 };
        self.on(now, LoadEvent::Ended { id: IntentId(row.id as u32), ok: row.ok(), answer_tokens }, out);
    }

    fn next_wake(&self) -> Option<Time> {
        Load::next_wake(self)
    }

    fn stopped(&self) -> Option<Why> {
        Load::stopped(self)
    }

    /// Of a load that goes out all at once. What a paced load needs depends on the server; if it runs out, its rows say so.
    fn at_once(&self) -> Option<u64> {
        let plan = self.plan();
        // Only sessions' first turns can go out at once.
        let first = plan.sessions().unwrap_or(plan.requests());
        let requests = (!plan.endless()).then(|| u64::from(first.max(plan.warmups())));
        let cap = plan.max_concurrency().map(u64::from);
        match (plan.law(), requests, cap) {
            (Law::AtOnce, Some(a), Some(b)) => Some(a.min(b)),
            (Law::AtOnce, a, b) => a.or(b),
            _ => None,
        }
    }

    fn origin(&self) -> Option<Time> {
        Load::origin(self)
    }

    fn unsent(&self) -> Vec<Row> {
        let row = |unsent: tailbound_workload::Unsent| {
            let mut row = Row::new(u64::from(unsent.id.0));
            if let Some(scheduled) = unsent.scheduled {
                row.at.set(Moment::Scheduled, scheduled);
            }
            row.end = End::NeverSent(unsent.why);
            row
        };
        Load::unsent(self).map(row).collect()
    }
}
