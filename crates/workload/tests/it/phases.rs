//! Phases in virtual time against closed forms, and against what k6 documents of its executors.

use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tailbound_clock::{Dur, Time};
use tailbound_record::Why;
use tailbound_workload::{
    Arrivals, Executor, IntentId, Load, LoadEffect, LoadEvent, Phase, PhaseStage as Stage, Spec, WhenFull,
};

const ORIGIN: Time = Time(1_000_000_000);

/// One request as it was carried out: its id, when it was due and when it ended, ms from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    id: u32,
    scheduled: f64,
    due: f64,
    end: f64,
}

fn phase(executor: Executor) -> Phase {
    Phase { name: "p".into(), start: Dur::ZERO, executor }
}

fn spec(phases: &[Phase]) -> Spec {
    Spec { phases: Some(phases.to_vec()), ..Spec::default() }
}

/// Carries phases out against a server that takes `takes` for request `id`; what was sent, and what never was.
fn carried_out(phases: &[Phase], takes: impl Fn(u32) -> Dur) -> (Vec<Sent>, Vec<(u32, Why)>) {
    let mut load = Load::new(spec(phases).plan().unwrap().into());
    let mut out = Vec::new();
    let mut ends: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut sent: Vec<Sent> = Vec::new();
    let ms = |at: Time| at.minus(ORIGIN) as f64 / 1e6;
    load.on(ORIGIN, LoadEvent::Wake, &mut out);
    loop {
        for effect in out.drain(..) {
            let LoadEffect::Send { id, scheduled, due } = effect else { continue };
            let end = due + takes(id.0);
            ends.push(Reverse((end, id.0)));
            sent.push(Sent { id: id.0, scheduled: ms(scheduled), due: ms(due), end: ms(end) });
        }
        let wake = load.next_wake();
        let end = ends.peek().map(|Reverse((at, _))| *at);
        match (wake, end) {
            (Some(wake), end) if end.is_none_or(|end| wake < end) => {
                // A driver wakes it once more at the moment itself, so that nothing is handed over long ahead of a change.
                load.on(wake.max(ORIGIN), LoadEvent::Wake, &mut out);
                if out.is_empty() {
                    load.on(wake + Dur::from_ms(10), LoadEvent::Wake, &mut out);
                }
            }
            (_, Some(end)) => {
                let Some(Reverse((_, id))) = ends.pop() else { unreachable!() };
                load.on(end, LoadEvent::Ended { id: IntentId(id), ok: true, answer_tokens: 1 }, &mut out);
            }
            _ => break,
        }
    }
    let unsent = load.unsent().map(|u| (u.id.0, u.why)).collect();
    (sent, unsent)
}

fn secs(s: f64) -> Dur {
    Dur::from_secs_f64(s)
}

fn stage(target: f64, seconds: f64) -> Stage {
    Stage { duration: secs(seconds), target }
}

fn dues(sent: &[Sent]) -> Vec<f64> {
    sent.iter().map(|s| s.due).collect()
}

/// How many are in flight at a moment, ms.
fn in_flight(sent: &[Sent], at: f64) -> usize {
    sent.iter().filter(|s| s.due <= at && at < s.end).count()
}

#[test]
fn shared_iterations_go_to_whoever_is_free() {
    let executor = Executor::SharedIterations { clients: 2, iterations: 6, max_duration: secs(60.0) };
    // The first request is slow: the other client does the rest meanwhile.
    let (sent, unsent) = carried_out(&[phase(executor)], |id| Dur::from_ms(if id == 0 { 400 } else { 100 }));
    assert_eq!(dues(&sent), [0.0, 0.0, 100.0, 200.0, 300.0, 400.0]);
    assert_eq!(unsent, []);
}

#[test]
fn each_client_does_its_own_iterations() {
    let executor = Executor::PerClientIterations { clients: 2, iterations: 3, max_duration: secs(60.0) };
    let (sent, unsent) = carried_out(&[phase(executor)], |id| Dur::from_ms(if id == 0 { 400 } else { 100 }));
    // The quick client is done after 300 ms and takes nothing over from the slow one.
    assert_eq!(dues(&sent), [0.0, 0.0, 100.0, 200.0, 400.0, 500.0]);
    assert_eq!(unsent, []);
}

#[test]
fn iterations_that_find_no_time_are_counted() {
    let executor = Executor::SharedIterations { clients: 1, iterations: 5, max_duration: secs(0.25) };
    let (sent, unsent) = carried_out(&[phase(executor)], |_| Dur::from_ms(100));
    assert_eq!(dues(&sent), [0.0, 100.0, 200.0]);
    assert_eq!(unsent, [(3, Why::Duration), (4, Why::Duration)]);
}

