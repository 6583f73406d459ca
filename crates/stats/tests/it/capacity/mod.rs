//! The capacity search, on virtual queues of known capacity. `examples/capacity_queues.rs` is the same at full length.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod queues;

use queues::Queue;
use tailbound_clock::{Dur, Time};
use tailbound_stats::capacity::{Answer, End, Mark, Probe, Probed, Reason, Seen, Spec, Step, Watch, next};

const CONV: &str = "systems/wl/conv2000_r2.csv";

fn six() -> Vec<Queue> {
    queues::all(tailbound_testdata::read(CONV).as_deref())
}

fn holds(answer: &Answer, truth: f64) -> bool {
    answer.low.is_some_and(|low| low <= truth) && answer.high.is_none_or(|high| truth <= high)
}

#[test]
fn intervals_hold_the_known_capacities() {
    // A few searches each can only show what is plainly broken; benches/capacity.md has 200.
    let mut failed = 0;
    let six = six();
    for queue in &six {
        let answers: Vec<Answer> = (1000..1008).map(|seed| queue.search(&queue.spec(6000, seed), seed).0).collect();
        let here = answers.iter().filter(|a| !holds(a, queue.capacity)).count();
        assert!(here <= 3, "{}: {here} of 8 intervals miss {}: {answers:?}", queue.name, queue.capacity);
        failed += here;
        let mean = answers.iter().filter_map(|a| a.capacity).sum::<f64>() / 8.0;
        assert!((mean / queue.capacity - 1.0).abs() < 0.04, "{}: {mean} for {}", queue.name, queue.capacity);
        assert!(answers.iter().all(|a| a.requests <= 6000), "{}", queue.name);
    }
    assert!(failed * 6 <= six.len() * 8, "{failed} intervals miss");
}

#[test]
fn a_narrow_interval_ends_the_search_and_no_budget_says_so() {
    let queue = &six()[five()];
    let spec = Spec { precision: 0.2, ..queue.spec(20_000, 1) };
    let (answer, probes) = queue.search(&spec, 1);
    assert_eq!(answer.reason, Reason::Converged, "{answer:?}");
    assert!(answer.requests < 10_000, "{answer:?}");
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!(high - answer.capacity.unwrap() <= 0.2 * answer.capacity.unwrap() && low < high);
    // The same probes lead to the same answer: a search that was cut off goes on as if it had not been.
    for n in 0..probes.len() {
        let Step::Probe(probe) = next(&spec, &probes[..n]) else { panic!("an answer after {n} probes") };
        assert_eq!(probe, probes[n].probe);
    }
    let spent = queue.search(&Spec { precision: 0.001, ..queue.spec(3000, 1) }, 1).0;
    assert_eq!(spent.reason, Reason::BudgetSpent);
}

/// The queue with fixed service, which is there with and without data.
fn five() -> usize {
    six().len() - 5
}

#[test]
fn what_no_load_can_meet_is_infeasible() {
    let queue = Queue { limits: vec![0.01], ..six().swap_remove(five()) };
    let answer = queue.search(&queue.spec(20_000, 3), 3).0;
    assert_eq!((answer.reason, answer.capacity), (Reason::Infeasible, None), "{answer:?}");
    assert!(answer.requests < 3000, "{answer:?}");
}

#[test]
fn an_expected_load_gets_yes_no_or_neither() {
    let queue = &six()[five()];
    let ask = |share: f64, seed| {
        let spec = Spec { expect: Some(queue.capacity * share), ..queue.spec(8000, seed) };
        queue.search(&spec, seed).0.expected.unwrap().borne
    };
    let wrong = |share: f64, yes: bool| (0..20).filter(|&seed| ask(share, seed) == Some(!yes)).count();
    let right = |share: f64, yes: bool| (0..20).filter(|&seed| ask(share, seed) == Some(yes)).count();
    assert!(wrong(0.9, true) <= 1 && right(0.9, true) >= 15, "{} {}", wrong(0.9, true), right(0.9, true));
    assert!(wrong(1.1, false) <= 1 && right(1.1, false) >= 15, "{} {}", wrong(1.1, false), right(1.1, false));
}

#[test]
fn a_client_that_cannot_deliver_limits_the_answer() {
    let queue = &six()[five()];
    let spec = queue.spec(20_000, 5);
    let mut probes: Vec<Probed> = Vec::new();
    let answer = loop {
        match next(&spec, &probes) {
            Step::Answer(answer) => break answer,
            Step::Probe(probe) => {
                let mut probed = queue.run(&spec, probe, 5);
                if probe.load > 25.0 {
                    probed.invalid = Some("[sends_late] sends left late".into());
                }
                probes.push(probed);
            }
        }
    };
    assert_eq!((answer.reason, answer.high), (Reason::ClientLimited, None), "{answer:?}");
    assert!(answer.capacity.unwrap() > 20.0 && answer.capacity.unwrap() <= 25.0, "{answer:?}");
}

#[test]
fn what_is_certified_of_the_two_millisecond_server_is_just_under_what_it_can_do() {
    let queue = queues::two_ms();
    let mut near = 0;
    for seed in 0..3 {
        let (answer, _) = queue.search(&queues::certified(&queue, seed), seed);
        let certified = answer.certified.unwrap_or_else(|| panic!("{answer:?}"));
        assert!(certified <= 500.0 && certified >= 0.94 * queue.capacity, "{certified}: {answer:?}");
        assert!(answer.capacity.unwrap() <= 500.0, "{answer:?}");
        near += u32::from((0.97 * queue.capacity..=queue.capacity).contains(&certified));
    }
    assert!(near >= 2, "{near} of 3 are within 3 % under {}", queue.capacity);
}

#[test]
fn a_probe_ends_once_it_is_plain_and_not_before() {
    let queue = &six()[five()];
    let spec = queue.spec(20_000, 0);
    let probe = |load: f64| Probe { number: 0, load, requests: 2000, settle: 100, whole: false, certifies: false };
    let run = |share: f64, seed| queue.run(&spec, probe(share * queue.capacity), seed);
    for seed in 0..20 {
        let (light, heavy, near) = (run(0.5, seed), run(1.5, seed), run(1.0, seed));
        assert_eq!(light.end, End::Clear);
        assert!(matches!(heavy.end, End::Hopeless | End::OverSaturated));
        assert!(light.requests < 1000 && heavy.requests < 700, "{} {}", light.requests, heavy.requests);
        assert!(near.requests > 400, "{:?} after {}", near.end, near.requests);
    }
}

#[test]
fn falling_behind_is_seen_before_the_objective_says_so() {
    // Twice what is served: latency grows by half a second a second, and the objective is an hour.
    let requirements = queues::all(None)[0].spec(1, 0).requirements;
    let probe = Probe { number: 0, load: 100.0, requests: 5000, settle: 50, whole: false, certifies: false };
    let mut watch = Watch::new(&requirements, &probe, true);
    let seen = |i: u64| Seen {
        mark: Mark { at: Time::ZERO + Dur::from_ms(10 * i), judged: 1, met: 1, ..Mark::default() },
        took: Dur::from_ms(20 + 5 * i),
    };
    let end = (0..5000).find_map(|i| watch.on(seen(i)).map(|end| (end, i)));
    assert!(matches!(end, Some((End::OverSaturated, i)) if i < 400), "{end:?}");
}
