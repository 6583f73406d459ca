//! No request is lost, and none is answered twice.

use crate::{HEAD, PRECISE, RANDOM, ROUND_ROBIN};
use proptest::prelude::*;
use tailbound_record::{Cause, End, Finish, Moment, Row};
use tailbound_sim::{Arrivals, Scenario, arrivals, run};

/// At most so many requests wait; what comes on top is refused.
const BOUNDED: &str = "
plugins:
- {type: round-robin-picker}
- {type: concurrency-detector, parameters: {maxConcurrency: 3}}
saturationDetector: {pluginRef: concurrency-detector}
featureGates: [flowControl]
flowControl: {maxRequests: 5, defaultRequestTTL: 2s}
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]
";

fn scenario(policy: &str, replicas: u32, rate: f64, output: u32, max_model_len: u32, seed: u64) -> Scenario {
    let text = format!(
        "seed = {seed}
policy = '''
{HEAD}{policy}'''
[engines]
count = {replicas}
profile = 'llama-3.1-8b-a100'
kv_tokens = 8000
max_model_len = {max_model_len}
[traffic.shared_prefix]
groups = 4
prompts_per_group = 3
system = 500
question = 50
output = {output}
[traffic.arrivals]
stages = [[{rate:.1}, 4.0]]
poisson = true
"
    );
    Scenario::from_toml(&text).unwrap()
}

/// Ended once, and its moments and counts say the same as its end.
fn sound(row: &Row, output: u32) -> bool {
    let ended = row.at.get(Moment::StreamEnd).is_some() && row.at.get(Moment::Scheduled).is_some();
    match &row.end {
        End::Done(Finish::Length) => {
            ended && row.chunks.len() as u32 == output && row.tokens.output_server == Some(output)
        }
        End::Failed { cause: Cause::Status(status), .. } => ended && row.net.status == *status && *status >= 400,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_request_has_exactly_one_row(
        policy in prop::sample::select(vec![RANDOM, ROUND_ROBIN, PRECISE, BOUNDED]),
        replicas in 1u32..5, rate in 1.0..60.0f64, output in 1u32..40, seed in 0u64..1000,
    ) {
        let scenario = scenario(policy, replicas, rate, output, 2000, seed);
        let requests = arrivals(&scenario).unwrap().len() as u64;
        let outcome = run(&scenario).unwrap();
        prop_assert!(outcome.rows.iter().map(|r| r.id).eq(0..requests));
        prop_assert!(outcome.rows.iter().all(|r| sound(r, output)));
        prop_assert!(policy == BOUNDED || outcome.rows.iter().all(Row::ok));
    }
}

fn stages(scenario: &mut Scenario) -> &mut Arrivals {
    scenario.traffic[0].arrivals.as_mut().unwrap()
}

#[test]
fn a_stage_that_drains_begins_when_the_one_before_it_is_answered() {
    let mut scenario = scenario(RANDOM, 1, 60.0, 40, 2000, 1);
    stages(&mut scenario).stages = vec![(60.0, 2.0), (1.0, 30.0), (60.0, 2.0), (5.0, 2.0)];
    let straight = run(&scenario).unwrap();
    stages(&mut scenario).drain = true;
    let drained = run(&scenario).unwrap();
    assert_eq!((drained.rows.len(), &drained.figures.stages), (straight.rows.len(), &straight.figures.stages));
    let arrival = |row: &Row| row.at.get(Moment::Scheduled).unwrap();
    for &first in &drained.figures.stages[1..] {
        let before = drained.rows[..first].iter().filter_map(|r| r.at.get(Moment::StreamEnd)).max().unwrap();
        assert!(arrival(&drained.rows[first]) >= before);
    }
    let last = drained.rows.len() - 1;
    assert!(arrival(&drained.rows[last]) > arrival(&straight.rows[last]));
}

#[test]
fn what_the_queue_has_no_place_for_is_refused_and_has_a_row() {
    let outcome = run(&scenario(BOUNDED, 2, 60.0, 40, 2000, 1)).unwrap();
    let refused = outcome.rows.iter().filter(|r| r.net.status == 429).count();
    assert!(refused > 20 && refused < outcome.rows.len() - 20, "{refused} of {}", outcome.rows.len());
}

#[test]
fn a_prompt_no_engine_takes_is_answered_400() {
    let outcome = run(&scenario(RANDOM, 2, 5.0, 10, 500, 1)).unwrap();
    assert!(outcome.rows.len() > 10 && outcome.rows.iter().all(|r| r.net.status == 400 && sound(r, 10)));
}