#[test]
fn constant_clients_loop_for_their_time() {
    let executor = Executor::ConstantClients { clients: 3, duration: secs(1.0) };
    let (sent, unsent) = carried_out(&[phase(executor)], |_| Dur::from_ms(300));
    assert_eq!(sent.len(), 12, "3 clients begin at 0, 300, 600 and 900 ms");
    assert!((0..12).all(|i| in_flight(&sent, f64::from(i) * 100.0) == 3));
    assert_eq!(in_flight(&sent, 1200.0), 0);
    assert_eq!(unsent, []);
}

/// k6's documented example (ramping-vus): 0 → 10 in 20 s, then 10 → 0 in 10 s.
#[test]
fn ramping_clients_follow_their_stages() {
    let executor = Executor::RampingClients { start: 0, stages: vec![stage(10.0, 20.0), stage(0.0, 10.0)] };
    let (sent, _) = carried_out(&[phase(executor)], |_| Dur::from_ms(10));
    for (at, clients) in [
        (1.0, 0),
        (2.0, 1),
        (3.9, 1),
        (4.0, 2),
        (19.9, 9),
        (20.0, 10),
        (20.9, 10),
        (21.0, 9),
        (28.9, 2),
        (29.0, 1),
        (30.1, 0),
    ] {
        // Half a request's length on: none ends just then.
        assert_eq!(in_flight(&sent, at * 1e3 + 5.0), clients, "at {at} s");
    }
    // The area under the ramp: 10·20/2 + 10·10/2 client-seconds, less the steps.
    let busy: f64 = sent.iter().map(|s| s.end - s.due).sum::<f64>() / 1e3;
    assert!((busy - 145.0).abs() < 5.1, "{busy}");
}

#[test]
fn a_stage_of_no_time_is_a_jump_and_a_client_that_still_works_is_reused() {
    let stages =
        vec![stage(3.0, 0.0), stage(3.0, 1.0), stage(1.0, 0.0), stage(1.0, 1.0), stage(2.0, 0.0), stage(2.0, 1.0)];
    let executor = Executor::RampingClients { start: 0, stages };
    let (sent, _) = carried_out(&[phase(executor)], |_| Dur::from_ms(700));
    // All three work until 1.4 s; two are not wanted then; from 2 s on, one of them is again.
    let from = |low: f64, high: f64| sent.iter().filter(|s| s.due >= low && s.due < high).count();
    assert_eq!((from(0.0, 1.0), from(1.0, 1400.0), from(1400.0, 2000.0), from(2000.0, 2050.0)), (3, 3, 1, 1));
    assert!(sent.iter().all(|s| s.due < 3000.0));
}

/// k6's documentation: a rate of 30 a second for 30 s is 900 iterations, the first at once.
#[test]
fn a_constant_rate_is_evenly_spaced() {
    let executor = Executor::ConstantArrivalRate { rate: 30.0, duration: secs(30.0), arrivals: Arrivals::default() };
    let (sent, _) = carried_out(&[phase(executor)], |_| Dur::from_secs(40));
    assert_eq!(sent.len(), 900);
    for (i, s) in sent.iter().enumerate() {
        assert!((s.due - i as f64 / 0.03).abs() < 1e-5, "{i}: {}", s.due);
    }
    for rate in [0.1, 1.1, 0.7, 3.3] {
        let executor = Executor::ConstantArrivalRate { rate, duration: secs(10.0), arrivals: Arrivals::default() };
        let (sent, _) = carried_out(&[phase(executor)], |_| Dur::from_ms(1));
        assert_eq!(sent.len() as f64, (rate * 10.0f64).round(), "{rate}/s");
    }
}

/// From 0 to r over d the n-th request comes at √(2nd/r): the root of r·t²/(2d) = n.
#[test]
fn a_ramp_of_the_rate_is_the_square_roots() {
    let executor = Executor::RampingArrivalRate {
        start: 0.0,
        stages: vec![stage(20.0, 10.0), stage(20.0, 5.0), stage(0.0, 4.0)],
        arrivals: Arrivals::default(),
    };
    let (sent, _) = carried_out(&[phase(executor)], |_| Dur::from_ms(1));
    assert_eq!(sent.len(), 100 + 100 + 40);
    for (i, s) in sent.iter().enumerate() {
        let n = (i + 1) as f64;
        let expected = match i {
            0..100 => (2.0 * n * 10.0 / 20.0).sqrt(),
            100..200 => 10.0 + (n - 100.0) / 20.0,
            // Down: what is left of the triangle when n have come.
            _ => 19.0 - (2.0 * (240.0 - n) * 4.0 / 20.0).sqrt(),
        };
        assert!((s.due / 1e3 - expected).abs() < 1e-6, "{n}: {} s, expected {expected}", s.due / 1e3);
    }
}

