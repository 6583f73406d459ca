use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use tailbound_clock::{Dur, Rng, Seed, Time};
use tailbound_record::Why;
use tailbound_workload::{IntentId, Load, LoadEffect, LoadEvent, Plan, Spec, Stage};

/// A driver in virtual time: requests last as long as `lasts` says; wakes come when asked for.
pub struct Driver {
    pub load: Load,
    now: Time,
    /// (end, id) of what is in flight.
    flying: BTreeSet<(Time, IntentId)>,
    pub sent: Vec<Sent>,
    pub finished: Option<Time>,
    most_in_flight: usize,
    /// Requests that end without an answer.
    failing: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub id: IntentId,
    stage: Stage,
    pub scheduled: Time,
    pub due: Time,
    handed_over: Time,
}

pub const START: Time = Time(1_000_000_000);

impl Driver {
    fn run(plan: Plan, stop: Option<Time>, lasts: impl FnMut(IntentId) -> Dur) -> Driver {
        Driver::run_failing(plan, stop, &[], lasts)
    }

    pub fn run_failing(
        plan: Plan,
        stop: Option<Time>,
        failing: &[u32],
        mut lasts: impl FnMut(IntentId) -> Dur,
    ) -> Driver {
        let mut driver = Driver {
            load: Load::new(Arc::new(plan)),
            now: START,
            flying: BTreeSet::new(),
            sent: Vec::new(),
            finished: None,
            most_in_flight: 0,
            failing: failing.iter().copied().collect(),
        };
        driver.give(LoadEvent::Wake, &mut lasts);
        let mut stop = stop;
        for _ in 0..1_000_000 {
            let end = driver.flying.first().copied();
            let wake = driver.load.next_wake().map(|at| at.max(driver.now));
            let next = [end.map(|(at, _)| at), wake, stop].into_iter().flatten().min();
            let Some(next) = next.filter(|_| driver.finished.is_none()) else { break };
            driver.now = next;
            let event = match end {
                Some((at, id)) if at == next => {
                    driver.flying.remove(&(at, id));
                    LoadEvent::Ended { id, ok: !driver.failing.contains(&id.0), answer_tokens: 1 }
                }
                _ if stop == Some(next) => {
                    stop = None;
                    LoadEvent::Stop(Why::Interrupted)
                }
                _ => LoadEvent::Wake,
            };
            driver.give(event, &mut lasts);
        }
        driver
    }

    fn give(&mut self, event: LoadEvent, lasts: &mut impl FnMut(IntentId) -> Dur) {
        let mut effects = Vec::new();
        self.load.on(self.now, event, &mut effects);
        for effect in effects {
            match effect {
                LoadEffect::Send { id, scheduled, due } => {
                    let stage = self.load.plan().intent(id).stage;
                    self.sent.push(Sent { id, stage, scheduled, due, handed_over: self.now });
                    self.flying.insert((due.max(self.now) + lasts(id), id));
                }
                LoadEffect::Finished => {
                    assert!(self.finished.replace(self.now).is_none(), "finished twice");
                    assert!(self.flying.is_empty(), "finished with requests in flight");
                }
            }
        }
        let load = self.flying.iter().filter(|(_, id)| self.load.plan().intent(*id).stage != Stage::Probe).count();
        self.most_in_flight = self.most_in_flight.max(load);
    }

    fn of(&self, stage: Stage) -> Vec<Sent> {
        self.sent.iter().copied().filter(|s| s.stage == stage).collect()
    }
}

fn spec(n: u64, rate: f64) -> Spec {
    Spec { num_prompts: Some(n), request_rate: Some(rate), ..Spec::default() }
}

#[test]
fn without_a_cap_every_request_is_handed_over_in_time_and_due_as_scheduled() {
    for rate in [0.5, 30.0, 5_000.0] {
        let plan = spec(300, rate).plan().unwrap();
        let driver = Driver::run(plan.clone(), None, |_| Dur::from_ms(700));
        assert_eq!(driver.load.origin(), Some(START));
        assert_eq!(driver.sent.len(), 300);
        for (sent, intent) in driver.sent.iter().zip(plan.measured()) {
            assert_eq!(sent.id, intent.id);
            assert_eq!(sent.due, START + intent.offset.unwrap());
            assert_eq!(sent.scheduled, sent.due);
            let ahead = sent.due.minus(sent.handed_over);
            let soon = sent.due.minus(START) < 10_000_000;
            assert!(ahead >= 10_000_000 || soon, "handed over only {ahead} ns ahead");
            assert!(ahead <= 20_000_000, "handed over {ahead} ns ahead");
        }
        let last = driver.sent.last().unwrap().due;
        assert_eq!(driver.finished, Some(last + Dur::from_ms(700)));
    }
}

