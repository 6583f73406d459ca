//! Small fleets in virtual time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod alone;
mod compare;
mod faults;
mod offload;
mod one_engine;
mod policy;
mod replay;
mod rows;
mod servegen;
mod trial;

use tailbound_sim::{Outcome, Scenario, run};

const HEAD: &str = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

/// Two replicas whose caches hold half of the prompts each.
fn scenario(policy: &str, rate: f64, seconds: f64) -> Scenario {
    let text = format!(
        "seed = 3
policy = '''
{HEAD}{policy}'''
[engines]
count = 2
profile = 'llama-3.1-8b-h100'
kv_tokens = 40000
max_model_len = 4000
[traffic.shared_prefix]
groups = 20
prompts_per_group = 2
system = 2000
question = 200
output = 40
[traffic.arrivals]
stages = [[{rate:.1}, {seconds:.1}]]
poisson = true
"
    );
    Scenario::from_toml(&text).unwrap()
}

const RANDOM: &str = "
plugins: [{type: random-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: random-picker}]}]
";

const ROUND_ROBIN: &str = "
plugins: [{type: round-robin-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: round-robin-picker}]}]
";

const PRECISE: &str = "
plugins:
- {type: precise-prefix-cache-producer}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
- {type: queue-scorer}
schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 2}, {pluginRef: queue-scorer}]}]
";

fn ok(outcome: &Outcome) -> usize {
    outcome.rows.iter().filter(|r| r.ok()).count()
}

#[test]
fn every_request_is_answered_with_the_length_asked_for() {
    let outcome = run(&scenario(RANDOM, 10.0, 20.0)).unwrap();
    assert!(outcome.rows.len() > 150 && ok(&outcome) == outcome.rows.len());
    assert!(outcome.rows.iter().all(|r| r.output_tokens() == 40 && r.chunks.len() == 40));
    assert!(outcome.rows.iter().all(|r| r.ttft().is_some_and(|d| d.ms() > 5.0)));
    let workers: std::collections::BTreeSet<u16> = outcome.rows.iter().map(|r| r.worker).collect();
    assert_eq!(workers.len(), 2);
}

#[test]
fn two_runs_are_the_same_bit_for_bit() {
    let once = || format!("{:?}", run(&scenario(PRECISE, 20.0, 10.0)).unwrap());
    assert_eq!(once(), once());
}

/// The fleet's caches hold all beginnings, one replica's doesn't: who knows where they are finds them.
#[test]
fn knowing_what_is_cached_pays() {
    let (random, precise) = (run(&scenario(RANDOM, 30.0, 20.0)).unwrap(), run(&scenario(PRECISE, 30.0, 20.0)).unwrap());
    assert!(
        precise.figures.hit_ratio > random.figures.hit_ratio + 0.1,
        "{} against {}",
        precise.figures.hit_ratio,
        random.figures.hit_ratio
    );
    let ttft = |o: &Outcome| o.rows.iter().filter_map(|r| r.ttft()).map(|d| d.ms()).sum::<f64>() / o.rows.len() as f64;
    assert!(ttft(&precise) < ttft(&random), "{} against {}", ttft(&precise), ttft(&random));
}

#[test]
fn what_is_wrong_with_a_scenario_is_named() {
    let text = "policy = ''\n[engines]\ncount = 1\nprofile = 'none'\n";
    assert_eq!(Scenario::from_toml(text).unwrap_err().to_string(), "line 1: missing field `traffic`");
    let unknown = Scenario::from_toml("policy = ''\n[engines]\ncount = 1\nprofle = 'none'\n").unwrap_err().to_string();
    assert!(unknown.starts_with("line 4: unknown field `profle`, expected one of `name`, `count`"), "{unknown}");
    let wrong = Scenario::from_toml("policy = ''\n[engines]\ncount = 'many'\n").unwrap_err().to_string();
    assert_eq!(wrong, "line 3: count: invalid type: string \"many\", expected u32");
    let mut s = scenario(RANDOM, 1.0, 1.0);
    s.engines[0].profile = Some("abacus".into());
    assert_eq!(
        run(&s).unwrap_err().to_string(),
        "engines.profile: no profile `abacus` is known; `tailbound emulate --list-profiles` names them"
    );
    s.policy = format!("{HEAD}plugins: [{{type: oracle}}]\n");
    assert_eq!(run(&s).unwrap_err().to_string(), "policy: plugin `oracle`: no plugin of type `oracle` is known");
}