#[test]
fn arrivals_that_find_no_client_wait_or_are_dropped() {
    let rate = |when_full| Executor::ConstantArrivalRate {
        rate: 10.0,
        duration: secs(1.0),
        arrivals: Arrivals { poisson: false, max_clients: Some(2), when_full },
    };
    // Two clients of 250 ms serve 8 requests a second of the 10.
    let (sent, unsent) = carried_out(&[phase(rate(WhenFull::Queue))], |_| Dur::from_ms(250));
    assert_eq!(dues(&sent), [0.0, 100.0, 250.0, 350.0, 500.0, 600.0, 750.0, 850.0, 1000.0, 1100.0]);
    assert_eq!(
        sent.iter().map(|s| s.scheduled).collect::<Vec<_>>(),
        (0..10).map(|i| f64::from(i) * 100.0).collect::<Vec<_>>()
    );
    assert_eq!(unsent, []);
    let (sent, unsent) = carried_out(&[phase(rate(WhenFull::Drop))], |_| Dur::from_ms(250));
    assert_eq!(dues(&sent), [0.0, 100.0, 300.0, 400.0, 600.0, 700.0, 900.0]);
    assert_eq!(unsent, [(2, Why::Rule), (5, Why::Rule), (8, Why::Rule)]);
}

#[test]
fn poisson_arrivals_have_the_rates_mean_and_variance() {
    let executor = Executor::RampingArrivalRate {
        start: 0.0,
        stages: vec![stage(40.0, 100.0), stage(40.0, 100.0)],
        arrivals: Arrivals { poisson: true, ..Arrivals::default() },
    };
    let counts: Vec<f64> = (0..200)
        .map(|seed| {
            let spec = Spec { seed: tailbound_clock::Seed(seed), ..spec(&[phase(executor.clone())]) };
            f64::from(spec.plan().unwrap().requests())
        })
        .collect();
    let mean = counts.iter().sum::<f64>() / 200.0;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 199.0;
    // 2000 + 4000 expected; of 200 seeds, five standard errors.
    assert!((mean - 6000.0).abs() < 5.0 * (6000.0f64 / 200.0).sqrt(), "{mean}");
    assert!((variance / 6000.0 - 1.0).abs() < 0.5, "{variance}");
}