#[test]
fn high_rates_are_handed_over_in_batches() {
    let plan = spec(10_000, 10_000.0).plan().unwrap();
    let mut load = Load::new(Arc::new(plan));
    let (mut now, mut calls, mut effects) = (START, 0, Vec::new());
    load.on(now, LoadEvent::Wake, &mut effects);
    while let Some(at) = load.next_wake() {
        assert!(at >= now, "asked to be woken in the past");
        now = at;
        calls += 1;
        load.on(now, LoadEvent::Wake, &mut effects);
    }
    assert_eq!(effects.len(), 10_000);
    assert!(calls < 130, "{calls} wakes in one second");
}

#[test]
fn under_a_cap_requests_wait_in_order_and_keep_their_scheduled_time() {
    // 100/s arrive, two places of 100 ms each serve 20/s.
    let plan = Spec { max_concurrency: Some(2), burstiness: Some(f64::INFINITY), ..spec(20, 100.0) }.plan().unwrap();
    let driver = Driver::run(plan, None, |_| Dur::from_ms(100));
    let ms: Vec<(u64, u64)> = driver
        .sent
        .iter()
        .map(|s| (s.scheduled.since(START).ns() / 1_000_000, s.due.since(START).ns() / 1_000_000))
        .collect();
    assert_eq!(&ms[..6], &[(10, 10), (20, 20), (30, 110), (40, 120), (50, 210), (60, 220)]);
    assert_eq!(driver.most_in_flight, 2);
}

#[test]
fn warmups_go_first_and_the_schedule_starts_when_they_have_ended() {
    let plan = Spec { num_warmups: 5, max_concurrency: Some(2), ..spec(10, 50.0) }.plan().unwrap();
    let driver = Driver::run(plan.clone(), None, |_| Dur::from_ms(40));
    let warmups = driver.of(Stage::Warmup);
    assert_eq!(warmups.len(), 5);
    let dues: Vec<u64> = warmups.iter().map(|s| s.due.since(START).ns() / 1_000_000).collect();
    assert_eq!(dues, [0, 0, 40, 40, 80]);
    let origin = START + Dur::from_ms(120);
    assert_eq!(driver.load.origin(), Some(origin));
    let measured = driver.of(Stage::Measured);
    assert_eq!(measured.len(), 10);
    assert_eq!(measured[0].scheduled, origin + plan.measured().next().unwrap().offset.unwrap());
    assert!(driver.most_in_flight <= 2);
}

#[test]
fn the_duration_ends_the_sending_and_says_why() {
    // Ten of 20 arrivals find the single place free within half a second.
    let plan = Spec {
        max_concurrency: Some(1),
        burstiness: Some(f64::INFINITY),
        duration: Some(Dur::from_ms(500)),
        ..spec(1000, 40.0)
    };
    let driver = Driver::run(plan.plan().unwrap(), None, |_| Dur::from_ms(50));
    assert_eq!(driver.load.plan().requests(), 19, "arrivals at or past the end are no part of the plan");
    assert_eq!(driver.sent.len(), 10);
    assert!(driver.sent.iter().all(|s| s.due < START + Dur::from_ms(500)));
    assert_eq!(driver.load.stopped(), Some(Why::Duration));
    let unsent: Vec<_> = driver.load.unsent().collect();
    assert_eq!(unsent.iter().map(|u| u.id.0).collect::<Vec<_>>(), (10..19).collect::<Vec<_>>());
    assert!(unsent.iter().all(|u| u.why == Why::Duration && u.scheduled.is_some()));
    assert!(driver.finished.is_some());
}

