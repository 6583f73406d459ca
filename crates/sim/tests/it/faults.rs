//! The policy faults that users of other routers hit (reference's section 7, by number), and what goes wrong with replicas:
//! none can do its harm. Where the harm can be had here too, by a policy that reads scrapes alone or by doing without a safeguard,
//! it is shown first.

use crate::HEAD;
use crate::policy::ttft;
use proptest::prelude::*;
use tailbound_record::{Cause, End, Row};
use tailbound_sim::{Outcome, Scenario, run};

const LEAST: &str = "
plugins: [{type: least-load-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: least-load-picker}]}]
";

const QUEUE: &str = "
plugins: [{type: queue-scorer}, {type: running-requests-size-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: running-requests-size-scorer}]}]
";

const RUNNING: &str = "
plugins: [{type: running-requests-size-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: running-requests-size-scorer}]}]
";

/// Reads what the last scrape said, and nothing else.
const SCRAPES_ALONE: &str = "
plugins:
- type: endpoint-attribute-scorer
  parameters: {attributeKey: 'vllm:num_requests_running', algorithm: {type: linear_lower_is_better, normalization: {}}}
schedulingProfiles: [{name: default, plugins: [{pluginRef: endpoint-attribute-scorer}]}]
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
- {type: running-requests-size-scorer}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: running-requests-size-scorer}
";

/// Four replicas and single questions, unless `rest` says otherwise.
fn fleet(policy: &str, law: &str, seconds: u32, rest: &str) -> Scenario {
    let text = format!(
        "seed = 11
policy = '''
{HEAD}{policy}'''
[engines]
count = 4
profile = 'llama-3.1-8b-h100'
max_num_seqs = 64
[traffic.arrivals]
law = '{law}'
for_s = {seconds}
[traffic.lengths]
input = 'lognormal:mean=800,cv=0.8,max=6000'
output = 'uniform:50..150'
{rest}"
    );
    Scenario::from_toml(&text).unwrap()
}

/// Twenty beginnings of 2,000 tokens, of which each replica holds a part.
fn with_beginnings(policy: &str, rest: &str) -> Scenario {
    let mut scenario = fleet(policy, "poisson:30/s", 60, rest);
    scenario.engines[0].kv_tokens = Some(60_000);
    scenario.engines[0].max_model_len = Some(10_000);
    let lengths = scenario.traffic[0].lengths.as_mut().unwrap();
    lengths.input = "uniform:50..200".into();
    lengths.prefix = Some(tailbound_sim::Prefix { groups: 20, tokens: 2000, zipf: 0.0 });
    scenario
}

/// Requests by replica.
fn shares<'a>(rows: impl IntoIterator<Item = &'a Row>) -> [f64; 4] {
    let mut all = [0.0; 4];
    rows.into_iter().for_each(|row| all[row.worker as usize] += 1.0);
    let sum: f64 = all.iter().sum();
    all.map(|n| n / sum)
}

fn greatest(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}

/// Due within these seconds of the traffic.
fn between(outcome: &Outcome, from: f64, to: f64) -> Vec<&Row> {
    let at = |row: &Row| row.at.get(tailbound_record::Moment::Scheduled).unwrap().ns() as f64 * 1e-9 - 1.0;
    outcome.rows.iter().filter(|row| (from..to).contains(&at(row))).collect()
}

fn failed(outcome: &Outcome) -> Vec<&Row> {
    outcome.rows.iter().filter(|row| !row.ok()).collect()
}

