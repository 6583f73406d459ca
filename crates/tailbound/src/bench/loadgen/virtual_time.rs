//! A test in virtual time: the scenario machine and the engine model, each woken when it asks to be. No clock, no sockets: the same
//! settings give the same logs, byte for byte.

use super::heard::Heard;
use crate::bench::point::{Replica, Wanted};
use crate::failure::{Failure, Outcome};
use tailbound_clock::Time;
use tailbound_record::{End, Moment, Row};
use tailbound_stats::loadgen::Scenario;
use tailbound_stats::loadgen::scenario::{Effect, Event, Test};

struct World<'a> {
    test: &'a mut Test,
    replica: Replica,
    reports_first: bool,
    token_mode: bool,
    effects: Vec<Effect>,
    heard: Heard,
    answered: Vec<Row>,
}

/// Runs a test to its end.
pub fn run(test: &mut Test, replica: Replica) -> Outcome<Heard> {
    let r = &test.effective().requested;
    let (token_mode, reports_first) = (r.use_token_latencies, r.use_token_latencies && r.scenario != Scenario::Offline);
    let mut world = World {
        test,
        replica,
        reports_first,
        token_mode,
        effects: Vec::new(),
        heard: Heard::default(),
        answered: Vec::new(),
    };
    let mut now = Time::ZERO;
    world.tell(now, Event::Start);
    while !world.test.finished() {
        let (replica, test) = (world.replica.next_wake(), world.test.next_wake());
        match (replica, test) {
            // What comes out at a moment is known before what arrives at it.
            (Some(at), other) if other.is_none_or(|other| at <= other) => {
                now = now.max(at);
                world.step(now);
            }
            (_, Some(at)) => {
                now = now.max(at);
                world.tell(now, Event::Wake);
            }
            _ => return Err(Failure::new("the test waits for an answer that the engine model will never give")),
        }
    }
    Ok(world.heard)
}

impl World<'_> {
    fn tell(&mut self, now: Time, event: Event) {
        self.test.on(now, event, &mut self.effects);
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Load(_) => self.test.on(now, Event::Loaded, &mut self.effects),
                    Effect::Issue(batch) => {
                        for issue in batch {
                            for (sample, index) in (issue.first_sample..).zip(issue.samples) {
                                self.submit(now, sample, index);
                            }
                        }
                    }
                    Effect::Flush | Effect::Finished => {}
                }
            }
        }
    }

    fn submit(&mut self, now: Time, sample: u64, index: u32) {
        let wanted = Wanted { id: sample, scheduled: now, due: now, item: index as usize, salt: None, class: 0 };
        let Some(rejected) = self.replica.submit(now, wanted) else { return };
        let why = match rejected.end {
            End::Failed { detail, .. } => detail.to_string(),
            _ => String::new(),
        };
        self.heard.lost_to("rejected by the engine model".into(), why);
        self.test.on(now, Event::Lost { sample }, &mut self.effects);
    }

    fn step(&mut self, now: Time) {
        let mut answered = std::mem::take(&mut self.answered);
        self.replica.step(now, &mut answered);
        for row in answered.drain(..) {
            let tokens = self.token_mode.then(|| i64::from(row.tokens.output_server.unwrap_or(0)));
            let first_token = row.at.get(Moment::FirstToken).filter(|_| self.reports_first);
            self.tell(now, Event::Answered { sample: row.id, issued: None, first_token, at: now, tokens });
        }
        self.answered = answered;
    }
}