#[test]
fn a_closed_loop_runs_for_its_duration() {
    let spec = Spec { duration: Some(Dur::from_secs(2)), max_concurrency: Some(4), ..Spec::default() };
    let plan = spec.plan().unwrap();
    assert!(plan.endless() && plan.prompts_needed().is_none());
    let driver = Driver::run(plan, None, |_| Dur::from_ms(100));
    assert_eq!(driver.sent.len(), 80);
    assert_eq!(driver.load.unsent().count(), 0);
    assert_eq!(driver.finished, Some(START + Dur::from_secs(2)));
}

#[test]
fn probes_keep_their_own_pace_outside_the_cap_until_the_load_has_ended() {
    let plan =
        Spec { max_concurrency: Some(1), probe_request_rate: 10.0, ..Spec { num_prompts: Some(4), ..Spec::default() } };
    let driver =
        Driver::run(plan.plan().unwrap(), None, |id| if id.0 < 4 { Dur::from_ms(245) } else { Dur::from_ms(5) });
    let probes: Vec<u64> = driver.of(Stage::Probe).iter().map(|s| s.due.since(START).ns() / 1_000_000).collect();
    assert_eq!(probes, (0..10).map(|k| k * 100).collect::<Vec<_>>());
    assert_eq!(driver.of(Stage::Measured).len(), 4);
    assert_eq!(driver.finished, Some(START + Dur::from_ms(980)));
}

#[test]
fn a_stop_during_warm_up_leaves_everything_unsent() {
    let plan = Spec { num_warmups: 3, max_concurrency: Some(1), ..spec(7, 10.0) }.plan().unwrap();
    let driver = Driver::run(plan, Some(START + Dur::from_ms(10)), |_| Dur::from_ms(100));
    assert_eq!(driver.sent.len(), 1);
    assert_eq!(driver.finished, Some(START + Dur::from_ms(100)));
    assert_eq!(driver.load.origin(), None);
    assert_eq!(driver.load.unsent().filter(|u| u.scheduled.is_none() && u.why == Why::Interrupted).count(), 7);
}

fn random_lasts(seed: u64, most_ms: u64) -> impl FnMut(IntentId) -> Dur {
    let mut rng: Rng = Seed(seed).stream("lasts");
    move |_| Dur::from_us(rng.between(0, most_ms * 1000))
}

proptest! {
    #[test]
    fn the_cap_holds_and_every_request_is_sent_once_or_reported(
        n in 1u64..200, cap in 1i64..12, rate in prop::option::of(1.0..2000.0f64), warmups in 0i64..6,
        probes in prop_oneof![Just(0.0), 1.0..100.0f64], duration in prop::option::of(1u64..400),
        stop in prop::option::of(0u64..400), seed in any::<u64>(), most_ms in 1u64..120,
    ) {
        let spec = Spec {
            num_prompts: Some(n), request_rate: rate, max_concurrency: Some(cap), num_warmups: warmups,
            probe_request_rate: probes, duration: duration.map(Dur::from_ms), seed: Seed(seed), ..Spec::default()
        };
        let Ok(plan) = spec.plan() else { return Ok(()) };
        let requests = plan.requests();
        let driver = Driver::run(plan, stop.map(|ms| START + Dur::from_ms(ms)), random_lasts(seed, most_ms));
        prop_assert!(driver.most_in_flight <= cap as usize);
        prop_assert!(driver.finished.is_some());
        prop_assert_eq!(driver.load.in_flight(), 0);
        let measured = driver.of(Stage::Measured);
        let mut ids: Vec<u32> = measured.iter().map(|s| s.id.0).collect();
        prop_assert!(ids.is_sorted(), "out of order");
        ids.extend(driver.load.unsent().map(|u| u.id.0));
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..requests).collect::<Vec<_>>());
        for s in &driver.sent {
            prop_assert!(s.due >= s.scheduled);
        }
        if let (Some(duration), Some(origin)) = (spec.duration, driver.load.origin()) {
            prop_assert!(measured.iter().all(|s| s.due < origin + duration));
        }
        if stop.is_none() && duration.is_none() {
            prop_assert_eq!(measured.len() as u64, n);
            prop_assert_eq!(driver.of(Stage::Warmup).len() as i64, warmups);
        }
    }
}
