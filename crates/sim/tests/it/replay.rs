//! A log of the router's calls, told to a router again.

use crate::{PRECISE, RANDOM, scenario};
use tailbound_route::Router;
use tailbound_route::log::{Entry, Head, Replay, replay};
use tailbound_sim::{Scenario, run_logged};

/// The log as its lines.
fn logged(scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![serde_json::to_string(&scenario.log_head().unwrap()).unwrap()];
    run_logged(scenario, |_| (), |entry| lines.push(serde_json::to_string(&entry).unwrap())).unwrap();
    lines
}

fn replayed(lines: &[String], policy: Option<&str>) -> Replay {
    let head: Head = serde_json::from_str(&lines[0]).unwrap();
    let entries = lines[1..].iter().map(|line| serde_json::from_str::<Entry>(line).unwrap());
    replay(&mut Router::new(head.config(policy).unwrap()), entries)
}

#[test]
fn a_log_replays_to_the_very_same_decisions() {
    for policy in [PRECISE, RANDOM] {
        let lines = logged(&scenario(policy, 20.0, 5.0));
        let same = replayed(&lines, None);
        assert!(same.requests > 60 && same.entries > 3 * same.requests, "{same:?}");
        assert_eq!((same.differing, same.moved, same.first), (0, 0, None));
    }
}

#[test]
fn another_policy_decides_otherwise() {
    let lines = logged(&scenario(RANDOM, 20.0, 5.0));
    let head: Head = serde_json::from_str(&lines[0]).unwrap();
    let precise = head.policy.replace(RANDOM, PRECISE);
    let other = replayed(&lines, Some(&precise));
    assert!(other.moved > other.requests / 5 && other.moved < other.requests, "{other:?}");
    let (was, is) = other.share.values().fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    assert_eq!((was, is), (other.requests, other.requests));
}

#[test]
fn a_changed_line_is_found() {
    let mut lines = logged(&scenario(RANDOM, 20.0, 2.0));
    let at = lines.iter().position(|line| line.contains("\"to\":[0]")).unwrap();
    lines[at] = lines[at].replace("\"to\":[0]", "\"to\":[1]");
    let found = replayed(&lines, None);
    assert_eq!((found.differing, found.moved, found.first.map(|f| f.0)), (1, 1, Some(at)));
}
