//! A small virtual-time driver.

use std::collections::BTreeMap;
use tailbound_clock::{Dur, Time};
use tailbound_engine::*;

/// 10 ms a step and 0.1 ms a prompt token.
pub fn constant() -> Law {
    Law::Constant { step: Dur::from_ms(10), per_prefill_token: Dur::from_us(100) }
}

/// When, the index of the first token, how many, and the end.
pub type Output = (Time, u32, u32, Option<Finish>);

/// An engine with what it has put out so far.
pub struct Driver {
    pub engine: Engine,
    /// Whether the engine's invariants are checked after every event.
    pub check: bool,
    pub now: Time,
    /// By sequence.
    pub tokens: BTreeMap<u64, Vec<Output>>,
    pub finished: BTreeMap<u64, Finished>,
    pub steps: Vec<Step>,
    pub rejected: Vec<(SeqId, WhyRejected)>,
    pub kv: Vec<tailbound_kv::Event>,
    out: Vec<Effect>,
}

impl Driver {
    pub fn new(config: Config) -> Driver {
        Driver {
            engine: Engine::new(config).expect("a sound configuration"),
            check: true,
            now: Time::ZERO,
            tokens: BTreeMap::new(),
            finished: BTreeMap::new(),
            steps: Vec::new(),
            rejected: Vec::new(),
            kv: Vec::new(),
            out: Vec::new(),
        }
    }

    pub fn on(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.out.clear();
        self.engine.on(self.now, event, &mut self.out);
        if self.check {
            self.engine.check().expect("sound after every event");
        }
        for effect in &self.out {
            match effect {
                Effect::Stepped(step) => self.steps.push(*step),
                Effect::Rejected { id, why } => self.rejected.push((*id, *why)),
                Effect::Aborted { .. } | Effect::PrefixCacheReset { .. } => {}
            }
        }
        let at = self.steps.last().map_or(self.now, |s| s.end);
        for e in self.engine.emitted() {
            self.tokens.entry(e.id.0).or_default().push((at, e.first, e.tokens, e.finish));
        }
        self.finished.extend(self.engine.finished().iter().map(|f| (f.id.0, *f)));
        self.kv.extend_from_slice(self.engine.kv().events());
        self.out.clone()
    }

    pub fn submit(&mut self, id: u64, prompt: &[u32], output: u32) {
        self.on(Event::Submit(Submit::new(SeqId(id), prompt, output)));
    }

    /// Goes to the next wake, if there is one before `until`.
    pub fn wake(&mut self, until: Time) -> bool {
        match self.engine.next_wake() {
            Some(at) if at <= until => {
                self.now = at;
                self.on(Event::Wake);
                true
            }
            _ => false,
        }
    }

    pub fn run(&mut self) {
        while self.wake(Time::MAX) {}
    }

    /// Milliseconds at which each output of a sequence came.
    pub fn times(&self, id: u64) -> Vec<f64> {
        self.tokens.get(&id).map_or(Vec::new(), |t| t.iter().map(|(at, ..)| at.ns() as f64 / 1e6).collect())
    }
}

/// `n` tokens that no other call with another `salt` gives.
pub fn prompt(salt: u32, n: u32) -> Vec<u32> {
    (0..n).map(|i| salt * 100_000 + i).collect()
}
