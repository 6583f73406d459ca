use crate::phases::{Next, Phases, Running};
use crate::turns::{Fate, Turns};
use crate::{Plan, Stage};
use std::sync::Arc;
use tailbound_clock::{Dur, Time};
use tailbound_record::Why;

/// Which planned request: its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub u32);

/// What a driver tells the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEvent {
    /// `next_wake` has come. The first one starts the run.
    Wake,
    /// A request that was handed over has ended, in whatever way.
    Ended {
        /// Which one.
        id: IntentId,
        /// Whether the whole answer came.
        ok: bool,
        /// How many output tokens it had (0 if unknown).
        answer_tokens: u32,
    },
    /// Send nothing more. Requests in flight go on.
    Stop(Why),
}

/// What the load tells its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEffect {
    /// Send this request at `due` exactly (it may be handed over a little ahead of time; the pacer owns exactness).
    Send {
        /// Which one.
        id: IntentId,
        /// When it should have started by the plan; earlier than `due` if it had to wait for a place under the cap.
        scheduled: Time,
        /// When to send it.
        due: Time,
    },
    /// Nothing is in flight and nothing more will be sent.
    Finished,
}

/// A measured request that was planned, and never handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// Which one.
    pub id: IntentId,
    /// When it should have been sent; `None` if the run stopped before its schedule began, or before its turn came.
    pub scheduled: Option<Time>,
    /// Why it wasn't.
    pub why: Why,
}

/// Requests due within this time are handed over.
const HORIZON: Dur = Dur::from_ms(20);
/// The driver is woken when the next request is this near. The difference to the horizon is what one wake covers at high rates.
const LEAD: Dur = Dur::from_ms(10);

/// The load as a machine: releases the plan's requests as time passes and places under the cap come free.
///
/// The first `Wake` starts the run: warm-ups first, then, once all of them have ended, the schedule (its start is [`Load::origin`]; without
/// warm-ups that is the first `Wake`). Requests go out in the order of the plan. Every `Send` must be answered with one `Ended`.
#[derive(Debug)]
pub struct Load {
    plan: Arc<Plan>,
    state: State,
    /// How many of our warm-ups have been handed over.
    warmups_sent: u32,
    /// How many of our measured requests have been handed over.
    sent: u32,
    /// Which may go next, in a plan with sessions.
    turns: Option<Turns>,
    /// The same, in a plan of phases.
    phases: Option<(Arc<Phases>, Running)>,
    probes_sent: u32,
    /// In flight under the cap: warm-ups and measured requests.
    in_flight: u32,
    probes_in_flight: u32,
    /// When the cap last stopped being reached.
    free_since: Time,
    stopped: Option<Why>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    WarmingUp { since: Time },
    Running { origin: Time },
    Finished { origin: Option<Time> },
}

impl State {
    fn origin(self) -> Option<Time> {
        match self {
            State::Idle | State::WarmingUp { .. } => None,
            State::Running { origin } => Some(origin),
            State::Finished { origin } => origin,
        }
    }
}

impl Load {
    /// A load about to start. One shard of a plan is a plan.
    pub fn new(plan: Arc<Plan>) -> Load {
        let mut turns = Turns::of(&plan);
        if let Some(turns) = &mut turns {
            turns.pass_followers(&plan);
        }
        let phases = plan.phases.clone().filter(|_| plan.own_any()).map(|phases| {
            let running = Running::new(&phases);
            (phases, running)
        });
        Load {
            plan,
            turns,
            phases,
            state: State::Idle,
            warmups_sent: 0,
            sent: 0,
            probes_sent: 0,
            in_flight: 0,
            probes_in_flight: 0,
            free_since: Time::ZERO,
            stopped: None,
        }
    }

    /// The plan it carries out.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// When the schedule began: the t0 of every figure. `None` before that.
    pub fn origin(&self) -> Option<Time> {
        self.state.origin()
    }

    /// Requests handed over and not ended, probes included.
    pub fn in_flight(&self) -> u32 {
        self.in_flight + self.probes_in_flight
    }

