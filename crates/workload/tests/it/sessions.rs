use crate::load::{Driver, START};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tailbound_clock::{Dur, Seed, Time};
use tailbound_record::Why;
use tailbound_workload::{Plan, Sessions, Spec, Turn};

fn after(after: u32, wait_ms: u64) -> Option<Turn> {
    Some(Turn { after, wait: Dur::from_ms(wait_ms), earliest: None })
}

fn with(turns: Vec<Option<Turn>>) -> Spec {
    Spec { sessions: Some(Sessions { turns, end_with_failure: true }), ..Spec::default() }
}

fn sent(driver: &Driver) -> Vec<(u32, u64)> {
    driver.sent.iter().map(|s| (s.id.0, s.due.minus(START).unsigned_abs() / 1_000_000)).collect()
}

#[test]
fn a_turn_leaves_after_the_answer_before_it_and_the_wait() {
    // Two conversations; the second's second turn has two that follow it.
    let turns = vec![None, after(0, 50), after(1, 0), None, after(3, 7), after(4, 1), after(4, 2)];
    let driver = Driver::run_failing(with(turns).plan().unwrap(), None, &[], |id| Dur::from_ms(100 + u64::from(id.0)));
    let expected = [(0, 0), (3, 0), (1, 150), (4, 110), (2, 251), (5, 215), (6, 216)];
    let (mut got, mut want) = (sent(&driver), expected.to_vec());
    got.sort_unstable();
    want.sort_unstable();
    assert_eq!(got, want);
    assert!(driver.sent.iter().all(|s| s.scheduled == s.due));
    assert!(driver.finished.is_some());
}

#[test]
fn a_turn_with_a_time_of_its_own_waits_for_both() {
    let at = |ms| Some(Turn { after: 0, wait: Dur::ZERO, earliest: Some(Dur::from_ms(ms)) });
    let spec = Spec { schedule: Some([0, 30, 500].map(Dur::from_ms).to_vec()), ..with(vec![None, at(30), at(500)]) };
    let driver = Driver::run_failing(spec.plan().unwrap(), None, &[], |_| Dur::from_ms(100));
    assert_eq!(sent(&driver), [(0, 0), (1, 100), (2, 500)]);
}

#[test]
fn the_law_says_when_sessions_begin() {
    let turns = vec![None, after(0, 0), None, after(2, 0), None, after(4, 0)];
    let spec = Spec { request_rate: Some(10.0), burstiness: Some(f64::INFINITY), ..with(turns) };
    let plan = spec.plan().unwrap();
    assert_eq!((plan.requests(), plan.sessions()), (6, Some(3)));
    let driver = Driver::run_failing(plan, None, &[], |_| Dur::from_ms(1));
    assert_eq!(sent(&driver), [(0, 100), (1, 101), (2, 200), (3, 201), (4, 300), (5, 301)]);
}

#[test]
fn a_failed_turn_ends_its_session_and_no_other() {
    let turns = vec![None, after(0, 0), after(1, 0), None, after(3, 0)];
    let driver = Driver::run_failing(with(turns.clone()).plan().unwrap(), None, &[0], |_| Dur::from_ms(5));
    let ids: BTreeSet<u32> = driver.sent.iter().map(|s| s.id.0).collect();
    assert_eq!(ids, BTreeSet::from([0, 3, 4]));
    let unsent: Vec<(u32, Option<Time>, Why)> = driver.load.unsent().map(|u| (u.id.0, u.scheduled, u.why)).collect();
    assert_eq!(unsent, [(1, None, Why::Session), (2, None, Why::Session)]);
    assert!(driver.finished.is_some());

    let mut goes_on = with(turns);
    goes_on.sessions.as_mut().unwrap().end_with_failure = false;
    let driver = Driver::run_failing(goes_on.plan().unwrap(), None, &[0], |_| Dur::from_ms(5));
    assert_eq!(driver.sent.len(), 5);
}

#[test]
fn when_the_time_is_over_what_was_due_and_what_never_was_are_told_apart() {
    let turns = vec![None, after(0, 0), after(1, 200), after(2, 0)];
    let spec = Spec { duration: Some(Dur::from_ms(150)), ..with(turns) };
    let driver = Driver::run_failing(spec.plan().unwrap(), None, &[], |_| Dur::from_ms(60));
    assert_eq!(sent(&driver), [(0, 0), (1, 60)]);
    let unsent: Vec<_> = driver.load.unsent().map(|u| (u.id.0, u.scheduled.is_some(), u.why)).collect();
    assert_eq!(unsent, [(2, true, Why::Duration), (3, false, Why::Duration)]);
}

#[test]
fn turns_out_of_order_and_too_many_prompts_are_refused() {
    let problem = with(vec![None, after(1, 0)]).plan().unwrap_err().to_string();
    assert!(problem.contains("request 2"), "{problem}");
    let spec = Spec { num_prompts: Some(3), ..with(vec![None, after(0, 0)]) };
    assert!(spec.plan().unwrap_err().to_string().contains("only 2 turns"));
}

fn any_turns() -> impl Strategy<Value = Vec<Option<Turn>>> {
    proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0u64..40), 1..60).prop_map(|raw| {
        let turn = |(i, (begins, parent, wait)): (usize, (bool, prop::sample::Index, u64))| {
            if begins || i == 0 { None } else { after(parent.index(i) as u32, wait) }
        };
        raw.into_iter().enumerate().map(turn).collect()
    })
}

proptest! {
    #[test]
    fn every_turn_goes_once_after_the_one_it_follows(turns in any_turns(), cap in proptest::option::of(1i64..6), seed in any::<u64>()) {
        let spec = Spec { max_concurrency: cap, request_rate: Some(100.0), seed: Seed(seed), ..with(turns.clone()) };
        let plan = spec.plan().unwrap();
        let lasts = |id: u32| Dur::from_ms(u64::from(id * 7 % 31));
        let driver = Driver::run_failing(plan, None, &[], |id| lasts(id.0));
        let ids: Vec<u32> = driver.sent.iter().map(|s| s.id.0).collect();
        prop_assert_eq!(ids.len(), turns.len());
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), turns.len());
        for s in &driver.sent {
            let Some(turn) = turns[s.id.0 as usize] else { continue };
            let before = driver.sent.iter().find(|b| b.id.0 == turn.after).unwrap();
            prop_assert_eq!(s.scheduled, before.due + lasts(turn.after) + turn.wait);
        }
        prop_assert_eq!(driver.load.unsent().count(), 0);
    }

    #[test]
    fn shards_keep_sessions_whole_and_together_are_the_plan(turns in any_turns(), parts in 1u32..5) {
        let plan = with(turns.clone()).plan().unwrap();
        let ids = |plan: &Plan| plan.measured().map(|i| i.id.0).collect::<Vec<_>>();
        let mut all = Vec::new();
        for part in 0..parts {
            let own = ids(&plan.shard(part, parts));
            let set: BTreeSet<u32> = own.iter().copied().collect();
            for &id in &own {
                prop_assert!(turns[id as usize].is_none_or(|t| set.contains(&t.after)));
            }
            let driver = Driver::run_failing(plan.shard(part, parts), None, &[], |_| Dur::from_ms(3));
            prop_assert_eq!(driver.sent.len(), own.len());
            all.extend(own);
        }
        all.sort_unstable();
        prop_assert_eq!(all, ids(&plan));
    }
}
