//! The load machine between its loops: who may send what, and when.
//!
//! The pacer's own thread wakes the load ahead of each arrival and hands what is due soon to the loops, which send on the nanosecond.
//! What a *finished* request sets free is handed to the loop that finished it, on the spot: a closed loop costs no switch of threads.

use crate::Schedule;
use crate::control::{Control, Phase};
use crate::job::Assigned;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tailbound_clock::{Dur, Time};
use tailbound_os::clock;
use tailbound_os::poll::EventFd;
use tailbound_record::{Row, Why};
use tailbound_workload::LoadEffect;

/// A loop's letter box, and its rows on their way out.
pub(crate) struct Port {
    inbox: Mutex<Vec<Assigned>>,
    news: AtomicBool,
    pub wake: EventFd,
    rows: Mutex<Vec<Row>>,
}

impl Port {
    pub fn new() -> std::io::Result<Port> {
        let (inbox, rows) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        Ok(Port { inbox, news: AtomicBool::new(false), wake: EventFd::new()?, rows })
    }

    fn post(&self, assigned: Assigned) {
        held(&self.inbox).push(assigned);
    }

    /// Makes the loop look at its box, and at the state of the run.
    pub fn ring(&self) {
        self.news.store(true, Ordering::Release);
        self.wake.signal();
    }

    /// For the loop: whether somebody rang since it last asked, and what was posted.
    pub fn collect(&self, into: &mut Vec<Assigned>) -> bool {
        if !self.news.swap(false, Ordering::Acquire) {
            return false;
        }
        self.wake.clear();
        into.append(&mut held(&self.inbox));
        true
    }

    pub fn put_row(&self, row: Row) {
        held(&self.rows).push(row);
    }

    /// Moves the rows on. The lock is held for a swap only: whoever takes them has no real-time priority, and a loop must not wait for it.
    pub fn take_rows(&self, into: &mut Vec<Row>) {
        if into.is_empty() {
            return std::mem::swap(&mut *held(&self.rows), into);
        }
        let mut rows = std::mem::take(&mut *held(&self.rows));
        into.append(&mut rows);
    }
}

/// The load, shared by the loops and the pacer's thread.
pub(crate) struct Pacer<'l> {
    state: Mutex<State<'l>>,
    wake: EventFd,
    finished: AtomicBool,
    cancelled: AtomicBool,
    /// Loops still running.
    loops: AtomicUsize,
}

struct State<'l> {
    load: &'l mut dyn Schedule,
    effects: Vec<LoadEffect>,
    now: Time,
    /// Whose turn it is to get the next request.
    turn: usize,
    /// Until when the pacer's thread means to sleep.
    asleep_until: Time,
    /// When requests in flight are cancelled, once sending has stopped.
    cancel_at: Option<Time>,
}

/// The longest time after which the pacer looks whether somebody wants the run to stop.
const LOOK_UP: Dur = Dur::from_ms(20);

impl<'l> Pacer<'l> {
    pub fn new(load: &'l mut dyn Schedule, loops: usize) -> std::io::Result<Pacer<'l>> {
        let state =
            State { load, effects: Vec::new(), now: Time::ZERO, turn: 0, asleep_until: Time::MAX, cancel_at: None };
        Ok(Pacer {
            state: Mutex::new(state),
            wake: EventFd::new()?,
            finished: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            loops: AtomicUsize::new(loops),
        })
    }

    /// Nothing is in flight, and nothing will be.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Requests in flight are to be given up.
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Why sending stopped, if it did.
    pub fn why(&self) -> Option<Why> {
        held(&self.state).load.stopped()
    }

    /// A loop tells that a request ended; what may be sent now goes to `own`.
    pub fn ended(&self, now: Time, row: &Row, own: &mut Vec<Assigned>, ports: &[Port]) {
        let mut state = held(&self.state);
        let wake_before = state.asleep_until;
        state.on(now, Heard::Ended(row));
        let mut finished = false;
        for effect in state.effects.drain(..) {
            match effect {
                LoadEffect::Send { id, scheduled, due } => own.push(Assigned { due, scheduled, id: id.0 }),
                LoadEffect::Finished => finished = true,
            }
        }
        let sooner = state.load.next_wake().is_some_and(|at| at < wake_before);
        drop(state);
        if finished {
            self.finish(ports);
        } else if sooner {
            self.wake.signal();
        }
    }

    /// The pacer's thread: returns when the run is over.
    pub fn run(&self, control: &Control, grace: Dur, ports: &[Port]) {
        while !self.finished() && self.loops.load(Ordering::Acquire) > 0 {
            let until = self.step(control, grace, ports);
            let wait = until.since(clock::now()).min(LOOK_UP);
            if self.wake.wait(wait) {
                self.wake.clear();
            }
        }
        self.finish(ports);
    }

    /// Releases what is due soon; returns when to come back at the latest.
    fn step(&self, control: &Control, grace: Dur, ports: &[Port]) -> Time {
        let now = clock::now();
        let phase = control.phase();
        let mut state = held(&self.state);
        state.on(now, if phase == Phase::Run { Heard::Nothing } else { Heard::Stop(control.why()) });
        let mut rung = vec![false; ports.len()];
        let mut finished = false;
        let State { effects, turn, .. } = &mut *state;
        for effect in effects.drain(..) {
            match effect {
                LoadEffect::Send { id, scheduled, due } => {
                    ports[*turn].post(Assigned { due, scheduled, id: id.0 });
                    rung[*turn] = true;
                    *turn = (*turn + 1) % ports.len();
                }
                LoadEffect::Finished => finished = true,
            }
        }
        if state.load.stopped().is_some() && state.cancel_at.is_none() {
            state.cancel_at = Some(now + grace);
            rung.fill(true); // the loops drop what they have not sent yet
        }
        let cancel = phase == Phase::Abort || state.cancel_at.is_some_and(|at| at <= now);
        state.asleep_until = state.load.next_wake().unwrap_or(Time::MAX);
        let until = state.asleep_until.min(state.cancel_at.filter(|_| !cancel).unwrap_or(Time::MAX));
        drop(state);
        if cancel && !self.cancelled.swap(true, Ordering::AcqRel) {
            rung.fill(true);
        }
        if finished {
            self.finish(ports);
            return now;
        }
        for (port, _) in ports.iter().zip(&rung).filter(|(_, rung)| **rung) {
            port.ring();
        }
        until
    }

    /// A loop has ended, in whatever way.
    pub fn loop_ended(&self) {
        self.loops.fetch_sub(1, Ordering::AcqRel);
        self.wake.signal();
    }

    fn finish(&self, ports: &[Port]) {
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        self.wake.signal();
        for port in ports {
            port.ring();
        }
    }
}

/// What the load is told.
enum Heard<'a> {
    Nothing,
    Ended(&'a Row),
    Stop(Why),
}

impl State<'_> {
    fn on(&mut self, now: Time, heard: Heard<'_>) {
        // Threads read the clock before they take the lock: the machine must not see it go back.
        self.now = self.now.max(now);
        match heard {
            Heard::Nothing => self.load.wake(self.now, &mut self.effects),
            Heard::Ended(row) => self.load.ended(self.now, row, &mut self.effects),
            Heard::Stop(why) => self.load.stop(self.now, why, &mut self.effects),
        }
    }
}

/// A panic elsewhere leaves whole values behind (nothing here is changed half-way), so a poisoned lock is as good as another.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