    /// Measured requests handed over so far.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Why nothing more is sent, if the run was stopped or its time was over.
    pub fn stopped(&self) -> Option<Why> {
        self.stopped
    }

    /// Takes one event and appends what follows from it. `now` never goes back.
    pub fn on(&mut self, now: Time, event: LoadEvent, out: &mut Vec<LoadEffect>) {
        match event {
            LoadEvent::Wake if self.state == State::Idle => {
                self.free_since = now;
                self.state = State::WarmingUp { since: now };
            }
            LoadEvent::Wake => {}
            LoadEvent::Ended { id, ok, .. } => self.ended(now, id, ok),
            LoadEvent::Stop(why) => self.stopped = self.stopped.or(Some(why)),
        }
        self.release(now, out);
        self.finish(out);
    }

    /// When to call `on(Wake)` next; earlier than the next `due`, so that the pacer has time. `None`: only an `Ended` can move things on
    /// (or the first `Wake`, before the start).
    pub fn next_wake(&self) -> Option<Time> {
        let State::Running { origin } = self.state else { return None };
        if self.stopped.is_some() {
            return None;
        }
        let measured = if self.has_place() { self.next_measured(origin).map(|next| next.scheduled) } else { None };
        let probe = self.next_probe(origin).map(|(_, at)| at);
        let next = match (measured, probe) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Some(next - LEAD)
    }