#[test]
fn phases_run_side_by_side_with_ids_of_their_own() {
    let mut late = phase(Executor::SharedIterations { clients: 1, iterations: 2, max_duration: secs(9.0) });
    late.start = secs(0.5);
    let early = phase(Executor::ConstantArrivalRate { rate: 5.0, duration: secs(1.0), arrivals: Arrivals::default() });
    let (mut sent, _) = carried_out(&[early.clone(), late.clone()], |_| Dur::from_ms(300));
    sent.sort_by_key(|s| s.id);
    assert_eq!(dues(&sent), [0.0, 200.0, 400.0, 600.0, 800.0, 500.0, 800.0]);
    let plan = spec(&[early.clone(), late.clone()]).plan().unwrap();
    let phases = plan.phases().unwrap();
    assert_eq!([0, 4, 5, 6].map(|id| phases.of(IntentId(id))), [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!(phases.of(IntentId(7)), None);
    assert_eq!((plan.requests(), plan.endless(), plan.span()), (7, false, secs(9.5)));
    assert_eq!(plan.hash(), spec(&[early.clone(), late.clone()]).plan().unwrap().hash());
    assert_ne!(plan.hash(), spec(&[early]).plan().unwrap().hash());
    assert_eq!((plan.shard(0, 2).measured().count(), plan.shard(1, 2).measured().count()), (7, 0));
}

#[test]
fn what_makes_no_sense_is_refused_by_phase_and_key() {
    let d = secs(1.0);
    let arrivals = Arrivals::default();
    for (executor, says) in [
        (Executor::ConstantClients { clients: 0, duration: d }, "clients: must be at least 1"),
        (Executor::ConstantClients { clients: 1, duration: Dur::ZERO }, "duration: must be longer than 0"),
        (Executor::SharedIterations { clients: 3, iterations: 2, max_duration: d }, "iterations: 2 for 3 clients"),
        (Executor::RampingClients { start: 1, stages: vec![] }, "stages: there is none"),
        (Executor::RampingClients { start: 0, stages: vec![stage(0.0, 1.0)] }, "start_clients: must be at least 1"),
        (Executor::RampingClients { start: 0, stages: vec![stage(1.5, 1.0)] }, "1.5 is no number of clients"),
        (Executor::ConstantArrivalRate { rate: 0.0, duration: d, arrivals }, "rate: 0 is not"),
        (Executor::ConstantArrivalRate { rate: 1e12, duration: d, arrivals }, "more than a plan holds"),
        (Executor::RampingArrivalRate { start: f64::NAN, stages: vec![stage(1.0, 1.0)], arrivals }, "start_rate"),
    ] {
        let error = spec(&[phase(executor)]).plan().unwrap_err().to_string();
        assert!(error.starts_with("scenario: phase `p`: ") && error.contains(says), "{error}");
    }
    let mut both = spec(&[phase(Executor::ConstantClients { clients: 1, duration: d })]);
    both.request_rate = Some(1.0);
    assert!(both.plan().unwrap_err().to_string().contains("--request-rate: contradicts the phases"));
    assert!(spec(&[]).plan().is_err());
}

fn executors() -> impl Strategy<Value = Executor> {
    let stages = || prop::collection::vec((0u32..6, 0u64..800), 1..4);
    let of = |stages: Vec<(u32, u64)>| -> Vec<Stage> {
        stages.into_iter().map(|(n, ms)| Stage { duration: Dur::from_ms(ms), target: f64::from(n) }).collect()
    };
    let arrivals =
        (any::<bool>(), prop::option::of(1u32..4), any::<bool>()).prop_map(|(poisson, max_clients, drop)| Arrivals {
            poisson,
            max_clients,
            when_full: if drop { WhenFull::Drop } else { WhenFull::Queue },
        });
    prop_oneof![
        (1u32..5, 0u32..9, 1u64..2000).prop_map(|(clients, more, ms)| Executor::SharedIterations {
            clients,
            iterations: clients + more,
            max_duration: Dur::from_ms(ms)
        }),
        (1u32..5, 1u32..5, 1u64..2000).prop_map(|(clients, iterations, ms)| Executor::PerClientIterations {
            clients,
            iterations,
            max_duration: Dur::from_ms(ms)
        }),
        (1u32..5, 1u64..2000)
            .prop_map(|(clients, ms)| Executor::ConstantClients { clients, duration: Dur::from_ms(ms) }),
        (1u32..5, stages()).prop_map(move |(start, s)| Executor::RampingClients { start, stages: of(s) }),
        (1u32..30, 200u64..2000, arrivals.clone()).prop_map(|(rate, ms, arrivals)| Executor::ConstantArrivalRate {
            rate: f64::from(rate),
            duration: Dur::from_ms(ms),
            arrivals
        }),
        (1u32..30, stages(), arrivals).prop_map(move |(start, s, arrivals)| Executor::RampingArrivalRate {
            start: f64::from(start),
            stages: of(s),
            arrivals
        }),
    ]
}

proptest! {
    /// Whatever the phases and the server: every planned request is sent once or told never to have been, none before its time or
    /// after its phase, none beyond its clients; and the same again gives the same.
    #[test]
    fn every_planned_request_is_accounted_for(
        executors in prop::collection::vec((executors(), 0u64..1000), 1..4), takes in 1u64..900,
    ) {
        let phases: Vec<Phase> = executors
            .into_iter()
            .map(|(executor, start)| Phase { name: "p".into(), start: Dur::from_ms(start), executor })
            .collect();
        let Ok(plan) = spec(&phases).plan() else { return Ok(()) };
        let length = |id: u32| Dur::from_ms(1 + (takes * u64::from(id % 7)) / 3);
        let (sent, unsent) = carried_out(&phases, length);
        prop_assert_eq!(&carried_out(&phases, length).0, &sent);
        let mut ids: Vec<u32> = sent.iter().map(|s| s.id).chain(unsent.iter().map(|u| u.0)).collect();
        let told = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), told, "none twice");
        if !plan.endless() {
            prop_assert_eq!(told as u32, plan.requests());
        }
        for (number, phase) in phases.iter().enumerate() {
            let own: Vec<Sent> = sent.iter().copied().filter(|s| plan.phases().unwrap().of(IntentId(s.id)) == Some(number)).collect();
            let (begin, end) = (phase.start.ns() as f64 / 1e6, (phase.start + phase.executor.duration()).ns() as f64 / 1e6);
            prop_assert!(own.iter().all(|s| s.scheduled >= begin && s.scheduled <= end && s.due >= s.scheduled));
            let most = match &phase.executor {
                Executor::SharedIterations { clients, .. } | Executor::PerClientIterations { clients, .. } | Executor::ConstantClients { clients, .. } => Some(*clients),
                Executor::RampingClients { start, stages } => stages.iter().map(|s| s.target as u32).chain([*start]).max(),
                Executor::ConstantArrivalRate { arrivals, .. } | Executor::RampingArrivalRate { arrivals, .. } => arrivals.max_clients,
            };
            if let Some(most) = most {
                let peak = own.iter().map(|s| in_flight(&own, s.due)).max().unwrap_or(0);
                prop_assert!(peak <= most as usize, "{} of {} clients", peak, most);
            }
        }
    }
}
