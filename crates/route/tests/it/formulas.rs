//! The scorers' formulas, by the scores a decision remembers, and the pickers' distributions.

use crate::driver::*;
use tailbound_clock::Dur;
use tailbound_route::*;

/// The score each of `n` replicas gets, by sending one request with only that replica allowed to win… that is, by asking
/// for all of them as targets, and reading the chosen one's. One router per replica, as scores of losers aren't kept.
fn scores(plugin: &str, n: u32, prepare: impl Fn(&mut Pool)) -> Vec<f64> {
    let score = |i: u32| {
        // The session scorer, at a weight nothing reaches, decides who is chosen.
        let mut pool = Pool::new(policy(&format!("{plugin} session-affinity-scorer:1000")), n);
        prepare(&mut pool);
        let id = pool.name();
        let tokens = [7; 100];
        let (id, effects) = pool.send(Arrival { id, sticky: Some(EndpointId(i)), ..arrival(&tokens) });
        assert_eq!(target(&effects), i);
        pool.router.explain(id).unwrap().scores[0]
    };
    (0..n).map(score).collect()
}

fn close(a: &[f64], b: &[f64]) {
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} against {b:?}");
}

fn queues(pool: &mut Pool) {
    for (id, waiting, running, kv) in [(0, 0, 10, 0.5), (1, 4, 20, 0.9), (2, 10, 60, 0.0)] {
        pool.says(id, waiting, running, kv);
    }
}

#[test]
fn load_scorers_have_the_published_formulas() {
    close(&scores("queue-scorer", 3, queues), &[1.0, 0.6, 0.0]);
    close(&scores("running-requests-size-scorer", 3, queues), &[1.0, 0.8, 0.0]);
    close(&scores("kv-cache-utilization-scorer", 3, queues), &[0.5, 0.1, 1.0]);
    let load_aware = [0.5, 0.5 * (1.0 - 4.0 / 128.0), 0.5 * (1.0 - 10.0 / 128.0)];
    close(&scores("load-aware-scorer", 3, queues), &load_aware);
    close(&scores("queue-scorer", 3, |_| ()), &[1.0; 3]);
}

#[test]
fn our_own_requests_in_flight_are_scored() {
    let busy = |pool: &mut Pool| {
        for (id, requests) in [(1, 1), (2, 4)] {
            for _ in 0..requests {
                let name = pool.name();
                pool.send(Arrival { id: name, sticky: Some(EndpointId(id)), ..arrival(&[1; 1000]) });
            }
        }
    };
    close(&scores("active-request-scorer", 3, busy), &[1.0, 0.75, 0.0]);
    // What is in flight, and the 100 tokens of the request itself.
    let token = |n: f64| 1.0 - (n + 100.0) / 4_194_304.0;
    close(&scores("token-load-scorer", 3, busy), &[token(0.0), token(1000.0), token(4000.0)]);
}

#[test]
fn adapters_prefer_where_they_are() {
    let loras = |pool: &mut Pool| {
        let say = |pool: &mut Pool, id: u32, max: u32, running: &[&str], waiting: &[&str]| {
            let lora = Some(Loras { max, running, waiting });
            let now = pool.now;
            pool.hear(id, Signals { lora, ..Signals::idle(now) });
        };
        say(pool, 0, 2, &["m", "x"], &[]);
        say(pool, 1, 2, &["x"], &[]);
        say(pool, 2, 1, &["x"], &["m"]);
        say(pool, 3, 1, &["x"], &[]);
    };
    close(&scores("lora-affinity-scorer", 4, loras), &[1.0, 0.8, 0.6, 0.0]);
}

#[test]
fn a_range_of_lengths_is_scored_by_fit() {
    let mut pool = Pool::new(policy("context-length-aware"), 0);
    pool.join(0, &[("llm-d.ai/context-length-range", "0-2048")]);
    pool.join(1, &[("llm-d.ai/context-length-range", "2048-8192")]);
    pool.join(2, &[]);
    assert_eq!(target(&pool.ask(100).1), 0);
    assert_eq!(target(&pool.ask(4000).1), 1);
    // Far out of every range, whoever says nothing is better than whoever says no.
    assert_eq!(target(&pool.ask(60_000).1), 2);
}

#[test]
fn cold_requests_go_where_one_went_longest_ago() {
    let mut pool = Pool::new(policy("no-hit-lru-scorer"), 3);
    let first: Vec<u32> = (0..3).map(|_| target(&pool.ask(64).1)).collect();
    let mut all = first.clone();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2], "those never used come first");
    let second: Vec<u32> = (0..3).map(|_| target(&pool.ask(64).1)).collect();
    assert_eq!(second, first);
}

#[test]
fn attributes_are_filtered_and_scored_as_configured() {
    let body = "
plugins:
- {type: endpoint-attribute-filter, name: f, parameters: {attribute: gpu, fallbackOnEmpty: true,
   algorithm: {type: threshold, threshold: {operator: LessThanOrEqual, value: 0.9}}}}
- {type: endpoint-attribute-scorer, name: s, parameters: {attributeKey: gpu,
   algorithm: {type: linear_lower_is_better, normalization: {fixedRange: {min: 0, max: 1}}}}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: f}, {pluginRef: s}]}