    /// The measured requests that were never handed over; complete once `Finished` has come. An endless plan has none.
    pub fn unsent(&self) -> impl Iterator<Item = Unsent> + '_ {
        let why = self.stopped.unwrap_or(Why::Interrupted);
        let phased = self.phases.iter().flat_map(|(plan, running)| running.unsent(plan, self.stopped));
        let phased = phased.map(|(id, offset, why)| {
            let scheduled = self.origin().zip(offset).map(|(origin, offset)| origin + offset);
            Unsent { id: IntentId(id), scheduled, why }
        });
        let end = if self.plan.endless() || self.turns.is_some() || self.plan.phases.is_some() {
            self.sent
        } else {
            self.own_measured()
        };
        let single = (self.sent..end).map(move |k| {
            let index = self.plan.stride.nth(k);
            let scheduled = self.origin().map(|origin| origin + self.plan.offset(index));
            Unsent { id: IntentId(index), scheduled, why }
        });
        let turns = self.turns.iter().flat_map(|turns| turns.unsent(&self.plan, self.origin()));
        let turns = turns.map(move |(id, fate, scheduled)| {
            let why = if fate == Fate::Broken { Why::Session } else { why };
            Unsent { id: IntentId(id), scheduled, why }
        });
        single.chain(turns).chain(phased)
    }

    fn ended(&mut self, now: Time, id: IntentId, ok: bool) {
        if let (Some(turns), Some(origin)) = (&mut self.turns, self.state.origin())
            && id.0 < self.plan.requests()
        {
            turns.ended(&self.plan, origin, now, id.0, ok);
        }
        if let (Some((phases, running)), Some(origin)) = (&mut self.phases, self.state.origin())
            && id.0 < self.plan.requests()
        {
            running.ended(phases, origin, now, id.0);
        }
        if self.plan.intent(id).stage == Stage::Probe {
            debug_assert!(self.probes_in_flight > 0, "a probe ended that was not in flight");
            self.probes_in_flight = self.probes_in_flight.saturating_sub(1);
            return;
        }
        debug_assert!(self.in_flight > 0, "a request ended that was not in flight");
        if !self.has_place() {
            self.free_since = now;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn release(&mut self, now: Time, out: &mut Vec<LoadEffect>) {
        if self.stopped.is_some() {
            return;
        }
        if let State::WarmingUp { since } = self.state {
            self.release_warmups(since, out);
            if self.in_flight > 0 || self.warmups_sent < self.own_warmups() {
                return;
            }
            self.free_since = now;
            self.state = State::Running { origin: now };
        }
        let State::Running { origin } = self.state else { return };
        self.release_measured(now, origin, out);
        self.release_probes(now, origin, out);
    }

    fn release_warmups(&mut self, since: Time, out: &mut Vec<LoadEffect>) {
        while self.warmups_sent < self.own_warmups() && self.has_place() {
            let id = IntentId(self.plan.requests() + self.plan.stride.nth(self.warmups_sent));
            out.push(LoadEffect::Send { id, scheduled: since, due: self.free_since });
            self.warmups_sent += 1;
            self.in_flight += 1;
        }
    }

    fn release_measured(&mut self, now: Time, origin: Time, out: &mut Vec<LoadEffect>) {
        let deadline = self.plan.duration().map_or(Time::MAX, |duration| origin + duration);
        while let Some(Next { id, scheduled, due }) = self.next_measured(origin) {
            // A request that waited for a place is due when the place came free, not when somebody got round to it.
            let due = due.max(self.free_since);
            if due >= deadline || now >= deadline {
                self.stopped = Some(Why::Duration);
                return;
            }
            if !self.has_place() || due > now + HORIZON {
                return;
            }
            out.push(LoadEffect::Send { id: IntentId(id), scheduled, due });
            if let Some(turns) = &mut self.turns {
                turns.sent(&self.plan, id);
            }
            if let Some((phases, running)) = &mut self.phases {
                running.sent(phases, id);
            }
            self.sent += 1;
            self.in_flight += 1;
        }
    }

    fn release_probes(&mut self, now: Time, origin: Time, out: &mut Vec<LoadEffect>) {
        while let Some((id, due)) = self.next_probe(origin) {
            if self.stopped.is_some() || due > now + HORIZON {
                return;
            }
            out.push(LoadEffect::Send { id, scheduled: due, due });
            self.probes_sent += 1;
            self.probes_in_flight += 1;
        }
    }

    fn finish(&mut self, out: &mut Vec<LoadEffect>) {
        let over = match self.state {
            State::Idle | State::WarmingUp { .. } => self.stopped.is_some(),
            State::Running { origin } => self.stopped.is_some() || self.all_sent(origin),
            State::Finished { .. } => false,
        };
        if over && self.in_flight() == 0 {
            self.state = State::Finished { origin: self.origin() };
            out.push(LoadEffect::Finished);
        }
    }

    fn has_place(&self) -> bool {
        self.plan.max_concurrency().is_none_or(|cap| self.in_flight < cap)
    }

    fn own_measured(&self) -> u32 {
        self.plan.stride.count(self.plan.requests())
    }

    fn own_warmups(&self) -> u32 {
        self.plan.stride.count(self.plan.warmups())
    }

    /// Of phases: nothing more can go before a request ends, which is the same once none is in flight.
    fn all_sent(&self, origin: Time) -> bool {
        if self.plan.phases.is_some() {
            return self.next_measured(origin).is_none();
        }
        self.turns.as_ref().map_or(self.sent == self.own_measured(), Turns::done)
    }

    fn next_measured(&self, origin: Time) -> Option<Next> {
        if let Some(turns) = &self.turns {
            return turns.next(&self.plan, origin).map(|(id, scheduled)| Next { id, scheduled, due: scheduled });
        }
        if self.plan.phases.is_some() {
            return self.phases.as_ref().and_then(|(phases, running)| running.next(phases, origin));
        }
        if self.sent == self.own_measured() {
            return None;
        }
        let index = self.plan.stride.nth(self.sent);
        let scheduled = origin + self.plan.offset(index);
        Some(Next { id: index, scheduled, due: scheduled })
    }

    /// Probes go on as long as measured requests are to come or in flight.
    fn next_probe(&self, origin: Time) -> Option<(IntentId, Time)> {
        if self.all_sent(origin) && self.in_flight == 0 {
            return None;
        }
        self.plan.probe_rate()?;
        let id = IntentId(self.plan.first_probe().checked_add(self.probes_sent)?);
        Some((id, origin + self.plan.intent(id).offset?))
    }
}