/// 13: decisions on old metrics overshoot; what was sent since the scrape must count.
#[test]
fn metrics_of_five_seconds_ago_do_not_send_the_crowd_to_one_replica() {
    let stale = "[staleness]\nscrape_ms = 5000\n";
    let p99 = |policy, rest| ttft(&run(&fleet(policy, "poisson:90/s", 30, rest)).unwrap().rows, 0.99);
    let (fresh, old) = (p99(LEAST, ""), p99(LEAST, stale));
    let (fresh_queue, old_queue) = (p99(QUEUE, ""), p99(QUEUE, stale));
    assert!(old_queue < 3.0 * fresh_queue, "{old_queue} ms, {fresh_queue} when fresh");
    assert!(old < 1.1 * fresh, "{old} ms, {fresh} when fresh");
    // Nor when all there is to go by is what runs.
    let (fresh_running, old_running) = (p99(RUNNING, ""), p99(RUNNING, stale));
    assert!(old_running < 2.0 * fresh_running, "{old_running} ms, {fresh_running} when fresh");
    let naive = p99(SCRAPES_ALONE, stale);
    assert!(naive > 3.0 * old_queue.max(old), "scrapes alone: {naive} ms, {old_queue} and {old}");
}

/// 12: when every metric is old, dispatch must go on.
#[test]
fn no_metrics_at_all_halt_nothing() {
    let flow = format!(
        "{}featureGates: [flowControl]\nsaturationDetector: {{pluginRef: utilization-detector}}\n",
        QUEUE.replace("plugins: [{type: queue-scorer}", "plugins: [{type: utilization-detector}, {type: queue-scorer}")
    );
    let outage = "[[faults]]\nwhat = 'no_metrics'\nat_s = 20\nfor_s = 30\n";
    let outcome = run(&fleet(&flow, "poisson:40/s", 60, outage)).unwrap();
    assert!(failed(&outcome).is_empty());
    let (before, during) = (ttft(between(&outcome, 0.0, 20.0), 0.99), ttft(between(&outcome, 25.0, 50.0), 0.99));
    assert!(during < 1.3 * before, "{during} ms in the outage, {before} before");
}

/// 18, 20: load that counts only when the answer starts sends every prefill to one replica.
#[test]
fn a_burst_between_two_scrapes_is_spread() {
    // 40 requests within 10 ms, when the last scrape saw four idle replicas but one.
    let burst = "stages = [[4000.0, 0.01]]\nstart_s = 2.0\n";
    let of = |policy: &str| {
        let mut scenario = fleet(policy, "poisson:1/s", 1, "[staleness]\nscrape_ms = 500\n");
        let text = toml::from_str(burst).unwrap();
        scenario.traffic[0].arrivals = Some(text);
        let mut first = scenario.traffic[0].clone();
        first.arrivals = Some(toml::from_str("stages = [[100.0, 0.03]]\nstart_s = 1.0\n").unwrap());
        first.lengths.as_mut().unwrap().output = "400".into();
        scenario.traffic.insert(0, first);
        let outcome = run(&scenario).unwrap();
        let rows: Vec<&Row> = outcome.rows.iter().filter(|r| r.class == 1).collect();
        assert_eq!(rows.len(), 40);
        greatest(&shares(rows))
    };
    assert!(of(QUEUE) <= 0.4 && of(LEAST) <= 0.3, "{} {}", of(QUEUE), of(LEAST));
    assert!(of(SCRAPES_ALONE) > 0.6, "scrapes alone: {}", of(SCRAPES_ALONE));
}

/// 21: at low concurrency everything is a tie, and a tie isn't always replica 0's.
#[test]
fn ties_are_nobodys() {
    for policy in [QUEUE, LEAST, PRECISE] {
        let outcome = run(&fleet(policy, "constant:1/s", 400, "")).unwrap();
        let shares = shares(&outcome.rows);
        assert!(shares.iter().all(|share| (0.17..0.33).contains(share)), "{shares:?}");
    }
}

/// 17: requests that hit no cache go by load, and not to whoever has the smallest tree.
#[test]
fn cold_requests_go_by_load() {
    let approx = "
plugins: [{type: prefix-cache-scorer}, {type: queue-scorer}, {type: running-requests-size-scorer}]
schedulingProfiles:
- name: default
  plugins: [{pluginRef: prefix-cache-scorer, weight: 3}, {pluginRef: queue-scorer}, {pluginRef: running-requests-size-scorer}]
";
    for policy in [approx, PRECISE] {
        let outcome = run(&fleet(policy, "poisson:40/s", 60, "")).unwrap();
        let shares = shares(&outcome.rows);
        assert!(greatest(&shares) < 0.28, "{shares:?}");
    }
}

