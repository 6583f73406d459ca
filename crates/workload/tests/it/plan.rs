use proptest::prelude::*;
use std::collections::BTreeSet;
use tailbound_clock::{Dur, Seed};
use tailbound_workload::{Normalize, Spec, Stage};

fn spec() -> Spec {
    Spec { num_prompts: Some(500), request_rate: Some(40.0), max_concurrency: Some(32), ..Spec::default() }
}

#[test]
fn the_hash_covers_what_decides_the_load_and_nothing_else() {
    let hash = |spec: Spec| spec.plan().unwrap().hash();
    assert_eq!(hash(spec()), hash(spec()));
    let others = [
        Spec { num_prompts: Some(501), ..spec() },
        Spec { request_rate: Some(41.0), ..spec() },
        Spec { burstiness: Some(2.0), ..spec() },
        Spec { max_concurrency: Some(31), ..spec() },
        Spec { num_warmups: 1, ..spec() },
        Spec { duration: Some(Dur::from_secs(5)), ..spec() },
        Spec { probe_request_rate: 1.0, ..spec() },
        Spec { arrival_normalize: Normalize::Vllm, ..spec() },
        Spec { seed: Seed(1), ..spec() },
    ];
    let hashes: BTreeSet<String> = others.into_iter().chain([spec()]).map(|s| hash(s).to_string()).collect();
    assert_eq!(hashes.len(), 10);
    assert_ne!(spec().plan().unwrap().shard(0, 2).hash(), spec().plan().unwrap().hash());
}

/// A schedule is a promise: the same seed gives the same nanoseconds on every machine and in every version.
#[test]
fn a_schedule_never_changes() {
    let plan = Spec { num_prompts: Some(3), request_rate: Some(10.0), burstiness: Some(0.5), ..Spec::default() };
    let times: Vec<u64> = plan.plan().unwrap().measured().map(|i| i.offset.unwrap().ns()).collect();
    assert_eq!(times, FIRST_THREE);
}
const FIRST_THREE: [u64; 3] = [107_373_358, 118_746_001, 133_239_844];

#[test]
fn a_plan_prints_as_json() {
    let plan = Spec { num_warmups: 3, probe_request_rate: 0.5, ..spec() }.plan().unwrap();
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["requests"], 500);
    assert_eq!(json["arrivals"]["law"], "poisson");
    assert_eq!(json["arrivals"]["rate"], 40.0);
    assert_eq!(json["max_concurrency"], 32);
    assert_eq!(json["warmups"], 3);
    assert_eq!(json["duration_s"], serde_json::Value::Null);
    assert_eq!(json["hash"].as_str().unwrap(), plan.hash().to_string());
    assert!((json["last_arrival_s"].as_f64().unwrap() - plan.span().secs()).abs() < 1e-12);
}

#[test]
fn ids_are_measured_then_warmups_then_probes() {
    let plan = Spec { num_warmups: 2, probe_request_rate: 4.0, ..spec() }.plan().unwrap();
    let stage = |id| plan.intent(tailbound_workload::IntentId(id)).stage;
    assert_eq!(
        [stage(0), stage(499), stage(500), stage(501), stage(502)],
        [Stage::Measured, Stage::Measured, Stage::Warmup, Stage::Warmup, Stage::Probe]
    );
    assert_eq!(plan.intent(tailbound_workload::IntentId(503)).offset, Some(Dur::from_ms(250)));
    assert_eq!(plan.intent(tailbound_workload::IntentId(501)).offset, None);
}

proptest! {
    #[test]
    fn shards_are_the_whole_exactly_once(
        n in 1u64..300, parts in 1u32..9, again in 1u32..4, cap in prop::option::of(1i64..20), warmups in 0i64..9,
    ) {
        let spec = Spec { num_prompts: Some(n), request_rate: Some(9.0), max_concurrency: cap, num_warmups: warmups, ..Spec::default() };
        let whole = spec.plan().unwrap();
        let shards: Vec<_> = (0..parts).flat_map(|i| { let s = whole.shard(i, parts); (0..again).map(move |j| s.shard(j, again)) }).collect();
        let mut all: Vec<_> = shards.iter().flat_map(|s| s.measured().collect::<Vec<_>>()).collect();
        all.sort_by_key(|i| i.id);
        prop_assert_eq!(all, whole.measured().collect::<Vec<_>>());
        if let Some(cap) = cap {
            let caps: u32 = shards.iter().filter(|s| s.measured().next().is_some()).map(|s| s.max_concurrency().unwrap()).sum();
            prop_assert!(i64::from(caps) <= cap);
            prop_assert!(shards.iter().all(|s| s.max_concurrency().unwrap() > 0));
        }
    }
}