";
    let mut pool = Pool::new(yaml(body), 3);
    for (id, gpu) in [(0, 0.95), (1, 0.7), (2, 0.4)] {
        let now = pool.now;
        pool.hear(id, Signals { attributes: &[("gpu", gpu)], ..Signals::idle(now) });
    }
    let (id, effects) = pool.ask(10);
    assert_eq!(target(&effects), 2);
    let decision = pool.router.explain(id).unwrap();
    assert_eq!(decision.candidates, 2);
    close(&decision.scores[..1], &[0.6]);
}

/// How often each of `n` idle replicas is picked.
fn counts(policy: Policy, n: u32, picks: u32, mut before: impl FnMut(&mut Pool)) -> Vec<u32> {
    let mut pool = Pool::new(policy, n);
    before(&mut pool);
    let mut counts = vec![0; n as usize];
    for _ in 0..picks {
        let (id, effects) = pool.ask(10);
        counts[target(&effects) as usize] += 1;
        pool.end(id);
    }
    counts
}

#[test]
fn weighted_random_is_in_proportion_to_the_score() {
    let kv = |pool: &mut Pool| {
        pool.says(0, 0, 0, 0.8);
        pool.says(1, 0, 0, 0.4);
        pool.says(2, 0, 0, 1.0);
    };
    let counts = counts(policy("kv-cache-utilization-scorer weighted-random-picker"), 3, 8000, kv);
    assert_eq!(counts[2], 0, "a score of 0 is never drawn while others have more");
    assert!((1_850..2_150).contains(&counts[0]), "a quarter of 8000: {counts:?}");
}

#[test]
fn several_targets_are_different_and_best_first() {
    let body = "
plugins:
- {type: queue-scorer}
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 3}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}
";
    let mut pool = Pool::new(yaml(body), 4);
    (0..4).for_each(|id| drop(pool.says(id, 10 - id, 0, 0.0)));
    let (_, effects) = pool.ask(10);
    let Effect::Dispatch(d) = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(&*d.to, &[EndpointId(3), EndpointId(2), EndpointId(1)]);
}

#[test]
fn round_robin_visits_everybody_in_turn() {
    assert_eq!(counts(policy("round-robin-picker"), 5, 100, |_| ()), [20; 5]);
}

#[test]
fn two_choices_keep_loads_closer_than_one() {
    let spread = |picker: &str| {
        let mut pool = Pool::new(policy(picker), 50);
        (0..500).for_each(|_| drop(pool.ask(10)));
        (0..50).map(|id| pool.load(id).requests).max().unwrap()
    };
    let (random, two, least) = (spread("random-picker"), spread("power-of-two-picker"), spread("least-load-picker"));
    assert_eq!(least, 10);
    assert!(two < random && two <= 14, "most at one of 50: two choices {two}, random {random}, of a mean of 10");
}

#[test]
fn the_ring_moves_only_whom_it_must() {
    let home = |pool: &mut Pool, session: &str| {
        let id = pool.name();
        let (id, effects) = pool.send(Arrival { id, session: Some(session), ..arrival(&[1, 2, 3]) });
        pool.end(id);
        target(&effects)
    };
    let mut pool = Pool::new(policy("consistent-hash-picker"), 10);
    let sessions: Vec<String> = (0..400).map(|i| format!("s{i}")).collect();
    let before: Vec<u32> = sessions.iter().map(|s| home(&mut pool, s)).collect();
    pool.on(Event::Left(EndpointId(3)));
    let after: Vec<u32> = sessions.iter().map(|s| home(&mut pool, s)).collect();
    for (b, a) in before.iter().zip(&after) {
        assert!(*b == 3 || a == b, "{b} moved to {a}");
        assert_ne!(*a, 3);
    }
    assert!((15..75).contains(&before.iter().filter(|b| **b == 3).count()));
}

#[test]
fn dynamos_cost_weighs_overlap_against_load() {
    let body = "
plugins:
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: dynamo-cost-picker}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: dynamo-cost-picker}]}
";
    let mut pool = Pool::new(yaml(body), 2);
    let prompt: Vec<u32> = (0..320).collect();
    let (first, effects) = pool.prompt(&prompt);
    let home = target(&effects);
    // 20 blocks overlap; what is in flight there weighs 40 (to be computed, and decoded over): the other one is cheaper.
    assert_eq!(target(&pool.prompt(&prompt).1), 1 - home);
    pool.on(Event::FirstToken(first));
    pool.end(first);
    pool.pass(Dur::from_secs(1));
    assert_eq!(target(&pool.prompt(&prompt[..160]).1), home, "idle again, the overlap decides");
}

#[test]
fn cache_aware_follows_the_prefix_until_loads_are_apart() {
    let policy = yaml(
        "plugins:
- {type: approx-prefix-cache-producer, parameters: {autoTune: false}}
- {type: cache-aware-picker, parameters: {cacheThreshold: 0.5, balanceAbsThreshold: 4, balanceRelThreshold: 1.5}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: cache-aware-picker}]}
",
    );
    let mut pool = Pool::new(policy, 3);
    let prompt: Vec<u32> = (0..320).collect();
    let home = target(&pool.prompt(&prompt).1);
    let mut half = prompt[..160].to_vec();
    half.extend(1000..1160);
    assert_ne!(target(&pool.prompt(&half).1), home, "half a match isn't more than half: the least load takes it");
    for _ in 0..4 {
        assert_eq!(
            target(&pool.prompt(&prompt).1),
            home,
            "five there and none elsewhere is four apart: not yet too far"
        );
    }
    assert_ne!(target(&pool.prompt(&prompt).1), home, "now it is");
}