/// 26: single questions under a prefix-aware cost starve nobody.
#[test]
fn dynamos_cost_starves_no_replica() {
    let dynamo = "
plugins: [{type: precise-prefix-cache-producer}, {type: dynamo-cost-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: dynamo-cost-picker}]}]
";
    let outcome = run(&fleet(dynamo, "poisson:40/s", 60, "")).unwrap();
    let shares = shares(&outcome.rows);
    assert!(shares.iter().all(|share| *share > 0.2), "{shares:?}");
}

/// 7, 27, 28: a replica dies. What it hadn't begun to answer is answered elsewhere, nothing hangs, and once discovery has seen it, its
/// warm cache draws nobody.
#[test]
fn a_death_loses_only_answers_that_had_begun() {
    let dies = "[[faults]]\nwhat = 'death'\nat_s = 20\nreplicas = [1]\nnoticed_after_s = 3\n";
    let mut scenario = with_beginnings(PRECISE, dies);
    let outcome = run(&scenario).unwrap();
    let lost = failed(&outcome);
    assert!(
        !lost.is_empty()
            && lost.iter().all(|r| r.worker == 1 && matches!(r.end, End::Failed { cause: Cause::Reset, .. }))
    );
    assert!(between(&outcome, 23.1, 60.0).iter().all(|r| r.worker != 1 && r.ok()));
    let moved = outcome.routed.iter().filter(|r| r.sent > 1).count();
    assert!(moved > 10, "{moved} were sent again");
    assert_eq!(outcome.figures.left_over, (0, 0));

    scenario.router.retries = Some(0);
    let without = failed(&run(&scenario).unwrap()).iter().filter(|r| r.net.status == 503).count();
    assert!(without > 10, "without retries {without} fail");
}

/// 24: a replica that hangs doesn't take the others with it.
#[test]
fn a_stalled_replica_holds_up_only_what_it_has() {
    let stall = "[[faults]]\nwhat = 'stall'\nat_s = 20\nfor_s = 20\nreplicas = [2]\n";
    let held = |policy| {
        let outcome = run(&fleet(policy, "poisson:30/s", 60, stall)).unwrap();
        assert!(failed(&outcome).is_empty());
        let late = |r: &&&Row| r.ttft_scheduled().is_some_and(|d| d.ms() > 2000.0);
        between(&outcome, 20.0, 40.0).iter().filter(late).count()
    };
    // It gets no more than its load, which no longer falls, allows.
    let (least, round_robin) = (held(LEAST), held(ROUND_ROBIN));
    assert!(least < 25, "{least}");
    assert!(round_robin > 120, "in turn: {round_robin}");
}

/// 8: an engine restarted in place under the same name. Its numbers of KV events begin anew, and what the index says of it goes.
#[test]
fn phantom_blocks_of_a_restarted_engine_are_forgotten() {
    let of = |fault: &str| {
        let rest = format!("[[faults]]\nwhat = '{fault}'\nat_s = 30\nfor_s = 0\nreplicas = [0]\n");
        let outcome = run(&with_beginnings(PRECISE, &rest)).unwrap();
        (ttft(between(&outcome, 31.0, 60.0), 0.9), outcome.figures.hit_ratio)
    };
    let (unseen, never) = (of("restart"), {
        let outcome = run(&with_beginnings(PRECISE, "")).unwrap();
        (ttft(between(&outcome, 31.0, 60.0), 0.9), outcome.figures.hit_ratio)
    });
    assert!(unseen.0 < 1.3 * never.0 && unseen.1 > never.1 - 0.05, "{unseen:?} {never:?}");
}

/// 16: KV events that are lost are noticed by their numbers, and the index recovers.
#[test]
fn lost_kv_events_are_made_good() {
    let rest = "[[faults]]\nwhat = 'no_events'\nat_s = 15\nfor_s = 10\n";
    let (lost, whole) = (run(&with_beginnings(PRECISE, rest)).unwrap(), run(&with_beginnings(PRECISE, "")).unwrap());
    let late = |o: &Outcome| ttft(between(o, 35.0, 60.0), 0.9);
    assert!(late(&lost) < 1.2 * late(&whole), "{} {}", late(&lost), late(&whole));
}

