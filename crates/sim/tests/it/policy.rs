//! What the files in `scenarios/` say of themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tailbound_record::{Moment, Row};
use tailbound_sim::{Outcome, Scenario, Sweep, run};

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

/// Every point of a file's sweep, run.
pub(crate) fn points(name: &str) -> Vec<(Scenario, Outcome)> {
    let sweep = Sweep::open(&path(name)).unwrap();
    let one = |point: tailbound_sim::Point| {
        let outcome = run(&point.scenario).unwrap();
        (point.scenario, outcome)
    };
    sweep.points.into_iter().map(one).collect()
}

/// The rows of one class.
pub(crate) fn class(outcome: &Outcome, class: u16) -> Vec<&Row> {
    outcome.rows.iter().filter(|row| row.class == class).collect()
}

/// A percentile of time to first token, in milliseconds.
pub(crate) fn ttft<'a>(rows: impl IntoIterator<Item = &'a Row>, p: f64) -> f64 {
    let mut all: Vec<f64> = rows.into_iter().filter_map(Row::ttft_scheduled).map(|d| d.ms()).collect();
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * p) as usize]
}

/// The share of a scenario's requests that kept what their class asks for.
fn attained(scenario: &Scenario, outcome: &Outcome) -> f64 {
    let kept = |row: &&Row| {
        let asked = scenario.traffic[row.class as usize].objective.unwrap_or_default();
        row.ok()
            && asked.ttft_ms.is_none_or(|most| row.ttft_scheduled().is_some_and(|d| d.ms() <= most))
            && asked.tpot_ms.is_none_or(|most| tpot(row).is_none_or(|ms| ms <= most))
    };
    outcome.rows.iter().filter(kept).count() as f64 / outcome.rows.len() as f64
}

/// Time per output token after the first, in milliseconds.
fn tpot(row: &Row) -> Option<f64> {
    let gaps = row.output_tokens().checked_sub(1).filter(|n| *n > 0)?;
    Some((row.e2e()?.ms() - row.ttft()?.ms()) / f64::from(gaps))
}

#[test]
fn chat_does_not_feel_twice_the_summaries_and_they_are_served() {
    let all = points("chat-first.toml");
    let p99: Vec<f64> = all.iter().map(|(_, o)| ttft(class(o, 0), 0.99)).collect();
    let [first_before, first_after, alike_before, alike_after] = p99[..] else { panic!("{p99:?}") };
    assert!((first_after / first_before - 1.0).abs() < 0.1, "{p99:?}");
    assert!(alike_after / alike_before > 1.25, "without priorities it would feel them: {p99:?}");
    // They are all served, and while chat goes on as many as when half as many come.
    let [before, after] = [0, 1].map(|i| class(&all[i].1, 1));
    assert!(after.len() > 900 && after.iter().chain(&before).all(|row| row.ok()));
    let in_time = |rows: &[&Row]| rows.iter().filter(|r| seconds(r) < 120.0).count();
    assert!(in_time(&after) as f64 > 0.9 * in_time(&before) as f64, "{} {}", in_time(&after), in_time(&before));
}

/// When a request's last token came, in seconds of the traffic.
fn seconds(row: &Row) -> f64 {
    row.at.get(Moment::LastToken).unwrap().ns() as f64 * 1e-9 - 1.0
}

#[test]
fn a_rollout_splits_conversations_by_weight_and_keeps_each_together() {
    let (_, outcome) = points("rollout.toml").remove(0);
    let mut models: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for routed in &outcome.routed {
        models.entry(routed.session.unwrap()).or_default().push(routed.model.as_deref().unwrap());
    }
    assert!(models.values().all(|of| of.iter().all(|model| *model == of[0])), "each conversation stays");
    assert!(models.values().filter(|of| of.len() > 1).count() > 1000);
    let n = models.len() as f64;
    let second = models.values().filter(|of| of[0] == "chat-v2").count() as f64;
    let sd = (n * 0.1 * 0.9).sqrt();
    assert!((second - 0.1 * n).abs() < 3.0 * sd, "{second} of {n}, 3 sd are {:.0}", 3.0 * sd);
}

#[test]
fn deadlines_and_predictions_keep_more_than_the_order_of_arrival() {
    let all = points("deadlines.toml");
    let share: Vec<f64> = all.iter().map(|(s, o)| attained(s, o)).collect();
    assert!(share[1] - share[0] >= 0.10, "{share:?}");
    // The load is 1.2 times what the fleet serves when it always has work: in the order of arrival it never stands idle.
    let fcfs = &all[0].1;
    let tokens: f64 = fcfs.rows.iter().map(|r| f64::from(r.output_tokens())).sum();
    let offered: f64 = fcfs.rows.iter().map(|r| f64::from(r.tokens.output_asked.unwrap())).sum();
    let busy = fcfs.figures.end.ns() as f64 * 1e-9 - 1.0;
    let over = (offered / 120.0) / (tokens / busy);
    assert!((1.15..1.3).contains(&over), "{over}");
}

#[test]
fn adapters_are_kept_where_they_are_loaded() {
    let all = points("lora.toml");
    let [(_, blind), (_, affinity)] = &all[..] else { panic!("two policies") };
    assert!(blind.rows.iter().chain(&affinity.rows).all(Row::ok));
    let loads = [blind.figures.lora_loads, affinity.figures.lora_loads];
    assert!(loads[1] < loads[0], "{loads:?}");
    for (p, most) in [(0.5, 0.1), (0.9, 0.25)] {
        let at = [blind, affinity].map(|o| ttft(&o.rows, p));
        assert!(at[1] < most * at[0], "{at:?}");
    }
}

#[test]
fn splitting_pays_for_long_prompts_and_costs_with_short_ones_and_the_decider_knows() {
    let all = points("disagg.toml");
    let share: Vec<f64> = all.iter().map(|(s, o)| attained(s, o)).collect();
    let split: Vec<f64> = all
        .iter()
        .map(|(_, o)| o.routed.iter().filter(|r| r.prefilled_by.is_some()).count() as f64 / o.routed.len() as f64)
        .collect();
    let [long_together, long_apart, long_decided, short_together, short_apart, short_decided] = share[..] else {
        panic!("{share:?}")
    };
    assert!(all.iter().all(|(_, o)| o.rows.iter().all(Row::ok) && o.figures.left_over == (0, 0)));
    assert!(long_apart > long_together + 0.1, "{share:?}");
    assert!(short_together > short_apart + 0.1, "{share:?}");
    assert!(long_decided > long_together + 0.1 && short_decided > short_apart + 0.1, "{share:?}");
    assert!(split[1] == 1.0 && split[4] == 1.0 && split[2] > 0.95 && split[5] == 0.0, "{split:?}");
}