/// 14: 503 where there is no capacity, 429 where it is taken.
#[test]
fn refusals_say_whether_capacity_exists() {
    let none = "[[faults]]\nwhat = 'death'\nat_s = 10\n";
    let outcome = run(&fleet(LEAST, "poisson:10/s", 20, none)).unwrap();
    assert!(between(&outcome, 10.5, 20.0).iter().all(|r| r.net.status == 503));
    let bounded = "
plugins: [{type: least-load-picker}, {type: concurrency-detector, parameters: {maxConcurrency: 4}}]
saturationDetector: {pluginRef: concurrency-detector}
schedulingProfiles: [{name: default, plugins: [{pluginRef: least-load-picker}]}]
";
    let mut scenario = fleet(bounded, "poisson:60/s", 20, "");
    scenario.traffic[0].priority = -1;
    let outcome = run(&scenario).unwrap();
    let refused = failed(&outcome);
    assert!(refused.len() > 200 && refused.iter().all(|r| r.net.status == 429), "{}", refused.len());
}

#[derive(Clone, Debug)]
struct Hurt {
    what: &'static str,
    at: f64,
    lasts: f64,
    replica: u32,
    noticed: f64,
}

fn hurts() -> impl Strategy<Value = Vec<Hurt>> {
    let what = prop::sample::select(vec!["death", "restart", "stall", "slow", "no_metrics", "no_events"]);
    let one = (what, 0.0..8.0f64, 0.0..6.0f64, 0u32..4, 0.0..3.0f64);
    let one = one.prop_map(|(what, at, lasts, replica, noticed)| Hurt { what, at, lasts, replica, noticed });
    prop::collection::vec(one, 0..6)
}

const QUEUED: &str = "
featureGates: [flowControl]
plugins:
- {type: least-load-picker}
- {type: concurrency-detector, parameters: {maxConcurrency: 6}}
saturationDetector: {pluginRef: concurrency-detector}
flowControl: {maxRequests: 40, defaultRequestTTL: 3s}
schedulingProfiles: [{name: default, plugins: [{pluginRef: least-load-picker}]}]
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// 19, 22, 27 and the rest: whatever happens, every request ends once, no load is left behind, and the index keeps its bound.
    #[test]
    fn under_random_faults_nothing_is_lost_or_left(
        policy in prop::sample::select(vec![LEAST, QUEUE, PRECISE, QUEUED, ROUND_ROBIN]),
        hurts in hurts(), seed in 0u64..1000, leaving in 0.0..0.5f64, priority in -1i32..2,
    ) {
        let faults: String = hurts.iter().map(|h| format!(
            "[[faults]]\nwhat = '{}'\nat_s = {:.3}\nfor_s = {:.3}\nreplicas = [{}]\nnoticed_after_s = {:.3}\n",
            h.what, h.at, h.lasts, h.replica, h.noticed
        )).collect();
        let mut scenario = fleet(policy, "poisson:40/s", 10, &faults);
        scenario.seed = seed;
        scenario.engines[0].kv_tokens = Some(20_000);
        scenario.engines[0].max_model_len = Some(8_000);
        scenario.traffic[0].leaving = Some(tailbound_sim::Leaving { share: leaving, after_ms: 400.0 });
        scenario.traffic[0].priority = priority;
        let requests = tailbound_sim::arrivals(&scenario).unwrap().len() as u64;
        let outcome = run(&scenario).unwrap();
        prop_assert!(outcome.rows.iter().map(|row| row.id).eq(0..requests));
        prop_assert!(outcome.rows.iter().all(|row| !matches!(row.end, End::NeverSent(_))));
        prop_assert_eq!(outcome.figures.left_over, (0, 0));
        // Each replica's blocks, and what was only just sent there.
        let bound = 4 * 20_000 / 16 + 4 * 64 * 8_000 / 16;
        prop_assert!(outcome.figures.most_indexed <= bound, "{}", outcome.figures.most_indexed);
    }
}
